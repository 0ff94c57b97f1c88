package runner

import (
	"context"
	"fmt"
	"strings"
)

// limited keeps what is written to it, up to max bytes; more than that ends
// the run. (It embeds no bytes.Buffer: io.Copy would use the buffer's ReadFrom
// and never ask about the limit.)
type limited struct {
	max  int64
	full context.CancelCauseFunc
	b    []byte
}

func (l *limited) Write(p []byte) (int, error) {
	if int64(len(l.b)+len(p)) > l.max {
		err := fmt.Errorf("wrote more than its output limit of %d bytes", l.max)
		l.full(err)
		return 0, err
	}
	l.b = append(l.b, p...)
	return len(p), nil
}

// tail keeps the last max bytes written to it.
type tail struct {
	max int
	b   []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p[max(0, len(p)-t.max):]...)
	if extra := len(t.b) - t.max; extra > 0 {
		t.b = append(t.b[:0], t.b[extra:]...)
	}
	return len(p), nil
}

// lastLines returns the last n lines that say something.
func (t *tail) lastLines(n int) string {
	var lines []string
	for line := range strings.Lines(strings.ToValidUTF8(string(t.b), "�")) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
