//go:build linux

package chaos_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/internal/test/testlan"
	"github.com/mutirao-mesh/mutirao/internal/test/testliar"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

var (
	withLiar = flag.Bool("liar", false, "a sixth member lies to the five all the time")
	heaps    = flag.String("heaps", "", "with -liar: a folder for heap profiles of all nodes, every half minute")
)

const (
	liarVar  = "MUTIRAO_CHAOS_LIAR"      // the folder of the member that lies
	seedVar  = "MUTIRAO_CHAOS_LIAR_SEED" // of its attacks
	liarName = "mal"

	sayAddress = "address"  // tells the liar where a node is: its ID and address
	sayStarted = "instance" // tells the liar of an instance in which it takes no part
	sayLied    = "lied"     // told by the liar: an attack, and how many frames were taken
)

// liar is the member that lies: a process of its own, on a host of its own, with
// the certificate and key of a node that had joined.
type liar struct {
	cmd   *exec.Cmd
	dir   string
	ended chan struct{}
	stop  func()

	mu      sync.Mutex // guards what follows
	stdin   io.Writer
	attacks map[string]int
	frames  int
}

// lieFrom has mal join, its node end and its partners notice, and then has it lie
// until the test ends.
func (tm *team) lieFrom(host int, seed uint64) {
	ctx := tm.t.Context()
	m := &proc{tm: tm, host: host, name: liarName, dir: filepath.Join(tm.dir, liarName)}
	err := m.configure()
	if err == nil {
		err = m.meet(ctx, tm.ps[0])
	}
	if err != nil {
		tm.t.Fatal(err)
	}
	states := func(want string) func() bool {
		return func() bool {
			return !slices.ContainsFunc(tm.ps, func(p *proc) bool { return p.stateOf(ctx, liarName) != want })
		}
	}
	listed := within(patience, states("active"))
	m.crash()
	if !listed {
		tm.t.Fatalf("%s is not listed as a partner %s after it joined", liarName, patience)
	}
	if !within(patience, states("expired")) {
		tm.t.Fatalf("%s has not expired %s after it ended", liarName, patience)
	}
	for _, p := range tm.ps {
		st, err := p.client.Status(ctx)
		if err != nil {
			tm.t.Fatal(err)
		}
		p.id = st.ID
	}
	l := &liar{dir: m.dir, ended: make(chan struct{}), attacks: map[string]int{}}
	if err := l.launch(tm, host, seed); err != nil {
		tm.t.Fatal(err)
	}
	tm.liar = l
	for _, p := range tm.ps {
		p.mu.Lock()
		l.tell(p)
		p.mu.Unlock()
	}
	watch, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { tm.watchMemory(watch) })
	l.stop = func() {
		cancel()
		watching.Wait()
		_ = l.cmd.Process.Kill() // it may have ended; then that was told
		<-l.ended
	}
}

