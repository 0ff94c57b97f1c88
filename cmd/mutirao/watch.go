package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// document is what a command prints: v for programs, text for people. More
// reports whether it can still change.
type document struct {
	v    any
	text func(io.Writer)
	more bool
	same any // unless nil: what of v must differ for it to have changed
}

// watch prints a document again whenever it has changed: on a terminal in the
// place of the one before, else below it; JSON as one line each. It ends when
// the document says that nothing more will come, or with ctx.
func (u *ui) watch(ctx context.Context, node watched, load func() (document, error)) error {
	var last []byte // as it was compared
	return follow(ctx, node, anything, func() (bool, error) {
		doc, err := load()
		if err != nil {
			return false, err
		}
		b, err := u.render(doc.v, doc.text, false)
		is := b
		if err == nil && doc.same != nil {
			is, err = json.Marshal(doc.same)
		}
		if err != nil || bytes.Equal(is, last) {
			return !doc.more, err
		}
		switch {
		case u.format == "text" && u.terminal:
			fmt.Fprint(u.out, control("[H")+control("[2J")) // home, clear
		case u.format == "text" && last != nil:
			fmt.Fprintln(u.out)
		}
		last = is
		_, err = u.out.Write(b)
		return !doc.more, err
	})
}

// show prints a document once, or watches it.
func (u *ui) show(ctx context.Context, node watched, watch bool, load func() (document, error)) error {
	if watch {
		return u.watch(ctx, node, load)
	}
	doc, err := load()
	if err != nil {
		return err
	}
	return u.result(doc.v, doc.text)
}
