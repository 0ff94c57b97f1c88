package main

import (
	"crypto/rand"
	"io"
	"os"
	"strings"

	"github.com/mutirao-mesh/mutirao/internal/plain"
)

// terminal is the one way of a text to stdout or stderr. Whatever a command
// writes, it passes on plain, since much of it is of others: names, reasons,
// values, what a node or a program said. So no command can forget it.
//
// Its own control sequences pass: they begin with own, which nobody else can
// know. A text that is written in parts must not be cut inside a character.
type terminal struct{ w io.Writer }

// own marks a control sequence as one of this program.
var own = "\x1b" + rand.Text()

// control returns a control sequence for a terminal, e.g. [2J to clear it.
func control(sequence string) string { return own + sequence }

func (t terminal) Write(b []byte) (int, error) {
	text, marked, found := strings.Cut(string(b), own)
	var out strings.Builder
	out.WriteString(plain.Text(text))
	for found {
		text, marked, found = strings.Cut(marked, own)
		end := strings.IndexFunc(text, isLetter) + 1 // a letter ends a sequence (ECMA-48, 5.4)
		out.WriteString("\x1b" + text[:end] + plain.Text(text[end:]))
	}
	if _, err := io.WriteString(t.w, out.String()); err != nil {
		return 0, err
	}
	return len(b), nil
}

func isLetter(r rune) bool { return 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' }

// bytesTo is where content goes that is no text: as it is, but where people would see it.
func bytesTo(w io.Writer) io.Writer {
	if t, ok := w.(terminal); ok && !isTerminal(w) {
		return t.w
	}
	return w
}

func isTerminal(w io.Writer) bool {
	f, ok := fileOf(w)
	return ok && isTTY(f)
}

// window is how many columns and lines the terminal behind w has; not ok if there
// is none.
func window(w io.Writer) (columns, lines int, ok bool) {
	if f, isFile := fileOf(w); isFile {
		return windowOf(f)
	}
	return 0, 0, false
}

func fileOf(w io.Writer) (*os.File, bool) {
	if t, ok := w.(terminal); ok {
		w = t.w
	}
	f, ok := w.(*os.File)
	return f, ok
}
