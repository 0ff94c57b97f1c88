package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// liar is a member that says to others what it likes, with its own proper signatures.
type liar struct {
	tm       *team
	name     string
	member   node.Member
	instance workflow.InstanceID
	genesis  fact.Head
}

func newLiar(tm *team, name, instance string) *liar {
	tm.t.Helper()
	id, err := workflow.ParseInstanceID(instance)
	if err != nil {
		tm.t.Fatal(err)
	}
	m, err := node.LoadMember(tm.p[name].dir)
	if err != nil {
		tm.t.Fatal(err)
	}
	x := &liar{tm: tm, name: name, member: m, instance: id}
	for _, c := range tm.f.sent(hasFacts) {
		for _, fs := range c.m.Facts {
			for _, w := range fs.Facts {
				if f, fid, err := fact.Decode(w.Raw); err == nil && f.Body.Genesis != nil && fs.Instance == id {
					x.genesis = fact.Head{Chain: f.Chain, Seq: 1, ID: fid}
				}
			}
		}
	}
	return x
}

// seen makes a fact that says nothing.
func (x *liar) seen(incarnation int, seq uint64, prev fact.ID, at int64) (raw []byte, id fact.ID) {
	f := &fact.Fact{Format: fact.Format, Instance: x.instance, Seq: seq, Prev: prev, At: at,
		Body: fact.Body{Seen: &fact.Seen{}},
		Chain: fact.Chain{
			Author: x.member.ID(), Incarnation: fact.Incarnation{0xee, byte(incarnation >> 8), byte(incarnation)},
		}}
	if seq == 1 {
		f.Seen = []fact.Head{x.genesis}
	}
	raw, id, err := f.Encode()
	if err != nil {
		x.tm.t.Fatal(err)
	}
	return raw, id
}

// tell sends facts to a partner, each attested, 300 to a frame.
func (x *liar) tell(to string, raws [][]byte, ids []fact.ID) {
	atts := fact.Attest(ids, func(domain string, msg []byte) []byte { return trust.Sign(x.member.Key, domain, msg) })
	for from := 0; from < len(raws); from += 300 {
		msg := wire.Facts{Instance: x.instance}
		for i := from; i < min(from+300, len(raws)); i++ {
			msg.Facts = append(msg.Facts, wire.Fact{Raw: raws[i], Att: atts[i]})
		}
		frame, err := wire.Encode(&wire.Message{Facts: []wire.Facts{msg}})
		if err != nil {
			x.tm.t.Fatal(err)
		}
		x.tm.p[to].node.OnFrame(x.member.ID(), frame)
		synctest.Wait()
	}
}

// floods are what a member may send without end.
var floods = []struct {
	what, refused string
	send          func(x *liar, to string)
}{
	{"1,100 chains", "facts-beyond-chains", func(x *liar, to string) {
		var raws [][]byte
		var ids []fact.ID
		for i := range 1100 {
			raw, id := x.seen(i, 1, fact.ID{}, 0)
			raws, ids = append(raws, raw), append(ids, id)
		}
		x.tell(to, raws, ids)
	}},
	{"a chain that forks 2,500 times", "", func(x *liar, to string) {
		raw, first := x.seen(0, 1, fact.ID{}, 0)
		raws, ids := [][]byte{raw}, []fact.ID{first}
		for i := range 2500 {
			raw, id := x.seen(0, 2, first, int64(i))
			raws, ids = append(raws, raw), append(ids, id)
		}
		x.tell(to, raws, ids)
	}},
}

