package strangers_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/membership/invitation"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A peer that shows no good certificate at the hello stays out.
func TestHelloRefuses(t *testing.T) {
	w := newWorld(t)
	ana := w.all[0]
	davi := trust.Issuer{Mesh: w.mesh, Key: keyOf("davi"), Chain: w.issue(w.founder, trust.Certificate{
		Partner: idOf("davi"), Name: "davi", Delegate: true, NotAfter: trust.WallOf(noon.Add(year)),
	})}
	other := trust.Issuer{Mesh: trust.Mesh{Name: "other", Founder: idOf("eve")}, Key: keyOf("eve")}
	same := trust.Issuer{Mesh: trust.Mesh{Name: w.mesh.Name, Founder: idOf("eve")}, Key: keyOf("eve")}
	leaf := func(name string) trust.Certificate {
		return trust.Certificate{Partner: idOf(name), Name: name, NotAfter: trust.WallOf(noon.Add(year))}
	}
	changed := func(ch trust.Chain, fn func(*trust.Certificate)) trust.Chain {
		ch = slices.Clone(ch)
		fn(&ch[0])
		return ch
	}
	// bea is no delegate; what she issues she signs herself.
	beas := trust.Issuer{Mesh: trust.Mesh{Name: w.mesh.Name, Founder: idOf("bea")}, Key: keyOf("bea")}
	byBea := w.issue(beas, leaf("eve"))[0]
	byBea.Mesh, byBea.Issuer, byBea.Signature = w.mesh.ID(), idOf("bea"), nil
	byBea.Signature = trust.Sign(keyOf("bea"), "certificate", trust.EncodeChain(trust.Chain{byBea}))

	w.join("bea", w.certify("bea", year))
	evicted := w.certify("carla", year)
	w.join("carla", evicted)
	w.meet(w.all...)
	if _, err := ana.api.Evict(t.Context(), api.EvictRequest{Partner: "carla"}); err != nil {
		t.Fatal(err)
	}
	voided := w.issue(davi, leaf("dora"))
	w.join("davi", davi.Chain)
	w.meet(ana, w.find(idOf("davi")))
	if _, err := ana.api.Evict(t.Context(), api.EvictRequest{Partner: "davi"}); err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		name    string
		peer    string
		hello   []byte
		counter string
		says    string
	}{
		{"another mesh", "eve", trust.EncodeChain(w.issue(other, leaf("eve"))), "wrong-mesh",
			"belongs to another mesh"},
		{"another mesh of the same name", "eve", trust.EncodeChain(w.issue(same, leaf("eve"))), "wrong-mesh",
			"belongs to another mesh"},
		{"expired", "eve", trust.EncodeChain(w.issue(w.founder, trust.Certificate{
			Partner: idOf("eve"), Name: "eve", NotBefore: trust.WallOf(noon.Add(-year)),
			NotAfter: trust.WallOf(noon.Add(-25 * time.Hour)),
		})), "expired", "expired at 2026-05-31"},
		{"not valid yet", "eve", trust.EncodeChain(w.issue(w.founder, trust.Certificate{
			Partner: idOf("eve"), Name: "eve", NotBefore: trust.WallOf(noon.Add(25 * time.Hour)),
			NotAfter: trust.WallOf(noon.Add(year)),
		})), "not-yet-valid", "not valid yet"},
		{"another's certificate", "eve", trust.EncodeChain(w.certify("bea", year)), "forged",
			"shows the certificate of"},
		{"a role added", "eve", trust.EncodeChain(changed(w.certify("eve", year),
			func(c *trust.Certificate) { c.Roles = []workflow.RoleName{"commander"} })), "forged", "signature does not match"},
		{"made a delegate", "eve", trust.EncodeChain(changed(w.certify("eve", year),
			func(c *trust.Certificate) { c.Delegate = true })), "forged", "signature does not match"},
		{"prolonged", "eve", trust.EncodeChain(changed(w.certify("eve", year),
			func(c *trust.Certificate) { c.NotAfter += 1000 })), "forged", "signature does not match"},
		{"issued by a member", "eve", trust.EncodeChain(trust.Chain{byBea}), "not-allowed", "not by the founder"},
		{"issued by a member, with its own", "eve",
			trust.EncodeChain(append(trust.Chain{byBea}, w.certify("bea", year)...)), "not-allowed", "not a delegate"},
		{"evicted", "carla", trust.EncodeChain(evicted), "evicted", "carla is evicted by"},
		{"evicted, with a fresh certificate", "carla", trust.EncodeChain(w.certify("carla", year)), "evicted",
			"carla is evicted by"},
		{"by an evicted delegate, not listed", "dora", trust.EncodeChain(voided), "evicted", "is void"},
		{"garbage", "eve", []byte{0xff, 1, 2}, "malformed", "cannot be read"},
		{"too long", "eve", bytes.Repeat([]byte{0}, 64<<10), "malformed", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			counter := "refused.stranger." + c.counter
			before := ana.counted(counter)
			err := ana.node.Admit(idOf(c.peer), c.hello, 1)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("want it refused with %q, got %v", c.says, err)
			}
			if n := ana.counted(counter) - before; n != 1 {
				t.Errorf("%s counted %d times", counter, n)
			}
		})
	}
	if err := ana.node.Admit(idOf("bea"), trust.EncodeChain(w.certify("bea", year)), 99); err != nil {
		t.Errorf("a member is refused: %v", err)
	}
}

