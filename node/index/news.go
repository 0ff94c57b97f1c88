package index

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/google/btree"

	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// News is what people are told of an instance that has ended.
type News struct {
	_           struct{} `cbor:",toarray"`
	Responsible worklist.User
	Round       int // how often an order had it go on
	Failed      []Failure
	Unneeded    []Unneeded
	Vain        []Vain
	Alone       []Alone
	// Presumed are, for each of what failed, who holds it where that one has not said so; empty: it has.
	Presumed []workflow.PartnerID
}

// newsFields are how many of them are stored; versions of 2026-12-01 stored one less, the last, and those before two.
const newsFields = 7

// newsBefore is how versions before 2026-11-30 wrote it, and newsLongBefore those before 2026-11-29.
type newsBefore struct {
	_           struct{} `cbor:",toarray"`
	Responsible worklist.User
	Round       int
	Failed      []Failure
	Unneeded    []unneededBefore
}

type unneededBefore struct {
	_        struct{} `cbor:",toarray"`
	User     worklist.User
	Assigned [32]byte
	Slot     workflow.TaskName
	Task     workflow.TaskName
	Why      string
	At       int64
	Made     bool
}

type newsLongBefore struct {
	_           struct{} `cbor:",toarray"`
	Responsible worklist.User
	Round       int
	Failed      []Failure
}

func readNews(b []byte) (n News, err error) {
	var fields []codec.Raw
	if codec.Decode(b, &fields) == nil && (len(fields) == newsFields-1 || len(fields) == newsFields-2) {
		for len(fields) < newsFields {
			fields = append(fields, codec.Encode([]struct{}{})) // none of either
		}
		b = codec.Encode(fields)
	}
	if err = codec.Decode(b, &n); err == nil {
		return n, nil
	}
	var before newsBefore
	if codec.Decode(b, &before) == nil {
		n = News{Responsible: before.Responsible, Round: before.Round, Failed: before.Failed}
		for _, l := range before.Unneeded {
			n.Unneeded = append(n.Unneeded, Unneeded{
				User: l.User, Assigned: l.Assigned, Slot: l.Slot, Task: l.Task, Why: l.Why, At: l.At, Made: l.Made,
			})
		}
		return n, nil
	}
	var long newsLongBefore
	if codec.Decode(b, &long) != nil {
		return n, err
	}
	return News{Responsible: long.Responsible, Round: long.Round, Failed: long.Failed}, nil
}

// Unneeded is an item that somebody had in it of an attempt that is not needed any more, or is over.
type Unneeded struct {
	_        struct{} `cbor:",toarray"`
	User     worklist.User
	Assigned [32]byte
	Slot     workflow.TaskName
	Task     workflow.TaskName
	Why      string
	At       int64
	Made     bool   // something that the user brought of it is kept
	By       string // what people call whoever passed it on; empty: nobody did
}

// Message is what its user is told of it.
func (l Unneeded) Message(id workflow.InstanceID, sum Summary) worklist.Message {
	of := worklist.Source{Instance: id, Workflow: sum.Workflow}
	return of.Unneeded(worklist.Item{Assigned: l.Assigned, Slot: l.Slot}, l.Task, l.Why, l.By, wire.AtMilli(l.At),
		l.Made)
}

// Vain is an order in it that came to nothing.
type Vain struct {
	_        struct{}      `cbor:",toarray"`
	User     worklist.User // who ordered
	Assigned [32]byte
	Slot     workflow.TaskName
	Task     workflow.TaskName
	By       [32]byte
	Name     string // of the partner whose result counts; empty: another order counts
	Skip     bool
	At       int64 // when that became known here
}

// Message is what who ordered is told of it, and whoever answers for the instance.
func (v Vain) Message(id workflow.InstanceID, sum Summary) worklist.Message {
	of := worklist.Source{Instance: id, Workflow: sum.Workflow}
	i := worklist.Item{Assigned: v.Assigned, Slot: v.Slot}
	return of.InVain(i, v.Task, v.By, wire.AtMilli(v.At), v.Skip, v.Name)
}

// Failure is a task that has failed in it.
type Failure struct {
	_        struct{} `cbor:",toarray"`
	Assigned [32]byte
	Slot     workflow.TaskName
	Task     workflow.TaskName
	By       [32]byte
	At       int64
	Reason   string
	Asks     bool
}

// NewsKey is where it is kept.
func NewsKey(id workflow.InstanceID) []byte { return append([]byte{PrefixNews}, id[:]...) }

