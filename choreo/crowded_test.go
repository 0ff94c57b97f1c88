package choreo

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// throng is a mesh of three honest partners, and two members that lie: mal and mol. How
// many bytes of the liars each of the others takes in for themselves is in left, how many
// that others named in spare.
type throng struct {
	*mesh
	left, spare map[workflow.PartnerID]int
}

var honest = []workflow.PartnerID{"one", "two", "three"}

func newThrong(t *testing.T) *throng { return newThrongOf(t, honest...) }

// newThrongOf is newThrong with other honest partners: the first has what the liars take part
// in begun, and the second has the other partition.
func newThrongOf(t *testing.T, names ...workflow.PartnerID) *throng {
	c := &throng{newMesh(t, parse(t, relay)), map[workflow.PartnerID]int{}, map[workflow.PartnerID]int{}}
	at := map[workflow.PartitionName]workflow.PartnerID{"p1": names[0], "p2": names[1]}
	if err := c.start(names[0], c.genesis(at, append(slices.Clone(names), "mal", "mol")...)); err != nil {
		t.Fatal(err)
	}
	c.stabilize(true)
	c.paused["mal"], c.paused["mol"] = true, true
	c.room = func(n *node) Shares {
		// What others named may come under any author: both liars together fill it.
		liars := n.m.log.Authored()["mal"].Bytes + n.m.log.Authored()["mol"].Bytes
		return Shares{
			Left: func(p workflow.PartnerID) int {
				if slices.Contains(names, p) {
					return 1 << 20
				}
				return max(c.left[n.id]-n.m.log.Authored()[p].Bytes, 0)
			},
			Spare: func() int { return max(2*c.left[n.id]+c.spare[n.id]-liars, 0) },
		}
	}
	return c
}

// hear has a node receive facts of liars.
func (c *throng) hear(id workflow.PartnerID, facts []fact.Received) {
	n := c.nodes[id]
	c.limitRoom(n)
	if _, err := n.m.Receive(facts[0].Fact.Chain.Author, facts); err != nil {
		c.t.Logf("%s: %v", id, err)
	}
	n.m.Declined()
	c.step(n)
}

// heavy are facts of many bytes that do not count.
func (p *pen) heavy(n int, seen ...fact.Head) (out []fact.Received) {
	for range n {
		large := map[workflow.DataName]workflow.Value{"x": strings.Repeat("x", 4<<10)}
		out = append(out, p.write(fact.Body{Success: &fact.Success{Attempt: fact.AttemptID{Slot: "b"}, Try: 1,
			Outputs: large}},
			seen...))
		seen = nil
	}
	return out
}

// judges is a small fact that counts.
func judges(slot workflow.TaskName, why string) fact.Body {
	does := []fact.Action{{Attempt: fact.AttemptID{Slot: slot}, Kind: workflow.FailBlock}}
	return fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseTimeout, Reason: why, Actions: does}}
}

// compareAll has all compare what they have with those that may lack something of it.
func (c *throng) compareAll() {
	for _, id := range c.names() {
		n := c.nodes[id]
		for _, p := range c.names() {
			if n.m != nil && p != id && n.m.Participates(p) && n.m.Behind(p) {
				c.tellHeads(n, p, modeAsk)
			}
		}
	}
}

// takeAll has all say whose facts they take that they refused before.
func (c *throng) takeAll() {
	for _, id := range c.names() {
		if n := c.nodes[id]; n.m != nil && n.m.Refuses() {
			c.limitRoom(n)
			c.takeAgain(n)
		}
	}
	c.stabilize(false)
}

// compareFor has all compare what they have every half minute.
func (c *throng) compareFor(long time.Duration) {
	for range int(long / (30 * time.Second)) {
		c.compareAll()
		c.stabilize(false)
		c.takeAll()
		c.advance(30 * time.Second)
	}
	c.stabilize(false)
}