// TestMemberThatFloods: a member that takes part sends without end. The others work
// on, nobody shuts an honest partner out for it, what is refused is counted under the
// liar's name, and the node that was flooded starts again.
func TestMemberThatFloods(t *testing.T) {
	for _, flood := range floods {
		t.Run(flood.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeam(t, "one", "two", "three")
				tm.add("one", chain)
				tm.p["one"].hand.hold("a")
				id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "three"})
				pass(time.Minute)
				x := newLiar(tm, "three", id)
				flood.send(x, "one")
				tm.p["three"].crash() // the liar leaves
				tm.p["one"].hand.letGo(t, "a")
				pass(10 * time.Minute)
				if got := tm.task("two", id, "b"); got != workflow.Succeeded {
					t.Errorf("b of two is %s ten minutes after a ended", got)
				}
				if one, two := len(tm.log("one", id)), len(tm.log("two", id)); one != two {
					t.Errorf("one has %d facts, two %d", one, two)
				}
				for _, who := range []string{"one", "two"} {
					for _, c := range []string{
						"refused.frame-malformed", "refused.facts-malformed", "refused.facts-invalid",
					} {
						if n := tm.counter(who, c); n > 0 {
							t.Errorf("%s counts %d of %s among honest partners", who, n, c)
						}
					}
				}
				if flood.refused != "" && tm.counter("one", "refused."+flood.refused) == 0 {
					t.Error("nothing was refused")
				}
				tm.p["one"].crash()
				tm.p["one"].start()
				synctest.Wait()
				if tm.state("one", id) == "" {
					t.Error("one cannot show the instance after a restart")
				}
			})
		})
	}
}

// writer is a runner whose tasks t… return so many bytes as their output.
type writer struct {
	*hand
	size int
	name workflow.DataName
}

func (w writer) Start(j runner.Job, done func(runner.Result)) {
	if !strings.HasPrefix(string(j.Task), "t") {
		w.hand.Start(j, done)
		return
	}
	done(runner.Result{Outputs: map[workflow.DataName]workflow.Value{w.name: strings.Repeat("x", w.size)}})
}

// sideBySide has two partitions of n tasks each, and a last task that waits for both.
func sideBySide(n int) string {
	var b strings.Builder
	b.WriteString("workflow: sparse\ndata: {x: {type: string}, y: {type: string}}\ntasks:\n")
	var p [2][]string
	for k := range 2 {
		for i := range n {
			name, after := fmt.Sprintf("t%d%c", i, 'a'+k), fmt.Sprintf("after: g%c", 'a'+k)
			if i > 0 {
				after = fmt.Sprintf("after: t%d%c", i-1, 'a'+k)
			}
			fmt.Fprintf(&b, "  %s: {%s, out: [%c]}\n", name, after, 'x'+k)
			p[k] = append(p[k], name)
		}
	}
	fmt.Fprintf(&b, "  ga: {}\n  gb: {}\n  hold: {}\n  z: {after: [t%da, t%db]}\n", n-1, n-1)
	fmt.Fprintf(&b, "partitions:\n  pa: [ga, %s]\n  pb: [gb, %s]\n  pc: [hold]\n  pz: [z]\n", strings.Join(p[0], ", "),
		strings.Join(p[1], ", "))
	return b.String()
}

// TestRelay: ann and bob work offline, meet cy one after the other, and are lost for
// good. What they did reaches dan through cy, whatever the size of their results.
func TestRelay(t *testing.T) {
	for _, sizes := range [][]int{{3_000, 2_300}, {30_000, 23_000}} {
		t.Run(fmt.Sprintf("%d and %d bytes", sizes[0], sizes[1]), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { relay(t, sizes) })
		})
	}
}

func relay(t *testing.T, sizes []int) {
	const n = 40
	names := []string{"ann", "bob", "cy", "dan"}
	tm := newTeam(t, names...)
	for i, name := range names[:2] {
		q := tm.p[name]
		q.hand.hold("ga", "gb")
		q.fit = func(parts *node.Parts) {
			parts.Runner = writer{q.hand, sizes[i], []workflow.DataName{"x", "y"}[i]}
		}
		tm.f.unplug(q.plug)
		q.end()
		q.start()
	}
	tm.p["cy"].hand.hold("hold")
	pairs := func(fn func(a, b string)) {
		for i, a := range names {
			for _, b := range names[:i] {
				fn(a, b)
			}
		}
	}
	pairs(func(a, b string) {
		if a != "dan" || b != "cy" {
			tm.connect(a, b)
		}
	})
	synctest.Wait()
	tm.add("ann", sideBySide(n))
	id := tm.begin("ann", "sparse", map[string]string{"pa": "ann", "pb": "bob", "pc": "cy", "pz": "dan"})
	pass(2 * time.Minute)
	pairs(func(a, b string) { tm.disconnect(a, b) })
	pass(time.Second)
	tm.p["ann"].hand.letGo(t, "ga")
	tm.p["bob"].hand.letGo(t, "gb")
	pass(time.Minute)
	for _, name := range names[:2] {
		tm.connect(name, "cy")
		pass(2 * time.Minute)
		tm.disconnect(name, "cy")
	}
	tm.p["ann"].crash() // for good
	tm.p["bob"].crash()
	tm.connect("cy", "dan")
	pass(time.Minute)
	if got := tm.task("dan", id, "z"); got != workflow.Succeeded {
		t.Errorf("z is %s a minute after dan met cy: dan has %d facts, cy %d; cy sent again %d times", got,
			len(tm.log("dan", id)), len(tm.log("cy", id)), tm.counter("cy", "resent"))
	}
}

