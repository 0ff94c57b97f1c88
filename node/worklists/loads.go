package worklists

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/ration"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file has partners know how much each person has to do of the items that this node holds, also in instances in
// which they take no part: by that a holder chooses whom it offers an item to, where the policy says so (package
// assignment). Each item has one holder, which alone counts it for others. A partner is told all when it is met, and
// then what has changed. No fact says any of this, and none depends on it: whom an item was offered to is a fact.
//
// It is told by a request, and not as a part of a message, since an earlier version takes a message with a part that it
// does not know for garbage, and cuts off whoever sends it; a request it merely does not answer.

const (
	// loadsPart: partners are told of changes once in this part of the connection time.
	loadsPart = 4
	// loadsAgain is after what time a partner is told once more that could not be.
	loadsAgain = time.Minute
)

// loadsRation is how often a partner may say how much people have to do.
var loadsRation = ration.Ration{Burst: 20, Each: tellEvery / 2}

// Loads are how much people have to do of the items of each partner.
type Loads interface {
	// Own is that of this node, of at most so many people; OwnAt is another number whenever it may have changed.
	Own(most int) map[worklist.User]worklist.Load
	OwnAt() int
	// Hear takes in what a partner says of its own, of at most so many people: all of it, or what has changed. It reports
	// whether that can be: else the partner is to say all.
	Hear(p workflow.PartnerID, all bool, says map[worklist.User]worklist.Load, most int) bool
}

// tolds are what partners were told of that.
type tolds struct {
	mu sync.Mutex // guards what follows; nothing else is done while it is held
	// to is what each knows. A partner that is not among them is told all.
	to    map[workflow.PartnerID]map[worklist.User]worklist.Load
	met   map[workflow.PartnerID]bool // who was connected since the last round
	at    int                         // which number of Loads.OwnAt they were told, or are being told
	news  bool                        // there is another one
	late  bool                        // somebody could not be told
	next  time.Duration               // Awake: when changes are told, at the earliest
	again time.Duration               // Awake: when those are told once more who could not be
	busy  bool
}

// toldRound says who is told: all, or those who were met.
type toldRound struct {
	all bool
	met map[workflow.PartnerID]bool
}

// meetLoads has a partner told that was just connected.
func (d *Desk) meetLoads(p workflow.PartnerID) {
	t := &d.tolds
	t.mu.Lock()
	if t.met == nil {
		t.met = map[workflow.PartnerID]bool{}
	}
	t.met[p] = true
	t.mu.Unlock()
	d.in.Nudge()
}

// loadsChanged has the node look soon, if what people have to do of its items is another by now.
func (d *Desk) loadsChanged() {
	at := d.in.Loads.OwnAt()
	t := &d.tolds
	t.mu.Lock()
	news := at != t.at && !t.news
	t.mu.Unlock()
	if news {
		d.in.Nudge()
	}
}

// mindLoads has those told who are to be, and says after what time it is to be called again.
func (d *Desk) mindLoads(now moment.Now) time.Duration {
	t := &d.tolds
	next, round := t.due(now, d.in.Loads.OwnAt(), d.in.ConnectionTime(d.in.Self)/loadsPart)
	if round == nil {
		return next
	}
	d.in.Aside(func() { // which may be done at once
		late := d.tellLoads(*round)
		t.mu.Lock()
		if t.busy = false; late {
			t.late, t.again = true, d.in.Clock.Now().Awake+loadsAgain
		}
		t.mu.Unlock()
		d.in.Nudge()
	})
	return next
}

// due is who is to be told now, nil: nobody, and in what time it is to be asked again.
func (t *tolds) due(now moment.Now, at int, pause time.Duration) (next time.Duration, round *toldRound) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at != t.at && !t.news {
		t.news, t.next = true, max(t.next, now.Awake+tellEvery) // what is given out together is told together
	}
	all := t.news && now.Awake >= t.next || t.late && now.Awake >= t.again
	if t.busy {
		return moment.Never, nil // its end wakes the node
	}
	if all || len(t.met) > 0 {
		round = &toldRound{all, t.met}
		t.met, t.busy = nil, true
		if all {
			t.at, t.news, t.late, t.next = at, false, false, now.Awake+pause
		}
		return moment.Never, round
	}
	next = moment.Never
	if t.news {
		next = t.next - now.Awake
	}
	if t.late {
		next = min(next, t.again-now.Awake)
	}
	return next, nil
}

// tellLoads tells those of a round who are connected, and reports whether one of them could not be told.
func (d *Desk) tellLoads(r toldRound) (late bool) {
	is := d.in.Loads.Own(wire.MaxLoads)
	t := &d.tolds
	t.mu.Lock()
	for p := range t.to {
		if d.in.Gone(p) {
			delete(t.to, p)
		}
	}
	t.mu.Unlock()
	return len(d.askEach(func(p workflow.PartnerID) error {
		if !r.all && !r.met[p] {
			return nil
		}
		return d.tellLoadsTo(p, is, r.met[p])
	})) > 0
}

// tellLoadsTo tells a partner what it lacks; who was just met may have been started again, and know nothing any more.
func (d *Desk) tellLoadsTo(p workflow.PartnerID, is map[worklist.User]worklist.Load, met bool) error {
	t := &d.tolds
	t.mu.Lock()
	was, told := t.to[p]
	t.mu.Unlock()
	if told && (maps.Equal(was, is) && !met || len(was)+len(is) == 0) {
		return nil
	}
	says := wire.Loads{All: met || len(was) == 0}
	if says.All {
		was = nil
	}
	for _, u := range changedLoads(was, is) {
		says.Of = append(says.Of, wire.LoadOf{
			User: string(u), Assigned: uint32(min(is[u].Assigned, wire.MaxLoad)),
			Selected: uint32(min(is[u].Selected, wire.MaxLoad)),
		})
	}
	req, err := wire.EncodeLoads(says)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), listPatience)
		defer cancel()
		_, err = d.in.Peers.Request(ctx, p, nil, ProtocolLoads, req, listPatience)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to == nil {
		t.to = map[workflow.PartnerID]map[worklist.User]worklist.Load{}
	}
	if t.to[p] = is; err != nil { // it may be of an earlier version, or just gone, or have the word all the same
		delete(t.to, p)
	}
	return err
}

// changedLoads are those of whom two loads say something else.
func changedLoads(was, is map[worklist.User]worklist.Load) (out []worklist.User) {
	for u, x := range is {
		if was[u] != x {
			out = append(out, u)
		}
	}
	for u := range was {
		if _, has := is[u]; !has {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, cmp.Compare)
	return out
}

var errSayAll = errors.New("say all: how much people have to do there is not known here, or is too much")

// AnswerLoads is told by a partner how much people have to do of the items that it holds.
func (d *Desk) AnswerLoads(from workflow.PartnerID, req []byte) ([]byte, error) {
	if !d.hears.Spend(from, 1, d.in.Clock.Now().Awake) {
		d.in.Peers.Refuse("loads-too-fast", from)
		return nil, errTooOften
	}
	m, err := wire.DecodeLoads(req)
	if err != nil {
		d.in.Peers.Refuse("loads-malformed", from)
		return nil, err
	}
	says := make(map[worklist.User]worklist.Load, len(m.Of))
	for _, x := range m.Of {
		says[worklist.User(x.User)] = worklist.Load{Assigned: int(x.Assigned), Selected: int(x.Selected)}
	}
	if !d.in.Loads.Hear(from, m.All, says, wire.MaxLoads) {
		return nil, errSayAll
	}
	return nil, nil
}