func (l *liar) launch(tm *team, host int, seed uint64) error {
	args := tm.lan.Command(host, os.Args[0])
	l.cmd = exec.Command(args[0], args[1:]...)
	l.cmd.Env = append(os.Environ(), liarVar+"="+l.dir, seedVar+"="+fmt.Sprint(seed))
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := os.OpenFile(filepath.Join(l.dir, "stderr.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer stderr.Close()
	l.cmd.Stderr = stderr
	if l.stdin, err = l.cmd.StdinPipe(); err != nil {
		return err
	}
	stdout, err := l.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := l.cmd.Start(); err != nil {
		return err
	}
	go func() {
		for s := bufio.NewScanner(stdout); s.Scan(); {
			var attack string
			var frames int
			if _, err := fmt.Sscanf(s.Text(), sayLied+" %s %d", &attack, &frames); err == nil {
				l.mu.Lock()
				l.attacks[attack]++
				l.frames += frames
				l.mu.Unlock()
			}
		}
		err := l.cmd.Wait()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || !exit.Sys().(syscall.WaitStatus).Signaled() {
			tm.harness(fmt.Errorf("the liar ended by itself: %v: see %s", err, stderr.Name()))
		}
		close(l.ended)
	}()
	return nil
}

// tell says where a node is now. The caller holds the node's lock.
func (l *liar) tell(p *proc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// If it has ended, launch says so.
	_, _ = fmt.Fprintf(l.stdin, "%s %s /ip4/%s/udp/4001/quic-v1\n", sayAddress, p.id, testlan.Address(p.host, p.second))
}

// betray tells the liar of an instance of others'.
func (l *liar) betray(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintln(l.stdin, sayStarted, id) // if it has ended, launch says so
}

func (l *liar) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d frames taken of attacks: %s", l.frames, counts(l.attacks))
}

// lie is the liar's process: it attacks one node after another until its parent ends.
func lie(dir string) error {
	seed, err := strconv.ParseUint(os.Getenv(seedVar), 10, 64)
	if err != nil {
		return err
	}
	l, err := testliar.New(dir)
	if err != nil {
		return err
	}
	l.Patience = time.Second
	b := &book{addrs: map[workflow.PartnerID]string{}}
	go b.read(l)
	if !within(patience, func() bool { return len(b.all()) == nodes }) {
		return errors.New("was not told where the nodes are")
	}
	r := rand.New(rand.NewPCG(seed, 4))
	for {
		victim, third := b.anyTwo(r)
		l.Third = third
		if err := l.Aim(victim, []string{b.of(victim)}); err != nil {
			return err
		}
		// Mostly an attack for itself, sometimes a burst of larger ones.
		times, most := 1, 5
		if r.IntN(8) == 0 {
			times, most = 2+r.IntN(8), 20
		}
		for range times {
			a := b.attack(r)
			before := l.Sent
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			a.Do(ctx, l, 1+r.IntN(most))
			cancel()
			fmt.Println(sayLied, a.Name, l.Sent-before)
			if l.Sent == before {
				break // the victim is down, or does not let it in for a while
			}
		}
		<-time.After(between(r, 0, 500*time.Millisecond))
	}
}

// attack draws one: more seldom what is cut off at once and kept out for a while.
func (b *book) attack(r *rand.Rand) testliar.Attack {
	i := r.IntN(len(testliar.Attacks) + 2)
	if i >= len(testliar.Attacks) {
		return testliar.Attack{Name: "others-instances", Do: b.meddle(r)}
	}
	a := testliar.Attacks[i]
	if slices.Contains([]string{"garbage", "news", "reports"}, a.Name) && r.IntN(8) > 0 {
		return b.attack(r)
	}
	return a
}

// meddle writes into instances in which the liar takes no part: that they are
// cancelled, and that it did a task of theirs.
func (b *book) meddle(r *rand.Rand) func(context.Context, *testliar.Liar, int) {
	return func(ctx context.Context, l *testliar.Liar, size int) {
		b.mu.Lock()
		ids := slices.Clone(b.instances)
		b.mu.Unlock()
		for range min(size, len(ids)) {
			f := l.Forger(ids[r.IntN(len(ids))], r.Uint64())
			mine := fact.AttemptID{Slot: "t1"}
			f.Says(ctx, fact.Body{Cancel: &fact.Cancel{Reason: "a lie"}})
			f.Says(ctx, fact.Body{Start: &fact.Start{Attempt: mine, Try: 1}})
			f.Says(ctx, fact.Body{Success: &fact.Success{Attempt: mine, Try: 1}})
		}
	}
}

// book is what the liar knows: where the nodes are, and the latest instances.
type book struct {
	mu        sync.Mutex // guards what follows
	addrs     map[workflow.PartnerID]string
	instances []workflow.InstanceID // at most maxBetrayed
}

const maxBetrayed = 20

// read follows what the parent says, and ends the process with its parent.
func (b *book) read(l *testliar.Liar) {
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), sayStarted+" "); ok {
			if id, err := workflow.ParseInstanceID(rest); err == nil {
				b.mu.Lock()
				b.instances = append(b.instances, id)
				b.instances = b.instances[max(0, len(b.instances)-maxBetrayed):]
				b.mu.Unlock()
			}
			continue
		}
		var id workflow.PartnerID
		var addr string
		if _, err := fmt.Sscanf(s.Text(), sayAddress+" %s %s", &id, &addr); err != nil {
			continue
		}
		b.mu.Lock()
		b.addrs[id] = addr
		b.mu.Unlock()
		if err := l.Moved(id, []string{addr}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(3)
}

