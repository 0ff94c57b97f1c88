package show

import (
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func factOf(author workflow.PartnerID, at int64) fact.Received {
	return fact.Received{Fact: &fact.Fact{Chain: fact.Chain{Author: author}, At: at}}
}

// still is a clock that stands still.
type still struct{}

func (still) Now() moment.Now {
	return moment.Now{Awake: time.Hour, Boot: time.Hour, Wall: time.Unix(1_900_000_000, 0)}
}

// What somebody passes on is as old as its author says, and never newer than when it
// came: neither the partner that passes it on nor its author can make it newer than
// that.
func TestNobodyMakesTheirWordsNewer(t *testing.T) {
	const noon = int64(1_900_000_000_000)
	var w Words
	w.Came([]fact.Received{factOf("holder", noon-int64(time.Hour/time.Millisecond))}, noon)
	if got := w["holder"]; got.Written != noon-3_600_000 || got.Direct != 0 {
		t.Errorf("an hour old when it was passed on: %+v", got)
	}
	w.Came([]fact.Received{factOf("liar", noon+7_200_000)}, noon)
	if got := w["liar"]; got.Written != noon {
		t.Errorf("written two hours after it came: %+v, want when it came", got)
	}
	w.Heard("holder", time.Minute)
	w.Came([]fact.Received{factOf("holder", noon-7_200_000)}, noon)
	if got := w["holder"]; got.Written != noon-3_600_000 || got.Direct != time.Minute {
		t.Errorf("an older one after it: %+v", got)
	}
}

// A partner that shows an instance to the coordinator cannot make it newer than now,
// nor put words of its own there.
func TestShownIsRedated(t *testing.T) {
	clock := still{}
	now := clock.Now().Wall
	at := func(d time.Duration) *time.Time { x := now.Add(d); return &x }
	v := New(Surroundings{Clock: clock})
	in := &api.Instance{Told: &api.Told{By: api.Witness{Name: "witness"}}, Tasks: []api.Task{
		{Partner: "witness", Known: "trust me"},
		{Partner: "other", AsOf: at(time.Hour), Known: "fresh as the morning"},
		{Partner: "third", AsOf: at(-20 * time.Minute), Known: "just now"},
		{Partner: "fourth", Known: "heard"},
	}}
	v.Redate(in)
	for i, want := range []struct {
		at    *time.Time
		known string
	}{{&now, ""}, {&now, "as known 0 s ago"}, {at(-20 * time.Minute), "as known 20 min ago"},
		{nil, "nothing was heard of it yet"}} {
		got := in.Tasks[i]
		if got.Known != want.known || (got.AsOf == nil) != (want.at == nil) ||
			(want.at != nil && !got.AsOf.Equal(*want.at)) {
			t.Errorf("of %s: as of %v, %q; want %v, %q", got.Partner, got.AsOf, got.Known, want.at, want.known)
		}
	}
}
