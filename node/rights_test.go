package node_test

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// forger is a member that signs what it likes, in a chain of its own, beside its
// node. It knows what knows has of an instance.
type forger struct {
	tm    *team
	p     *partner
	key   node.Member
	id    workflow.InstanceID
	chain fact.Chain
	seq   uint64
	last  fact.ID
	via   *partner // the one that brings what it says; nil: it does so itself
}

func (tm *team) forger(name, id string) *forger {
	tm.t.Helper()
	m, err := node.LoadMember(tm.p[name].dir)
	if err != nil {
		tm.t.Fatal(err)
	}
	raw, err := hex.DecodeString(id)
	if err != nil {
		tm.t.Fatal(err)
	}
	chain := fact.Chain{Author: m.ID(), Incarnation: fact.Incarnation{0xee}}
	return &forger{tm: tm, p: tm.p[name], key: m, id: workflow.InstanceID(raw), chain: chain}
}

// sends sends the first fact of an instance to a partner, attested.
func (l *forger) sends(to string, genesis *fact.Fact) {
	l.tm.t.Helper()
	raw, id, err := genesis.Encode()
	if err != nil {
		l.tm.t.Fatal(err)
	}
	att := fact.Attest([]fact.ID{id},
		func(domain string, b []byte) []byte { return trust.Sign(l.key.Key, domain, b) })
	facts := []wire.Facts{{Instance: fact.InstanceOf(id), Facts: []wire.Fact{{Raw: raw, Att: att[0]}}}}
	frame, err := wire.Encode(&wire.Message{Facts: facts})
	if err != nil {
		l.tm.t.Fatal(err)
	}
	l.tm.p[to].node.OnFrame(l.p.id(), frame)
	synctest.Wait()
}

// says sends a fact that has seen a head to a partner, attested.
func (l *forger) says(to string, seen fact.Head, b fact.Body) fact.ID {
	l.tm.t.Helper()
	l.seq++
	f := &fact.Fact{
		Format: fact.Format, Instance: l.id, Chain: l.chain, Seq: l.seq, Prev: l.last, Body: b,
		Seen: []fact.Head{seen},
	}
	raw, id, err := f.Encode()
	if err != nil {
		l.tm.t.Fatal(err)
	}
	att := fact.Attest([]fact.ID{id},
		func(domain string, b []byte) []byte { return trust.Sign(l.key.Key, domain, b) })
	frame, err := wire.Encode(&wire.Message{Facts: []wire.Facts{{Instance: l.id,
		Facts: []wire.Fact{{Raw: raw, Att: att[0]}}}}})
	if err != nil {
		l.tm.t.Fatal(err)
	}
	by := l.p
	if l.via != nil {
		by = l.via
	}
	l.tm.p[to].node.OnFrame(by.id(), frame)
	synctest.Wait()
	l.last = id
	return id
}

// headSent is the genesis of an instance, or else what was sent of it first.
func (tm *team) headSent(id workflow.InstanceID) (h fact.Head) {
	tm.t.Helper()
	tm.f.sent(func(c carried) bool {
		for _, fs := range c.m.Facts {
			for _, w := range fs.Facts {
				f, fid, err := fact.Decode(w.Raw)
				genesis := err == nil && f.Body.Genesis != nil
				if err == nil && (fs.Instance == id) && (genesis || h.Seq == 0) {
					h = fact.Head{Chain: f.Chain, Seq: f.Seq, ID: fid}
				}
			}
		}
		return false
	})
	if h.Seq == 0 {
		tm.t.Fatal("nothing of the instance was sent")
	}
	return h
}

