package workflow

import (
	"fmt"
	"strings"
	"testing"
)

// A definition in which writes would cost too many evaluations of conditions is refused,
// of many writers or many conditions each is allowed.
func TestConditionsAreBounded(t *testing.T) {
	define := func(writers, readers, conditions int) string {
		var b strings.Builder
		b.WriteString("workflow: w\ndata: {x: {type: integer}, y: {type: integer}}\ntasks:\n")
		for i := range writers {
			fmt.Fprintf(&b, "  w%d: {out: [x]}\n", i)
		}
		for i := range readers {
			fmt.Fprintf(&b, "  r%d: {when: x > %d}\n", i, i%conditions)
		}
		return b.String()
	}
	for _, c := range []struct {
		writers, readers, conditions int
		ok                           bool
	}{{512, 512, 512, true}, {513, 512, 512, false}, {4000, 4000, 65, true}, {4000, 4000, 66, false},
		{1, 4000, 4000, true}} {
		_, err := Parse("w.yaml", []byte(define(c.writers, c.readers, c.conditions)))
		if c.ok && err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		want := fmt.Sprintf("%d tasks may write x, and rules have %d different conditions about it: in all data at most 262144 evaluations are allowed, here it may take %d (",
			c.writers, c.conditions, c.writers*c.conditions)
		if !c.ok && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v, want: %s", c, err, want)
		}
	}
}
