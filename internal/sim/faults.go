package sim

import (
	"context"
	"time"

	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// strike has a fault happen, and end.
func (w *world) strike(f Fault) {
	m := w.nodes[f.Node]
	later := func(fn func()) { w.at(min(w.now+f.For, w.plan.Length), fn) }
	switch f.Kind {
	case Crash:
		w.down(m)
		later(func() { w.revive(m) })
	case CrashIn:
		m.disk.crash = &crashIn{after: f.Other%2 == 1}
	case Full:
		m.disk.full = true
		later(func() { m.disk.full = false })
	case Cut, OneWay, Split:
		w.block(f, +1)
		later(func() { w.block(f, -1) })
	case Pause:
		m.paused++
		later(func() { w.resume(m) })
	case Sleep:
		m.paused++
		begun := w.now
		later(func() {
			m.asleep += w.now - begun
			w.resume(m)
		})
	case Clock:
		m.skew += f.For * time.Duration(f.Other-1)
	case Lossy:
		w.lossy++
		later(func() { w.lossy-- })
	}
}

func (w *world) resume(m *machine) {
	m.paused--
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

// heal ends all that is wrong.
func (w *world) heal() {
	w.healed = true
	for _, m := range w.nodes {
		m.disk.full, m.disk.crash = false, nil
		w.revive(m)
	}
	w.relink()
}

// Has tells that a machine can run everything.
func (m *machine) Has(workflow.ApplicationName) bool { return true }

// Start runs a job: it takes as long as sleep says, at most fails now and then.
func (m *machine) Start(j runner.Job, done func(runner.Result)) {
	w, n := m.w, m.node
	m.jobSeq++
	num := m.jobSeq
	m.jobs[j.Key] = num
	took := time.Duration(w.people.IntN(2000)) * time.Millisecond
	if j.Application == workflow.AppSleep {
		took += j.With.For
	}
	res := runner.Result{}
	if w.people.IntN(12) == 0 {
		res = runner.Result{Failed: true, Reason: "simulated failure"}
	}
	w.at(w.now+took, func() {
		if m.jobs[j.Key] != num || (n != nil && m.node != n) {
			return
		}
		delete(m.jobs, j.Key)
		w.act(m, func(*node.Node) { done(res) })
	})
}

// Cancel forgets a job.
func (m *machine) Cancel(key string) { delete(m.jobs, key) }

// persons look at a node now and then and do what is ready there.
func (w *world) persons(m *machine) {
	w.at(w.now+time.Duration(20+w.people.IntN(400))*time.Second, func() {
		w.act(m, func(n *node.Node) { w.work(m, n) })
		w.persons(m)
	})
}

func (w *world) work(m *machine, n *node.Node) {
	ctx := context.Background()
	for _, id := range w.started {
		in, err := n.Show(ctx, id)
		if err != nil || in.State != workflow.InstanceRunning {
			continue
		}
		for _, t := range in.Tasks {
			if t.State != workflow.Ready && t.State != workflow.Running {
				continue
			}
			fails := w.people.IntN(8) == 0
			if n.FinishTask(ctx, api.FinishRequest{ID: id, Task: t.Name, Failed: fails, Reason: "simulated"}) == nil {
				w.checks.reported(m, id, t.Name)
				return
			}
		}
	}
}
