//go:build linux

package liar_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/test/testliar"
)

var (
	lasts  = flag.Duration("for", 20*time.Second, "how long the liar goes on beside honest work; 10m for docs/security.md")
	amount = flag.Int("instances", 60, "how many instances two honest partners run meanwhile; 1000 for docs/security.md")
)

// While a lying member does all its attacks in turn, two honest partners run
// instances in which it has no work: all end, and not much later than beside a
// liar that is idle. Liar and victims have processors of their own.
func TestHonestWorkBesideALiar(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("NOT TESTED: liar and victims need a processor each")
	}
	apart := func(cpu int, args ...string) []string {
		return append([]string{"taskset", "-c", fmt.Sprint(cpu)}, args...)
	}
	if err := exec.Command("taskset", "-a", "-p", "-c", "1", fmt.Sprint(os.Getpid())).Run(); err != nil {
		t.Skipf("NOT TESTED: taskset (util-linux) does not work here: %v", err)
	}
	t.Cleanup(func() {
		all := fmt.Sprintf("0-%d", runtime.NumCPU()-1)
		if err := exec.Command("taskset", "-a", "-p", "-c", all, fmt.Sprint(os.Getpid())).Run(); err != nil {
			t.Error(err)
		}
	})
	v := newVictimsBy(t, apart(0, os.Args[0]))
	shared := v.begins()
	v.runs(20, 0) // warm
	idle := v.runs(*amount, *lasts)
	t.Logf("the liar idle: %s", idle)

	ctx, stop := context.WithCancel(t.Context())
	l := v.liar(shared)
	var work sync.WaitGroup
	m := measure(v.ana)
	turns := 0
	work.Go(func() {
		for ctx.Err() == nil {
			for _, a := range testliar.Attacks {
				if ctx.Err() == nil {
					a.Do(ctx, l, testliar.Whole/20)
					turns++
				}
			}
		}
	})
	beside := v.runs(*amount, *lasts)
	stop()
	work.Wait()
	u := m.ends()
	t.Logf("the liar busy: %s; %d attacks, %d frames; ana used %s", beside, turns, l.Sent, u)
	if beside.failed > 0 {
		t.Errorf("%d instances did not end as they do beside an idle liar: %s", beside.failed, beside.why)
	}
	if *lasts >= time.Minute { // for less, what else the machine does would be judged
		for _, p := range []int{50, 99} {
			if got, most := beside.percentile(p), 5*max(idle.percentile(p), 20*time.Millisecond); got > most {
				t.Errorf("p%d is %s, with the liar idle %s: at most five times as high", p, got, idle.percentile(p))
			}
		}
	}
	if u.anon > maxAnon {
		t.Errorf("%d MiB anonymous memory, at most %d", u.anon, maxAnon)
	}
	v.holds()
}

// outcome is what became of some instances.
type outcome struct {
	took   []time.Duration // sorted
	failed int
	why    string
}

func (o outcome) String() string {
	return fmt.Sprintf("%d instances ended, %d did not; p50 %s, p99 %s, at most %s", len(o.took), o.failed,
		o.percentile(50).Round(100*time.Microsecond), o.percentile(99).Round(100*time.Microsecond), o.percentile(100).Round(time.Millisecond))
}

func (o outcome) percentile(p int) time.Duration {
	if len(o.took) == 0 {
		return 0
	}
	return o.took[(len(o.took)-1)*p/100]
}

// runs has so many instances run over ana and bea, one after the other, evenly over
// a time.
func (v *victims) runs(n int, over time.Duration) outcome {
	var o outcome
	begun := time.Now()
	for i := range n {
		if wait := time.Until(begun.Add(over * time.Duration(i) / time.Duration(n))); wait > 0 {
			<-time.After(wait)
		}
		took, err := v.work()
		if err != nil {
			o.failed++
			o.why = err.Error()
			continue
		}
		o.took = append(o.took, took)
	}
	slices.Sort(o.took)
	return o
}