// A participant without the role cannot take a task with a role, by whatever it
// judges: its start does not count, and everybody sees which partner judged.
func TestAParticipantWithoutTheRoleCannotTakeATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "ana:medic", "bea", "mal")
		tm.add("ana", `
workflow: aid
data: {dose: {type: integer}}
tasks:
  reach:  {type: manual}
  treat:  {after: reach, type: manual, role: medic, out: [dose], on-failure: {contingency: treat2}}
  treat2: {type: manual, role: medic, out: [dose]}
  carry:  {after: treat, type: manual}
partitions: {crew: [reach], doctor: [treat], carriers: [carry]}
`)
		id := tm.begin("ana", "aid", map[string]string{"crew": "bea", "doctor": "ana", "carriers": "mal"})
		l := tm.forger("mal", id)
		genesis := tm.headSent(l.id)
		takes := fact.Action{
			Attempt: fact.AttemptID{Slot: "treat"}, Kind: workflow.FailContingency, Task: "treat2", Partner: l.p.id(),
		}
		verdict := l.says("ana", genesis,
			fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseTimeout, Actions: []fact.Action{takes}}})
		mine := fact.AttemptID{Fact: verdict, Slot: "treat"}
		own := trust.EncodeChain(l.key.Chain)
		l.says("ana", genesis, fact.Body{Start: &fact.Start{Attempt: mine, Try: 1}, Credentials: own})
		outputs := map[workflow.DataName]workflow.Value{"dose": int64(1000)}
		l.says("ana", genesis, fact.Body{Success: &fact.Success{Attempt: mine, Try: 1, Outputs: outputs}})
		in, err := tm.p["ana"].api.Show(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if got := tm.task("ana", id, "treat2"); got == workflow.Succeeded || in.Data["dose"] != nil {
			t.Errorf("mal treated, it is %s, dose %v", got, in.Data["dose"])
		}
		for _, want := range []string{"gave the contingency to itself", "has not shown that it has the role"} {
			if !tm.incident("ana", id, want) {
				t.Errorf("no incident says %q: %+v", want, in.Incidents)
			}
		}
		// Another's certificate is refused before it is looked at.
		before := tm.counter("ana", "refused.facts-forged")
		ana := tm.forger("ana", id)
		l.says("ana", genesis, fact.Body{
			Start: &fact.Start{Attempt: mine, Try: 1}, Credentials: trust.EncodeChain(ana.key.Chain),
		})
		if got := tm.counter("ana", "refused.facts-forged"); got != before+1 {
			t.Errorf("another's certificate was refused %d times", got-before)
		}
	})
}

// A certificate that has run out is refused when its owner shows it. What another has taken in
// others may have built upon: the same fact is taken in from there, and counts.
func TestExpiryIsCheckedAtTheDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "ana:medic", "bea", "mal")
		tm.add("ana", `
workflow: aid
tasks:
  reach:  {type: manual}
  treat:  {type: manual, role: medic, on-failure: {contingency: treat2}}
  treat2: {type: manual, role: medic}
  carry:  {type: manual}
partitions: {crew: [reach], doctor: [treat], carriers: [carry]}
`)
		id := tm.begin("ana", "aid", map[string]string{"crew": "bea", "doctor": "ana", "carriers": "mal"})
		l, ana := tm.forger("mal", id), tm.forger("ana", id)
		was, err := trust.Issuer{Mesh: ana.key.Mesh, Key: ana.key.Key, Chain: ana.key.Chain}.Issue(trust.Certificate{
			Partner: l.p.id(), Name: "mal", Roles: []workflow.RoleName{"medic"}, Serial: trust.Serial{1},
			NotBefore: trust.WallOf(time.Now().Add(-30 * day)), NotAfter: trust.WallOf(time.Now().Add(-2 * day)),
		})
		if err != nil {
			t.Fatal(err)
		}
		genesis := tm.headSent(l.id)
		takes := fact.Action{
			Attempt: fact.AttemptID{Slot: "treat"}, Kind: workflow.FailContingency, Task: "treat2", Partner: l.p.id(),
		}
		verdict := l.says("ana", genesis,
			fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseTimeout, Actions: []fact.Action{takes}}})
		starts := fact.Body{
			Start:       &fact.Start{Attempt: fact.AttemptID{Fact: verdict, Slot: "treat"}, Try: 1},
			Credentials: trust.EncodeChain(was),
		}
		seq, had, before := l.seq, len(tm.log("ana", id)), tm.counter("ana", "refused.facts-forged")
		l.says("ana", genesis, starts)
		if n := tm.counter("ana", "refused.facts-forged") - before; n != 1 || len(tm.log("ana", id)) != had {
			t.Errorf("of mal ana refused %d messages with a certificate that has run out, want 1; she has %d facts, want %d",
				n, len(tm.log("ana", id)), had)
		}
		l.seq, l.last, l.via = seq, verdict, tm.p["bea"]
		l.says("ana", genesis, starts)
		if n := len(tm.log("ana", id)); n != had+1 || tm.task("ana", id, "treat2") != workflow.Running {
			t.Errorf("through bea: ana has %d facts, want %d; treat2 is %s", n, had+1, tm.task("ana", id, "treat2"))
		}
	})
}