// The protocols of joining (node/member.go).
const (
	joinHello = "/mutirao/join-hello/1.0.0"
	joinProof = "/mutirao/join-proof/1.0.0"
)

// attempt is one attempt to join.
type attempt struct {
	inv   invitation.Invitation
	as    string
	offer invitation.Offer
	proof []byte
}

// prove goes through joining up to the proof.
func prove(t *testing.T, at *member, inv invitation.Invitation, as string, nonce byte) attempt {
	t.Helper()
	h := invitation.NewHello(inv, idOf(as), invitation.Nonce{nonce})
	b, err := at.requests[joinHello](idOf(as), invitation.EncodeHello(h))
	if err != nil {
		t.Fatal(err)
	}
	o, err := invitation.DecodeOffer(b)
	if err != nil {
		t.Fatal(err)
	}
	p, err := invitation.Prove(inv, h, o, keyOf(as), as, noon)
	if err != nil {
		t.Fatal(err)
	}
	return attempt{inv, as, o, invitation.EncodeProof(p)}
}

func (a attempt) redeem(at *member) error {
	_, err := at.requests[joinProof](idOf(a.as), a.proof)
	return err
}

// Invitations are honoured as often as they say, until they expire, for peers
// that prove their secret; what was recorded is worth nothing.
func TestInvitationsAreRefused(t *testing.T) {
	w := newWorld(t)
	ana := w.all[0]
	invite := func(r api.InviteRequest) invitation.Invitation {
		t.Helper()
		i, err := ana.api.Invite(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		inv, err := invitation.ParseInvitation(i.Token)
		if err != nil {
			t.Fatal(err)
		}
		return inv
	}
	once := invite(api.InviteRequest{})
	first := prove(t, ana, once, "bea", 1)
	if err := first.redeem(ana); err != nil {
		t.Fatal(err)
	}
	guessed := once
	guessed.Secret[0]++
	short := invite(api.InviteRequest{Expires: api.Span(time.Minute)})
	ours := invite(api.InviteRequest{Uses: 5})

	for _, c := range []struct {
		name string
		try  func() error
		says string
	}{
		{"a proof again", func() error { return first.redeem(ana) }, "no offer was made"},
		{"a recorded proof after a new hello", func() error {
			second := prove(t, ana, ours, "carla", 2)
			if err := second.redeem(ana); err != nil {
				t.Fatal(err)
			}
			prove(t, ana, ours, "carla", 3)
			return second.redeem(ana)
		}, "does not hold the invitation's secret"},
		{"a proof of somebody else", func() error {
			theirs := prove(t, ana, ours, "dora", 4)
			mine := prove(t, ana, ours, "eve", 5)
			mine.proof = theirs.proof
			return mine.redeem(ana)
		}, "does not hold the invitation's secret"},
		{"used up", func() error { return prove(t, ana, once, "eve", 6).redeem(ana) }, "used up"},
		{"used up, after a restart", func() error {
			ana.start()
			return prove(t, ana, once, "eve", 7).redeem(ana)
		}, "used up"},
		{"a guessed secret", func() error { return prove(t, ana, guessed, "eve", 8).redeem(ana) },
			"no such invitation"},
		{"expired", func() error {
			a := prove(t, ana, short, "eve", 9)
			w.run(2 * time.Minute)
			return a.redeem(ana)
		}, "expired"},
		{"garbage", func() error { return attempt{as: "eve", proof: []byte("x")}.redeem(ana) }, "cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			restarted := strings.Contains(c.name, "restart")
			before := ana.counted("refused.invitation")
			if restarted {
				before = 0
			}
			err := c.try()
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("want it refused with %q, got %v", c.says, err)
			}
			if n := ana.counted("refused.invitation") - before; n != 1 {
				t.Errorf("counted %d times", n)
			}
		})
	}
}

