package state

import (
	"cmp"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/log"
)

// This file keeps who built upon an attempt, and which of these are to be asked whether they deny what stands
// against it (forget.go).

// addUser notes that another attempt built upon this one.
func (a *Attempt) addUser(u *Attempt) {
	if a.userAt != nil {
		a.userAt[u] = len(a.Users)
	}
	a.Users = append(a.Users, u)
	a.claimed[u.claims]++
	if a.denials != nil {
		a.denials.ask(u)
	}
}

// dropUser notes that it did not.
func (a *Attempt) dropUser(u *Attempt) {
	t := a.turning()
	if t.userAt == nil {
		t.userAt = make(map[*Attempt]int, len(a.Users))
		for i, x := range a.Users {
			t.userAt[x] = i
		}
	}
	i, last := t.userAt[u], len(a.Users)-1
	a.Users[i] = a.Users[last]
	t.userAt[a.Users[i]] = i
	delete(t.userAt, u)
	a.Users[last] = nil
	a.Users = a.Users[:last]
	a.claimed[u.claims]--
	if t.denials != nil {
		t.denials.drop(u)
	}
}

// askAgain has all users of the slot's attempts be asked again that may deny anything.
func (sl *Slot) askAgain() {
	for _, a := range sl.Attempts {
		if a.denials == nil {
			continue
		}
		inOrder := func(x, y *Attempt) int {
			return cmp.Or(x.Slot.Place-y.Slot.Place,
				log.ByTime(x.Assigned, y.Assigned))
		}
		for _, u := range slices.SortedFunc(maps.Keys(a.denials.of), inOrder) { // notes are made in one order
			a.denials.ask(u)
		}
	}
}

// forgetDenials has all users of the slot's attempts be asked again.
func (sl *Slot) forgetDenials() {
	for _, a := range sl.Attempts {
		if a.denials != nil {
			a.denials = nil
		}
	}
}

// ask has a user be asked, again if it was.
func (d *denials) ask(u *Attempt) {
	if d.of[u] == unasked {
		return
	}
	d.drop(u)
	d.of[u] = unasked
	d.asks = append(d.asks, u)
}

// drop forgets a user.
func (d *denials) drop(u *Attempt) {
	if d.of[u] == denies {
		d.claimed[u.claims]--
	}
	delete(d.of, u)
}

const (
	unasked denial = iota + 1
	denies
	admits
)