// A member whose store was made or restored more often than is taken in of one author
// is told so, by its own status and doctor; facts of a member that do not count are
// among what is refused of it.
func TestRefusalsThatTheirAuthorHears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", chain)
		tm.p["one"].hand.hold("a")
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "three"})
		pass(time.Minute)
		x := newLiar(tm, "three", id)
		for i := range fact.MaxChains + 1 {
			raw, fid := x.seen(i, 1, fact.ID{}, 0)
			x.tell("one", [][]byte{raw}, []fact.ID{fid})
		}
		synctest.Wait()
		tm.wantTrouble("three", "takes in nothing more that this node does in it")
		d, err := tm.p["three"].api.Doctor(t.Context())
		if err != nil || !slices.ContainsFunc(d.Findings, func(f api.Finding) bool {
			return f.Check == "facts" && strings.Contains(f.What, "restored more than 8 times")
		}) {
			t.Errorf("the doctor of three says %+v, %v", d, err)
		}

		l := tm.forger("two", id)
		l.says("one", tm.headSent(l.id),
			fact.Body{Start: &fact.Start{Attempt: fact.AttemptID{Slot: "a"}, Try: 1}})
		if r := tm.refused("one", "two"); len(r) != 1 || r[0].Reason != "facts-not-counted" || r[0].Times != 1 {
			t.Errorf("of two is refused: %+v", r)
		}
	})
}

// An instance that waits for a key that is nobody's, or for a liar, goes on for ever where
// nothing has a time-out: show says for whom it waits, and what is the matter with that one.
func TestShowSaysForWhomItWaitsInVain(t *testing.T) {
	for _, c := range []struct {
		name, want string
		lie        func(x *liar)
	}{
		{"passed on to nobody", "it waits for nobody-at-all, who is not on the partner list", func(x *liar) {
			f := &fact.Fact{Format: fact.Format, Instance: x.instance, Seq: 1, Seen: []fact.Head{x.genesis},
				Body: fact.Body{Assign: &fact.Assign{
					After: fact.AttemptID{Slot: "a"}, Task: "a", Partner: "nobody-at-all",
				}},
				Chain: fact.Chain{Author: x.member.ID(), Incarnation: fact.Incarnation{0xee}}}
			raw, id, err := f.Encode()
			if err != nil {
				x.tm.t.Fatal(err)
			}
			x.tell("one", [][]byte{raw}, []fact.ID{id})
		}},
		{"a forked chain", "it waits for three, whose facts do not count: two of them have one number", func(x *liar) {
			raw, id := x.seen(0, 1, fact.ID{}, 0)
			other, otherID := x.seen(0, 1, fact.ID{}, 1)
			x.tell("one", [][]byte{raw, other}, []fact.ID{id, otherID})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeam(t, "one", "two", "three")
				tm.add("one", chain)
				tm.p["three"].hand.hold("a")
				id := tm.begin("one", "chain", map[string]string{"pa": "three", "pb": "two", "pc": "one"})
				pass(time.Second)
				if a := tm.taskOf("one", id, "a"); a.Reason != "" {
					t.Errorf("of a, which three works on, is said: %q", a.Reason)
				}
				c.lie(newLiar(tm, "three", id))
				pass(time.Second)
				in := tm.show("one", id)
				if a := tm.taskOf("one", id, "a"); in.State != workflow.InstanceRunning || a.Reason != c.want {
					t.Errorf("the instance is %s; a is %s at %s: %q, want %q", in.State, a.State, a.Partner, a.Reason,
						c.want)
				}
			})
		})
	}
}