// Messages are what whoever answers for an instance is told of it, but for its deadlines. gone: a partner will not be back.
func (n News) Messages(
	id workflow.InstanceID, sum Summary, gone func(workflow.PartnerID) bool,
) (out []worklist.Message) {
	of := worklist.Source{Instance: id, Workflow: sum.Workflow}
	out = append(out, of.Began(wire.AtMilli(sum.Started)))
	for i, f := range n.Failed {
		out = append(out, f.Message(id, sum, n.Presumes(i, gone)))
	}
	for _, v := range n.Vain {
		out = append(out, v.Message(id, sum))
	}
	if sum.Ended > 0 {
		out = append(out, of.Finished(wire.AtMilli(sum.Ended), sum.State, n.Round, n.presumed(gone), sum.goesOn()))
	}
	return out
}

// Presumes reports whether one of its failures is only what others presume: whoever holds that has not said so, and may be
// back.
func (n News) Presumes(i int, gone func(workflow.PartnerID) bool) bool {
	return i < len(n.Presumed) && n.Presumed[i] != "" && !gone(n.Presumed[i]) // an earlier version noted none
}

// presumed reports whether nothing but such failures waits for an order.
func (n News) presumed(gone func(workflow.PartnerID) bool) (only bool) {
	for i, f := range n.Failed {
		if !f.Asks {
			continue
		}
		if only = n.Presumes(i, gone); !only {
			return false
		}
	}
	return only
}

// Message is what people are told of a failure in an instance, which is only presumed or not.
func (f Failure) Message(id workflow.InstanceID, sum Summary, presumed bool) worklist.Message {
	of := worklist.Source{Instance: id, Workflow: sum.Workflow}
	i := worklist.Item{Assigned: f.Assigned, Slot: f.Slot}
	if presumed && !strings.HasPrefix(f.Reason, worklist.GoesOnHere) {
		f.Reason = worklist.Presumes + f.Reason
	}
	return of.Failed(i, f.Task, f.By, wire.AtMilli(f.At), f.Reason, f.Asks)
}

// DecodesNews reads what is kept of news, to find what is damaged.
func DecodesNews(b []byte) error {
	_, err := readNews(b)
	return err
}

// LoadNews reads what was noted of ended instances.
func (x *List) LoadNews(s scanner) error {
	return s.Scan([]byte{PrefixNews}, func(key, value []byte) error {
		n, err := readNews(value)
		if len(key) == 1+len(workflow.InstanceID{}) && err == nil {
			x.Tell(workflow.InstanceID(key[1:]), n)
		}
		return nil
	})
}

// Tell notes what people are told of an instance that has ended.
func (x *List) Tell(id workflow.InstanceID, n News) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.uncharge(id)
	x.untell(id)
	x.news[id] = n
	if len(n.Alone) > 0 {
		x.alone[id] = true
	}
	x.charge(id)
	for _, u := range n.persons() {
		if x.personal[u] == nil {
			x.personal[u] = map[workflow.InstanceID]bool{}
		}
		x.personal[u][id] = true
	}
}

// persons are those who are told something of it whoever answers for it; some more than once.
func (n News) persons() (out []worklist.User) {
	for _, l := range n.Unneeded {
		out = append(out, l.User)
	}
	for _, v := range n.Vain {
		out = append(out, v.User)
	}
	return out
}

// untell forgets what is noted of an instance. The caller holds x.mu.
func (x *List) untell(id workflow.InstanceID) {
	for _, u := range x.news[id].persons() {
		if delete(x.personal[u], id); len(x.personal[u]) == 0 {
			delete(x.personal, u)
		}
	}
	delete(x.news, id)
	delete(x.alone, id)
}

// Personal gives what a person is told of ended instances, but for some, and who began each: of items that the person
// had, and of what the person ordered in those that others answer for, as charges say.
func (x *List) Personal(
	u worklist.User, charges map[Charge]bool, but map[workflow.InstanceID]bool,
	give func(m worklist.Message, by workflow.PartnerID),
) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id := range x.personal[u] {
		x.steps++
		sum, here := x.all[id]
		if but[id] || !here {
			continue
		}
		for _, l := range x.news[id].Unneeded {
			if l.User == u {
				give(l.Message(id, sum), sum.By)
			}
		}
		if charges[Charge{x.news[id].Responsible, sum.Definition}] {
			continue
		}
		for _, v := range x.news[id].Vain {
			if v.User == u {
				give(v.Message(id, sum), sum.By)
			}
		}
	}
}

