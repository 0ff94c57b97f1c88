package workflow

import (
	"strings"
	"testing"
)

// What undoes a transition is its application's: triggers that share one have what one of them says, and two that say it
// unlike are a mistake in a file that somebody wrote. What is stored, or partners have, may be so, and stays as it is.
func TestTransitionsAreUndoneAlike(t *testing.T) {
	const head = "workflow: w\ndata: {n: {type: integer, default: 0}}\nfinal: n == 9\ntasks:\n"
	const undo, other = ", compensate: {application: undo}", ", compensate: {application: other}"
	task := func(name, with, more string) string {
		return "  " + name + ": {when: n >= 0, repeat: true, application: move" + with + ", out: [n]" + more + "}\n"
	}
	undone := func(d *Definition) string {
		var out []string
		for _, t := range d.Written() {
			if t.Compensate != nil {
				out = append(out, string(t.Name)+":"+string(t.Compensate.Application))
			}
		}
		return strings.Join(out, " ")
	}
	for _, c := range []struct{ what, tasks, stored, want string }{
		{"one says it", task("a", "", "") + task("b", "", undo) + task("c", "", ""), "b:undo", "a:undo b:undo c:undo"},
		{"both say it alike", task("a", "", undo) + task("b", "", ", compensate: undo"), "a:undo b:undo", "a:undo b:undo"},
		{"both say it unlike", task("a", "", undo) + task("b", "", other), "a:undo b:other",
			"w.yaml:6:76: what undoes b is said otherwise at a, in line 5, and both are the transition move " +
				"(leave it out here: what undoes it is said once, and holds for both)"},
		{"other arguments", task("a", ", with: {to: 1}", undo) + task("b", ", with: {to: 2}", other) + task("c", "", ""),
			"a:undo b:other", "a:undo b:other"},
		{"another application", task("a", "", undo) + "  b: {when: n > 3, repeat: true, application: lift, out: [n]}\n",
			"a:undo", "a:undo"},
		{"built in", "  a: {when: n > 3, repeat: true, compensate: undo}\n  b: {when: n < 3, repeat: true}\n", "a:undo", "a:undo"},
		{"no data-state flow", "  a: {application: move, out: [n], compensate: undo}\n  b: {after: a, application: move}\n",
			"a:undo", "a:undo"},
		{"what it sets must be under out", "  a: {when: n > 3, repeat: true, application: move, out: [n], " +
			"compensate: {application: set, with: {n: 1}}}\n  b: {when: n < 3, repeat: true, application: move}\n", "a:set",
			"w.yaml:6:3: b is undone as task a says in line 5, as both are the transition move: set writes n there, " +
				"which is not in out of b (add it to out:)"},
	} {
		stored, err := Parse("w.yaml", []byte(head+c.tasks))
		if err != nil || undone(stored) != c.stored {
			t.Errorf("%s: stored it undoes %v, %v, want %s", c.what, stored, err, c.stored)
			continue
		}
		d, err := ParseWith("w.yaml", []byte(head+c.tasks), nil)
		got := ""
		if err != nil {
			got = err.Error()
		} else if got = undone(d); true {
			again, err := Parse("w.yaml", d.Canonical())
			if err != nil || again.Hash() != d.Hash() || undone(again) != got {
				t.Errorf("%s: as it is stored it is another: %v", c.what, err)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}
