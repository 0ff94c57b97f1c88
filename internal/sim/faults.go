package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// strike has a fault happen, and end.
func (w *world) strike(f Fault) {
	m := w.nodes[f.Node]
	if m.gone {
		return
	}
	w.out.Faults[f.Kind]++
	w.disturbed = w.now
	later := func(fn func()) {
		w.wrong++
		w.at(min(w.now+f.For, w.plan.Length), func() {
			w.wrong--
			w.disturbed = w.now
			fn()
		})
	}
	switch f.Kind {
	case Crash:
		w.down(m)
		later(func() { w.revive(m) })
	case Stop:
		if m.node != nil && m.paused == 0 {
			w.guard(m, m.node.GoDown)
		}
		w.down(m)
		later(func() { w.revive(m) })
	case CrashIn:
		m.disk.crash = &crashIn{after: f.Other%2 == 1}
	case Reboot:
		w.down(m)
		m.off = reboot{at: w.now, skew: m.skew}
		for at, by := range m.set {
			if at > w.now-2*time.Hour { // they are stored hourly
				m.off.back += max(0, -by)
			}
		}
		later(func() { w.reboot(m) })
	case LostDisk:
		w.down(m)
		w.restored(m, image{data: map[string][]byte{}, facts: map[factID]bool{}})
		later(func() { w.revive(m) })
	case OldDisk:
		old := m.disk.backup()
		later(func() {
			if !m.gone {
				w.down(m)
				w.restored(m, old)
				w.revive(m)
				w.comesBackAgain(m)
			}
		})
	case Gone:
		w.vanish(m)
	case Full:
		m.fill(true)
		later(func() { // it tries again after a pause
			m.fill(false)
			m.well = w.now
		})
	case Cut, OneWay, Split:
		w.block(f, +1)
		later(func() { w.block(f, -1) })
	case Pause:
		m.pauses(+1)
		later(func() { w.resume(m) })
	case Sleep:
		m.pauses(+1)
		m.suspend(+1)
		later(func() {
			m.suspend(-1)
			w.resume(m)
		})
	case Clock:
		m.skew += f.For * time.Duration(f.Other-1)
		m.set[w.now] += f.For * time.Duration(f.Other-1)
	case Lossy:
		w.lossy++
		later(func() { w.lossy-- })
	case Lie:
		m.lies++
		m.lied = true
		later(func() { m.lies-- })
	case Flood, Forks, Betray, Usurp, Heavy, Replay, Impostor:
		m.lied, m.forgot = true, true // what it says it has not done
		w.checks.excuse(m)
		m.does = append(m.does, f.Kind)
		if f.Kind == Impostor {
			w.pester(m)
		}
		later(func() { m.does = slices.DeleteFunc(m.does, func(k FaultKind) bool { return k == f.Kind }) })
	case LostEntry:
		w.down(m)
		w.loseEntry(m)
		later(func() { w.revive(m) })
	case Unread:
		w.down(m)
		w.spoil(m)
		later(func() { w.revive(m) })
	case Cancel:
		w.cancel(m)
	case Away:
		if w.goesAway(m, f) {
			m.away++
			later(func() {
				m.away--
				w.comesBack(m)
			})
		}
	case Dismiss:
		w.dismiss(w.users[f.Other])
	case Role:
		w.changeRole(w.users[f.Other])
	}
}

// suspend begins or ends a suspension; they may overlap.
func (m *machine) suspend(n int) {
	if m.suspended == 0 {
		m.dozed = m.w.now
	}
	if m.suspended += n; m.suspended == 0 {
		m.asleep += m.w.now - max(m.dozed, m.bootedAt)
	}
}

// vanish takes a machine away for good.
func (w *world) vanish(m *machine) {
	m.gone, m.vanished = true, w.now
	w.down(m)
}

// reboot starts a machine that was off: its boot time begins again.
func (w *world) reboot(m *machine) {
	if m.node == nil && !m.gone {
		m.boots++
		off := w.now - m.off.at
		passed := max(0, off+m.skew-m.off.skew)
		m.reboots = append(m.reboots, reboot{at: w.now, off: off, passed: passed, back: m.off.back})
		m.bootedAt, m.asleep = w.now, 0
		w.revive(m)
	}
}

// restored puts other data on a machine's disk: nothing, or an older copy. What
// it promised before it cannot keep.
func (w *world) restored(m *machine, i image) {
	m.disk.restore(i)
	m.forgot, m.succeeded = true, map[job]bool{}
	for _, u := range w.users { // the founder's node may have forgotten what it said of them
		u.unsure = u.unsure || m.i == 0
	}
	w.checks.excuse(m)
}

// cancel cancels an instance that the node knows.
func (w *world) cancel(m *machine) {
	w.serve(m, func(n api.Service) {
		list, err := underWay(n)
		if err != nil || len(list) == 0 {
			return
		}
		id := list[w.people.IntN(len(list))].ID
		for _, u := range w.users { // whoever is at the node says so, or the partner
			w.checks.peoples.intents[intent{u.id, id, ordering(api.TaskCancel, "")}] = true
		}
		if err := n.Cancel(context.Background(), id, "simulated"); err != nil && !m.disk.full {
			w.note("n%d could not cancel %s: %v", m.i, id[:8], err)
		}
	})
}

func (w *world) resume(m *machine) {
	m.pauses(-1)
	m.well = w.now
	if m.paused > 0 {
		return
	}
	late := m.late
	m.late = nil
	for _, fn := range late {
		fn()
	}
	w.step(m)
}

func (w *world) block(f Fault, by int) {
	for i := range w.nodes {
		for j := range w.nodes {
			hit := false
			switch f.Kind {
			case Cut:
				hit = (i == f.Node && j == f.Other) || (i == f.Other && j == f.Node)
			case OneWay:
				hit = i == f.Node && j == f.Other
			case Split:
				hit = (i <= f.Node) != (j <= f.Node)
			}
			if hit {
				w.cut[[2]int{i, j}] += by
			}
		}
	}
	w.relink()
}

// heal ends all that is wrong, but for nodes that are gone for good.
func (w *world) heal() {
	w.healed = w.now
	for _, m := range w.nodes {
		m.fill(false)
		m.disk.crash = nil
		if m.shutOut() {
			m.skew = 0 // somebody sets its clock
		}
		w.revive(m)
		if w.plan.absent() {
			w.at(w.now+time.Second, func() { w.comesBack(m) })
		}
	}
	w.relink()
}

// note keeps a remark about a run, for readers of a failing one.
func (w *world) note(format string, args ...any) {
	if len(w.out.Notes) < 50 {
		w.out.Notes = append(w.out.Notes,
			fmt.Sprintf("%s: ", w.now.Round(time.Millisecond))+fmt.Sprintf(format, args...))
	}
}