// counting is a fingerprint without what does not count.
func counting(m *Machine) string {
	var out []string
	for l := range strings.SplitSeq(string(m.Fingerprint()), "\n") {
		if !strings.HasSuffix(l, "counted=false") && !strings.HasPrefix(l, "refused ") {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

func (c *throng) agree(what string) {
	c.t.Helper()
	one := counting(c.nodes["one"].m)
	for _, id := range honest[1:] {
		if d := firstDifference([]byte(one), []byte(counting(c.nodes[id].m))); d != "" {
			c.t.Errorf("%s: one and %s differ: %s", what, id, d)
		}
	}
}

// wordsOf is how many facts a node has said.
func (c *throng) wordsOf(id workflow.PartnerID) int { return c.nodes[id].m.log.Authored()[id].Facts }

// TestRoomThatDiffers: a member fills its room at some, and then writes a small fact that
// counts; others have room for it. All come to the same facts that count, though nobody
// comes to a limit of the instance, and with nothing else to be said.
func TestRoomThatDiffers(t *testing.T) {
	c := newThrong(t)
	c.left["one"], c.left["two"], c.left["three"] = 64<<10, 8<<10, 0
	c.spare["two"], c.spare["three"] = 64<<10, 64<<10
	genesis := c.nodes["one"].m.log.Genesis().Head()
	c.hear("two", penOf(t, c.nodes["two"].m, "mal", 1).heavy(3, genesis))
	small := penOf(t, c.nodes["one"].m, "mal", 2)
	for _, id := range honest {
		c.hear(id, []fact.Received{small.write(judges("b", "a lie"), genesis)})
		small.seq, small.prev = 0, fact.ID{}
	}
	before := c.wordsOf("one")
	c.compareFor(2 * time.Minute)
	c.agree("after two minutes")
	for _, id := range honest {
		if got := len(c.nodes[id].m.state.BySlot()["b"].Attempts[0].Rulings); got != 1 {
			t.Errorf("at %s %d verdicts on b count, want 1", id, got)
		}
	}
	if got := c.wordsOf("one") - before; got != 1 {
		t.Errorf("one said %d things, want 1", got)
	}
	for _, id := range honest {
		c.crash(c.nodes[id])
	}
	c.compareFor(20 * time.Minute)
	if got := c.wordsOf("one") - before; got != 1 {
		t.Errorf("one said %d things after a restart, want 1", got)
	}
}

// TestRoomThatDiffersInAnyOrder: two liars tell each of different heavy facts, forks and
// small facts that count, in chains that go on with each other; those with room for them
// differ, and start again now and then. One takes part later. All come to the same facts
// that count, nobody has more of the liars than there is room and room to spare, and the
// honest say few things.
func TestRoomThatDiffersInAnyOrder(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 11))
		c := newThrong(t)
		c.limit = []int{2 << 10, fact.MaxFact}[r.IntN(2)]
		for _, id := range honest {
			c.left[id], c.spare[id] = []int{0, 6 << 10, 40 << 10, 1 << 20}[r.IntN(4)], 1<<20
		}
		late := honest[1+r.IntN(2)]
		c.paused[late] = r.IntN(3) == 0
		m := c.nodes["one"].m
		heads := []fact.Head{m.log.Genesis().Head()}
		for i := range 4 + r.IntN(12) {
			p := penOf(t, m, []workflow.PartnerID{"mal", "mol"}[r.IntN(2)], byte(2+r.IntN(3)))
			facts := []fact.Received{p.write(fact.Body{Seen: &fact.Seen{}}, heads[0])}
			if r.IntN(2) == 0 {
				facts = append(facts, p.heavy(1+r.IntN(4))...)
			}
			if r.IntN(2) == 0 {
				facts = append(facts, p.write(judges([]workflow.TaskName{"b", "c", "d"}[r.IntN(3)], fmt.Sprint(i))))
			}
			at := r.Perm(len(honest))[:1+r.IntN(2)]
			for _, k := range at {
				if !c.paused[honest[k]] {
					c.hear(honest[k], facts)
				}
			}
			if r.IntN(3) == 0 {
				c.meet(honest[r.IntN(3)], honest[r.IntN(3)])
				c.stabilize(false)
			}
			if r.IntN(5) == 0 && !c.paused[honest[at[0]]] {
				c.crash(c.nodes[honest[at[0]]])
			}
		}
		c.paused[late] = false
		before := [3]int{c.wordsOf("one"), c.wordsOf("two"), c.wordsOf("three")}
		c.compareFor(40 * time.Minute)
		c.agree(fmt.Sprintf("seed %d", seed))
		for i, id := range honest {
			of := c.nodes[id].m.log.Authored()
			if got, most := of["mal"].Bytes+of["mol"].Bytes, 2*c.left[id]+c.spare[id]; got > most {
				t.Errorf("seed %d: %s has %d bytes of the liars, at most %d are expected", seed, id, got, most)
			}
			if got := c.wordsOf(id) - before[i]; got > 8 {
				t.Errorf("seed %d: %s said %d things", seed, id, got)
			}
		}
	}
}

// TestNamedChainComesWhole: what comes before a fact that was set aside comes with it, in
// however many bundles, when there is room, though who had none started again since.
func TestNamedChainComesWhole(t *testing.T) {
	c := newThrong(t)
	c.limit, c.left["one"] = 4<<10, 1<<20
	p := penOf(t, c.nodes["one"].m, "mal", 1)
	c.hear("one", append(p.heavy(20, c.nodes["one"].m.log.Genesis().Head()), p.write(judges("b", "a lie"))))
	c.compareFor(time.Minute)
	for _, id := range honest[1:] {
		if c.nodes[id].m.Has(p.prev) || !c.nodes[id].m.Has(c.nodes["one"].m.own.ID) {
			t.Fatalf("%s has the chain already, or has not heard of it", id)
		}
		c.crash(c.nodes[id])
		c.spare[id] = 1 << 20
	}
	c.compareFor(6 * time.Minute)
	c.agree("when there is room")
}

// TestForkThatHasNoRoom: one branch of a chain, of which nothing counts, has no room where
// the other is, of which something does. That the first is longer does not mean that who
// has it has the other too.
func TestForkThatHasNoRoom(t *testing.T) {
	c := newThrong(t)
	c.left["one"], c.left["two"], c.left["three"] = 1<<10, 1<<20, 1<<10
	for _, id := range honest {
		c.spare[id] = 1 << 20
	}
	p := penOf(t, c.nodes["one"].m, "mal", 1)
	first := p.write(fact.Body{Seen: &fact.Seen{}}, c.nodes["one"].m.log.Genesis().Head())
	c.hear("two", append([]fact.Received{first}, p.heavy(3)...))
	p.seq, p.prev = 1, first.ID
	c.hear("one", []fact.Received{first, p.write(judges("b", "a lie"))})
	c.compareFor(20 * time.Minute)
	c.agree("twenty minutes later")
}