// A member cannot say of others, or of itself, what it has no right to say.
func TestMembersCannotForge(t *testing.T) {
	w := newWorld(t)
	ana, bea, carla := w.all[0], w.join("bea", w.certify("bea", year, "crew")),
		w.join("carla", w.certify("carla", year))
	w.meet(ana, bea, carla)
	record := func(name string, version uint64, ch trust.Chain) membership.Record {
		return membership.Record{
			Partner: idOf(name), Version: membership.Version{Boot: version}, ConnectionTime: time.Minute, Chain: ch,
		}
	}
	promoted := w.certify("carla", year)
	promoted[0].Roles = []workflow.RoleName{"crew"}
	signed := func(r membership.Record, by string) [][]byte {
		return [][]byte{membership.EncodeRecord(r.Sign(keyOf(by)))}
	}
	eviction := trust.Eviction{
		Mesh: w.mesh.ID(), Issuer: idOf("carla"), Number: 1, Partner: idOf("bea"), At: trust.WallOf(noon),
		Chain: carla.who.Chain,
	}
	asFounder := eviction
	asFounder.Issuer, asFounder.Chain, asFounder.Signature = w.mesh.Founder, nil, make([]byte, 64)
	head, known := electorateOf(t, ana)
	lineage, err := election.FoundElectorate(trust.Mesh{Name: w.mesh.Name, Founder: idOf("carla")}, keyOf("carla"),
		[]election.Voter{{Partner: idOf("carla")}}, time.Minute, known, 0)
	if err != nil {
		t.Fatal(err)
	}
	elections := func(m election.Message) *wire.Message {
		return &wire.Message{Election: [][]byte{election.EncodeMessage(m)}}
	}
	for _, c := range []struct {
		name    string
		message *wire.Message
		counter string
	}{
		{"another's role", &wire.Message{Records: signed(record("carla", 9, promoted), "carla")}, "refused.record"},
		{"another's certificate", &wire.Message{Records: signed(record("carla", 9, bea.who.Chain), "carla")},
			"refused.record"},
		{"another's record", &wire.Message{Records: signed(record("bea", 9, bea.who.Chain), "carla")},
			"refused.record"},
		{"another's heartbeat", &wire.Message{Beats: [][]byte{membership.EncodeBeat(membership.Beat{
			Partner: idOf("bea"), Version: membership.Version{Boot: 1, Seq: 1000}, Base: 1,
		}.Sign(keyOf("carla")))}}, "refused.beat"},
		{"an eviction by a member", &wire.Message{Evictions: &wire.Records{List: [][]byte{trust.EncodeEviction(eviction)}}}, "refused.eviction"},
		{"an eviction in the founder's name",
			&wire.Message{Evictions: &wire.Records{List: [][]byte{trust.EncodeEviction(asFounder)}}},
			"refused.eviction"},
		{"a renewal by a member", &wire.Message{Renewal: trust.EncodeChain(promoted)}, "refused.renewal"},
		{"another's renewal", &wire.Message{Renewal: trust.EncodeChain(w.certify("bea", year))}, "refused.renewal"},
		{"an electorate of its own", elections(election.Message{Lists: &election.Lists{Lineage: lineage}}),
			"refused.election"},
		{"a handover by a member", elections(election.Message{Propose: &election.Proposal{List: lineage[0]}}),
			"refused.election"},
		{"an office that nobody voted for", elections(election.Message{Claim: &election.Mandate{
			Office: election.Office{Term: 7, Number: head.Number, List: head.Hash()}, Holder: idOf("carla"),
		}}), "refused.election"},
		{"an office by votes of its own", elections(election.Message{Claim: &election.Mandate{
			Office: election.Office{Term: 7, Number: head.Number, List: head.Hash()}, Holder: idOf("carla"),
			Votes: []election.Vote{{Office: election.Office{Term: 7, Number: head.Number, List: head.Hash()},
				Candidate: idOf("carla"), Voter: head.Voters[0], Signature: make([]byte, 64)}},
		}}), "refused.election"},
		{"garbage in its parts", &wire.Message{Records: [][]byte{{1}}}, "refused.record"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := ana.counted(c.counter)
			w.send(carla, ana, c.message)
			if n := ana.counted(c.counter) - before; n != 1 {
				t.Errorf("%s counted %d times", c.counter, n)
			}
			w.run(time.Second)
			if ana.sees("bea") != "active" || ana.sees("carla") != "active" {
				t.Errorf("bea is %s, carla is %s", ana.sees("bea"), ana.sees("carla"))
			}
			if crew, err := ana.api.Resources(t.Context(), "role crew"); err != nil || len(crew) != 1 ||
				len(crew[0].Holders) != 1 {
				t.Errorf("crew: %v %v", crew, err)
			}
			if st, err := ana.api.CoordinatorStatus(t.Context()); err != nil || st.Coordinator != nil ||
				len(st.Electorate) != 1 {
				t.Errorf("coordinator: %+v %v", st, err)
			}
		})
	}
	t.Run("a frame that is none", func(t *testing.T) {
		ana.node.OnFrame(idOf("carla"), []byte{wire.Version, 0xff})
		if n := ana.counted("refused.frame-malformed"); n != 1 || w.connected(ana, carla) {
			t.Errorf("counted %d times; connected: %v", n, w.connected(ana, carla))
		}
	})
}

