package index

import (
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

// Messages are what whoever answers for an instance is told of it, but for its deadlines.
func (n News) Messages(id workflow.InstanceID, sum Summary) (out []worklist.Message) {
	of := worklist.Source{Instance: id, Workflow: sum.Workflow}
	out = append(out, of.Began(wire.AtMilli(sum.Started)))
	for _, f := range n.Failed {
		i := worklist.Item{Assigned: f.Assigned, Slot: f.Slot}
		out = append(out, of.Failed(i, f.Task, f.By, wire.AtMilli(f.At), f.Reason, f.Asks))
	}
	if sum.Ended > 0 {
		out = append(out, of.Finished(wire.AtMilli(sum.Ended), sum.State, n.Round))
	}
	return out
}

// DecodesNews reads what is kept of news, to find what is damaged.
func DecodesNews(b []byte) error { return codec.Decode(b, new(News)) }

// LoadNews reads what was noted of ended instances.
func (x *List) LoadNews(s scanner) error {
	return s.Scan([]byte{PrefixNews}, func(key, value []byte) error {
		var n News
		if len(key) == 1+len(workflow.InstanceID{}) && codec.Decode(value, &n) == nil {
			x.Tell(workflow.InstanceID(key[1:]), n)
		}
		return nil
	})
}

// Tell notes what people are told of an instance that has ended.
func (x *List) Tell(id workflow.InstanceID, n News) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.news[id] = n
}

// Charge is what somebody answers for: the instances of a definition.
type Charge struct {
	Responsible worklist.User
	Definition  workflow.Hash
}

// Charges are those of the ended instances.
func (x *List) Charges() map[Charge]bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := map[Charge]bool{}
	for id, n := range x.news {
		if sum, here := x.all[id]; here {
			out[Charge{n.Responsible, sum.Definition}] = true
		}
	}
	return out
}

// Told gives what a person is told of ended instances who is told of these, but for some, and who began each.
func (x *List) Told(
	of map[Charge]bool, but map[workflow.InstanceID]bool, give func(m worklist.Message, by workflow.PartnerID),
) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, n := range x.news {
		sum, here := x.all[id]
		if but[id] || !here || sum.Ended == 0 || !of[Charge{n.Responsible, sum.Definition}] {
			continue
		}
		for _, m := range n.Messages(id, sum) {
			give(m, sum.By)
		}
	}
}
