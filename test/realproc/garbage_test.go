package realproc_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/internal/test/testliar"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/mesh"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// villain is a member of the mesh whose program sends what it likes.
type villain struct {
	t      *testing.T
	member node.Member
	mesh   *mesh.Mesh
	up     chan workflow.PartnerID
	down   chan workflow.PartnerID
	frames chan []byte
}

func (v *villain) OnUp(p workflow.PartnerID)   { v.up <- p }
func (v *villain) OnDown(p workflow.PartnerID) { v.down <- p }
func (v *villain) OnFrame(_ workflow.PartnerID, frame []byte) {
	select {
	case v.frames <- slices.Clone(frame):
	default: // it does not listen
	}
}

// villain joins the mesh under a name and connects with a node.
func (tm *team) villain(t *testing.T, name string, victim *proc) *villain {
	t.Helper()
	dir := filepath.Join(tm.dir, name)
	tm.join(dir, name)
	m, err := node.LoadMember(dir)
	if err != nil {
		t.Fatal(err)
	}
	v := &villain{
		t: t, member: m, up: make(chan workflow.PartnerID, 64), down: make(chan workflow.PartnerID, 64),
		frames: make(chan []byte, 1024),
	}
	v.mesh, err = mesh.New(mesh.Config{
		Key: m.Key, Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1"}, Boot: 1, Handler: v,
		Hello: func() []byte { return trust.EncodeChain(m.Chain) },
		Admit: func(workflow.PartnerID, []byte, uint64) error { return nil },
		// Larger frames than anybody takes.
		Limits: mesh.Limits{Frame: 8 << 20, BackoffMin: 20 * time.Millisecond, BackoffMax: 100 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.mesh.Close() })
	st := victim.status()
	if err := v.mesh.SetAddrs(st.ID, st.Addresses); err != nil {
		t.Fatal(err)
	}
	if err := v.mesh.Want(st.ID, true); err != nil {
		t.Fatal(err)
	}
	v.await(v.up, "a connection")
	return v
}

func (v *villain) await(ch chan workflow.PartnerID, what string) {
	v.t.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		v.t.Fatal("the villain waits in vain for ", what)
	}
}

func (v *villain) send(to workflow.PartnerID, frame []byte) {
	v.t.Helper()
	if err := v.mesh.Send(to, frame); err != nil {
		v.t.Fatal(err)
	}
}

// say sends a message that is well formed, whatever it says.
func (v *villain) say(to workflow.PartnerID, m *wire.Message) {
	v.t.Helper()
	frame, err := wire.Encode(m)
	if err != nil {
		v.t.Fatal(err)
	}
	v.send(to, frame)
}

// sign attests a fact with the villain's own key, and packs it.
func (v *villain) sign(f *fact.Fact) (wire.Fact, fact.ID) {
	v.t.Helper()
	raw, id := testliar.Encode(f)
	return wire.Fact{Raw: raw, Att: attest(v.member.Key, id)}, id
}

func attest(key ed25519.PrivateKey, id fact.ID) *fact.Attestation {
	return fact.Attest([]fact.ID{id},
		func(domain string, msg []byte) []byte { return trust.Sign(key, domain, msg) })[0]
}

// refused is the sum of a node's counters whose name begins so.
func (p *proc) refused(name string) (n uint64) {
	p.t.Helper()
	for k, v := range p.status().Counters {
		if strings.HasPrefix(k, name) {
			n += v
		}
	}
	return n
}

