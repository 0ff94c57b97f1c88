package index

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// naiveIndex finds by looking at all instances what the index finds in order.
type naiveIndex struct{ *List }

func (x naiveIndex) those(fn func(workflow.InstanceID, Summary) bool) (out []workflow.InstanceID) {
	for id, sum := range x.all {
		if _, aside := x.aside[id]; !aside && fn(id, sum) {
			out = append(out, id)
		}
	}
	return out
}

// newest are the first n by their ends.
func (x naiveIndex) newest(ids []workflow.InstanceID, n int) []workflow.InstanceID {
	slices.SortFunc(ids, func(a, b workflow.InstanceID) int {
		return cmp.Or(cmp.Compare(x.all[b].Ended, x.all[a].Ended), a.Compare(b))
	})
	return ids[:min(n, len(ids))]
}

func (x naiveIndex) settled(n int) []workflow.InstanceID {
	return x.newest(x.those(func(_ workflow.InstanceID, s Summary) bool { return s.over() && s.Settled }), n)
}

func (x naiveIndex) shared(p workflow.PartnerID, n int) []workflow.InstanceID {
	return x.newest(x.those(func(_ workflow.InstanceID, s Summary) bool {
		return s.over() && slices.Contains(strings.Fields(s.With), string(p))
	}), n)
}

func (x naiveIndex) uses() map[workflow.Hash]bool {
	out := map[workflow.Hash]bool{}
	for _, s := range x.all {
		if s.Definition == (workflow.Hash{}) {
			return nil
		}
		out[s.Definition] = true
		for _, h := range strings.Fields(s.Uses) {
			b, _ := hex.DecodeString(h)
			out[workflow.Hash(b)] = true
		}
	}
	return out
}

func (x naiveIndex) beganFor(by, self workflow.PartnerID) (n int) {
	for _, s := range x.all {
		p, part := ReadPart(s.Of)
		if part && s.State == workflow.InstanceRunning && s.By == self && x.all[p.Instance].By == by {
			n++
		}
	}
	return n
}

// told are the instances whose ends somebody is told, of each charge and who began some the newest.
func (x naiveIndex) told(of map[Charge]bool, but map[workflow.InstanceID]bool, most int) []workflow.InstanceID {
	type who struct {
		c  Charge
		by workflow.PartnerID
	}
	all := map[who][]workflow.InstanceID{}
	for id, n := range x.news {
		c := Charge{n.Responsible, x.all[id].Definition}
		if x.all[id].Ended > 0 && of[c] && !but[id] {
			all[who{c, x.all[id].By}] = append(all[who{c, x.all[id].By}], id)
		}
	}
	out := []workflow.InstanceID{}
	for _, ids := range all {
		out = append(out, x.newest(ids, most)...)
	}
	slices.SortFunc(out, workflow.InstanceID.Compare)
	return out
}

// toldOf are the same as the index finds them.
func toldOf(x *List, of map[Charge]bool, but map[workflow.InstanceID]bool, most int) []workflow.InstanceID {
	out := []workflow.InstanceID{}
	x.Told(of, but, most, func(workflow.PartnerID) bool { return false }, func(m worklist.Message, by workflow.PartnerID) {
		if m.ID.Type == worklist.Ended {
			out = append(out, m.ID.Instance)
		}
	})
	slices.SortFunc(out, workflow.InstanceID.Compare)
	return out
}

// due are those whose time is over, be there room or not.
func (x naiveIndex) due(l configs.Limits, age time.Duration, self workflow.PartnerID) []workflow.InstanceID {
	ids := x.those(func(_ workflow.InstanceID, s Summary) bool {
		return s.Closable() && (s.Closed || age-s.Age >= l.Keep) && !(s.By == self && x.needed(s))
	})
	slices.SortFunc(ids, func(a, b workflow.InstanceID) int {
		first := func(id workflow.InstanceID) int {
			if x.all[id].Closed {
				return 0
			}
			return 1
		}
		if n := first(a) - first(b); n != 0 || first(a) == 0 {
			return cmp.Or(n, a.Compare(b))
		}
		return cmp.Or(cmp.Compare(x.all[a].Age, x.all[b].Age), a.Compare(b))
	})
	return ids
}

func numbered(n int) (id workflow.InstanceID) {
	binary.BigEndian.PutUint32(id[:], uint32(n*2654435761))
	binary.BigEndian.PutUint32(id[12:], uint32(n))
	return id
}