// TestWhatIsShownToBeKnownIsSetAside: a fact that says nothing shows that its author knew
// of a result which it judges away in a fresh chain. All are to have it.
func TestWhatIsShownToBeKnownIsSetAside(t *testing.T) {
	c := newThrong(t)
	c.say("two", "b", 1)
	c.stabilize(false)
	m := c.nodes["one"].m
	result := m.state.BySlot()["b"].Attempts[0].Success().Head()
	c.left["one"], c.spare["two"], c.spare["three"] = 1<<20, 1<<20, 1<<20
	knows, denies := penOf(t, m, "mal", 1), penOf(t, m, "mal", 2)
	shows := knows.write(fact.Body{Seen: &fact.Seen{}}, m.log.Genesis().Head(), result)
	c.hear("one", append([]fact.Received{shows}, knows.heavy(1)...))
	c.hear("one", []fact.Received{denies.write(judges("b", "a lie"), m.log.Genesis().Head())})
	if !m.state.BySlot()["b"].Attempts[0].Rulings[0].Void {
		t.Fatal("the verdict is not void where all is known")
	}
	c.compareFor(2 * time.Minute)
	for _, id := range honest[1:] {
		if rs := c.nodes[id].m.state.BySlot()["b"].Attempts[0].Rulings; len(rs) != 1 || !rs[0].Void {
			t.Errorf("at %s %d verdicts are known, want one that is void", id, len(rs))
		}
		if c.nodes[id].m.Has(knows.prev) {
			t.Errorf("%s has what bears upon nothing", id)
		}
	}
}

// TestRefusedFactsHoldUpNoOthers: what is refused again and again, and comes first, does not
// keep from a partner what it would take in.
func TestRefusedFactsHoldUpNoOthers(t *testing.T) {
	c := newThrong(t)
	c.left["one"] = 1 << 20
	one := c.nodes["one"].m
	genesis := one.log.Genesis().Head()
	small := penOf(t, one, "mal", 3)
	c.hear("one", penOf(t, one, "mal", 1).heavy(3, genesis))
	c.hear("one", penOf(t, one, "mal", 2).heavy(3, genesis))
	c.hear("one", []fact.Received{small.write(judges("b", "a lie"), genesis)})
	var offered []fact.ID
	for b := one.Outgoing("two", 1<<10, c.moment()); b != nil; b = one.Outgoing("two", 1<<10, c.moment()) {
		for _, o := range b.Facts {
			offered = append(offered, o.ID())
		}
		one.Refused("two", "mal", c.moment())
	}
	if len(offered) != 3 || !slices.Contains(offered, small.prev) { // of each chain the first
		t.Errorf("%d facts were offered, the small one among them: %t", len(offered),
			slices.Contains(offered, small.prev))
	}
}

// TestRefusedIsNotSentAgainAtOnce: what there is no room for comes again every few
// minutes only, and what the honest say goes on. When there is room it comes.
func TestRefusedIsNotSentAgainAtOnce(t *testing.T) {
	c := newThrong(t)
	c.left["one"] = 1 << 20
	facts := penOf(t, c.nodes["one"].m, "mal", 1).heavy(5, c.nodes["one"].m.log.Genesis().Head())
	c.hear("one", facts)
	c.compareFor(20 * time.Minute)
	// At two and three, at first, when they have heard what one set aside, and every five
	// minutes; each time twice, as both sides greet.
	if most := 2 * 5 * 2 * len(facts); c.noRoom > most {
		t.Errorf("%d facts were declined in 20 minutes, at most %d are expected", c.noRoom, most)
	}
	c.say("two", "b", 1)
	c.stabilize(true)
	c.meetAll()
	c.stabilize(true)
	c.agree("at work")
	if got := c.nodes["three"].m.state.BySlot()["e"].State; got != workflow.Succeeded {
		t.Errorf("as three knows, e is %s", got)
	}
	c.left["two"] = 1 << 20
	c.compareFor(6 * time.Minute)
	last := facts[len(facts)-1].ID
	if two, three := c.nodes["two"].m.Has(last), c.nodes["three"].m.Has(last); !two || three {
		t.Errorf("two, which has room again, has it: %t; three, which has none: %t", two, three)
	}
}

// TestNoRoomToSpare: where there is no room to spare either, what honest partners say is
// taken in all the same, as long as they have not built upon it. If they have, that is not
// sent without end, and comes when there is room.
func TestNoRoomToSpare(t *testing.T) {
	c := newThrong(t)
	c.left["one"], c.left["two"] = 1<<20, 1<<20
	genesis := c.nodes["one"].m.log.Genesis().Head()
	p := penOf(t, c.nodes["one"].m, "mal", 1)
	c.hear("one", append(p.heavy(2, genesis), p.write(judges("d", "a lie"))))
	c.compareFor(2 * time.Minute)
	one, three := c.nodes["one"].m, c.nodes["three"].m
	if !three.Has(one.own.ID) || three.Has(p.prev) {
		t.Errorf("three has what one said last: %t; what it has no room for: %t", three.Has(one.own.ID),
			three.Has(p.prev))
	}
	c.say("two", "b", 1)
	c.noRoom = 0
	c.stabilize(true)
	c.compareFor(20 * time.Minute)
	if three.Has(one.own.ID) || c.noRoom > 100 {
		t.Errorf("three has what was built upon what it has no room for: %t; %d facts were declined",
			three.Has(one.own.ID), c.noRoom)
	}
	c.spare["three"] = 1 << 20
	c.compareFor(6 * time.Minute)
	c.agree("with room")
}