// A member that lacks the creator role cannot start the workflow, by whatever it sends.
func TestAnInstanceOfWhoLacksTheCreatorRoleIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "ana:commander", "mal")
		tm.add("ana", order)
		good := tm.begin("ana", "order", nil)
		if got := tm.state("ana", good); got != workflow.InstanceRunning {
			t.Fatalf("an instance of the commander's is %s", got)
		}
		l := tm.forger("mal", good)
		var genesis fact.Fact
		list, err := tm.p["ana"].api.Instances(t.Context(), false)
		if err != nil || len(list) != 1 {
			t.Fatalf("ana lists %v, %v", list, err)
		}
		def, err := tm.p["ana"].api.Workflow(t.Context(), "order")
		if err != nil {
			t.Fatal(err)
		}
		hash, err := hex.DecodeString(def.Hash)
		if err != nil {
			t.Fatal(err)
		}
		ana := tm.p["ana"].id()
		for _, shows := range [][]byte{nil, trust.EncodeChain(l.key.Chain)} {
			genesis = fact.Fact{Format: fact.Format, Chain: l.chain, Seq: 1, Body: fact.Body{
				Credentials: shows, Genesis: &fact.Genesis{
					Definition: workflow.Hash(hash), Nonce: [16]byte{byte(len(shows))},
					Coordination: workflow.Choreography,
					Succession:   []workflow.PartnerID{l.p.id(), ana},
					Assign:       []fact.Placement{{Partition: "main", Partner: ana}},
				},
			}}
			l.sends("ana", &genesis)
		}
		if n := tm.running("ana"); n != 1 {
			t.Errorf("ana has %d instances, want her own alone", n)
		}
		told := tm.f.sent(func(c carried) bool {
			return c.from == ana && len(c.m.Refusals) == 1 && c.m.Refusals[0].Why == wire.RefusedUnfit
		})
		if len(told) != 2 { // so that its people see it
			t.Errorf("whoever began the others is told %d times that they are not taken in, want 2", len(told))
		}
	})
}

// Whoever starts a workflow with a creator role is judged by its own roles: a user whatever those of the partner are,
// and the partner as the user that it is. The instance shows it, and its record says who it was.
func TestAUserStartsByItsOwnRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "ana:commander", "two")
		tm.signsIn("two", "lia", "commander")
		tm.signsIn("ana", "rui")
		tm.add("ana", order)
		pass(time.Second)
		start := func(at, user string) (string, error) {
			st, err := tm.p[at].api.Start(t.Context(), api.StartRequest{
				Workflow: "order", User: user, Assign: map[string]string{"main": "ana"},
			})
			if err != nil {
				return "", err
			}
			return st.ID, nil
		}
		for at, who := range map[string]string{"ana": "rui", "two": "two"} {
			_, err := start(at, who)
			var e *api.Error
			want := map[string]string{
				"rui": "rui may not start workflow order: role commander does that, and as a user rui has no role" +
					" (ana has that role here: start it with --user ana)",
				"two": "two may not start workflow order: role commander does that, and its certificate gives it" +
					" no role (lia has that role here: start it with --user lia)",
			}[who]
			if !errors.As(err, &e) || e.Code != api.NotAllowed || e.Message+" ("+e.Hint+")" != want {
				t.Errorf("%s starts it: %v", who, err)
			}
		}
		if _, err := start("ana", "ana"); err != nil {
			t.Errorf("the partner with the role: %v", err)
		}
		for _, user := range []string{"lia", ""} { // the one who is signed in
			id, err := start("two", user)
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			if got := tm.log("ana", id); len(got) == 0 || !strings.Contains(got[0], "instance created by lia: main=ana") {
				t.Errorf("of what lia started ana has %q", got)
			}
		}
	})
}

