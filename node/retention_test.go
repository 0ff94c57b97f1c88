package node_test

import (
	"crypto/ed25519"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const day = 24 * time.Hour

// keeping has partners keep ended instances for that long.
func keeping(d time.Duration) func(*configs.Config) {
	return func(c *configs.Config) { c.Limits.Keep = d }
}

// entries counts what a partner's store has under an instance's keys of one kind.
func (p *partner) entries(kind byte, id string) (n int) {
	p.t.Helper()
	of := instance(p.t, id)
	err := p.disk.Scan(append([]byte{kind}, of[:]...), func(_, _ []byte) error { n++; return nil })
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// stored counts the facts of an instance in a partner's store.
func (p *partner) stored(id string) (n int) {
	p.t.Helper()
	of := instance(p.t, id)
	err := p.disk.Scan(append([]byte{'f'}, of[:]...), func(_, value []byte) error {
		ids, err := namesOf(string(value))
		n += len(ids)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// closed is the summary of an instance at a partner; nil: all of it is there.
func (tm *team) closed(at, id string) *api.Closing {
	tm.t.Helper()
	in, err := tm.p[at].api.Show(tm.t.Context(), id)
	if err != nil {
		tm.t.Fatalf("%s cannot show %s: %v", at, id, err)
	}
	return in.Closed
}

// What people are told of an instance that ended is stored once at each node, though its summary changes again when
// all have all of it.
func TestNewsAreStoredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", chain)
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "two"})
		tm.succeeds(id, time.Second, "one", "two")
		pass(2 * time.Minute)
		for _, p := range tm.p {
			if n, sums := p.disk.writes('n'), p.disk.writes('i'); n != 1 || sums < 2 {
				t.Errorf("%s stored the news of one instance %d times, and its summary %d times", p.name, n, sums)
			}
		}
	})
}

// An instance that ended and that everybody has is kept for its time, then its signed
// summary is, and it is never taken in again; a partner that sends facts of it is
// told.
func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, keeping(6*time.Hour), "one", "two", "three")
		tm.add("one", chain)
		one, two := tm.p["one"], tm.p["two"]
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "two"})
		tm.succeeds(id, time.Second, "one", "two")
		facts := two.stored(id)
		pass(5 * time.Hour)
		if n := one.stored(id); n != facts || tm.closed("one", id) != nil {
			t.Fatalf("before its time was over one has %d of %d facts", n, facts)
		}
		pass(2 * time.Hour)
		for _, name := range []string{"one", "two"} {
			for _, kind := range []byte("fiw") {
				if n := tm.p[name].entries(kind, id); n != 0 {
					t.Errorf("%s still has %d entries %c", name, n, kind)
				}
			}
			c := tm.closed(name, id)
			if c == nil || c.Facts != uint64(facts) || c.By != name || c.Initiator != "one" ||
				!slices.Equal(c.Participants, []string{"one", "two"}) || len(c.Signature) != 128 {
				t.Errorf("%s has the summary %+v", name, c)
			}
			list, err := tm.p[name].api.Instances(t.Context(), true)
			if err != nil || len(list) != 1 || list[0].ID != id || list[0].Closed == nil ||
				list[0].State != workflow.InstanceSucceeded {
				t.Errorf("%s lists %+v, %v", name, list, err)
			}
			page, err := tm.p[name].api.InstancePage(t.Context(), api.InstanceQuery{All: true, Limit: 1})
			if err != nil || len(page.Instances) != 1 || page.Next != "" {
				t.Errorf("%s has the page %+v, %v", name, page, err)
			}
			if _, err := tm.p[name].api.Log(t.Context(), id[:8]); err == nil ||
				!strings.Contains(err.Error(), "only its summary is kept") {
				t.Errorf("%s shows the log: %v", name, err)
			}
			amend := api.AmendRequest{User: name, ID: id, File: "chain.yaml", Source: chain + "# once more\n"}
			_, err = tm.p[name].api.ForeseeAmendment(t.Context(), amend)
			isNo(t, "what an amendment would change at "+name, err, api.Refused, "and only its summary is kept")
			_, err = tm.p[name].api.AmendInstance(t.Context(), amend)
			isNo(t, "an amendment at "+name, err, api.Refused, "instance "+id+" ended (succeeded) on ")
			isNo(t, "an amendment at "+name, err, api.Refused, "and only its summary is kept")
			amend.ID = id[:8]
			_, err = tm.p[name].api.AmendInstance(t.Context(), amend)
			isNo(t, "an amendment by a short ID at "+name, err, api.Refused, "and only its summary is kept")
		}
		quiet := elapsed()
		tm.disconnect("one", "two")
		tm.connect("one", "two")
		pass(time.Minute)
		compared := tm.f.sent(func(c carried) bool { return c.sent >= quiet && len(c.m.Heads) > 0 })
		if len(compared) > 0 {
			t.Errorf("though both gave the instance up, they compared it %d times", len(compared))
		}

		again := tm.f.sent(func(c carried) bool {
			return c.to == two.id() && len(c.m.Facts) > 0 && len(c.m.Facts[0].Definition) > 0
		})
		frame, err := wire.Encode(again[0].m)
		if err != nil {
			t.Fatal(err)
		}
		two.node.OnFrame(one.id(), frame)
		pass(time.Second)
		answer := tm.f.sent(func(c carried) bool {
			return c.from == two.id() && c.sent >= quiet && len(c.m.Refusals) > 0
		})
		if len(answer) != 1 || answer[0].m.Refusals[0].Why != wire.RefusedClosed ||
			len(answer[0].m.Refusals[0].Closing) == 0 {
			t.Errorf("two answers a replay with %v", answer)
		}
		two.crash()
		two.start()
		tm.connect("one", "two")
		synctest.Wait()
		if c := tm.closed("two", id); c == nil || two.entries('f', id) > 0 {
			t.Error("two took the instance in again")
		}
	})
}

