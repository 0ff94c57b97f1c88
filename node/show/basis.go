package show

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
)

// This file is about what an amendment is compared with. A node that takes no part in an instance has that from a
// partner that does, and compares for itself: its user signs for nothing that another has worked out. Whatever a
// partner says that lies, a patch sets what the user's file says, and leaves out what that has not.

// Basis is what an amendment of an instance is compared with.
type Basis struct {
	Instance workflow.InstanceID
	Def      *workflow.Definition // by which it runs
	Start    state.Start
	Depth    int // how many instances it is for, one for the next
	Amended  int // how often it was
	Standing *amendments.Standing
	Homes    map[workflow.PartitionName]workflow.PartnerID // who holds each partition, or to whom it moves
	// Holders are who has a task, or did it, where that is not who holds its partition.
	Holders map[workflow.TaskName]workflow.PartnerID
	Flow    workflow.PartnerID // who keeps the data states
	home    map[workflow.TaskName]workflow.PartitionName
}

// Basis is what an amendment of an instance that is here is compared with.
func (vw *View) Basis(h *Held) *Basis {
	b := &Basis{
		Instance: h.M.Instance(), Def: h.M.Definition(), Start: h.M.Start(), Amended: h.M.TimesAmended(),
		Standing: vw.standing(h), Homes: map[workflow.PartitionName]workflow.PartnerID{},
		Holders: map[workflow.TaskName]workflow.PartnerID{},
	}
	if p := h.M.Parent(); p != nil {
		b.Depth = len(p.Line)
	}
	b.place()
	for _, p := range b.Def.Partitions {
		b.Homes[p.Name] = h.M.HolderOf(p.Name)
	}
	for _, t := range b.Def.Tasks {
		if at := h.M.TaskHolder(t.Name); at != "" && at != b.holderOf(t.Name) {
			b.Holders[t.Name] = at
		}
	}
	if b.Def.Flow() != nil {
		b.Flow = h.M.FlowHolder()
	}
	return b
}

// place notes in which partition each task is.
func (b *Basis) place() {
	b.home = map[workflow.TaskName]workflow.PartitionName{}
	for _, p := range b.Def.Partitions {
		for _, t := range p.Tasks {
			b.home[t] = p.Name
		}
	}
}

// holderOf is who has a task, or did it; empty: it has no place of its own.
func (b *Basis) holderOf(t workflow.TaskName) workflow.PartnerID {
	if at, is := b.Holders[t]; is {
		return at
	}
	if x := b.Def.Task(t); x == nil || x.ContingencyOnly {
		return ""
	}
	return b.Homes[b.home[t]]
}

// standing is how far an instance has got, as this node knows it.
func (vw *View) standing(h *Held) *amendments.Standing {
	shown := h.M.Snapshot()
	s := &amendments.Standing{State: shown.State, Data: shown.Data, Tasks: map[workflow.TaskName]amendments.Work{}}
	for _, t := range vw.Instance(h).Tasks {
		taken := t.Started != nil || t.ClaimedBy != ""
		s.Tasks[t.Name] = amendments.Work{State: t.State, Taken: taken, Asked: !taken && h.M.IsReadyByWord(t.Name)}
	}
	return s
}

// saidBasis is a basis as one partner tells another.
type saidBasis struct {
	Definition []byte                                        `json:"definition"`      // as it is written
	Kept       workflow.Kept                                 `json:"kept"`            // what it has besides
	Began      []byte                                        `json:"began,omitempty"` // as it began, where that is another
	Uses       []fact.Pin                                    `json:"uses,omitempty"`
	Depth      int                                           `json:"depth,omitempty"`
	Amended    int                                           `json:"amended,omitempty"`
	State      workflow.InstanceState                        `json:"state"`
	Tasks      map[workflow.TaskName]amendments.Work         `json:"tasks,omitempty"` // those that are not as at first
	Data       map[workflow.DataName]any                     `json:"data,omitempty"`
	Homes      map[workflow.PartitionName]workflow.PartnerID `json:"homes"`
	Holders    map[workflow.TaskName]workflow.PartnerID      `json:"holders,omitempty"`
	Flow       workflow.PartnerID                            `json:"flow,omitempty"`
}

// Say writes a basis for ReadBasis.
func (b *Basis) Say() ([]byte, error) {
	said := saidBasis{
		Definition: b.Def.Canonical(), Kept: b.Def.Kept(), Uses: b.Start.Uses, Depth: b.Depth, Amended: b.Amended,
		State: b.Standing.State, Tasks: map[workflow.TaskName]amendments.Work{}, Data: map[workflow.DataName]any{},
		Homes: b.Homes, Holders: b.Holders, Flow: b.Flow,
	}
	if b.Start.Def.Hash() != b.Def.Hash() {
		said.Began = b.Start.Def.Canonical()
	}
	for t, w := range b.Standing.Tasks {
		if w != (amendments.Work{State: workflow.NotReady}) {
			said.Tasks[t] = w
		}
	}
	for n, v := range b.Standing.Data {
		if v != nil {
			said.Data[n] = v
		}
	}
	return json.Marshal(said)
}

// ReadBasis reads what a partner says of an instance, which runs by the definition with a hash.
func ReadBasis(id workflow.InstanceID, of workflow.Hash, said []byte) (*Basis, error) {
	var x saidBasis
	d := json.NewDecoder(bytes.NewReader(said))
	d.UseNumber()
	if err := d.Decode(&x); err != nil {
		return nil, err
	}
	def, err := workflow.ParseKept("definition", x.Definition, x.Kept)
	switch {
	case err != nil:
		return nil, err
	case def.Hash() != of:
		return nil, fmt.Errorf("its definition is %s, and was to be %s", def.Hash(), of)
	case x.Depth < 0 || x.Amended < 0:
		return nil, errors.New("a number below 0")
	}
	for t := range x.Kept.Tasks {
		if def.Task(t) == nil {
			return nil, errors.New("it keeps a round that it does not have")
		}
	}
	b := &Basis{
		Instance: id, Def: def, Start: state.Start{Def: def, Uses: x.Uses}, Depth: x.Depth, Amended: x.Amended,
		Standing: &amendments.Standing{State: x.State, Tasks: x.Tasks, Data: map[workflow.DataName]workflow.Value{}},
		Homes:    x.Homes, Holders: x.Holders, Flow: x.Flow,
	}
	if x.Began != nil {
		if b.Start.Def, err = workflow.Parse("definition", x.Began); err != nil {
			return nil, err
		}
	}
	for n, raw := range x.Data {
		decl := def.Datum(n)
		if decl == nil {
			return nil, errors.New("it has a value of what it does not declare")
		}
		free := *decl
		free.Enum, free.Min, free.Max = nil, nil, nil // it may have been there before they were
		if b.Standing.Data[n], err = workflow.CheckValue(&free, raw); err != nil {
			return nil, err
		}
	}
	b.place()
	return b, nil
}
