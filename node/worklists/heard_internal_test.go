package worklists

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// rowsOf are as many free items of one instance each, heard at a moment.
func rowsOf(n int, at time.Time) (out []Row) {
	for i := range n {
		r := weigh("")
		r.Instance = workflow.InstanceID{1, byte(i), byte(i >> 8)}
		r.AsOf = at
		out = append(out, r)
	}
	return out
}

// modesOf are how many rows there are, and how many of them the user has.
func modesOf(rows []Row) (all, mine int) {
	for i := range rows {
		mine += min(len(rows[i].Mine), 1)
	}
	return len(rows), mine
}

// Of a partner that lists more than are remembered, what the user has is remembered whenever it was taken.
func TestWhatTheUserHasIsRememberedFirst(t *testing.T) {
	at := moment.Now{Awake: time.Hour, Wall: time.Unix(1000, 0)}
	h, rows := &heard{}, rowsOf(maxHeard+50, at.Wall)
	h.say(everywhere, rows, at, at.Awake)
	taken := slices.Clone(rows[maxHeard:])
	for i := range taken {
		taken[i].Mine = worklist.Select
	}
	h.say(taken[0].Instance, taken[:1], at, at.Awake) // a grant says it of its instance
	if all, mine := modesOf(h.rows); all != maxHeard || mine != 1 {
		t.Errorf("after one was taken %d are remembered, %d of them the user's", all, mine)
	}
	rows = append(taken, rows[:maxHeard]...) // a list has them first
	h.say(everywhere, rows, at, at.Awake)
	if all, mine := modesOf(h.rows); all != maxHeard || mine != len(taken) {
		t.Errorf("of a list %d are remembered, %d of them the user's, want %d and %d", all, mine, maxHeard, len(taken))
	}
	for i := range taken {
		rows[i].Mine, rows[i].Lost = "", "handed on" // what the user had goes before what is free, too
	}
	h.say(everywhere, rows, at, at.Awake)
	if lost := slices.DeleteFunc(slices.Clone(h.rows), func(r Row) bool { return r.Lost == "" }); len(lost) != len(taken) {
		t.Errorf("%d are remembered that the user had, want %d", len(lost), len(taken))
	}
	for i := range rows {
		rows[i].Mine = worklist.Select // more than there is room for
	}
	h.say(everywhere, rows, at, at.Awake)
	if all, mine := modesOf(h.rows); all != maxHeard || mine != maxHeard {
		t.Errorf("where all are the user's %d are remembered, %d of them the user's", all, mine)
	}
}

// An answer that was asked for before something was taken says nothing of that, and the next one does, though somebody
// set the wall clock back meanwhile.
func TestAnOlderAnswerChangesNothingNewer(t *testing.T) {
	const asked, granted, late = time.Hour, time.Hour + time.Second, time.Hour + 2*time.Second
	at := func(awake time.Duration) moment.Now {
		return moment.Now{Awake: awake, Wall: time.Unix(100_000, 0).Add(-2 * awake)}
	}
	h := &heard{}
	h.say(everywhere, rowsOf(3, at(asked).Wall), at(asked), asked)
	taken := rowsOf(3, at(granted).Wall)[:2]
	taken[0].Mine, taken[1].Mine = worklist.Select, worklist.Select
	for _, r := range taken {
		h.say(r.Instance, []Row{r}, at(granted), granted)
	}
	old := rowsOf(3, at(late).Wall)
	h.say(everywhere, []Row{old[0], old[2]}, at(late), asked)
	if all, mine := modesOf(h.rows); all != 3 || mine != 2 || len(h.gone) > 0 {
		t.Errorf("%d are remembered, %d of them the user's, and %d went", all, mine, len(h.gone))
	}
	h.say(everywhere, []Row{old[0], old[2]}, at(late), late)
	if all, mine := modesOf(h.rows); all != 2 || mine != 0 || len(h.gone) != 1 {
		t.Errorf("then %d are remembered, %d of them the user's, and %d went", all, mine, len(h.gone))
	}
}

// A list that was asked for before an item was locked forgets nothing of what the device kept of it; the next one does, if
// the holder has taken it back.
func TestAListForgetsNothingThatWasLockedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, p, _ := afar(t)
		d.in.Clock = bubbleClock{time.Now()}
		bia, locked := users.Who{ID: "bia", Name: "bia"}, weigh(worklist.Lock)
		locked.At = "base"
		lock := func() {
			time.Sleep(time.Second)
			if err := d.keep(keptOf(bia, &locked, time.Now(), &Sheet{})); err != nil {
				t.Error(err)
			}
		}
		meanwhile := sync.OnceFunc(lock)
		p.answers["base"] = func(protocol string, req []byte) any {
			meanwhile()
			return lists(weigh(""))(protocol, req)
		}
		for i, want := range []worklist.Mode{worklist.Lock, ""} {
			rows, _, err := d.rows(t.Context(), bia, listPatience)
			if err != nil || len(rows) != 1 || rows[0].Mine != want {
				t.Errorf("list %d is %v, %v: want one %q", i, rows, err, want)
			}
			if kept := d.keptFor("bia", locked.ID()); (kept != nil) != (want == worklist.Lock) {
				t.Errorf("after list %d this is kept: %v", i, kept)
			}
		}
	})
}

// What is not ready yet is in no list of those that are remembered. Where its holder, that listed it, is not there any
// more, it is said to be that one's, and not to be unknown.
func TestWhatIsNotReadyHasAHolderThatCannotBeAsked(t *testing.T) {
	d, p, _ := afar(t)
	d.in.MayLock = func() error { return nil }
	later := weigh("")
	later.Awaits = []workflow.TaskName{"feed"}
	p.answers["base"] = func(protocol string, _ []byte) any {
		if protocol == ProtocolAhead {
			return []Row{later}
		}
		return []Row{}
	}
	items, err := d.List(t.Context(), api.WorklistQuery{Ahead: true})
	if err != nil || len(items) != 1 {
		t.Fatalf("%v is listed, %v", items, err)
	}
	claim := func(item string) error {
		_, err := d.Claim(t.Context(), api.ClaimRequest{Claim: api.ClaimLock, Items: []string{item}})
		return err
	}
	delete(p.answers, "base")
	wantError(t, claim(items[0].ID), api.Refused, "base, who holds weigh, cannot be asked now")
	wantError(t, claim("0000000000000000"), api.NotFound, "there is no item")
}
