package node

import (
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// An instance that cannot be read or opened is set aside, under a key of its own,
// and everything else goes on. While it is set aside nothing is decided about it
// here, and partners are told that nothing of it is here, so that they send all that
// they have. With their facts and those that can still be read here it is opened
// again, as if the node had heard of it for the first time: that ends it.

// unreadable is the error of an instance that cannot be read.
type unreadable struct {
	why  error
	lost bool
}

func (e *unreadable) Error() string { return e.why.Error() }

func (e *unreadable) Unwrap() error { return e.why }

func quarantineKey(id workflow.InstanceID) []byte {
	return append([]byte{prefixQuarantine}, id[:]...)
}

// loadQuarantine reads what was set aside before. A note that cannot be read itself
// still says which instance it is.
func (x *instances) loadQuarantine() error {
	return x.store.Scan([]byte{prefixQuarantine}, func(key, value []byte) error {
		if len(key) != 1+len(workflow.InstanceID{}) {
			return nil
		}
		var q index.SetAside
		if err := decode(value, &q); err != nil {
			q = index.SetAside{Since: x.clock.Now().Wall.UnixMilli(), Why: "it was set aside before this start",
				Lost: true}
		}
		x.quarantine(workflow.InstanceID(key[1:]), q)
		return nil
	})
}

// quarantine lists an instance as set aside.
func (x *instances) quarantine(id workflow.InstanceID, q index.SetAside) {
	x.index.SetAside(id, q)
	s := x.shardOf(id)
	s.aside[id] = q
	s.unload(id)
	s.n.call(s.n.lineup.End(id))
	x.ledger.Drop(id)
}

// errAside is the answer to a request for an instance that is set aside.
func errAside(id workflow.InstanceID, q index.SetAside) error {
	hint := "partners who have it are asked for it on contact; mutirao doctor says what else is damaged"
	if q.Fault {
		hint = "the node's log says more; please report it. The next start tries it again, so try a newer version"
	}
	return api.Errorf(api.Refused, "instance %s is set aside since %s: %s", id,
		time.UnixMilli(q.Since).UTC().Format(time.RFC3339), q.Why).WithHint("%s", hint)
}

// isolate sets an instance aside that cannot be read, durably.
func (x *instances) isolate(id workflow.InstanceID, u *unreadable) error {
	q := index.SetAside{Since: x.clock.Now().Wall.UnixMilli(), Why: u.Error(), Lost: u.lost}
	x.log.Error("an instance cannot be read and is set aside; partners are asked for it", "instance", id, "error", u)
	x.count("quarantined", 1)
	x.quarantine(id, q)
	return x.store.CommitWait([]kv.Write{{Key: quarantineKey(id), Value: encode(q)}})
}
