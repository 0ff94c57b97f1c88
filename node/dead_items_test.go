package node_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// crewed has what a boat holds, and something else in which the tablet takes part.
const crewed = `
workflow: crewed
tasks:
  look: {type: manual, role: nurse, offline: true}
  tell: {type: manual, after: look}
partitions:
  boat: {tasks: [look], partner: boat, timeout: 10m}
  desk: {tasks: [tell], partner: tablet}
`

// afloat is a mesh in which bia, at the tablet, may take what the boat holds, which is out of reach by now.
func afloat(t *testing.T) (tm *team, id, item string) {
	tm = newTeam(t, "base", "boat", "tablet")
	if err := tm.signIn("tablet", tm.addUser("base", "bia", "nurse")); err != nil {
		t.Fatal(err)
	}
	pass(time.Second)
	tm.add("base", crewed)
	id = tm.begin("base", "crewed", nil)
	pass(time.Second)
	tm.wantItems("tablet", "bia", "look READY")
	list := tm.items("tablet", "bia")
	if list[0].Unreachable {
		t.Errorf("the boat is in reach: %+v", list[0])
	}
	tm.disconnect("base", "boat")
	tm.disconnect("boat", "tablet")
	pass(time.Second)
	return tm, id, list[0].ID
}

// What a partner held that is gone for good is offered to nobody, and whoever asks for it is not told to wait.
func TestWhatAnEvictedPartnerHeldIsNotOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _, item := afloat(t)
		tm.wantItems("tablet", "bia", "look READY")
		if x := tm.items("tablet", "bia")[0]; !x.Unreachable {
			t.Errorf("it is not said that it cannot be taken now: %+v", x)
		}
		if _, err := tm.p["base"].api.Evict(t.Context(), api.EvictRequest{Partner: "boat"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.wantItems("tablet", "bia")
		wantCode(t, tm.claim("tablet", "bia", api.ClaimSelect, item), api.Refused, "boat, who holds look, is gone for good")
	})
}

// What is known here to be over is not offered any more, though its holder said before that it is free and cannot be asked.
func TestWhatIsJudgedIsNotOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, _ := afloat(t)
		pass(30 * time.Minute)
		if got := tm.state("tablet", id); got != workflow.InstanceBlocked {
			t.Fatalf("the instance is %s", got)
		}
		tm.wantItems("tablet", "bia")
	})
}

// What a user did of an item whose holder is evicted meanwhile waits for nobody: it stays in the outbox with why, and
// can be dropped.
func TestWhatWaitsForWhoIsGoneForGoodIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "hq", "base:nurse", "tablet")
		if err := tm.signIn("tablet", tm.addUser("hq", "bia", "nurse")); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.add("hq", strings.Replace(rota, "role: nurse, out", "role: nurse, offline: true, out", 1))
		tm.begin("hq", "rota", nil)
		pass(time.Second)
		item := tm.items("tablet", "bia")[0].ID
		if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
			t.Fatal(err)
		}
		tm.disconnect("base", "tablet")
		tm.disconnect("base", "hq")
		if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "3"}); err != nil {
			t.Fatal(err)
		}
		tm.wantOutbox("tablet", "bia|weigh|completed|base")
		tm.expel("hq", "base")
		pass(time.Minute)
		const why = "base, who held it, is gone for good and takes nothing any more"
		tm.wantOutbox("tablet", "bia|weigh|completed||"+why)
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		pass(time.Minute)
		tm.wantOutbox("tablet", "bia|weigh|completed||"+why)
		tm.wantKeptAlone("tablet", 1)
		out, err := tm.p["tablet"].api.Outbox(t.Context(), "bia")
		if err != nil || len(out) != 1 || out[0].Outputs["weight"] != "3" {
			t.Fatalf("the outbox is %+v, %v", out, err)
		}
		if _, err := tm.p["tablet"].api.DropRefused(t.Context(), api.DropRequest{ID: out[0].ID}); err != nil {
			t.Error(err)
		}
		tm.wantOutbox("tablet")
		tm.wantKeptAlone("tablet", 0)
	})
}

// wantKeptAlone checks of how many refused results a node that is to leave says that nobody else has them.
func (tm *team) wantKeptAlone(at string, want int) {
	tm.t.Helper()
	for _, forGood := range []bool{false, true} {
		l, err := tm.p[at].api.Leave(tm.t.Context(), api.LeaveRequest{ForGood: forGood, Check: true})
		if err != nil || l.Kept != want {
			tm.t.Errorf("%s, which is to leave, says %+v, %v; want %d kept", at, l, err, want)
		}
	}
}
