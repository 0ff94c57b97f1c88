package node

import (
	"errors"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// storedWaits is how far an instance's waits had got, and by which clocks
// (docs/design.md, idea 8).
type storedWaits struct {
	_      struct{} `cbor:",toarray"`
	BootID string
	Boot   time.Duration
	Wall   int64 // ms
	Waits  waits.Stored
}

// waitsWrite stores an instance's waits; none removes what is stored.
func (s *shard) waitsWrite(id workflow.InstanceID, ws waits.Stored) kv.Write {
	if len(ws.All) == 0 {
		return kv.Write{Key: waitsKey(id), Delete: true}
	}
	return kv.Write{Key: waitsKey(id), Value: encode(storedWaits{
		BootID: s.n.bootID, Boot: s.now.Boot, Wall: s.now.Wall.UnixMilli(), Waits: ws,
	})}
}

// readWaits reads the stored waits of an instance, and what has passed since: in the same
// boot by the clock that counts suspend, after a reboot by this node's own wall clock, of
// which a step back counts as nothing. Nothing is judged before partners were heard for a
// while, or a grace has passed (choreo.Machine.Gap).
func (s *shard) readWaits(id workflow.InstanceID) (choreo.Break, error) {
	s.readClock() // at the start no turn has done so, and facts were read since
	now := s.now
	out := choreo.Break{Now: s.moment(), Quiet: now.Boot + moment.Grace(s.n.own.ConnectionTime())}
	b, err := s.n.store.Get(waitsKey(id))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return out, nil
	case err != nil:
		return out, err
	}
	var sw storedWaits
	if err := decode(b, &sw); err != nil {
		// Waits that begin again end late, never early.
		s.n.count("unreadable.waits", 1)
		s.log.Error("the waits of an instance cannot be read and begin again", "instance", id, "error", err)
		s.n.losses.lost("how long instance %s had waited: its time-outs and triggers begin again", id)
		return out, nil
	}
	passed := now.Boot - sw.Boot
	if sw.BootID != s.n.bootID {
		passed = now.Wall.Sub(time.UnixMilli(sw.Wall))
	}
	out.Waits, out.Passed = sw.Waits, max(passed, 0)
	return out, nil
}