// TestLiarsDoNotHaveOthersTalk: a liar that writes a small fact now and then has those
// who take it in say something about it ever more seldom.
func TestLiarsDoNotHaveOthersTalk(t *testing.T) {
	c := newThrong(t)
	c.left["one"], c.spare["two"], c.spare["three"] = 1<<20, 1<<20, 1<<20
	p := penOf(t, c.nodes["one"].m, "mal", 1)
	seen := []fact.Head{c.nodes["one"].m.log.Genesis().Head()}
	before := c.wordsOf("one")
	for range 240 {
		c.hear("one", []fact.Received{p.write(fact.Body{Seen: &fact.Seen{}}, seen...)})
		seen = nil
		c.compareFor(time.Minute)
	}
	if got := c.wordsOf("one") - before; got < 2 || got > 8 {
		t.Errorf("one said %d things in four hours, want 2 to 8", got)
	}
	c.compareFor(70 * time.Minute)
	c.agree("an hour later")
}

// TestHonestFactsBehindRefusedOnes: what is refused has many bundles, and an honest partner
// has built upon its last. That comes at once where there is room to spare; where there is
// none, what does not build upon it does.
func TestHonestFactsBehindRefusedOnes(t *testing.T) {
	c := newThrong(t)
	c.limit, c.left["one"], c.spare["two"] = 4<<10, 1<<20, 1<<20
	one := c.nodes["one"]
	p := penOf(t, one.m, "mal", 1)
	c.say("two", "b", 1)
	c.hear("one", append(p.heavy(20, one.m.log.Genesis().Head()), p.write(judges("d", "a lie"))))
	built := one.m.mustAppend(c.moment(), fact.Body{Seen: &fact.Seen{}})
	if !one.m.log.Knew(built, one.m.log.ByID()[p.prev]) {
		t.Fatal("one has not built upon what mal says")
	}
	c.step(one)
	c.compareFor(2 * time.Minute)
	if !c.nodes["two"].m.Has(built.ID) {
		t.Error("two, which has room to spare, lacks what one built upon a lie")
	}
	if m := c.nodes["three"].m; m.Has(built.ID) || m.state.BySlot()["b"].State != workflow.Succeeded {
		t.Errorf("three has what was built upon the lie: %t; b is %s", m.Has(built.ID), m.state.BySlot()["b"].State)
	}
	c.spare["three"] = 1 << 20
	c.compareFor(6 * time.Minute)
	c.agree("with room")
}

// TestShareThatDiffers: as TestRoomThatDiffers, where it is the number of facts in an
// instance of which some nodes take less.
func TestShareThatDiffers(t *testing.T) {
	c := newThrong(t)
	c.room = func(n *node) Shares {
		if n.id == "two" {
			return Shares{Facts: 5}
		}
		return Shares{Facts: 100}
	}
	p := penOf(t, c.nodes["one"].m, "mal", 1)
	facts := []fact.Received{p.write(fact.Body{Seen: &fact.Seen{}}, c.nodes["one"].m.log.Genesis().Head())}
	for range 10 {
		facts = append(facts, p.write(fact.Body{Seen: &fact.Seen{}}))
	}
	c.hear("one", append(facts, p.write(judges("b", "a lie"))))
	c.compareFor(2 * time.Minute)
	c.agree("two minutes later")
}

// TestOneAuthorDoesNotHoldUpAnother: what partners refuse of one author again and again does
// not put off that another's is named.
func TestOneAuthorDoesNotHoldUpAnother(t *testing.T) {
	c := newThrong(t)
	c.left["one"], c.spare["two"], c.spare["three"] = 1<<20, 1<<20, 1<<20
	genesis := c.nodes["one"].m.log.Genesis().Head()
	mal, mol := penOf(t, c.nodes["one"].m, "mal", 1), penOf(t, c.nodes["one"].m, "mol", 1)
	c.hear("one", []fact.Received{mal.write(judges("b", "a lie"), genesis)})
	c.compareFor(time.Minute)
	c.hear("one", []fact.Received{mal.write(judges("c", "a lie")), mol.write(judges("d", "a lie"), genesis)})
	c.compareFor(time.Minute)
	for _, id := range honest {
		if !c.nodes[id].m.Has(mol.prev) {
			t.Errorf("%s lacks what mol says", id)
		}
	}
}

// eight are eight honest partners and two liars; the last of the honest has no room for what
// these write, the others have all of it.
func eight(t *testing.T) (c *throng, names []workflow.PartnerID) {
	names = []workflow.PartnerID{"one", "two", "h3", "h4", "h5", "h6", "h7", "h8"}
	c = newThrongOf(t, names...)
	for _, id := range names[:7] {
		c.left[id] = 1 << 20
	}
	c.spare["h8"] = 1 << 20
	return c, names
}

