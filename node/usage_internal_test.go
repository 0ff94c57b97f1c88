package node

import (
	"crypto/ed25519"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What instances weigh is about what they take: a member that piles them up fills
// its share of the memory, and not more.
func TestWeightIsWhatInstancesTake(t *testing.T) {
	for _, c := range []struct {
		name                    string
		instances, tasks, facts int
		load                    string // given at the start
	}{
		{"small", 400, 1, 0, ""},
		{"with data", 200, 3, 1, strings.Repeat("x", 20_000)},
		{"with many tasks", 40, 130, 1, ""},
		{"with many facts", 100, 3, 100, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			def := definitionOf(t, c.tasks)
			all := make([]*held, 0, c.instances)
			var weighed int64
			before := heap()
			for i := range c.instances {
				h := pile(t, def, i, c.facts, c.load)
				for _, w := range h.weights() {
					weighed += w.all
				}
				all = append(all, h)
			}
			taken := heap() - before
			runtime.KeepAlive(all)
			t.Logf("%d instances take %d KiB, and weigh %d KiB", len(all), taken>>10, weighed>>10)
			if taken > weighed*5/4 || taken < weighed/3 {
				t.Errorf("%d instances take %d KiB, and weigh %d KiB", len(all), taken>>10, weighed>>10)
			}
		})
	}
}

// A share of a member is no more than one part in as many as there are partners of what
// others may name of it: each of them may have been told something else. A largest fact goes
// in all the same, and what the member began takes nothing of that.
func TestSharesByPartners(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	tools := newTools(Parts{
		Member: Member{Key: key}, Clock: stillClock{},
		Config: configs.Config{Limits: configs.Limits{Memory: 16 << 20, Disk: 128 << 20}},
	})
	x := &instances{contacts: newContacts(tools, nil), usage: newUsage(), index: index.New()}
	for _, c := range []struct {
		partners, left int
	}{{2, 2 << 20}, {4, 1 << 20}, {8, 512 << 10}, {100, fact.MaxFact + factWeight/byteWeight}} {
		if got := x.leftAmong("mal", c.partners); got != c.left {
			t.Errorf("%d bytes of one of %d have room, want %d", got, c.partners, c.left)
		}
	}
	x.usage.change(nil, map[workflow.PartnerID]weight{"mal": {all: 3 << 20, wrote: 1 << 20}})
	if got, want := x.leftAmong("mal", 4), 512<<10; got != want {
		t.Errorf("with a MiB of facts, %d bytes of one of 4 have room, want %d", got, want)
	}
	x.usage.change(map[workflow.PartnerID]weight{"mal": {all: 3 << 20, wrote: 1 << 20}}, nil)
	if len(x.usage.of) != 0 || x.usage.all != (weight{}) {
		t.Errorf("nothing is there, and weighs %+v", x.usage.all)
	}
}

// heap is what is in use, garbage left out.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// definitionOf makes a workflow with so many tasks one after the other.
func definitionOf(t *testing.T, tasks int) *library.Definition {
	t.Helper()
	text := "workflow: pile\ndata:\n  load: {type: string}\ntasks:\n  t0: {type: manual}\n"
	part := "t0"
	for i := 1; i < tasks; i++ {
		text += fmt.Sprintf("  t%d: {type: manual, after: t%d}\n", i, i-1)
		part += fmt.Sprintf(", t%d", i)
	}
	def, err := workflow.Parse("pile.yaml", []byte(text+"partitions: {all: ["+part+"]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return &library.Definition{Hash: def.Hash(), Def: def, Plan: partition.New(def)}
}

// However many partners that do not exist somebody brings into an instance: what is stored
// of it when it has ended names those that are known, whoever wrote something, and few more.
func TestSummaryNamesFewStrangers(t *testing.T) {
	for _, n := range []int{5, maxStrangers, 1000} {
		others := []workflow.PartnerID{"bea"}
		for i := range n {
			others = append(others, workflow.PartnerID(fmt.Sprintf("nobody-%d", i)))
		}
		h := pile(t, definitionOf(t, 1), 1, 2, "", append(others, "carl")...)
		known := func(p workflow.PartnerID) bool { return p == "ana" || p == "bea" || p == "carl" }
		named := h.named(h.m.Audience(), known)
		for _, p := range []workflow.PartnerID{"eve", "ana", "bea", "carl", "nobody-0"} {
			if !slices.Contains(named, p) {
				t.Errorf("among %d that nobody knows %s is not named", n, p)
			}
		}
		if want := 4 + min(n, maxStrangers); len(named) != want {
			t.Errorf("of %d that nobody knows and four that are known or wrote something %d are named, want %d", n,
				len(named), want)
		}
	}
}

// pile is an instance that eve began and wrote facts into, as a node has it that read it
// from its store. Others are participants too.
func pile(t *testing.T, def *library.Definition, number, facts int, load string, others ...workflow.PartnerID) *held {
	t.Helper()
	var next fact.Fact
	read := func(body fact.Body) fact.Received {
		next.Body = body
		raw, id, err := next.Encode()
		if err != nil {
			t.Fatal(err)
		}
		att := fact.Attest([]fact.ID{id}, func(string, []byte) []byte { return make([]byte, 64) })
		var r fact.Received
		err = readFacts(encode([]storedFact{{Raw: raw, Att: att[0]}}), func(f fact.Received, _ int64) { r = f })
		if err != nil {
			t.Fatal(err)
		}
		next.Seq, next.Prev = next.Seq+1, id
		return r
	}
	next = fact.Fact{
		Format: fact.Format, Chain: fact.Chain{Author: "eve", Incarnation: fact.Incarnation{1}}, Seq: 1,
	}
	genesis := read(fact.Body{Genesis: &fact.Genesis{
		Definition: def.Hash, Nonce: [16]byte{byte(number), byte(number >> 8)},
		Input:      map[workflow.DataName]workflow.Value{"load": load},
		Succession: append([]workflow.PartnerID{"eve", "ana"}, others...), Coordination: workflow.Choreography,
		Assign: []fact.Placement{{Partition: "all", Partner: "ana"}},
	}})
	m, err := choreo.Open(choreo.Self{Partner: "ana"}, def.Def, def.Plan, genesis)
	if err != nil {
		t.Fatal(err)
	}
	next.Instance = m.Instance()
	var rest []fact.Received
	for range facts {
		rest = append(rest, read(fact.Body{Cancel: &fact.Cancel{Reason: "enough"}}))
	}
	if err := m.Load(rest, true); err != nil {
		t.Fatal(err)
	}
	return &held{m: m, def: def, sum: firstSummary(m, def)}
}