// order is a workflow that only commanders may start.
const order = `
workflow: order
creator-role: commander
tasks: {go: {type: manual, role: commander}}
`

// signsIn makes a user, with roles, at a node.
func (tm *team) signsIn(at, name string, roles ...string) {
	tm.t.Helper()
	if err := tm.signIn(at, tm.addUser("ana", name, roles...)); err != nil {
		tm.t.Fatal(err)
	}
	pass(time.Second)
}

// speaker is the key of a user at a partner's node, with which that node's owner can do what it likes.
func (tm *team) speaker(at, name string) (ed25519.PrivateKey, users.ID) {
	tm.t.Helper()
	list, err := tm.p[at].api.Users(tm.t.Context())
	if err != nil {
		tm.t.Fatal(err)
	}
	keys, _ := node.UserKeysIn(tm.p[at].dir).All()
	for _, u := range list {
		if u.Name == name {
			id, err := users.ParseID(u.ID)
			if err != nil || keys[u.ID] == nil {
				tm.t.Fatalf("no key of %s: %v", name, err)
			}
			return keys[u.ID], id
		}
	}
	tm.t.Fatalf("no user %s", name)
	return nil, users.ID{}
}

// A member begins nothing by the word of a user that was given for something else, at another node, without the role,
// or that the user may not give any more.
func TestAWordThatDoesNotBeginAnInstanceIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "ana:commander", "mal")
		tm.add("ana", order)
		tm.add("ana", strings.NewReplacer("workflow: order", "workflow: drive", "creator-role: commander",
			"creator-role: driver").Replace(order))
		started, shown := "", map[string]*fact.Fact{} // a true beginning by each
		for _, u := range []struct{ at, name, role, starts string }{
			{"mal", "lia", "commander", "order"}, {"mal", "rui", "driver", "drive"}, {"ana", "eva", "commander", "order"},
		} {
			tm.signsIn(u.at, u.name, u.role)
			assign := map[string]string{"main": map[string]string{"ana": "mal", "mal": "ana"}[u.at]}
			st, err := tm.p[u.at].api.Start(t.Context(),
				api.StartRequest{Workflow: u.starts, User: u.name, Assign: assign})
			if err != nil {
				t.Fatal(err)
			}
			started = st.ID
			pass(time.Second)
			for _, c := range tm.f.sent(func(c carried) bool { return c.from == tm.p[u.at].id() }) {
				for _, f := range c.m.Facts {
					if f.Instance.String() == st.ID && len(f.Facts) > 0 && shown[u.name] == nil {
						g, _, err := fact.Decode(f.Facts[0].Raw)
						if err != nil {
							t.Fatal(err)
						}
						shown[u.name] = g
					}
				}
			}
		}
		l, had := tm.forger("mal", started), tm.running("ana")
		nonce, spoke := byte(0), map[string]func([32]byte) users.Signature{}
		begins := func(user, at string, good bool, word []byte) {
			t.Helper()
			nonce++
			annex := fact.Annex{Word: word}
			g := &fact.Fact{Format: fact.Format, Chain: l.chain, Seq: 1, Body: fact.Body{
				Annex: &annex, Genesis: &fact.Genesis{
					Definition: shown["lia"].Body.Genesis.Definition, Nonce: [16]byte{nonce},
					Coordination: workflow.Choreography,
					Succession:   []workflow.PartnerID{l.p.id(), tm.p["ana"].id()},
					Assign:       []fact.Placement{{Partition: "main", Partner: tm.p["ana"].id()}},
				},
			}}
			if word == nil {
				said, err := users.DecodeSpoken(shown[user].BegunWord())
				if err != nil {
					t.Fatal(err)
				}
				signed, err := g.Beginning()
				if err != nil {
					t.Fatal(err)
				}
				if spoke[user] == nil { // as long as the user is listed
					key, id := tm.speaker(at, user)
					spoke[user] = func(b [32]byte) users.Signature { return users.Sign(key, id, b) }
				}
				said.Signature = spoke[user](signed)
				annex.Word = users.EncodeSpoken(said)
			}
			l.sends("ana", g)
			if good {
				had++
			}
			if n := tm.running("ana"); n != had {
				t.Errorf("by the word of %s: ana has %d instances, want %d", user, n, had)
			}
		}
		begins("lia", "mal", false, shown["lia"].BegunWord()) // for another
		begins("rui", "mal", false, nil)                      // without the role
		begins("eva", "ana", false, nil)                      // who is at another node
		begins("lia", "mal", true, nil)
		revoked := api.RoleRequest{User: "lia", Role: "commander"}
		if _, err := tm.p["ana"].api.RevokeRole(t.Context(), revoked); err != nil {
			t.Fatal(err)
		}
		begins("lia", "mal", false, nil)
		if _, err := tm.p["ana"].api.GrantRole(t.Context(), revoked); err != nil {
			t.Fatal(err)
		}
		begins("lia", "mal", true, nil)
		if _, err := tm.p["ana"].api.RemoveUser(t.Context(), "lia"); err != nil {
			t.Fatal(err)
		}
		begins("lia", "mal", false, nil)
	})
}

