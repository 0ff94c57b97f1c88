package node_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
)

// own is a user as the tests of this file look at one: bia, at the tablet and at the phone.
type own struct {
	*team
	began []string // items, in the order in which they came
}

// anOwner is a mesh in which bia is signed in at the tablet and, by a link, at the phone, with three items.
func anOwner(t *testing.T) *own {
	tm := newTeam(t, "base:nurse", "tablet", "phone")
	if err := tm.signIn("tablet", tm.addUser("base", "bia", "nurse")); err != nil {
		t.Fatal(err)
	}
	pass(time.Second)
	tm.add("base", visits)
	o := &own{team: tm}
	for range 3 {
		_, item := tm.rounds("visits", nil)
		o.began = append(o.began, item)
	}
	return o
}

// link signs bia in at the phone.
func (o *own) link() {
	o.t.Helper()
	link, err := o.p["tablet"].api.LinkUser(o.t.Context(), "bia", time.Hour)
	if err == nil {
		err = o.signIn("phone", link.Token)
	}
	if err != nil {
		o.t.Fatal(err)
	}
	pass(70 * time.Second) // who is asked before it heard of the new key refuses, and is asked again after a minute
}

// kept is how many entries a node has of a kind of key.
func (o *own) kept(at string, kind byte) (n int) {
	o.t.Helper()
	err := o.p[at].disk.Scan([]byte{kind}, func(_, _ []byte) error { n++; return nil })
	if err != nil {
		o.t.Fatal(err)
	}
	return n
}

func (o *own) top(at string, item int) error {
	_, err := o.p[at].api.MoveItem(o.t.Context(), api.MoveRequest{User: "bia", Item: o.began[item], Top: true})
	return err
}

func (o *own) prefetch(at string, on bool) {
	o.t.Helper()
	r := api.PrefetchRequest{User: "bia", On: on, AtMost: 5000}
	if _, err := o.p[at].api.SetPrefetch(o.t.Context(), r); err != nil {
		o.t.Fatal(err)
	}
}

func (o *own) want(on bool, order []int, at ...string) {
	o.t.Helper()
	for _, p := range at {
		if got := o.byHand(p, "bia", o.began); !slices.Equal(got, order) {
			o.t.Errorf("at the %s bia has %v, want %v", p, got, order)
		}
		if got, err := o.p[p].api.Prefetch(o.t.Context(), "bia"); err != nil || got.On != on || on && got.AtMost != 5000 {
			o.t.Errorf("at the %s files come before they are needed: %+v, %v; want %t", p, got, err, on)
		}
	}
}

// What a user set at one node is so at another of that user: from when that is linked, after each change within
// seconds, with an event for open pages, also across a crash. A node at which the user is not is told nothing.
func TestWhatAUserSetFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := anOwner(t)
		o.prefetch("tablet", true)
		if err := o.top("tablet", 2); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		o.link()
		o.want(true, []int{2, 0, 1}, "tablet", "phone")

		seen := o.watch("tablet", "worklist")
		if err := o.top("phone", 1); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		o.want(true, []int{1, 2, 0}, "tablet", "phone")
		if seen() != 1 {
			t.Errorf("open pages of the tablet are told %d times that the list changed, want 1", seen())
		}
		o.prefetch("phone", false)
		pass(2 * time.Second)
		o.want(false, []int{1, 2, 0}, "tablet", "phone")
		if n := o.kept("base", 'h') + o.kept("base", 'j'); n != 0 {
			t.Errorf("base keeps %d of what bia set", n)
		}

		o.p["tablet"].crash()
		o.p["tablet"].start()
		o.connect("base", "tablet")
		o.connect("phone", "tablet")
		pass(time.Minute)
		o.want(false, []int{1, 2, 0}, "tablet", "phone")
	})
}

