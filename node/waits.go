package node

import (
	"errors"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
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
	Waits  []choreo.Wait
}

// waitsWrite stores an instance's waits; none removes what is stored.
func (s *shard) waitsWrite(id workflow.InstanceID, ws []choreo.Wait) kv.Write {
	if len(ws) == 0 {
		return kv.Write{Key: waitsKey(id), Delete: true}
	}
	return kv.Write{Key: waitsKey(id), Value: encode(storedWaits{BootID: s.n.bootID, Boot: s.now.Boot, Wall: s.now.Wall.UnixMilli(), Waits: ws})}
}

// restoreWaits ages the stored waits by what has passed since: in the same
// boot by the clock that counts suspend, after a reboot by this node's own wall
// clock, of which a step back counts as nothing. Then nothing is judged before
// partners were heard for a while, or a grace has passed (choreo.Machine.Gap).
func (s *shard) restoreWaits(m *choreo.Machine) error {
	s.readClock() // at the start no turn has done so, and facts were read since
	now := s.now
	quiet := now.Boot + moment.Grace(s.n.own.ConnectionTime())
	b, err := s.n.store.Get(waitsKey(m.Instance()))
	var sw storedWaits
	switch {
	case errors.Is(err, kv.ErrNotFound):
	case err != nil:
		return err
	default:
		if err := decode(b, &sw); err != nil {
			// Waits that begin again end late, never early.
			s.n.count("unreadable.waits", 1)
			s.log.Error("the waits of an instance cannot be read and begin again", "instance", m.Instance(), "error", err)
			s.n.losses.lost("how long instance %s had waited: its time-outs and triggers begin again", m.Instance())
			sw = storedWaits{BootID: s.n.bootID, Boot: now.Boot}
		}
	}
	passed := now.Boot - sw.Boot
	if sw.BootID != s.n.bootID {
		passed = now.Wall.Sub(time.UnixMilli(sw.Wall))
	}
	m.RestoreWaits(sw.Waits, max(passed, 0), s.moment(), quiet)
	return nil
}