// What somebody may lack is kept; and so is everything, if the wall clock jumps while
// the node does not run, or the store takes nothing.
func TestWhatIsNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, keeping(3*day), "one", "two")
		tm.add("one", chain)
		one, two := tm.p["one"], tm.p["two"]
		whole := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "one"})
		pass(time.Minute)
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "one"})
		tm.p["one"].hand.hold("c")
		lacking := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "one"})
		tm.succeeds(id, time.Second, "one", "two")
		two.crash()
		one.hand.letGo(t, "c")
		tm.succeeds(lacking, time.Second, "one")

		clock := clockAhead(0)
		one.crash()
		one.fit = clock.on
		one.start()
		pass(2 * time.Hour)
		one.crash()
		clock.set(2 * 365 * day)
		one.start()
		pass(time.Hour)
		if tm.closed("one", id) != nil {
			t.Error("one gave an instance up because its clock jumped")
		}
		one.disk.failWith(kv.ErrFull)
		pass(3 * day)
		if tm.closed("one", id) != nil {
			t.Error("one says that it gave up what its store still has")
		}
		one.disk.failWith(nil)
		pass(2 * time.Minute)
		for _, x := range []string{whole, id} {
			if tm.closed("one", x) == nil {
				t.Error("one still keeps what its time is over for")
			}
		}
		pass(4 * day)
		if tm.closed("one", lacking) != nil {
			t.Error("one gave up what two does not have")
		}
	})
}

// Where there are more ended instances than may be kept, those that ended first are
// given up before their time; whose they were, and when what may not be given up
// takes all room, no more are taken in.
func TestEndedInstancesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Ended = 80 }, "one", "two") // 20 of each member
		tm.add("one", chain)
		begin := func() string {
			id := tm.begin("two", "chain", map[string]string{"pa": "two", "pb": "one", "pc": "two"})
			tm.succeeds(id, 10*time.Second, "two")
			return id
		}
		var ids []string
		for range 60 {
			ids = append(ids, begin())
			pass(time.Minute)
		}
		kept := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return tm.closed("one", id) != nil })
		if n := len(kept); n > 20 || n < 10 || !slices.Equal(kept, ids[60-n:]) {
			t.Errorf("one keeps %d of two's instances, want the last, up to 20", n)
		}
		if l := tm.refused("one", "two"); len(l) > 0 {
			t.Errorf("of two is refused: %+v", l)
		}
		// Now as fast as can be: nothing may be given up so soon.
		for range 30 {
			tm.begin("two", "chain", map[string]string{"pa": "two", "pb": "one", "pc": "two"})
		}
		if l := tm.refused("one", "two"); len(l) == 0 || l[0].Reason != "ended-over-limit" {
			t.Errorf("of two is refused: %+v", l)
		}
		if id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "one", "pc": "one"}); tm.state("one",
			id) != workflow.InstanceSucceeded {
			t.Error("one's own user cannot start anything")
		}
	})
}

