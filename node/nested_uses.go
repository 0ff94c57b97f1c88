package node

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says which definitions an instance and its children use: each name stands for
// one of them in all of these, from the start on.

// uses are the definitions that the names under uses stand for, in a new instance of e and its
// children. An *api.Error says what is wrong with them.
func (k *desk) uses(ctx context.Context, e *library.Definition, b *birth) ([]fact.Pin, error) {
	if len(workflow.SubWorkflows(e.Def)) == 0 {
		return nil, nil
	}
	r := &resolution{desk: k, pins: map[workflow.Name]*library.Definition{}, height: map[workflow.Name]int{}}
	depth := 0
	if b != nil {
		depth = len(b.parent.Line)
		r.given = map[workflow.Name]workflow.Hash{}
		for _, p := range b.uses {
			r.given[p.Workflow] = p.Definition
		}
	}
	if _, err := r.follow(ctx, e, depth, nil); err != nil {
		return nil, err
	}
	var out []fact.Pin
	for name, e := range r.pins {
		out = append(out, fact.Pin{Workflow: name, Definition: e.Hash})
	}
	slices.SortFunc(out, func(a, b fact.Pin) int { return cmp.Compare(a.Workflow, b.Workflow) })
	return out, nil
}

// resolution is a walk over the workflows that one uses.
type resolution struct {
	*desk
	pins   map[workflow.Name]*library.Definition
	height map[workflow.Name]int           // of those walked over: how deep instances nest in one of them
	given  map[workflow.Name]workflow.Hash // what names stand for already; nil: what is listed
}

// follow takes in what a definition uses, and returns how deep instances nest in one of it. Path are the
// names on the way to it, depth how deep an instance at its beginning is nested.
func (r *resolution) follow(
	ctx context.Context, e *library.Definition, depth int, path []workflow.Name,
) (height int, err error) {
	path = append(slices.Clip(path), e.Def.Name)
	for _, name := range workflow.SubWorkflows(e.Def) {
		sub, err := r.step(ctx, e, name, path)
		if err != nil {
			return 0, err
		}
		below, walked := r.height[name]
		if !walked && depth+len(path) <= fact.MaxNesting {
			if below, err = r.follow(ctx, sub, depth, path); err != nil {
				return 0, err
			}
			r.height[name] = below
		}
		if depth+len(path)+below > fact.MaxNesting {
			return 0, api.Errorf(api.Refused, "%s: instances are nested %d deep at most", wayTo(path, name),
				fact.MaxNesting).
				WithHint("put tasks of the innermost ones into those that use them")
		}
		height = max(height, below+1)
	}
	return height, nil
}

// wayTo names the workflows on the way to one that uses another.
func wayTo(path []workflow.Name, name workflow.Name) string {
	return strings.Join(texts(append(slices.Clip(path), name)), " uses ")
}

// step takes in one name that a definition uses.
func (r *resolution) step(
	ctx context.Context, e *library.Definition, name workflow.Name, path []workflow.Name,
) (*library.Definition, error) {
	switch {
	case slices.Contains(path, name):
		return nil, api.Errorf(api.Refused, "%s: a workflow cannot be part of itself", wayTo(path, name)).
			WithHint("instances are nested %d deep at most; have what comes after start the workflow once more",
				fact.MaxNesting)
	case r.pins[name] == nil && len(r.pins) == fact.MaxPins:
		return nil, api.Errorf(api.Refused, "workflow %s uses more than %d workflows, its own and theirs", path[0],
			fact.MaxPins).
			WithHint("put some of them together")
	}
	sub, err := r.find(ctx, name)
	if err == nil {
		err = r.check(e.Def, sub.Def)
	}
	if err != nil {
		return nil, err
	}
	r.pins[name] = sub
	return sub, nil
}

func (r *resolution) find(ctx context.Context, name workflow.Name) (*library.Definition, error) {
	if e := r.pins[name]; e != nil {
		return e, nil
	}
	h, pinned := r.given[name]
	if r.given != nil && !pinned {
		return nil, api.Errorf(api.Refused, "the instance does not say which workflow %s is", name)
	}
	if !pinned {
		var err error
		if h, err = r.definitions.Resolve(string(name)); err != nil {
			return nil, api.Errorf(api.Refused, "it uses workflow %s, which is not listed here", name).
				WithHint("add it: mutirao workflow add FILE")
		}
	}
	return r.definition(ctx, h)
}

// check refuses what does not fit between a definition and one that it uses, or what this version cannot do
// of that.
func (r *resolution) check(def, sub *workflow.Definition) error {
	wrong := workflow.CheckUses("definition", def, func(n workflow.Name) *workflow.Definition {
		if n == sub.Name {
			return sub
		}
		return nil
	})
	if len(wrong) > 0 {
		return api.Errorf(api.Refused, "%s", wrong[0].Message).
			WithHint("%s", cmp.Or(wrong[0].Hint, "correct one of the two definitions, and add it again"))
	}
	return r.notYet(sub, api.StartRequest{})
}

// protocolDefinition is a request for a definition by its hash, which answers with its canonical form.
const protocolDefinition = "/mutirao/definition/1.0.0"

// definitionWait is how long a partner is waited for that is asked for a definition.
const definitionWait = 10 * time.Second

// giveDefinition answers protocolDefinition. Definitions are for all members, who are told of
// those that are listed; of others only somebody who takes part in an instance knows the hash.
func (k *desk) giveDefinition(_ workflow.PartnerID, hash []byte) ([]byte, error) {
	if len(hash) != len(workflow.Hash{}) {
		return nil, errors.New("asks for no definition")
	}
	e, err := k.definitions.Get(workflow.Hash(hash))
	if err != nil {
		return nil, errors.New("has no such definition")
	}
	return e.Def.Canonical(), nil
}

// definition returns a definition, which it asks partners for where it is not here. An error that is no
// *api.Error tells that nobody could be asked now.
func (k *desk) definition(ctx context.Context, h workflow.Hash) (*library.Definition, error) {
	e, err := k.definitions.Get(h)
	if err == nil || !errors.Is(err, kv.ErrNotFound) {
		return e, err
	}
	for _, p := range k.upPeers() {
		b, err := k.request(ctx, p, nil, protocolDefinition, h[:], definitionWait)
		if err != nil || len(b) == 0 {
			continue
		}
		e, err := library.Decode(b)
		if err != nil || !bytes.Equal(e.Hash[:], h[:]) {
			k.refuse("definition", p)
			continue
		}
		return e, k.definitions.Keep(e)
	}
	return nil, fmt.Errorf("definition %s: no partner that can be reached has it", h)
}