// TestOneWordIsEnough: what one partner has no room for, and all others have, one of these sets
// aside, and not each: at first and later, as a liar writes more.
func TestOneWordIsEnough(t *testing.T) {
	c, names := eight(t)
	words := func() (n int) {
		for _, id := range names {
			n += c.wordsOf(id)
		}
		return n
	}
	p := penOf(t, c.nodes["one"].m, "mal", 1)
	facts := []fact.Received{p.write(judges("b", "a lie"), c.nodes["one"].m.log.Genesis().Head())}
	before := words()
	hear := func() {
		for _, id := range names[:7] {
			c.hear(id, facts)
		}
	}
	hear()
	c.compareFor(3 * time.Minute)
	if got := words() - before; got != 1 || !c.nodes["h8"].m.Has(p.prev) {
		t.Errorf("%d things were said in three minutes, want 1; h8 has the lie: %t", got, c.nodes["h8"].m.Has(p.prev))
	}
	before = words()
	for range 120 {
		facts = []fact.Received{p.write(fact.Body{Seen: &fact.Seen{}})}
		hear()
		c.compareFor(time.Minute)
	}
	// After 5, 10, 20, 40 and 60 minutes, and where another's word was under way.
	if got := words() - before; got < 2 || got > 10 {
		t.Errorf("%d things were said in two hours, want 2 to 10", got)
	}
	c.compareFor(70 * time.Minute)
	if !c.nodes["h8"].m.Has(p.prev) {
		t.Error("h8 lacks what the liar wrote last")
	}
}

// TestWordsThatAreNotHeard: what another has set aside is not set aside again, unless a partner
// has no room for the other's word, or may lack it as it is one of many chains or branches.
func TestWordsThatAreNotHeard(t *testing.T) {
	for name, spoil := range map[string]func(mol *pen, m *Machine) []fact.Received{
		"":        nil,
		"no room": func(mol *pen, m *Machine) []fact.Received { return mol.heavy(1, m.log.Genesis().Head()) },
		"two chains": func(_ *pen, m *Machine) []fact.Received {
			return []fact.Received{penOf(t, m, "mol", 2).write(fact.Body{Seen: &fact.Seen{}}, m.log.Genesis().Head())}
		},
		"a fork": func(_ *pen, m *Machine) []fact.Received {
			return []fact.Received{penOf(t, m, "mol", 1).write(judges("c", "a lie"), m.log.Genesis().Head())}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newThrong(t)
			c.left["one"], c.left["two"], c.left["three"], c.spare["three"] = 1<<20, 1<<20, 2<<10, 1<<20
			m := c.nodes["one"].m
			mal, mol := penOf(t, m, "mal", 1), penOf(t, m, "mol", 1)
			lies := append(mal.heavy(1, m.log.Genesis().Head()), mal.write(judges("b", "a lie")))
			var words []fact.Received
			if spoil != nil {
				words = spoil(mol, m)
			}
			words = append(words, mol.write(fact.Body{Seen: &fact.Seen{Aside: []fact.Head{mal.head()}}},
				m.log.Genesis().Head()))
			for _, id := range honest[:2] {
				c.hear(id, lies)
				c.hear(id, words)
			}
			before := c.wordsOf("one") + c.wordsOf("two")
			c.compareFor(20 * time.Minute)
			if got, spoilt := c.wordsOf("one")+c.wordsOf("two")-before > 0, spoil != nil; got != spoilt {
				t.Errorf("the honest set something aside: %t, want %t", got, spoilt)
			}
			c.agree("in the end")
		})
	}
}

// TestPauseIsHalvedAfterQuiet: the pause between two times that an author's facts are set
// aside grows, and becomes shorter again.
func TestPauseIsHalvedAfterQuiet(t *testing.T) {
	s, now := spoken{}, time.Duration(0)
	for _, want := range []time.Duration{5, 10, 20, 40, 60, 60} {
		if s = s.next(now, true); s.again-now != want*time.Minute {
			t.Errorf("after %s the pause is %s, want %d min", now, s.again-now, want)
		}
		now = s.again
	}
	if s = s.next(s.again+time.Hour+30*time.Minute, true); s.pause != 30*time.Minute {
		t.Errorf("after an hour and a half of quiet the pause is %s, want 30 min", s.pause)
	}
	if s = s.next(s.again+24*time.Hour, true); s.pause != nameAgain {
		t.Errorf("after a day of quiet the pause is %s, want %s", s.pause, nameAgain)
	}
	if s = s.next(s.again, false); s.pause != nameAgain {
		t.Errorf("after nothing was said the pause is %s", s.pause)
	}
}

// TestAsidesAreNotSetAside: partners that say that they have no room for each other's
// words do not have these named again and again.
func TestAsidesAreNotSetAside(t *testing.T) {
	c := newThrong(t)
	c.left["one"], c.spare["two"], c.spare["three"] = 1<<20, 1<<20, 1<<20
	m := c.nodes["one"].m
	c.hear("one", []fact.Received{penOf(t, m, "mal", 1).write(judges("b", "a lie"), m.log.Genesis().Head())})
	c.compareFor(time.Minute)
	said := m.own
	if said.Fact.Body.Seen == nil || len(said.Fact.Body.Seen.Aside) == 0 {
		t.Fatalf("one said a %s, nothing is set aside", said.Fact.Body.Kind())
	}
	before := c.wordsOf("three")
	for range 20 {
		c.nodes["three"].m.Refused("two", "one", c.moment())
		c.step(c.nodes["three"])
		c.advance(time.Hour)
	}
	if got := c.wordsOf("three") - before; got > 1 { // what one said before, at most
		t.Errorf("three said %d things", got)
	}
	if m = c.nodes["three"].m; m.namedIn(m.log.ByID()[said.ID].Strand) >= said.Fact.Seq {
		t.Error("three set aside what sets aside")
	}
}