// electorateOf reads a node's electorate from its disk.
func electorateOf(t *testing.T, m *member) (election.Electorate, election.Lineage) {
	t.Helper()
	lineage, err := election.DecodeLineage(m.disk.data["mlineage"])
	if err != nil {
		t.Fatal(err)
	}
	head, _ := lineage.Head()
	return head, lineage
}

const rescue = `
workflow: rescue
version: 1
tasks:
  reach: {type: manual, role: crew}
  treat: {type: manual, role: medic, after: reach}
partitions:
  engine: [reach]
  ambulance: [treat]
`

// A member that takes part in an instance cannot report another's task, and
// nobody without its role finishes a task.
func TestCompletionsCannotBeForged(t *testing.T) {
	w := newWorld(t)
	ana, bea, carla := w.all[0], w.join("bea", w.certify("bea", year, "crew")),
		w.join("carla", w.certify("carla", year))
	w.meet(ana, bea, carla)
	if _, err := ana.api.AddWorkflow(t.Context(), "rescue.yaml", []byte(rescue)); err != nil {
		t.Fatal(err)
	}
	var facts []wire.Fact // of the instance, as they pass by
	w.sniff = func(_, _ *member, m *wire.Message) {
		for _, f := range m.Facts {
			facts = append(facts, f.Facts...)
		}
	}
	started, err := ana.api.Start(t.Context(),
		api.StartRequest{
			Workflow: "rescue", Assign: map[string]string{"engine": "bea", "ambulance": "carla"}, WaitForRole: true,
		})
	if err != nil {
		t.Fatal(err)
	}
	w.run(5 * time.Second)
	genesis, genesisID, err := fact.Decode(facts[0].Raw)
	if err != nil || genesis.Body.Genesis == nil {
		t.Fatalf("the first fact that passed by is no genesis: %v", err)
	}
	state := func(at *member, task workflow.TaskName) workflow.State {
		in, err := at.api.Show(t.Context(), started.ID)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(in.Tasks, func(x api.Task) bool { return x.Name == task })
		return in.Tasks[i].State
	}
	if got := state(ana, "reach"); got != workflow.Running && got != workflow.Ready {
		t.Fatalf("reach is %s", got)
	}

	success := &fact.Fact{
		Format: fact.Format, Instance: fact.InstanceOf(genesisID), Seq: 1,
		Chain: fact.Chain{Author: idOf("bea"), Incarnation: fact.Incarnation{1}},
		Seen:  []fact.Head{{Chain: genesis.Chain, Seq: 1, ID: genesisID}},
		Body:  fact.Body{Success: &fact.Success{Attempt: fact.AttemptID{Slot: "reach"}, Try: 1}},
	}
	sign := func(f *fact.Fact, by string) wire.Fact {
		raw, id, err := f.Encode()
		if err != nil {
			t.Fatal(err)
		}
		att := fact.Attest([]fact.ID{id},
			func(domain string, msg []byte) []byte { return trust.Sign(keyOf(by), domain, msg) })
		return wire.Fact{Raw: raw, Att: att[0]}
	}
	forged := sign(success, "carla")
	bare := forged
	bare.Att = nil
	outsider := *success
	outsider.Chain.Author = idOf("carla")

	for _, c := range []struct {
		name    string
		fact    wire.Fact
		counter string // empty: it is taken, and does not count
	}{
		{"in another's name", forged, "refused.facts-forged"},
		{"in another's name, unsigned", bare, "refused.facts-forged"},
		{"in one's own name, of another's task", sign(&outsider, "carla"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := ana.counted(c.counter)
			w.send(carla, ana, &wire.Message{Facts: []wire.Facts{{Instance: success.Instance,
				Facts: []wire.Fact{c.fact}}}})
			w.run(2 * time.Second)
			if n := ana.counted(c.counter) - before; c.counter != "" && n != 1 {
				t.Errorf("%s counted %d times", c.counter, n)
			}
			for _, at := range w.all {
				if got := state(at, "reach"); got != workflow.Running && got != workflow.Ready {
					t.Errorf("%s: reach is %s", at.name, got)
				}
			}
		})
	}

	log, err := ana.api.Log(t.Context(), started.ID)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(log, func(e api.LogEntry) bool { return e.Author == "carla" && e.Succeeds() })
	if i < 0 || log[i].Counted {
		t.Errorf("carla's report of bea's task is to be in the log as one that does not count: %+v", log)
	}

	finish := func(at *member, task workflow.TaskName) error {
		return at.api.FinishTask(t.Context(), api.FinishRequest{ID: started.ID, Task: task})
	}
	if err := finish(bea, "reach"); err != nil {
		t.Fatal(err)
	}
	w.run(2 * time.Second)
	err = finish(carla, "treat")
	if e, ok := err.(*api.Error); !ok || e.Code != api.NotAllowed ||
		!strings.Contains(e.Message, "role medic does that, and its certificate gives it no role") {
		t.Errorf("carla, who is no medic, treats: %v", err)
	}
	if carla.counted("refused.role") != 1 {
		t.Error("not counted")
	}
}