// An instance of which even the ID was dropped is not taken in again.
func TestADroppedInstanceDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Ended, c.Limits.Keep = 4, 5*time.Minute }, "ana", "mal")
		tm.add("mal", chain)
		ana, mal := tm.p["ana"], tm.p["mal"]
		end := func() string {
			id := tm.begin("mal", "chain", map[string]string{"pa": "mal", "pb": "ana", "pc": "mal"})
			tm.succeeds(id, 10*time.Second, "mal")
			pass(7 * time.Minute)
			return id
		}
		id := end()
		first := tm.f.sent(func(c carried) bool {
			return c.to == ana.id() && len(c.m.Facts) > 0 && len(c.m.Facts[0].Definition) > 0
		})
		for range 50 {
			end()
		}
		if n := ana.entries('x', id); n != 0 {
			t.Fatalf("ana still has %d entries of the first instance", n)
		}
		ana.crash()
		ana.start()
		tm.connect("ana", "mal")
		pass(time.Minute)
		before := elapsed()
		frame, err := wire.Encode(first[0].m)
		if err != nil {
			t.Fatal(err)
		}
		ana.node.OnFrame(mal.id(), frame)
		pass(time.Second)
		answer := tm.f.sent(func(c carried) bool {
			return c.from == ana.id() && c.sent >= before && len(c.m.Refusals) > 0
		})
		if len(answer) != 1 || answer[0].m.Refusals[0].Why != wire.RefusedClosed ||
			len(answer[0].m.Refusals[0].Closing) > 0 {
			t.Errorf("ana answers a replay with %v", answer)
		}
		if n := ana.entries('f', id); n != 0 {
			t.Errorf("ana has taken %d facts in", n)
		}
		if last := end(); tm.state("ana", last) != workflow.InstanceSucceeded {
			t.Error("ana takes no new instance in")
		}
	})
}

// An instance that began before those of which even the IDs were dropped still runs here,
// is damaged and set aside: a partner gives it back.
func TestADamagedInstanceOlderThanDroppedOnesComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Ended, c.Limits.Keep = 4, 5*time.Minute }, "ana", "mal")
		tm.add("mal", chain)
		ana := tm.p["ana"]
		places := map[string]string{"pa": "mal", "pb": "ana", "pc": "mal"}
		ana.hand.hold("c")
		old := tm.begin("mal", "chain", map[string]string{"pa": "mal", "pb": "ana", "pc": "ana"})
		id := instance(t, old)
		first := ""
		for i := range 51 {
			ended := tm.begin("mal", "chain", places)
			if i == 0 {
				first = ended
			}
			tm.succeeds(ended, 10*time.Second, "mal")
			pass(7 * time.Minute)
		}
		if n := ana.entries('x', first); n != 0 {
			t.Fatalf("ana still has %d entries of the first instance that ended", n)
		}
		ana.crash()
		ana.disk.garble(ana.disk.entries("f" + string(id[:]))[1])
		ana.start()
		synctest.Wait()
		if _, err := ana.api.Show(t.Context(), old); err == nil ||
			!strings.Contains(err.Error(), "is set aside since") {
			t.Fatalf("the instance is not set aside: %v", err)
		}
		tm.connect("ana", "mal")
		pass(time.Minute)
		ana.hand.letAllGo()
		tm.succeeds(old, 3*time.Minute, "ana", "mal")
	})
}