func (b *book) of(id workflow.PartnerID) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.addrs[id]
}

func (b *book) all() (ids []workflow.PartnerID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.addrs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (b *book) anyTwo(r *rand.Rand) (victim, third workflow.PartnerID) {
	ids := b.all()
	i := r.IntN(len(ids))
	return ids[i], ids[(i+1+r.IntN(len(ids)-1))%len(ids)]
}

// stateOf is what the node's partner list says of somebody.
func (p *proc) stateOf(ctx context.Context, name string) string {
	all, err := p.client.Partners(ctx)
	if err != nil {
		return err.Error()
	}
	for _, x := range all {
		if x.Name == name {
			return x.State
		}
	}
	return "not listed"
}

// liars reports whether an instance is one of the liar's: its workflow is none of
// those that the test made.
func (tm *team) liars(x api.InstanceSummary) bool { return tm.liar != nil && tm.def(x.Workflow) == nil }

// trusted checks that a node refused the liar only what no correct node sends: nobody
// is taken for a liar for what the liar told it.
func (tm *team) trusted(ctx context.Context, p *proc) {
	if tm.liar == nil {
		return
	}
	all, err := p.client.Partners(ctx)
	if err != nil {
		tm.violate("live: %s: %v", p.name, err)
	}
	for _, x := range all {
		for _, r := range x.Refused {
			if x.Name != liarName && slices.Contains(onlyLiars, r.Reason) {
				tm.violate("authorised: %s refused %s %d times, and it did not lie: %s", p.name, x.Name, r.Times,
					r.What)
			} else if x.Name != liarName {
				tm.sum.lies.refused[r.Reason+" of others than the liar"]++
			}
		}
	}
}

// takesUp checks that every node still starts instances: a liar that has used up
// what a node has for all would have the other checks look at nothing.
func (tm *team) takesUp(ctx context.Context) {
	if tm.liar == nil || tm.last {
		return
	}
	for i, p := range tm.ps {
		tm.mu.Lock()
		if len(tm.workflows) == 0 {
			tm.mu.Unlock()
			return
		}
		w := tm.workflows[(tm.sum.rounds+i)%len(tm.workflows)]
		tm.mu.Unlock()
		var err error
		if !within(patience, func() bool {
			err = p.start(ctx, w.text, api.StartRequest{Workflow: string(w.name), Assign: w.assign})
			return err == nil
		}) {
			tm.violate("live: %s starts no instance %s after everything healed: %v", p.name, patience, err)
		}
	}
}

// maxLies is how many of the liar's instances are compared after a round.
const maxLies = 40

// compareLies compares what the nodes made of the liar's instances: those that have
// the same facts of one have the same fingerprint of it. The liar goes on meanwhile,
// and may tell one node more than another.
func (tm *team) compareLies(ctx context.Context) {
	if tm.liar == nil {
		return
	}
	who := map[string][]*proc{}
	for _, p := range tm.ps {
		list, err := p.instances(ctx, true)
		if err != nil {
			tm.violate("live: %s: %v", p.name, err)
			return
		}
		for _, x := range list {
			if tm.liars(x) && x.Quarantine == nil && x.Closed == nil {
				who[x.ID] = append(who[x.ID], p)
			}
		}
	}
	tm.sum.lies.known = max(tm.sum.lies.known, len(who))
	looked := 0
	for id, holders := range who { // in any order: another sample each time
		if len(holders) < 2 {
			continue
		}
		if looked++; looked > maxLies {
			return
		}
		a, okA := holders[0].factsOf(ctx, id)
		b, okB := holders[1].factsOf(ctx, id)
		switch {
		case !okA || !okB:
		case a.facts != b.facts:
			tm.sum.lies.differ++
		case a.print != b.print:
			tm.violate("convergent: %s and %s have the same facts of the liar's instance %s, and different fingerprints:\n%s",
				holders[0].name, holders[1].name, id, a.facts)
		default:
			tm.sum.lies.same++
		}
	}
}

// lies are what was compared of the liar's instances.
type lies struct {
	known  int // at most at a time
	same   int // two nodes had the same facts, and the same fingerprint
	differ int // two nodes did not have the same facts yet
	anon   int // the most anonymous memory that a node held, in MiB
	// refused is by reason the most that one run of a node counted.
	refused map[string]int
}

func (l *lies) refusals(counters map[string]uint64) {
	for what, n := range counters {
		if reason, ok := strings.CutPrefix(what, "refused."); ok {
			l.refused[reason] = max(l.refused[reason], int(n))
		}
	}
}

type factsAndPrint struct{ facts, print string }

// factsOf is what a node has of an instance, at one moment; false where it changes or
// cannot be read.
func (p *proc) factsOf(ctx context.Context, id string) (f factsAndPrint, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	for range 3 {
		before, err := p.print(id)
		if err != nil || before == "" {
			return f, false
		}
		entries, err := p.client.Log(ctx, id)
		if err != nil {
			return f, false
		}
		var ids []string
		for _, e := range entries {
			ids = append(ids, e.Fact)
		}
		slices.Sort(ids)
		f = factsAndPrint{strings.Join(ids, " "), before}
		if after, err := p.print(id); err == nil && after == before {
			return f, true
		}
	}
	return f, false
}

// untouched: the liar has no work and no word in an instance that it was not made a
// participant of.
func (h *history) untouched() (out []string) {
	for _, p := range h.shown.Partitions {
		if p.First == liarName || slices.Contains(p.Holders(), liarName) {
			out = append(out, fmt.Sprintf("authorised: partition %s is assigned to %s, who expired", p.Name, liarName))
		}
	}
	for _, t := range h.shown.Tasks {
		if t.Partner == liarName {
			out = append(out, fmt.Sprintf("authorised: task %s is assigned to %s, who expired", t.Name, liarName))
		}
	}
	for _, e := range h.entries {
		if e.Author == liarName {
			out = append(out, fmt.Sprintf("authorised: a fact of %s's is in the history: %s", liarName, e.Text))
		}
	}
	return out
}

// watchMemory checks all the time what the nodes hold that no file backs.
func (tm *team) watchMemory(ctx context.Context) {
	told := map[*process]bool{}
	profiled := time.Now()
	for pause(ctx, 200*time.Millisecond) {
		profile := *heaps != "" && time.Since(profiled) >= 30*time.Second
		if profile {
			profiled = time.Now()
		}
		for _, p := range tm.ps {
			p.mu.Lock()
			x, m := p.run, p.memory("RssAnon:")
			if profile {
				name := fmt.Sprintf("%s-%05.0f-%dMiB.pprof", p.name, time.Since(tm.begun).Seconds(), m)
				p.say(sayHeap, filepath.Join(*heaps, name))
			}
			if m > mostMemory && !told[x] {
				p.say(sayHeap, filepath.Join(p.dir, "heap.pprof"))
			}
			p.mu.Unlock()
			tm.mu.Lock()
			tm.sum.lies.anon = max(tm.sum.lies.anon, m)
			tm.mu.Unlock()
			if m > mostMemory && !told[x] {
				told[x] = true
				tm.violate("bounded: %s holds %d MiB anonymous memory, at most %d are expected", p.name, m, mostMemory)
			}
		}
	}
}