// An evicted member is cut off at once and refused by everybody, also by those
// that hear of it later, and after any restart.
func TestEvictionSpreadsAndLasts(t *testing.T) {
	w := newWorld(t)
	ana, bea, carla, dora := w.all[0], w.join("bea", w.certify("bea", year)), w.join("carla", w.certify("carla", year)),
		w.join("dora", w.certify("dora", year))
	w.meet(w.all...)
	w.cut(ana, dora, true) // dora hears of it from carla only
	w.cut(carla, dora, true)
	if _, err := ana.api.Evict(t.Context(), api.EvictRequest{Partner: "bea", Reason: "lost phone"}); err != nil {
		t.Fatal(err)
	}
	if w.connected(ana, bea) {
		t.Error("ana's connection with bea lives on")
	}
	w.run(time.Second)
	if w.connected(carla, bea) || carla.sees("bea") != "evicted" {
		t.Errorf("carla sees bea %s", carla.sees("bea"))
	}
	if !w.connected(dora, bea) {
		t.Error("dora could not know")
	}
	w.cut(carla, dora, false)
	w.run(5 * time.Second)
	if w.connected(dora, bea) || dora.sees("bea") != "evicted" {
		t.Errorf("dora sees bea %s after she met carla", dora.sees("bea"))
	}
	if st, err := bea.api.Status(t.Context()); err != nil || len(st.Trouble) != 1 ||
		!strings.Contains(st.Trouble[0], "lost phone") {
		t.Errorf("bea's trouble: %v %v", st, err)
	}
	for _, m := range w.all {
		m.start()
	}
	w.meet(w.all...)
	for _, m := range []*member{ana, carla, dora} {
		if w.connected(m, bea) || m.sees("bea") != "evicted" || m.counted("refused.stranger.evicted") == 0 {
			t.Errorf("after the restart %s sees bea %s, and counted %d", m.name, m.sees("bea"),
				m.counted("refused.stranger.evicted"))
		}
	}
}