// summarised is how a partner says that it keeps only the summary of an instance, of
// which it had so many facts.
type summarised struct {
	_              struct{} `cbor:",toarray"`
	Instance       workflow.InstanceID
	Definition     workflow.Hash
	Workflow       workflow.Name
	Version        int
	State          workflow.InstanceState
	By             workflow.PartnerID
	Started, Ended int64
	Closed         int64
	Number         uint64
	Digest         [wire.EndedDigest]byte
	With           []workflow.PartnerID
	Others         int
	Signer         workflow.PartnerID
	Sig            []byte
}

// pretends has a member say to another that it gave an instance up when it had one fact
// of it.
func (tm *team) pretends(by, to, id string) {
	tm.t.Helper()
	m, err := node.LoadMember(tm.p[by].dir)
	if err != nil {
		tm.t.Fatal(err)
	}
	c := summarised{Instance: instance(tm.t, id), State: workflow.InstanceSucceeded, Number: 1, Signer: m.ID()}
	encoded := func() []byte {
		b, err := cbor.Marshal(c)
		if err != nil {
			tm.t.Fatal(err)
		}
		return b
	}
	c.Sig = trust.Sign(m.Key, "closing", encoded())
	frame, err := wire.Encode(&wire.Message{Refusals: []wire.Refusal{{Instance: c.Instance, Why: wire.RefusedClosed,
		Closing: encoded()}}})
	if err != nil {
		tm.t.Fatal(err)
	}
	tm.p[to].node.OnFrame(m.ID(), frame)
	synctest.Wait()
}

// A member that says that it gave an instance up with fewer facts than there are keeps
// nobody from giving it up: it is kept once more for its time, and not even that if the
// member is evicted. Of an instance that runs it says nothing that counts.
func TestFalseSummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, keeping(6*time.Hour), "ana", "mal")
		tm.add("ana", chain)
		ana, mal := tm.p["ana"], tm.p["mal"].id()
		unheard := func(from, _ workflow.PartnerID, m *wire.Message) bool { return from == mal && len(m.Heads) > 0 }
		tm.f.losing(unheard)
		pretended := tm.begin("ana", "chain", map[string]string{"pa": "ana", "pb": "mal", "pc": "ana"})
		ana.hand.hold("a")
		running := tm.begin("ana", "chain", map[string]string{"pa": "ana", "pb": "mal", "pc": "ana"})
		tm.succeeds(pretended, time.Minute, "ana", "mal")
		pass(30 * time.Minute)
		tm.pretends("mal", "ana", pretended)
		tm.f.losing(nil)
		tm.pretends("mal", "ana", running)
		ana.hand.letGo(t, "a")
		tm.succeeds(running, 10*time.Minute, "ana", "mal") // mal is told of its task
		if l := tm.refused("ana", "mal"); len(l) != 1 || l[0].Reason != "summary-of-running" {
			t.Errorf("of mal is refused: %+v", l)
		}
		pass(5*time.Hour + 40*time.Minute)
		if tm.closed("ana", pretended) != nil {
			t.Error("ana gave up what came too late for mal")
		}
		late := "instance " + pretended +
			" of chain: mal had all of it when it deleted its facts, on 1970-01-01, and takes no more: what came later is known here, and not there"
		tm.wantTrouble("ana", late)
		if f := tm.finding("ana", "facts"); f.State != api.FindingWarning || f.What != late ||
			!strings.Contains(f.Mend, "mutirao show "+pretended[:8]) {
			t.Errorf("doctor says of what came too late: %+v", f)
		}
		pass(2 * time.Hour)
		if tm.closed("ana", pretended) == nil {
			t.Error("a false summary keeps an instance for ever")
		}
		tm.f.losing(unheard)
		evicted := tm.begin("ana", "chain", map[string]string{"pa": "ana", "pb": "mal", "pc": "ana"})
		tm.succeeds(evicted, time.Minute, "ana", "mal")
		tm.pretends("mal", "ana", evicted)
		if _, err := ana.api.Evict(t.Context(), api.EvictRequest{Partner: "mal", Reason: "it lies"}); err != nil {
			t.Fatal(err)
		}
		pass(12*time.Hour + 10*time.Minute)
		if tm.closed("ana", evicted) == nil {
			t.Error("a false summary of an evicted member's keeps an instance")
		}
	})
}