// Two devices that are apart change the same and other things, one of them with a clock that is two hours wrong. When
// they meet both have the same: of one item the later move, which is not that of the later clock.
func TestWhatAUserSetApartIsMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := anOwner(t)
		o.link()
		o.prefetch("phone", true)
		pass(2 * time.Second)
		o.again("phone", nil, clockAhead(2*time.Hour).on, "base", "tablet")
		pass(2 * time.Second)
		if err := o.top("phone", 2); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		o.cut([]string{"phone"}, []string{"tablet"})
		o.prefetch("tablet", false) // knows of the phone's, so it is the later
		for _, x := range []struct {
			at   string
			item int
		}{{"tablet", 0}, {"phone", 1}} {
			if err := o.top(x.at, x.item); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Minute)
		o.want(false, []int{0, 2, 1}, "tablet")
		o.want(true, []int{1, 2, 0}, "phone")
		o.connect("tablet", "phone")
		pass(3 * time.Second)
		list := o.byHand("tablet", "bia", o.began)
		if list[2] != 2 {
			t.Errorf("bia has %v: of what was moved on both sides nothing is lost", list)
		}
		o.want(false, list, "tablet", "phone")
	})
}

// What cannot be stored at the other node does not count there, and is told again.
func TestWhatAUserSetIsDurableAtTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := anOwner(t)
		o.link()
		o.p["phone"].disk.failWith(kv.ErrFull)
		if err := o.top("tablet", 2); err != nil {
			t.Fatal(err)
		}
		pass(3 * time.Second)
		o.want(false, []int{0, 1, 2}, "phone")
		o.p["phone"].disk.failWith(nil)
		pass(2 * time.Minute)
		o.want(false, []int{2, 0, 1}, "tablet", "phone")
	})
}

// together is done at both nodes of bia, which so know of its course.
const together = `
workflow: together
warnings: [1h]
tasks:
  look: {type: manual, role: nurse, deadline: 3h, offline: true}
  mend: {type: manual, role: nurse}
partitions: {left: {tasks: [look], partner: tablet}, right: {tasks: [mend], partner: phone}}
`

// A message that was read at one node is read at the user's other one, with an event for open pages; one that comes
// afterwards is not.
func TestWhatWasReadFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := anOwner(t)
		o.link()
		o.add("base", together)
		r := api.StartRequest{Workflow: "together", Responsible: "bia"}
		if _, err := o.p["base"].api.Start(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		const began, near = "together started: it has started", "together deadline: look: 1h left"
		o.wantMessages("tablet", "bia", "*"+began)
		o.wantMessages("phone", "bia", "*"+began)
		seen := o.watch("tablet", "message")
		o.readAll("phone", "bia")
		pass(2 * time.Second)
		o.wantMessages("phone", "bia", began)
		o.wantMessages("tablet", "bia", began)
		if seen() != 1 {
			t.Errorf("open pages of the tablet are told %d times, want 1", seen())
		}
		if n, err := o.p["tablet"].api.UnreadMessages(t.Context(), "bia"); n != 0 || err != nil {
			t.Errorf("%d are not read, %v", n, err)
		}
		pass(2*time.Hour + time.Minute)
		if got := o.messages("tablet", "bia"); len(got) < 2 || got[0] != began || got[len(got)-1][0] != '*' {
			t.Errorf("bia is told %q, want a new one at the end (%s)", got, near)
		}
	})
}

// What was read of an instance of which the other node knows nothing is kept there, too. A user who is removed leaves
// nothing at either.
func TestARemovedUserLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := anOwner(t)
		o.link()
		o.add("base", plan)
		o.prefetch("phone", true)
		if err := o.top("phone", 2); err != nil {
			t.Fatal(err)
		}
		st, err := o.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "plan", Responsible: "bia"})
		if err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		for _, x := range o.items("tablet", "bia") {
			if x.Instance != st.ID {
				continue
			}
			if err := o.claim("tablet", "bia", api.ClaimLock, x.ID); err != nil {
				t.Fatal(err)
			}
		}
		pass(2*time.Hour + time.Minute)
		o.readAll("tablet", "bia")
		pass(2 * time.Second)
		for _, at := range []string{"tablet", "phone"} {
			for _, kind := range []byte{'g', 'h', 'j'} {
				if n := o.kept(at, kind); n != 1 {
					t.Errorf("the %s keeps %d of what bia set or read (%c), want 1", at, n, kind)
				}
			}
		}
		if _, err := o.p["base"].api.RemoveUser(t.Context(), "bia"); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		for _, at := range []string{"tablet", "phone"} {
			for _, kind := range []byte{'g', 'h', 'j'} {
				if n := o.kept(at, kind); n > 0 {
					t.Errorf("the %s keeps %d of what a removed user set or read (%c)", at, n, kind)
				}
			}
		}
	})
}