// An instance whose user lost the role that began it, while its node was out of reach, does not look healthy there: it
// is said which partner does not take it in, and why, at both; with the role it goes on at once, and of one that was
// cancelled nothing more is said.
func TestAnInstanceOfAUserWhoLostTheRoleSaysWhyNobodyTakesIt(t *testing.T) {
	for _, then := range []string{"granted", "cancelled"} {
		synctest.Test(t, func(t *testing.T) { wantSaidWhyNobodyTakesIt(t, then == "cancelled") })
	}
}

func wantSaidWhyNobodyTakesIt(t *testing.T, cancelled bool) {
	tm := newTeam(t, "ana:commander", "bea")
	tm.add("ana", order)
	tm.signsIn("bea", "lia", "commander")
	tm.disconnect("ana", "bea")
	synctest.Wait()
	st, err := tm.p["bea"].api.Start(t.Context(),
		api.StartRequest{Workflow: "order", User: "lia", Assign: map[string]string{"main": "ana"}})
	if err != nil {
		t.Fatal(err)
	}
	role := api.RoleRequest{User: "lia", Role: "commander"}
	if _, err := tm.p["ana"].api.RevokeRole(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	tm.connect("ana", "bea")
	pass(time.Minute)
	if n := tm.running("ana"); n != 0 {
		t.Fatalf("ana has %d instances", n)
	}
	want := "ana has not taken the instance in, as role commander was taken from lia, who began it. It goes on once an " +
		"administrator gives the role back (mutirao role grant lia commander)"
	if in := tm.show("bea", st.ID).Incidents; len(in) != 1 || !strings.HasPrefix(in[0].What, want) {
		t.Errorf("incidents %+v, want that %s", in, want)
	}
	if list, err := tm.p["bea"].api.Instances(t.Context(), false); err != nil || len(list[0].Needs) != 1 ||
		list[0].Needs[0].Kind != "incident" {
		t.Errorf("it needs %+v, %v: want somebody for the incident", list, err)
	}
	untaken := func() (out []api.Message) {
		t.Helper()
		list, err := tm.p["bea"].api.Messages(t.Context(), api.MessagesQuery{User: "lia"})
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(list, func(m api.Message) bool { return m.Type != api.MessageUntaken })
	}
	told := untaken()
	if len(told) != 1 || !strings.HasPrefix(told[0].Text, want) || told[0].Instance != st.ID {
		t.Fatalf("lia is told %+v, want that %s", told, want)
	}
	pass(10 * time.Minute) // it is sent again, and refused again
	if again := untaken(); len(again) != 1 || again[0].ID != told[0].ID || !again[0].At.Equal(told[0].At) {
		t.Errorf("later lia is told %+v, before %+v", again, told)
	}
	for at, want := range map[string]string{"bea": want, "ana": "instances that a user began there who may not any more"} {
		d, err := tm.p[at].api.Doctor(t.Context())
		if err != nil || !slices.ContainsFunc(d.Findings, func(f api.Finding) bool {
			return f.State == api.FindingWarning && strings.Contains(f.What, want)
		}) {
			t.Errorf("doctor of %s: %+v, %v: want that %s", at, d, err, want)
		}
	}
	if n := len(tm.refused("ana", "bea")); n != 1 {
		t.Errorf("%d kinds of refusals, want one", n)
	}
	if cancelled {
		if err := tm.order("bea", "lia", st.ID, api.TaskCancel, ""); err != nil {
			t.Fatal(err)
		}
		tm.p["bea"].crash()
		tm.p["bea"].start()
		tm.connect("ana", "bea")
		pass(10 * time.Minute)
		if still, in := untaken(), tm.show("bea", st.ID); len(still) > 0 || len(in.Incidents) > 0 {
			t.Errorf("once it was cancelled lia is told %+v, and its incidents are %+v", still, in.Incidents)
		}
		return
	}
	if _, err := tm.p["ana"].api.GrantRole(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	pass(10 * time.Second)
	if n, in := tm.running("ana"), tm.show("bea", st.ID).Incidents; n != 1 || len(in) != 0 {
		t.Errorf("with the role ana has %d instances, and bea's has the incidents %+v", n, in)
	}
	if still := untaken(); len(still) > 0 {
		t.Errorf("with the role lia is told %+v", still)
	}
}

// A member that takes no part does not come to take part by assigning itself, and
// is told nothing.
func TestWhoTakesNoPartCannotBringItselfIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "ana", "bea", "mal")
		tm.add("ana", `
workflow: secret
data: {x: {type: string}}
tasks:
  a: {type: manual, out: [x]}
  b: {after: a, type: manual}
partitions: {pa: [a], pb: [b]}
`)
		id := tm.begin("ana", "secret", map[string]string{"pa": "ana", "pb": "bea"})
		l := tm.forger("mal", id)
		genesis := tm.headSent(l.id)
		slot := fact.AttemptID{Slot: "b"}
		l.says("ana", genesis, fact.Body{Assign: &fact.Assign{After: slot, Task: "b", Partner: l.p.id()}})
		l.tm.p["mal"].say(tm.p["ana"], &wire.Message{Heads: []wire.Heads{{Instance: l.id, Mode: wire.Ask}}})
		done := api.FinishRequest{ID: id, Task: "a", Outputs: map[string]string{"x": "the secret"}}
		if err := tm.p["ana"].api.FinishTask(t.Context(), done); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		told := tm.f.sent(func(c carried) bool {
			return c.to == l.p.id() && slices.ContainsFunc(c.m.Facts,
				func(f wire.Facts) bool { return f.Instance == l.id })
		})
		if len(told) > 0 {
			t.Errorf("mal was told of the instance in %d messages", len(told))
		}
		if n := tm.counter("ana", "refused.facts-from-no-participant"); n == 0 {
			t.Error("nothing was counted as refused")
		}
	})
}

// A key that is no member's has no share of anything: neither its instances nor its
// facts are taken in, no matter which member brings them, and the one that does is
// counted.
func TestFactsOfMadeUpKeysAreNotTakenIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "ana", "bea", "mal")
		tm.add("ana", chain)
		tm.p["ana"].hand.hold("a")
		id := tm.begin("ana", "chain", map[string]string{"pa": "ana", "pb": "bea", "pc": "mal"})
		l := tm.forger("mal", id)
		genesis := tm.headSent(l.id)
		facts := len(tm.log("ana", id))
		_, key, err := ed25519.GenerateKey(rand.NewChaCha8([32]byte{7}))
		if err != nil {
			t.Fatal(err)
		}
		nobody := node.Member{Key: key}
		l.key, l.chain.Author = nobody, nobody.ID()
		before := tm.counter("ana", "refused.facts-of-strangers")
		l.says("ana", genesis, fact.Body{Seen: &fact.Seen{}})
		if got := tm.counter("ana", "refused.facts-of-strangers") - before; got != 1 {
			t.Errorf("a fact of nobody's was refused %d times, want once", got)
		}
		if got := len(tm.log("ana", id)); got != facts {
			t.Errorf("ana has %d facts of the instance, want %d", got, facts)
		}
	})
}