// A partner that is connected and never says that it has an ended instance is not
// waited for, nor is a key that is nobody's; one that is out of reach is.
func TestWhoDoesNotAnswerIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, keeping(6*time.Hour), "ana", "bea", "mal")
		tm.add("ana", chain)
		ana, mal := tm.p["ana"], tm.p["mal"].id()

		ana.hand.hold("a")
		passedOn := tm.begin("ana", "chain", map[string]string{"pa": "ana", "pb": "ana", "pc": "mal"})
		l, facts := tm.forger("mal", passedOn), len(tm.log("ana", passedOn))
		_, key, err := ed25519.GenerateKey(rand.NewChaCha8([32]byte{7}))
		if err != nil {
			t.Fatal(err)
		}
		nobody := node.Member{Key: key}
		l.says("ana", tm.headSent(l.id),
			fact.Body{Assign: &fact.Assign{After: fact.AttemptID{Slot: "c"}, Task: "c", Partner: nobody.ID()}})
		if n := len(tm.log("ana", passedOn)); n != facts+1 {
			t.Fatalf("ana has %d facts, want %d and the one by which mal passed its task on", n, facts)
		}
		if err := ana.api.Cancel(t.Context(), passedOn, "it stands still"); err != nil {
			t.Fatal(err)
		}
		ana.hand.letGo(t, "a")
		pass(time.Minute)

		tm.f.losing(func(from, _ workflow.PartnerID, m *wire.Message) bool {
			return from == mal && len(m.Heads)+len(m.Refusals) > 0
		})
		unanswered := tm.begin("ana", "chain", map[string]string{"pa": "ana", "pb": "mal", "pc": "ana"})
		tm.succeeds(unanswered, time.Minute, "ana")
		ana.hand.hold("c")
		lacking := tm.begin("ana", "chain", map[string]string{"pa": "ana", "pb": "bea", "pc": "ana"})
		pass(time.Minute)
		tm.p["bea"].crash()
		ana.hand.letGo(t, "c")
		tm.succeeds(lacking, time.Second, "ana")

		pass(5 * time.Hour)
		for _, id := range []string{passedOn, unanswered} {
			if tm.closed("ana", id) != nil {
				t.Errorf("instance %s is given up before its time", id)
			}
		}
		pass(2 * time.Hour)
		if tm.closed("ana", passedOn) == nil {
			t.Error("an instance in which somebody takes part who does not exist is kept for ever")
		}
		if tm.closed("ana", unanswered) == nil {
			t.Error("an instance that mal does not acknowledge is kept for ever")
		}
		pass(3 * day)
		if tm.closed("ana", lacking) != nil {
			t.Error("ana gave up what bea does not have, who is only out of reach")
		}
	})
}

// An instance in which a compensation is outstanding is kept beyond its time, although everybody
// has all of it; when the compensation has ended it is given up.
func TestOutstandingCompensationIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, keeping(6*time.Hour), "one", "two")
		tm.add("one", `
workflow: rent
tasks:
  reserve:   {timeout: 10m, on-failure: {contingency: reserve2}, compensate: give-back}
  reserve2:  {}
  collect:   {after: reserve}
  give-back: {type: manual}
partitions: {office: [collect], garage: [reserve]}
`)
		two := tm.p["two"]
		two.hand.hold("reserve")
		id := tm.begin("one", "rent", map[string]string{"office": "one", "garage": "two"})
		tm.disconnect("one", "two")
		two.hand.letGo(t, "reserve")
		pass(2 * time.Hour)
		tm.succeeds(id, 0, "one") // by the contingency
		tm.connect("one", "two")
		tm.succeeds(id, time.Minute, "one", "two")
		pass(time.Minute)
		if got := tm.task("one", id, "give-back"); got != workflow.Ready {
			t.Fatalf("the compensation is %s, want ready", got)
		}
		pass(day)
		for _, name := range []string{"one", "two"} {
			if tm.closed(name, id) != nil {
				t.Errorf("%s gave up an instance in which a compensation is outstanding", name)
			}
		}
		tm.finish("two", id, "give-back")
		pass(7 * time.Hour)
		for _, name := range []string{"one", "two"} {
			if tm.closed(name, id) == nil {
				t.Errorf("the compensation is done, and %s still keeps the instance", name)
			}
		}
	})
}