// Certificates are renewed in time by their issuers; one that ran out is
// refused, and its owner is cut off.
func TestCertificatesAreRenewedOrRunOut(t *testing.T) {
	const life = 10 * 24 * time.Hour
	w := newWorld(t)
	ana, bea, carla := w.all[0], w.join("bea", w.certify("bea", life)), w.join("carla", w.certify("carla", life))
	w.meet(ana, bea, carla)
	w.cut(ana, carla, true) // carla is in contact with bea only, which issues nothing
	// Nothing happens for nine days; a step of the world would be a moment.
	w.now += 9 * 24 * time.Hour
	w.run(3 * time.Minute)
	if ana.counted("renewals") == 0 {
		t.Error("ana renewed nothing")
	}
	w.now += 3 * 24 * time.Hour // beyond the first certificates and the skew of clocks
	w.run(3 * time.Minute)
	if !w.connected(ana, bea) || ana.sees("bea") != "active" {
		t.Errorf("bea, renewed, is %s", ana.sees("bea"))
	}
	if w.connected(bea, carla) || bea.counted("refused.connection-of-former-member") == 0 ||
		bea.counted("refused.stranger.expired") == 0 {
		t.Error("carla, not renewed, is still admitted")
	}
	if st, err := carla.api.Status(t.Context()); err != nil ||
		!strings.Contains(strings.Join(st.Trouble, ";"), "certificate of carla expired at") {
		t.Errorf("carla's trouble: %v %v", st, err)
	}
	// The renewal is on the disk.
	bea.start()
	w.meet(ana, bea)
	if !w.connected(ana, bea) {
		t.Error("bea is refused after a restart")
	}
}

var _ node.Requester = (*member)(nil)