// A member sends garbage: it is refused and counted, its connection is closed
// where it cannot be a mistake of a correct program, and nobody else notices.
func TestMemberSendsGarbage(t *testing.T) {
	t.Parallel() // it waits, most of the time
	tm := newTeam(t, "one", "two")
	tm.workflow(`
workflow: wait
tasks:
  a: {type: manual}
  b: {after: a}
partitions: {pa: [a], pb: [b]}
`)
	one, two := tm.ps[0], tm.ps[1]
	id := tm.begin("wait", map[string]string{"pa": "one", "pb": "two"})
	until(t, "a waits for somebody", patience, func() bool { return two.task(id, "a") == workflow.Ready })
	v := tm.villain(t, "villain", two)
	victim := two.status().ID
	instance := workflow.InstanceID(decodeHex(t, id))
	genesis := two.facts(t, id)[0]

	head := fact.Head{Chain: fact.Chain{Author: one.status().ID}, Seq: 1, ID: genesis}
	intruder := &fact.Fact{
		Format: fact.Format, Instance: instance, Chain: fact.Chain{Author: v.member.ID()}, Seq: 1, At: 1,
		Seen: []fact.Head{{Chain: fact.Chain{Author: one.status().ID, Incarnation: one.incarnation(t)}, Seq: 1,
			ID: genesis}},
		Body: fact.Body{Cancel: &fact.Cancel{Reason: "the villain says so"}},
	}
	byIntruder, _ := v.sign(intruder)
	forged := *intruder
	forged.Chain.Author = one.status().ID
	byForger, _ := v.sign(&forged)
	unsigned := byForger
	unsigned.Att = nil
	truncated := wire.Fact{Raw: byIntruder.Raw[:len(byIntruder.Raw)/2], Att: byIntruder.Att}
	elsewhere := *intruder
	elsewhere.Instance[0] ^= 0xff
	ofNothing, _ := v.sign(&elsewhere)
	hello, err := wire.Encode(&wire.Message{Greeting: true})
	if err != nil {
		t.Fatal(err)
	}

	facts := func(in workflow.InstanceID, fs ...wire.Fact) func() {
		return func() { v.say(victim, &wire.Message{Facts: []wire.Facts{{Instance: in, Facts: fs}}}) }
	}
	cutOff := map[string]*villain{} // by what each sent
	for i, c := range []struct {
		name   string
		frame  []byte
		counts string
	}{
		{"not CBOR", append([]byte{wire.Version}, "garbage"...), "refused.frame"},
		{"a frame cut short", hello[:len(hello)-1], "refused.frame"},
		{"more behind the end", append(hello[:len(hello):len(hello)], 0), "refused.frame"},
		{"another version", append([]byte{wire.Version + 1}, hello[1:]...), "refused.frame"},
		{"a frame longer than allowed", make([]byte, wire.MaxFrame+1), "mesh.refused.malformed"},
	} {
		// Each from a member of its own: who is cut off for it is kept off for half a minute.
		other := tm.villain(t, fmt.Sprintf("villain-%d", i+1), two)
		before := two.refused(c.counts)
		other.send(victim, c.frame)
		other.await(other.down, "the end of the connection: "+c.name)
		until(t, c.name+" is counted under "+c.counts, patience,
			func() bool { return two.refused(c.counts) > before })
		cutOff[c.name] = other
	}
	for _, c := range []struct {
		name   string
		send   func()
		counts string
	}{
		{"a fact in somebody else's name", facts(instance, byForger), "refused.facts-forged"},
		{"a fact that nobody signed", facts(instance, unsigned), "refused.facts-forged"},
		{"a fact cut short", facts(instance, truncated), "refused.facts-malformed"},
		{"a fact of an instance of others", facts(instance, byIntruder), "refused.facts-from-no-participant"},
		{"a fact of an instance that is not known", facts(elsewhere.Instance, ofNothing), "refused.facts-not-taken"},
		{"a fact under another instance's name", facts(instance, ofNothing), "refused.facts"},
		{"heads of an instance of others", func() {
			v.say(victim, &wire.Message{Heads: []wire.Heads{{Instance: instance, Heads: []fact.Head{head},
				Mode: wire.Ask}}})
		}, "refused.heads-from-no-participant"},
		{"a record that is none", func() { v.say(victim, &wire.Message{Records: [][]byte{[]byte("record")}}) },
			"refused.record"},
		{"a definition that is none", func() {
			v.say(victim, &wire.Message{Definitions: []wire.Definition{{Notices: [][]byte{{1}},
				Canonical: []byte("{}")}}})
		}, "refused.definition"},
	} {
		before := two.refused(c.counts)
		c.send()
		until(t, c.name+" is counted under "+c.counts, patience,
			func() bool { return two.refused(c.counts) > before })
		select {
		case <-v.down:
			t.Errorf("%s: the connection was closed", c.name)
			v.await(v.up, "a new connection")
		default:
		}
	}
	for what, other := range cutOff {
		other.await(other.up, "a new connection: "+what)
	}

	log := strings.Join(two.log(id), "\n")
	if strings.Contains(log, "villain") || two.state(id) != workflow.InstanceRunning {
		t.Errorf("the instance is %s and its log is\n%s", two.state(id), log)
	}
	if l, err := two.client.Instances(context.Background(), true); err != nil || len(l) != 1 {
		t.Errorf("two holds %v, %v; want one instance", l, err)
	}
	if err := one.client.FinishTask(context.Background(), finish(id, "a")); err != nil {
		t.Fatal(err)
	}
	tm.succeeded(id, "a", "b")
}

// A member makes an instance in the name of another, and one in which it takes
// no part itself.
func TestMemberMakesInstancesOfOthers(t *testing.T) {
	tm := newTeam(t, "one", "two")
	tm.workflow("workflow: solo\ntasks: {a: {type: manual}}\n")
	one, two := tm.ps[0], tm.ps[1]
	v := tm.villain(t, "villain", two)
	victim := two.status().ID
	w, err := two.client.Workflow(context.Background(), "solo")
	if err != nil {
		t.Fatal(err)
	}
	for name, author := range map[string]workflow.PartnerID{
		"in another's name": one.status().ID, "without its author": v.member.ID(),
	} {
		packed, id := v.sign(&fact.Fact{
			Format: fact.Format, Chain: fact.Chain{Author: author}, Seq: 1, At: 1,
			Body: fact.Body{Genesis: &fact.Genesis{
				Definition: workflow.Hash(decodeHex(t, w.Hash)),
				Succession: []workflow.PartnerID{one.status().ID, victim}, Coordination: workflow.Choreography,
				Assign: []fact.Placement{{Partition: workflow.PartitionName(w.Partitions[0]), Partner: victim}},
			}},
		})
		before := two.refused("refused.facts")
		v.say(victim, &wire.Message{Facts: []wire.Facts{{Instance: fact.InstanceOf(id), Definition: w.Definition,
			Facts: []wire.Fact{packed}}}})
		until(t, "refused: an instance "+name, patience,
			func() bool { return two.refused("refused.facts") > before })
	}
	for range 2 {
		if l, err := two.client.Instances(context.Background(), true); err != nil || len(l) != 0 {
			t.Errorf("two holds %v, %v; want nothing", l, err)
		}
		two.kill()
		two.start()
	}
}
