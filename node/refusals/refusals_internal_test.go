package refusals

import (
	"fmt"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

func TestRefusalsAreBounded(t *testing.T) {
	r := New(func(workflow.PartnerID) bool { return true })
	now := time.UnixMilli(0)
	tick := func() time.Time { now = now.Add(time.Second); return now }
	for i := range 2 * maxReasons {
		r.Count("eve", fmt.Sprint("reason-", i), tick())
	}
	r.Count("eve", "reason-0", tick())
	list := r.List("eve")
	if len(list) != maxReasons+1 {
		t.Fatalf("%d reasons are counted of one member, want %d and one for all others", len(list), maxReasons)
	}
	if a, b := list[0], list[1]; a.Reason != otherReason || a.Times != maxReasons || b.Reason != "reason-0" ||
		b.Times != 2 || !b.Last.Equal(now) {
		t.Errorf("counted %+v, want %d for other reasons and two for the first", list[:2], maxReasons)
	}
	for i := range maxRefused {
		r.Count(workflow.PartnerID(fmt.Sprint("member-", i)), "look", tick())
	}
	if len(r.of) != maxRefused {
		t.Errorf("%d members are counted, want %d", len(r.of), maxRefused)
	}
	if len(r.List("eve")) != 0 {
		t.Error("the member refused longest ago is still counted")
	}
	if l := r.List("member-0"); len(l) != 1 || l[0].Times != 1 {
		t.Errorf("of the first of the others %+v is counted, want one", l)
	}
}

// found are findings, each in a line.
type found []string

func (f *found) OK(_, format string, args ...any) {
	*f = append(*f, "ok "+fmt.Sprintf(format, args...))
}
func (f *found) Warn(_, what, mend string) { *f = append(*f, "warning "+what+" → "+mend) }

// Whoever lists a workflow under a name that is taken may not have heard of that: nobody is blamed for it.
func TestANameThatIsTakenBlamesNobody(t *testing.T) {
	r, now := New(func(workflow.PartnerID) bool { return true }), time.UnixMilli(0)
	r.Count("bea", "definition-of-anothers-name", now)
	var got found
	r.Check(now, []workflow.PartnerID{"bea"}, func(p workflow.PartnerID) string { return string(p) }, &got)
	want := "ok of bea: 1 × workflows under names that belong to others, which are not listed here"
	if len(got) != 1 || got[0] != want {
		t.Errorf("found %q, want %q", got, want)
	}
}
