package node

import (
	"errors"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// loadInstances lists what is stored and loads what somebody may still need. What
// cannot be loaded is set aside; if own facts may be lost with it, a new incarnation
// begins, so that no number is used twice.
func (x *instances) loadInstances(reborn bool) error {
	if err := x.loadQuarantine(); err != nil {
		return err
	}
	list := map[workflow.InstanceID]index.Summary{}
	err := x.index.Load(x.store, func(id workflow.InstanceID, sum index.Summary) error {
		list[id] = sum
		return nil
	})
	if err == nil {
		err = x.index.LoadNews(x.store)
	}
	if errors.Is(err, kv.ErrDamaged) {
		x.losses.lost("the list of instances from some point on; partners know those that they take part in (%v)", err)
	} else if err != nil {
		return err
	}
	for _, id := range x.losses.unlisted {
		list[id] = index.Summary{} // made again of its facts
	}
	for _, id := range x.losses.suspect {
		list[id], _ = x.index.Get(id) // not listed: an empty one, made again of its facts
	}
	for _, s := range x.shards {
		for id, q := range s.aside {
			if _, listed := list[id]; !listed && !q.Lost {
				list[id] = index.Summary{} // only a part was stored when this program failed at it
			}
		}
	}
	lost := false
	for _, id := range slices.SortedFunc(maps.Keys(list), workflow.InstanceID.Compare) {
		u, err := x.loadInstance(id, list[id])
		if err != nil {
			return err
		}
		lost = lost || u != nil && u.lost
	}
	if x.losses.vouching != nil && len(x.losses.vouching.Damage().Found) > 0 {
		if err := x.losses.vouching.Settle(); err != nil {
			return err
		}
	}
	if lost && !reborn {
		if err := x.restoration.beginIncarnation(); err != nil {
			return err
		}
		for _, s := range x.shards {
			if err := s.reload(); err != nil {
				return err
			}
		}
	}
	for _, s := range x.shards {
		if err := s.reopenAlone(); err != nil {
			return err
		}
	}
	return nil
}

// loadInstance loads an instance at a start, or sets it aside and says why.
func (x *instances) loadInstance(id workflow.InstanceID, sum index.Summary) (*unreadable, error) {
	s := x.shardOf(id)
	q, aside := s.aside[id]
	if slices.Contains(x.losses.suspect, id) && !(aside && q.Lost) {
		u := &unreadable{why: errors.New("the store does not hold what it should of it"), lost: true}
		return u, x.isolate(id, u)
	}
	if aside && q.Lost || sum.Settled && !aside {
		return nil, nil
	}
	delete(s.aside, id)
	var h *held
	var err error
	if !s.contained(id, func() { h, err = s.load(id, sum) }) {
		return nil, nil // set aside, as before or from now on
	}
	var u *unreadable
	switch {
	case errors.As(err, &u) && aside:
		x.quarantine(id, q) // as before
		return nil, nil
	case errors.As(err, &u):
		return u, x.isolate(id, u)
	case err != nil:
		return nil, err
	}
	if aside {
		h.was = &q
		s.batch.writes = append(s.batch.writes, kv.Write{Key: quarantineKey(id), Delete: true})
	}
	s.touch(h)
	return nil, nil
}