// TestDisputeIsWithOnePeer: that one partner has another branch of a chain than is here says
// nothing of what others have of it.
func TestDisputeIsWithOnePeer(t *testing.T) {
	c := newThrong(t)
	c.left["one"] = 4 << 10
	m := c.nodes["one"].m
	p := penOf(t, m, "mal", 1)
	first := p.write(fact.Body{Seen: &fact.Seen{}}, m.log.Genesis().Head())
	c.hear("one", []fact.Received{first, p.write(judges("b", "a lie"))})
	p.seq, p.prev = 1, first.ID
	other := p.heavy(3)
	c.limitRoom(c.nodes["one"])
	if _, err := m.Receive("two", other); err != nil || m.Has(other[0].ID) {
		t.Fatalf("the other branch was taken in: %v", err)
	}
	heads := append(slices.DeleteFunc(m.Heads(), func(h fact.Head) bool { return h.Chain == p.chain }), p.head())
	m.Restate("two", fact.Incarnation{1}, heads)
	m.Restate("three", fact.Incarnation{1}, heads)
	if !m.Behind("two") || m.Behind("three") {
		t.Errorf("two, which has the other branch, lacks something: %t; three, whose chain is longer: %t",
			m.Behind("two"), m.Behind("three"))
	}
}

// TestNamesOfThoseWhoComeIn: what somebody names counts as named where the same batch brings
// it in.
func TestNamesOfThoseWhoComeIn(t *testing.T) {
	w := newMesh(t, parse(t, `workflow: w
tasks: {a: {type: manual}, x: {type: manual}}
partitions: {pa: [a], px: [x]}
`))
	at := map[workflow.PartitionName]workflow.PartnerID{"pa": "ann", "px": "lou"}
	if err := w.start("ann", w.genesis(at, "ann", "lou", "mal")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	m := w.nodes["ann"].m
	m.Limit(Shares{Left: func(p workflow.PartnerID) int { return map[bool]int{true: 0, false: 1 << 20}[p == "mal"] }})
	lou, mal, newcomer := penOf(t, m, "lou", 7), penOf(t, m, "mal", 7), penOf(t, m, "new", 7)
	genesis := m.log.Genesis().Head()
	brings := lou.write(fact.Body{Assign: &fact.Assign{After: fact.AttemptID{Slot: "x"}, Task: "x", Partner: "new"}},
		genesis)
	lies := mal.write(fact.Body{Seen: &fact.Seen{}}, genesis)
	start := fact.Body{Start: &fact.Start{Attempt: fact.AttemptID{Slot: "x", Fact: brings.ID}, Try: 1}}
	_, err := m.Receive("lou", []fact.Received{brings, lies, newcomer.write(start, lou.head(), mal.head())})
	if err != nil || !m.Has(newcomer.prev) {
		t.Errorf("what the newcomer built upon was not taken in: %v", err)
	}
}

// TestGreetingEndsRefusals: a partner that greets, or has a new incarnation, is sent again
// what it refused.
func TestGreetingEndsRefusals(t *testing.T) {
	for name, begin := range map[string]func(m *Machine){
		"greeting":    func(m *Machine) { m.Greet("two") },
		"incarnation": func(m *Machine) { m.Restate("two", fact.Incarnation{2}, nil); m.Forget("two") },
	} {
		t.Run(name, func(t *testing.T) {
			c := newThrong(t)
			c.left["one"] = 1 << 20
			m := c.nodes["one"].m
			heavy := penOf(t, m, "mal", 1).heavy(3, m.log.Genesis().Head())
			c.hear("one", heavy)
			c.compareFor(time.Minute)
			if m.Forget("two"); m.Outgoing("two", fact.MaxFact, c.moment()) != nil {
				t.Fatal("what two refused goes again at once")
			}
			begin(m)
			b := m.Outgoing("two", fact.MaxFact, c.moment())
			if b == nil || !slices.ContainsFunc(b.Facts, func(o *Outgoing) bool { return o.ID() == heavy[0].ID }) {
				t.Errorf("two is sent %+v, and not what it refused", b)
			}
		})
	}
}

// TestMissingBesidesWhatHasNoRoom: a partner is asked for what is missing unless all of it
// was refused for want of room.
func TestMissingBesidesWhatHasNoRoom(t *testing.T) {
	c := newThrong(t)
	m := c.nodes["one"].m
	genesis := m.log.Genesis().Head()
	heavy, two, three := penOf(t, m, "mal", 1), penOf(t, m, "two", 9), penOf(t, m, "three", 9)
	c.hear("one", heavy.heavy(1, genesis))
	two.write(fact.Body{Seen: &fact.Seen{}}, genesis)
	_, err := m.Receive("three", []fact.Received{three.write(fact.Body{Seen: &fact.Seen{}}, genesis, heavy.head())})
	if !errors.Is(err, ErrNoRoom) {
		t.Errorf("of what builds upon refused facts alone: %v", err)
	}
	_, err = m.Receive("three", []fact.Received{three.write(fact.Body{Seen: &fact.Seen{}}, two.head())})
	if !errors.Is(err, log.ErrMissingPast) {
		t.Errorf("of what builds upon others as well: %v", err)
	}
}

// Facts that a peer refused cost each fact that goes to it nothing, and to refuse again and
// again costs only what is sent.
func TestStepsOfRefusedFacts(t *testing.T) {
	growth(t, 20, func(n int) (int, int) {
		w := relayMesh(t)
		m := w.nodes["one"].m
		p := penOf(t, m, "mal", 1)
		facts := []fact.Received{p.write(fact.Body{Seen: &fact.Seen{}}, m.log.Genesis().Head())}
		for len(facts) < n {
			facts = append(facts, p.write(fact.Body{Success: &fact.Success{Attempt: fact.AttemptID{Slot: "b"},
				Try: 1}}))
		}
		m.mustTake(t, facts...)
		before := m.log.Steps
		for m.Outgoing("two", fact.MaxFact, w.moment()) != nil {
			m.Refused("two", "mal", w.moment())
		}
		m.Decide(w.moment(), w)
		w.now += 10 * time.Minute // more may be set aside, but nothing is left
		for _, f := range words(t, m, n) {
			m.mustTake(t, f)
			m.Forget("two")
			m.Outgoing("two", fact.MaxFact, w.moment())
			m.Acknowledge("two", fact.Incarnation{1}, []fact.Head{{Chain: f.Fact.Chain, Seq: f.Fact.Seq, ID: f.ID}})
			m.Refused("two", "mal", w.moment())
			m.Decide(w.moment(), w)
		}
		return m.log.Steps - before, n
	})
}

// TestTakenAFewTimes: a partner that says again and again that it takes what it refuses is
// not sent it without end.
func TestTakenAFewTimes(t *testing.T) {
	c := newThrong(t)
	c.left["one"] = 1 << 20
	m := c.nodes["one"].m
	c.hear("one", penOf(t, m, "mal", 1).heavy(3, m.log.Genesis().Head()))
	c.compareFor(time.Minute)
	sent := 0
	for range 100 {
		m.Taken("two", "mal")
		m.Forget("two")
		if m.Outgoing("two", fact.MaxFact, c.moment()) != nil {
			sent++
		}
		m.Refused("two", "mal", c.moment())
	}
	if sent == 0 || sent > maxTaken {
		t.Errorf("what is refused was sent %d times, want 1 to %d", sent, maxTaken)
	}
}

// TestBriefLackOfRoom: what a partner had no room for comes as soon as it has some.
func TestBriefLackOfRoom(t *testing.T) {
	c := newThrong(t)
	c.left["one"] = 1 << 20
	facts := penOf(t, c.nodes["one"].m, "mal", 1).heavy(5, c.nodes["one"].m.log.Genesis().Head())
	c.hear("one", facts)
	c.compareFor(10 * time.Minute)
	last := facts[len(facts)-1].ID
	for _, room := range []int{100, 1 << 20} {
		c.left["two"] = room
		c.noRoom = 0
		c.takeAll()
		if got, want := c.nodes["two"].m.Has(last), room > len(facts[0].Raw); got != want || c.noRoom > 0 {
			t.Errorf("with room for %d bytes two has it: %t, and %d facts were declined", room, got, c.noRoom)
		}
	}
	if c.nodes["three"].m.Has(last) {
		t.Error("three, which has no room, has it")
	}
}

// TestRoomToSpareThatComesLater: what was named while there was no room for it comes as soon
// as there is room to spare.
func TestRoomToSpareThatComesLater(t *testing.T) {
	c := newThrong(t)
	c.left["one"] = 1 << 20
	p := penOf(t, c.nodes["one"].m, "mal", 1)
	c.hear("one", append(p.heavy(2, c.nodes["one"].m.log.Genesis().Head()), p.write(judges("d", "a lie"))))
	c.compareFor(10 * time.Minute)
	for _, id := range honest[1:] {
		c.spare[id] = 1 << 20
	}
	c.takeAll()
	c.agree("as soon as there is room")
}

// TestPausesOfRefusedFacts: what a partner refuses goes to it again after half a minute, then
// after pauses that are each twice the one before, up to five minutes; from the first on again
// when it has refused nothing for as long.
func TestPausesOfRefusedFacts(t *testing.T) {
	c := newThrong(t)
	c.left["one"] = 1 << 20
	m := c.nodes["one"].m
	c.hear("one", penOf(t, m, "mal", 1).heavy(3, m.log.Genesis().Head()))
	c.paused["two"] = true
	last, offer := c.now, func() bool {
		m.Forget("two")
		b := m.Outgoing("two", fact.MaxFact, c.moment())
		return b != nil && slices.ContainsFunc(b.Facts,
			func(o *Outgoing) bool { return o.e.Fact.Chain.Author == "mal" })
	}
	for i, want := range []time.Duration{0, 30, 60, 120, 240, 300, 300, 30} {
		if i == 7 {
			c.now += refusedPause + refusedPause
			last = c.now
			offer()
			m.Refused("two", "mal", c.moment())
		}
		for !offer() {
			c.now += time.Second
		}
		if got := c.now - last; got != want*time.Second {
			t.Errorf("it goes the %d. time after %s, want %d s", i+1, got, want)
		}
		last = c.now
		m.Refused("two", "mal", c.moment())
	}
}

// TestNothingToTake: that a partner says that it takes what it has, or was not refused, has
// nothing sent again.
func TestNothingToTake(t *testing.T) {
	c := newThrong(t)
	c.left["one"] = 1 << 20
	m := c.nodes["one"].m
	c.hear("one", penOf(t, m, "mal", 1).heavy(3, m.log.Genesis().Head()))
	m.Outgoing("two", fact.MaxFact, c.moment())
	m.Refused("two", "mal", c.moment())
	m.Restate("two", fact.Incarnation{1}, m.Heads()) // another has sent it since
	for range maxTaken {
		if m.Taken("two", "mal") {
			t.Fatal("two takes what it has already")
		}
	}
	if m.Taken("two", "mol") || m.Taken("nobody", "mal") {
		t.Error("what was not refused is taken")
	}
	m.Restate("two", fact.Incarnation{1}, nil)
	if !m.Taken("two", "mal") {
		t.Error("that it said so in vain before keeps two from taking what it lacks")
	}
}

// TestRefusedBundlesHoldUpNothing: as TestHonestFactsBehindRefusedOnes, where each bundle
// is answered before the next goes.
func TestRefusedBundlesHoldUpNothing(t *testing.T) {
	c := newThrong(t)
	c.left["one"], c.spare["two"] = 1<<20, 1<<20
	one, two := c.nodes["one"].m, c.nodes["two"].m
	p := penOf(t, one, "mal", 1)
	c.hear("one", append(p.heavy(20, one.log.Genesis().Head()), p.write(judges("d", "a lie"))))
	built := one.mustAppend(c.moment(), fact.Body{Seen: &fact.Seen{}})
	bundles := 0
	for b := one.Outgoing("two", 4<<10, c.moment()); b != nil; b = one.Outgoing("two", 4<<10, c.moment()) {
		var facts []fact.Received
		for _, o := range b.Facts {
			facts = append(facts, fact.Received{Fact: o.e.Fact, ID: o.e.ID, Raw: o.e.Raw, Att: &fact.Attestation{}})
		}
		c.limitRoom(c.nodes["two"])
		_, _ = two.Receive("one", facts) // what was refused is missing
		for _, d := range two.Declined() {
			one.Refused("two", d.Author, c.moment())
		}
		for _, t := range two.Takes() {
			one.Taken("two", t.Author)
			one.Forget("two")
		}
		one.Acknowledge("two", fact.Incarnation{1}, two.Heads())
		bundles++
	}
	if !two.Has(built.ID) || bundles > 30 {
		t.Errorf("after %d bundles two has what one built upon the lie: %t", bundles, two.Has(built.ID))
	}
}

// TestWhatAllTookInFitsAtEach: a liar tells each of three partners something else, as much
// as that one takes in: heavy facts that do not count, and after each a small one that does.
// All build upon it at once, before they hear of each other. With shares that are parts of
// what each has room for of what others named (PartOf) all come to the same facts that
// count, in whatever order they meet, and nobody holds more than it has room for. With
// shares of half of it, as large as they may be by themselves, they do not.
func TestWhatAllTookInFitsAtEach(t *testing.T) {
	const room = 128 << 10
	run := func(seed uint64, share int) *throng {
		r := rand.New(rand.NewPCG(seed, 50))
		c := newThrong(t)
		c.room = func(n *node) Shares {
			of := func(p workflow.PartnerID) int { return n.m.log.Authored()[p].Bytes }
			return Shares{
				Left: func(p workflow.PartnerID) int {
					if p == "mal" {
						return max(share-of(p), 0)
					}
					return 1 << 20
				},
				Spare: func() int { return max(room-of("mal"), 0) },
			}
		}
		genesis := c.nodes["one"].m.log.Genesis().Head()
		for i, k := range r.Perm(len(honest)) {
			n := c.nodes[honest[k]]
			p := penOf(t, n.m, "mal", byte(1+i))
			facts := p.heavy(1, genesis)
			for range 16 {
				facts = append(facts, p.write(judges([]workflow.TaskName{"b", "c", "d"}[r.IntN(3)], fmt.Sprint(i))))
				facts = append(facts, p.heavy(1)...)
			}
			c.hear(honest[k], facts)
			n.m.mustAppend(c.moment(), fact.Body{Seen: &fact.Seen{}})
		}
		for range r.IntN(6) {
			c.meet(honest[r.IntN(3)], honest[r.IntN(3)])
		}
		c.compareFor(40 * time.Minute)
		return c
	}
	differed := false
	for seed := range uint64(12) {
		c := run(seed, PartOf(room, len(honest)+1))
		c.agree(fmt.Sprintf("seed %d", seed))
		for _, id := range honest {
			if got := c.nodes[id].m.log.Authored()["mal"].Bytes; got > room || got < room/2 {
				t.Errorf("seed %d: %s has %d bytes of the liar, %d to %d are expected", seed, id, got, room/2, room)
			}
		}
		if seed < 3 {
			c = run(seed, room/2)
			differed = differed || counting(c.nodes["one"].m) != counting(c.nodes["two"].m)
		}
	}
	if !differed {
		t.Error("shares of half of the room do no harm: the test shows nothing")
	}
}
