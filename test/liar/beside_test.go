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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/internal/test/testliar"
	"github.com/mutirao-mesh/mutirao/internal/test/testnode"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

var (
	lasts = flag.Duration("for", 20*time.Second,
		"how long the liar goes on beside honest work; 10m for docs/security.md")
	amount = flag.Int(
		"instances", 60, "how many instances two honest partners run meanwhile; 1000 for docs/security.md")
)

// While a lying member does all its attacks in turn, each at a twentieth of its full size,
// and claims rights that it has not, two honest partners run
// instances in which it has no work, and one gives the other files: all end, and not much
// later than beside a liar that is idle, and all files come. Liar and victims have processors of their own.
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
	claims := v.claims() // begun while the liar is on the partner list
	v.runs(20, 0)        // warm
	idle := v.runs(*amount, *lasts)
	t.Logf("the liar idle: %s", idle)

	ctx, stop := context.WithCancel(t.Context())
	l := v.liar(shared)
	claims.told(l)
	var work sync.WaitGroup
	m := measure(v.ana)
	turns := 0
	var photos outcome
	work.Go(func() { v.photos(ctx, &photos) })
	work.Go(func() {
		for ctx.Err() == nil {
			for _, a := range append(claims.attacks(), testliar.Attacks...) {
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
	slices.Sort(photos.took)
	t.Logf("%d files came from bea to ana meanwhile, p50 %s, p99 %s, at most %s", len(photos.took),
		photos.percentile(50), photos.percentile(99),
		photos.percentile(100))
	if photos.failed > 0 || len(photos.took) == 0 {
		t.Errorf("%d files came, %d did not: %s", len(photos.took), photos.failed, photos.why)
	}
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
	claims.count(l)
	v.holds()
}

// claims are what the liar claims again and again of rights that it has not, about
// instances that ana began.
type claims struct {
	v           *victims
	aid         string              // an instance in which the liar takes part
	aided       workflow.InstanceID // the same
	hidden      workflow.InstanceID // in which it does not
	genesis     fact.Head           // of the secret
	bea         workflow.PartnerID
	order, call *workflow.Definition
}

func (v *victims) claims() *claims {
	v.t.Helper()
	for _, source := range []string{aid, secret} {
		v.add(source)
	}
	c := &claims{v: v, order: parse(v.t, order), call: parse(v.t, strings.Replace(call, "%s", "the liar's", 1))}
	c.aid, c.aided = v.start("aid", map[string]string{"crew": "bea", "doctor": "ana", "carriers": "mal"})
	id, hidden := v.start("secret", map[string]string{"pa": "ana", "pb": "bea"})
	c.hidden, c.genesis = hidden, v.genesisOf(id)
	bea, err := v.bea.API.Status(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	c.bea = bea.ID
	return c
}

// told waits until the liar knows of the instance in which it takes part.
func (c *claims) told(l *testliar.Liar) {
	c.v.t.Helper()
	testnode.Within(c.v.t, time.Minute, "the liar is told of the instance",
		func() bool { return len(l.Knows(c.aided)) > 0 })
}

// attacks are one claim each, as TestRights has them once.
func (c *claims) attacks() []testliar.Attack {
	do := func(name string, claim func(context.Context, *testliar.Liar)) testliar.Attack {
		return testliar.Attack{Name: name, Do: func(ctx context.Context, l *testliar.Liar, _ int) { claim(ctx, l) }}
	}
	return []testliar.Attack{
		do("usurp", func(ctx context.Context, l *testliar.Liar) { usurp(ctx, l, c.aided) }),
		do("creator", func(ctx context.Context, l *testliar.Liar) {
			commands(ctx, l, c.order, trust.EncodeChain(l.Who().Chain))
		}),
		do("inject", func(ctx context.Context, l *testliar.Liar) { inject(ctx, l, c.hidden, c.genesis) }),
		do("squat", func(ctx context.Context, l *testliar.Liar) {
			l.Lists(ctx, c.call)
			l.Begins(ctx, c.call, nil)
		}),
		do("evict", func(ctx context.Context, l *testliar.Liar) { evict(ctx, l, c.bea) }),
	}
}

// count checks that none of the claims has counted.
func (c *claims) count(l *testliar.Liar) {
	t := c.v.t
	t.Helper()
	in, err := c.v.ana.API.Show(t.Context(), c.aid)
	if err != nil {
		t.Fatal(err)
	}
	if in.Data["dose"] != nil {
		t.Errorf("ana takes over the liar's dose, %v", in.Data["dose"])
	}
	if told := l.Knows(c.hidden); len(told) > 0 {
		t.Errorf("the liar was told %d facts of the secret", len(told))
	}
	list, err := c.v.ana.API.Instances(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		if x.Workflow == c.order.Name {
			t.Errorf("ana has the liar's order %s", x.ID)
		}
	}
	if howls(c.v.ana) {
		t.Error("ana's siren howls for the liar")
	}
}

// outcome is what became of some instances.
type outcome struct {
	took   []time.Duration // sorted
	failed int
	why    string
}

func (o outcome) String() string {
	return fmt.Sprintf("%d instances ended, %d did not; p50 %s, p99 %s, at most %s", len(o.took), o.failed,
		o.percentile(50).Round(100*time.Microsecond), o.percentile(99).Round(100*time.Microsecond),
		o.percentile(100).Round(time.Millisecond))
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
