// Package once reads JSON that people and their programs write: one value, which says everything once.
//
// A key that stands twice in an object means two things, and encoding/json takes the last without a word:
// whoever wrote it loses the other, and never learns of it. So it is an error here, at whatever depth, and
// says which key it is. What a package of ours has written itself needs none of this.
//
// It imports no other package of ours; cmd/mutirao, node/api/httpapi, node/datasets, node/runner,
// node/web and workflow import it.
package once

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrMore is the error of a text in which something follows the value.
var ErrMore = errors.New("something follows the JSON value")

// Twice is the error of a key that stands twice in one object.
type Twice struct{ Key string }

func (t *Twice) Error() string {
	return fmt.Sprintf("the key %q is there twice in one object: write it once", cut(t.Key))
}

// maxKey bounds how much of a key an error names, in runes.
const maxKey = 60

func cut(s string) string {
	if r := []rune(s); len(r) > maxKey {
		return string(r[:maxKey]) + "…"
	}
	return s
}

// Decode reads a text that is one JSON value, in which no key stands twice. Numbers keep their digits (json.Number)
// where into does not say their type.
func Decode(b []byte, into any) error { return decode(b, into, false) }

// DecodeStrict is Decode that refuses keys which into has no field for, spelled as it is there.
func DecodeStrict(b []byte, into any) error { return decode(b, into, true) }

func decode(b []byte, into any, strict bool) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if strict {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(into); err != nil {
		return inWords(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return ErrMore
	}
	if err := Check(b); err != nil || !strict {
		return err
	}
	return spelled(b, into)
}

// Check says which key stands twice in a JSON value; nil: none does. A text that is no JSON is for whoever reads it.
func Check(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	// object is one that is being read: the keys that it has so far, and whether a key comes next.
	type object struct {
		keys map[string]bool
		next bool
	}
	var open []*object // nil: a list
	for {
		tk, err := dec.Token()
		if err != nil {
			return nil
		}
		var in *object
		if len(open) > 0 {
			in = open[len(open)-1]
		}
		if key, is := tk.(string); is && in != nil && in.next {
			if in.keys[key] {
				return &Twice{key}
			}
			in.keys[key], in.next = true, false
			continue
		}
		switch tk {
		case json.Delim('{'):
			open = append(open, &object{keys: map[string]bool{}, next: true})
			continue
		case json.Delim('['):
			open = append(open, nil)
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
			if in = nil; len(open) > 0 {
				in = open[len(open)-1]
			}
		}
		if in != nil {
			in.next = true
		}
	}
}
