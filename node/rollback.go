package node

import (
	"errors"
	"sync"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// restoration is what this node does when its store went back in time, or lost what it
// may have said.
type restoration struct {
	*tools
	crew      *crew
	life      *life
	losses    *losses
	people    names
	own       reincarnated
	elections interface{ Reload() } // starts them again, for another incarnation
	announce  func() error

	mu       sync.Mutex // held while a restored store is dealt with
	restored bool       // it was found out in this process
}

// reincarnated is this node's record, which tells the incarnation and the boot counter.
type reincarnated interface {
	Reborn(trust.Incarnation)
	Rebooted(boot uint64)
}

// rolledBack reacts to facts of this node's present incarnation, signed by itself,
// that its store lacks: the store went back in time. A new incarnation begins, so
// that no number is used twice; instances are loaded again under it, and everybody
// is told, since a voter of a former incarnation has no vote. That can be so only
// once in a process: after that it is somebody else who signs with this key. by is
// the partner that brought the proof; empty: it is not known.
func (r *restoration) rolledBack(by workflow.PartnerID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.restored {
		return
	}
	if err := r.beginIncarnation(); err != nil {
		return // the next word of a peer will be another reason to try
	}
	r.restored = true
	r.count("rolled-back", 1)
	who := "a partner"
	if by != "" {
		who = r.people.label(by)
	}
	r.log.Warn("a partner has facts signed by this node that its store lacks: the store was restored or lost writes; a new incarnation begins", "partner", by)
	r.troubles.note("rolled-back", who+" has what this node signed and its store lacks: the store was restored from a backup, or lost what it had written. "+
		"The node goes on as one that is new")
	r.goOnReborn()
}

// forgot reacts to facts of this node's own that its disk may have lost while it runs:
// as to a proof that they are gone.
func (r *restoration) forgot() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.restored {
		return
	}
	if err := r.beginIncarnation(); err != nil {
		r.log.Error("own facts may be lost, and a new incarnation cannot begin", "error", err)
		return
	}
	r.restored = true
	r.goOnReborn()
}

// beginIncarnation begins a new incarnation, durably. Machines that are open go on
// under the former one until they are loaded again; this node's vote is lost, since
// with own facts its promises may be.
func (r *restoration) beginIncarnation() error {
	inc, err := r.life.again(r.losses.rebornWrite())
	if err != nil {
		return err
	}
	r.own.Reborn(inc)
	r.elections.Reload()
	return nil
}

// goOnReborn publishes the new incarnation and loads all instances again under it.
func (r *restoration) goOnReborn() {
	r.crew.side(func() {
		if err := r.announce(); err != nil {
			r.log.Error("the new incarnation could not be published", "error", err)
		}
	})
	r.crew.have((*shard).reload)
}

// rebornWrite notes for people that a new incarnation begins.
func (l *losses) rebornWrite() kv.Write {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.is.Reborn = l.clock.Now().Wall.UnixMilli()
	return kv.Write{Key: metaKey(metaLosses), Value: encode(l.is)}
}

// reload loads all instances again, under the node's present incarnation. What
// this round did under the former one is dropped.
func (s *shard) reload() error {
	b := s.batch
	s.batch = batch{}
	s.leaveOut(&b) // what failed in it stays aside for that
	s.lose(b, errRestored)
	s.each(func(id workflow.InstanceID, h *held) {
		s.unload(id)
		again, err := s.load(id, h.sum)
		var u *unreadable
		switch {
		case err == nil:
			s.touch(again)
		case errors.As(err, &u):
			if err := s.n.isolate(id, u); err != nil {
				s.loadAgain(id)
			}
		case !errors.Is(err, kv.ErrNotFound):
			s.log.Error("an instance cannot be loaded again yet", "instance", id, "error", err)
			s.loadAgain(id)
		}
	})
	for _, p := range s.n.upPeers() {
		s.greet(p)
	}
	return nil
}

// outrun raises the boot counter above the one that a peer knows, or nobody
// would take this node's records and heartbeats for new.
func (r *restoration) outrun(known membership.Version) {
	r.rolledBack("")
	r.mu.Lock()
	boot, err := r.life.outrun(known)
	if err == nil {
		r.own.Rebooted(boot)
	}
	r.mu.Unlock()
	if err == nil {
		err = r.announce()
	}
	if err != nil {
		r.log.Error("the node's record is older than what partners have, and could not be renewed", "error", err)
	}
}