// What is due, newest, shared or used is found as by looking at all instances: while they come, end, settle, are
// set aside, taken back and given up.
func TestWhatIsDueIsFoundAsByLookingAtAll(t *testing.T) {
	r, x := rand.New(rand.NewPCG(5, 17)), New()
	limits := configs.Default(configs.LAN).Limits // there is room for all of these
	states := []workflow.InstanceState{
		"", workflow.InstanceRunning, workflow.InstanceSucceeded, workflow.InstanceFailed, workflow.InstanceCancelled,
	}
	hash := func(n int) (h workflow.Hash) { h[0] = byte(n); return h } // of 0: it is not known
	partners := []string{"ann", "ben", "zoe"}
	for range 4_000 {
		switch n := numbered(r.IntN(50)); r.IntN(10) {
		case 0:
			x.SetAside(n, SetAside{Since: 5, Why: "cannot be read"})
		case 1:
			x.TakeBack(n)
		case 2:
			x.Drop(n)
			delete(x.aside, n)
		case 3, 4:
			x.Tell(n, News{Responsible: worklist.User(partners[r.IntN(3)])})
		default:
			s := Summary{
				State: states[r.IntN(len(states))], By: workflow.PartnerID(partners[r.IntN(3)]),
				Ended: int64(r.IntN(9)), Age: time.Duration(r.IntN(40)) * 24 * time.Hour, Settled: r.IntN(3) > 0,
				Open: r.IntN(4) == 0, With: strings.Join(partners[r.IntN(3):], " "), Started: int64(r.IntN(9)),
				Definition: hash(min(r.IntN(200), 4)),
			}
			if r.IntN(3) == 0 { // it is for a task of another one
				s.Of = PartOf(&fact.Parent{Instance: numbered(int(n[15]) / 2), Attempt: fact.AttemptID{Slot: "t"},
					Try: 1})
			}
			if was, listed := x.Get(n); listed && was.By != "" {
				s.By, s.Of = was.By, was.Of // neither ever changes
			}
			if s.Closed = s.Settled && r.IntN(9) == 0; r.IntN(3) == 0 {
				h := hash(9)
				s.Uses = hex.EncodeToString(h[:])
			}
			x.Put(n, s)
		}
		naive, most := naiveIndex{x}, 1+r.IntN(12)
		if got, want := x.Settled(most), naive.settled(most); !slices.Equal(got, want) {
			t.Fatalf("the %d settled last are %v, want %v", most, got, want)
		}
		p := workflow.PartnerID(partners[r.IntN(3)])
		var shared []workflow.InstanceID
		for _, e := range x.Shared(p, most) {
			shared = append(shared, e.ID)
		}
		if want := naive.shared(p, most); !slices.Equal(shared, want) {
			t.Fatalf("shared with %s are %v, want %v", p, shared, want)
		}
		age := time.Duration(r.IntN(60)) * 24 * time.Hour
		got, want := x.Closable(limits, age, "ann", most), naive.due(limits, age, "ann")
		if want = want[:min(most, len(want))]; !slices.Equal(got, want) {
			t.Fatalf("given up at %s are %v, want %v", age, got, want)
		}
		for _, by := range partners {
			if got, want := x.BeganFor(workflow.PartnerID(by), "ben"), naive.beganFor(workflow.PartnerID(by),
				"ben"); got != want {
				t.Fatalf("ben has %d under way for those of %s, want %d", got, by, want)
			}
		}
		charges, but := x.Charges(), map[workflow.InstanceID]bool{numbered(r.IntN(50)): true}
		for c := range charges {
			charges[c] = r.IntN(3) > 0
		}
		if got, want := toldOf(x, charges, but, most), naive.told(charges, but, most); !slices.Equal(got, want) {
			t.Fatalf("told are %v, want %v", got, want)
		}
		uses, used := x.Uses(), naive.uses()
		if (uses == nil) != (used == nil) {
			t.Fatalf("what is used is known: %t, want %t", uses != nil, used != nil)
		}
		for n := range 10 {
			if uses != nil && uses(hash(n)) != used[hash(n)] {
				t.Fatalf("definition %d is used: %t, want %t", n, uses(hash(n)), used[hash(n)])
			}
		}
	}
}

// Where nothing is due it is not looked for among all that are held; nor where one is.
func TestWhatIsDueCostsNoMoreWhereMoreAreHeld(t *testing.T) {
	limits := configs.Default(configs.LAN).Limits
	for _, held := range []int{100, 20_000} {
		x := New()
		for n := range held {
			x.Put(numbered(n), Summary{
				State: workflow.InstanceSucceeded, By: "ann", Settled: true, With: "ann ben", Ended: int64(n),
				Age: limits.Keep + time.Duration(n), Definition: workflow.Hash{1},
			})
			x.Tell(numbered(n), News{Responsible: "ann"})
		}
		ann := map[Charge]bool{{"ann", workflow.Hash{1}}: true}
		ben := map[Charge]bool{{"ben", workflow.Hash{1}}: true}
		for _, look := range []struct {
			what  string
			steps int
			do    func() int
			found int
		}{
			{"what is due, where nothing is", 1, func() int { return len(x.Closable(limits, limits.Keep, "ann", 64)) },
				0},
			{"what is due, where three are", 4, func() int {
				return len(x.Closable(limits, 2*limits.Keep+2, "ann",
					64))
			}, 3},
			{"what is due, where all are", 64, func() int { return len(x.Closable(limits, 9*limits.Keep, "ann", 64)) },
				64},
			{"the newest", 10, func() int { return len(x.Settled(10)) }, 10},
			{"the newest that are shared", 10, func() int { return len(x.Shared("ben", 10)) }, 10},
			{"what somebody answers for", 1, func() int { return len(x.Charges()) }, 1},
			{"what others are told of", 0, func() int { return len(toldOf(x, ben, nil, 10)) }, 0},
			{"the newest of which one is told", 10, func() int { return len(toldOf(x, ann, nil, 10)) }, 10},
			{"what is used", 0, func() int { x.Uses()(workflow.Hash{1}); return 0 }, 0},
		} {
			before := x.steps
			if found := look.do(); found != look.found {
				t.Errorf("of %d held, %s: %d found, want %d", held, look.what, found, look.found)
			}
			if steps := x.steps - before; steps > look.steps {
				t.Errorf("of %d held, %s: %d were looked at, want %d", held, look.what, steps, look.steps)
			}
		}
	}
}
