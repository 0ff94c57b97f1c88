//go:build linux

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// fault is a way to go wrong. Its strike has it happen; what it returns ends
// it: after a while, or when everything heals.
type fault struct {
	kind   string
	weight int
	strike func(tm *team, r *rand.Rand) (undo func() error, err error)
}

var faults = []fault{
	{"kill -9", 5, kill},
	{"kill -9 in a burst", 1, burst},
	{"power loss", 2, powerLoss},
	{"SIGSTOP", 3, halt},
	{"cut", 3, cut},
	{"one-way", 3, oneWay},
	{"split", 4, split},
	{"link lost", 2, unlink},
	{"address changed", 2, readdress},
	{"clock jumped", 3, clockJump},
	{"coordinator elected", 2, elect},
}

// trouble has faults happen until ctx ends, and returns when all have healed.
func (tm *team) trouble(ctx context.Context, r *rand.Rand, pace pace) {
	var open sync.WaitGroup
	defer open.Wait()
	for pause(ctx, between(r, 0, 2*pace.trouble)) {
		f := pick(r)
		lasts := span(r)
		undo, err := f.strike(tm, r)
		tm.harness(err)
		tm.count(f.kind)
		open.Go(func() {
			pause(ctx, lasts)
			tm.harness(undo())
		})
	}
}

func pick(r *rand.Rand) fault {
	n := 0
	for _, f := range faults {
		n += f.weight
	}
	n = r.IntN(n)
	for _, f := range faults {
		if n -= f.weight; n < 0 {
			return f
		}
	}
	return faults[0]
}

// span is how long a fault lasts: mostly shorter than partners take to expire.
func span(r *rand.Rand) time.Duration {
	switch k := r.IntN(20); {
	case k < 10:
		return between(r, 50*time.Millisecond, 1500*time.Millisecond)
	case k < 16:
		return between(r, 1500*time.Millisecond, connectionTime)
	}
	return between(r, connectionTime, 4*connectionTime)
}

func nothing() error { return nil }

func (tm *team) any(r *rand.Rand) *proc { return tm.ps[r.IntN(len(tm.ps))] }

func (tm *team) anyTwo(r *rand.Rand) (a, b *proc) {
	i := r.IntN(nodes)
	return tm.ps[i], tm.ps[(i+1+r.IntN(nodes-1))%nodes]
}

func kill(tm *team, r *rand.Rand) (func() error, error) {
	p := tm.any(r)
	p.crash()
	return p.up, nil
}

// burst kills a node again while it starts, several times.
func burst(tm *team, r *rand.Rand) (func() error, error) {
	p := tm.any(r)
	for range 2 + r.IntN(3) {
		p.crash()
		if err := p.up(); err != nil {
			return nothing, err
		}
		<-time.After(between(r, 0, 400*time.Millisecond))
	}
	return nothing, nil
}

func powerLoss(tm *team, r *rand.Rand) (func() error, error) {
	p := tm.any(r)
	p.crash()
	return func() error {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			return err
		}
		p.reboot(time.Duration(ts.Nano()))
		return p.up()
	}, nil
}

func halt(tm *team, r *rand.Rand) (func() error, error) {
	p := tm.any(r)
	return p.resume, p.halt()
}

func cut(tm *team, r *rand.Rand) (func() error, error) {
	a, b := tm.anyTwo(r)
	set := func(by int) error { return errors.Join(tm.mute(a, b, by), tm.mute(b, a, by)) }
	return func() error { return set(-1) }, set(+1)
}

func oneWay(tm *team, r *rand.Rand) (func() error, error) {
	a, b := tm.anyTwo(r)
	return func() error { return tm.mute(a, b, -1) }, tm.mute(a, b, +1)
}

func (tm *team) mute(a, b *proc, by int) error {
	return tm.hold(fmt.Sprintf("%s>%s", a.name, b.name), by,
		func(on bool) error { return tm.lan.Mute(a.host, b.host, on) })
}

// split puts one or two nodes on the other side: those that are there hear each other.
func split(tm *team, r *rand.Rand) (func() error, error) {
	a, b := tm.anyTwo(r)
	away := []*proc{a, b}[:1+r.IntN(2)]
	set := func(by int) (err error) {
		for _, p := range away {
			err = errors.Join(err, tm.hold(p.name+" away", by, func(on bool) error { return tm.lan.Move(p.host, on) }))
		}
		return err
	}
	return func() error { return set(-1) }, set(+1)
}

func unlink(tm *team, r *rand.Rand) (func() error, error) {
	p := tm.any(r)
	set := func(by int) error {
		return tm.hold(p.name+" unlinked", by, func(on bool) error { return tm.lan.Link(p.host, !on) })
	}
	return func() error { return set(-1) }, set(+1)
}

func readdress(tm *team, r *rand.Rand) (func() error, error) {
	return nothing, tm.any(r).readdress()
}

func clockJump(tm *team, r *rand.Rand) (func() error, error) {
	tm.any(r).jump([]int{-2, -1, 1, 2}[r.IntN(4)])
	return nothing, nil
}

// elect has a node stand for election, which is no fault; it may well lose.
func elect(tm *team, r *rand.Rand) (func() error, error) {
	ctx, cancel := context.WithTimeout(tm.t.Context(), asking)
	defer cancel()
	_, _ = tm.any(r).client.Elect(ctx, api.ElectRequest{}) // it may be down, or not heard
	return nothing, nil
}

// hold has something be wrong as long as some fault wants it.
func (tm *team) hold(what string, by int, set func(on bool) error) error {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	before := tm.wrong[what]
	tm.wrong[what] = before + by
	if (before > 0) == (before+by > 0) {
		return nil
	}
	return set(before+by > 0)
}

func (tm *team) count(kind string) {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	tm.sum.faults[kind]++
}