// Lately are the ended instances in which items ended that a person had, since a moment (ms): at most so many, the newest.
func (x *List) Lately(u worklist.User, since int64, most int) (out []workflow.InstanceID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	at := map[workflow.InstanceID]int64{}
	for id := range x.personal[u] {
		for _, l := range x.news[id].Unneeded {
			x.steps++
			if l.User == u && l.At >= since {
				at[id] = max(at[id], l.At)
			}
		}
	}
	out = slices.SortedFunc(maps.Keys(at), func(a, b workflow.InstanceID) int {
		return cmp.Or(cmp.Compare(at[b], at[a]), a.Compare(b))
	})
	return out[:min(len(out), most)]
}

// Noted reports whether just this is noted of an instance.
func (x *List) Noted(id workflow.InstanceID, n News) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	was, noted := x.news[id]
	return noted && was.Responsible == n.Responsible && was.Round == n.Round && slices.Equal(was.Failed, n.Failed) &&
		slices.Equal(was.Unneeded, n.Unneeded) && slices.Equal(was.Vain, n.Vain) &&
		slices.Equal(was.Presumed, n.Presumed) &&
		slices.EqualFunc(was.Alone, n.Alone, Alone.equal)
}

// NewsOf is what is noted of an instance that has ended.
func (x *List) NewsOf(id workflow.InstanceID) (n News, noted bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n, noted = x.news[id]
	return n, noted
}

// Charge is what somebody answers for: the instances of a definition.
type Charge struct {
	Responsible worklist.User
	Definition  workflow.Hash
}

// charged are the ended instances of which people are told something, by what somebody answers for and by who began
// them, the newest first: so nobody is told at the cost of what others answer for.
type charged map[Charge]map[workflow.PartnerID]*btree.BTreeG[Rank]

// chargeDegree is how wide these trees are: most of them are small.
const chargeDegree = 8

// chargeOf is where an instance stands among them; ok: it does. The caller holds x.mu.
func (x *List) chargeOf(id workflow.InstanceID) (c Charge, at Rank, ok bool) {
	n, noted := x.news[id]
	sum, here := x.all[id]
	return Charge{n.Responsible, sum.Definition}, Rank{sum.Ended, id}, noted && here && sum.Ended > 0
}

// charge has an instance stand where its news and its summary say, uncharge takes it out before one of them
// changes. The caller holds x.mu.
func (x *List) charge(id workflow.InstanceID) {
	c, at, ok := x.chargeOf(id)
	if !ok {
		return
	}
	if x.charged[c] == nil {
		x.charged[c] = map[workflow.PartnerID]*btree.BTreeG[Rank]{}
	}
	by := x.all[id].By
	if x.charged[c][by] == nil {
		x.charged[c][by] = btree.NewG(chargeDegree, func(a, b Rank) bool { return a.compare(b) < 0 })
	}
	x.charged[c][by].ReplaceOrInsert(at)
}

func (x *List) uncharge(id workflow.InstanceID) {
	c, at, ok := x.chargeOf(id)
	of := x.charged[c]
	by := x.all[id].By
	if !ok || of[by] == nil {
		return
	}
	if of[by].Delete(at); of[by].Len() == 0 {
		delete(of, by)
	}
	if len(of) == 0 {
		delete(x.charged, c)
	}
}

// Charges are those of the ended instances.
func (x *List) Charges() map[Charge]bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := make(map[Charge]bool, len(x.charged))
	for c := range x.charged {
		x.steps++
		out[c] = true
	}
	return out
}

// Told gives what a person is told of ended instances who is told of these, but for some, and who began each: of
// each charge and each who began some the newest, at most so many instances. Each gives a message of its end, so
// what is left out is older than as many messages as there are instances given.
func (x *List) Told(
	of map[Charge]bool, but map[workflow.InstanceID]bool, most int, gone func(workflow.PartnerID) bool,
	give func(m worklist.Message, by workflow.PartnerID),
) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for c, is := range of {
		if !is {
			continue
		}
		for by, newest := range x.charged[c] {
			left := most
			newest.Ascend(func(at Rank) bool {
				x.steps++
				if but[at.ID] {
					return true
				}
				for _, m := range x.news[at.ID].Messages(at.ID, x.all[at.ID], gone) {
					give(m, by)
				}
				left--
				return left > 0
			})
		}
	}
}
