package node_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// rota is a plan that base runs; its tasks are for nurses, wherever they are.
const rota = `
workflow: rota
data:
  weight: {type: integer}
tasks:
  weigh: {type: manual, role: nurse, out: [weight]}
  feed:  {type: manual, role: nurse, after: weigh}
partitions: {ward: {tasks: [weigh, feed], partner: base}}
`

// items are the worklist of a user at a node.
func (tm *team) items(at, user string) []api.Item {
	tm.t.Helper()
	list, err := tm.p[at].api.Worklist(tm.t.Context(), api.WorklistQuery{User: user})
	if err != nil {
		tm.t.Fatal(err)
	}
	return list
}

// wantItems demands the tasks of a worklist with their states.
func (tm *team) wantItems(at, user string, want ...string) {
	tm.t.Helper()
	var got []string
	for _, x := range tm.items(at, user) {
		got = append(got, x.Task+" "+x.State)
	}
	if !slices.Equal(got, want) {
		tm.t.Errorf("the worklist of %s at %s is %q, want %q", user, at, got, want)
	}
}

func (tm *team) claim(at, user, claim, item string) error {
	tm.t.Helper()
	_, err := tm.p[at].api.ClaimItems(tm.t.Context(),
		api.ClaimRequest{User: user, Claim: claim, Items: []string{item}})
	synctest.Wait()
	return err
}

func (tm *team) hand(at, user, item string, outputs map[string]string) error {
	tm.t.Helper()
	_, err := tm.p[at].api.FinishItem(tm.t.Context(), api.ItemResult{User: user, Item: item, Outputs: outputs})
	synctest.Wait()
	return err
}

// signInNurses has bia be at the tablet, and ana at base, both nurses.
func (tm *team) signInNurses() {
	tm.t.Helper()
	for at, user := range map[string]string{"tablet": "bia", "base": "ana"} {
		if err := tm.signIn(at, tm.addUser("base", user, "nurse")); err != nil {
			tm.t.Fatal(err)
		}
	}
	pass(time.Second)
}

// wantCode demands an error of a code that says something.
func wantCode(t *testing.T, err error, code api.Code, text string) {
	t.Helper()
	var e *api.Error
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Message, text) {
		t.Errorf("the error is %v, want %s with %q", err, code, text)
	}
}

// nurses is a mesh in which bia is signed in at the tablet and the phone, neither of which takes
// part in an instance of rota that base runs; ana is a nurse at base.
func nurses(t *testing.T) (tm *team, id string) {
	tm = newTeam(t, "base:nurse", "tablet", "phone")
	tm.signInNurses()
	tm.add("base", rota)
	st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "rota"})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return tm, st.ID
}

// What was handed in is not handed in once more, as when the answer was lost and the node was started again meanwhile:
// nothing is written down, and nothing is kept beside what counts.
func TestAResultHandedInTwiceOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := nurses(t)
		for _, node := range []string{"base", "tablet"} {
			user := map[string]string{"base": "ana", "tablet": "bia"}[node]
			item := tm.items(node, user)[0].ID
			if err := tm.claim(node, user, api.ClaimSelect, item); err != nil {
				t.Fatal(err)
			}
			r := api.ItemResult{User: user, Item: item, Outputs: map[string]string{}}
			if _, err := tm.p[node].api.FinishItem(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			tm.p["base"].crash()
			tm.p["tablet"].crash()
			tm.p["base"].start()
			tm.p["tablet"].start()
			tm.connect("base", "tablet")
			tm.connect("base", "phone")
			pass(5 * time.Second)
			facts := len(tm.log("base", id))
			_, err := tm.p[node].api.FinishItem(t.Context(), r)
			if node == "tablet" { // base has it still, and answers as it did
				wantCode(t, err, api.NotFound, "there is no item")
			} else if err != nil {
				t.Error(err)
			}
			if in := tm.show("base", id); len(in.Incidents) > 0 || len(tm.log("base", id)) != facts {
				t.Errorf("there is kept %+v, and there are %d facts, were %d", in.Incidents, len(tm.log("base", id)), facts)
			}
		}
		if got := tm.stateOf("base", id, "feed"); got != "SUCCEEDED succeeded" {
			t.Errorf("feed is %s", got)
		}
	})
}

// Two users on two nodes: what one takes the other does not see, until it is given back; what
// one hands in ends the task, with its data.
func TestTwoUsersOneItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := nurses(t)
		tm.wantItems("tablet", "bia", "weigh READY")
		tm.wantItems("base", "ana", "weigh READY")
		tm.wantItems("base", "base", "weigh READY") // a partner is a user
		tm.wantItems("phone", "phone")
		item := tm.items("tablet", "bia")[0].ID
		if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		tm.wantItems("tablet", "bia", "weigh SELECTED")
		tm.wantItems("base", "ana")
		wantCode(t, tm.claim("base", "ana", api.ClaimSelect, item), api.Refused, "bia has the task weigh")
		wantCode(t, tm.claim("base", "ana", api.ClaimRelease, item), api.Refused, "bia has the task weigh, not ana")
		wantCode(t, tm.claim("tablet", "bia", api.ClaimLock, item), api.Refused, "may not be done offline")
		wantCode(t, tm.p["base"].api.FinishTask(t.Context(), api.FinishRequest{ID: id, Task: "weigh"}), api.Refused,
			"bia has the task weigh")
		if got := tm.show("base", id).Tasks[0].ClaimedBy; got != "bia" {
			t.Errorf("it is shown to be claimed by %q", got)
		}

		// What base wrote down outlives its crash.
		tm.p["base"].crash()
		tm.p["base"].start()
		tm.connect("base", "tablet")
		pass(time.Second)
		tm.wantItems("tablet", "bia", "weigh SELECTED")
		if err := tm.claim("tablet", "bia", api.ClaimRelease, item); err != nil {
			t.Fatal(err)
		}
		tm.wantItems("base", "ana", "weigh READY")
		wantCode(t, tm.hand("tablet", "bia", item, map[string]string{"weight": "3"}), api.Refused,
			"does not count, as the item was given back; it is kept")
		if err := tm.claim("base", "ana", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		wantCode(t, tm.hand("base", "ana", item, map[string]string{"weight": "heavy"}), api.Invalid,
			"not a whole number")
		if err := tm.hand("base", "ana", item, map[string]string{"weight": "4"}); err != nil {
			t.Fatal(err)
		}
		in := tm.show("base", id)
		if in.Data["weight"] != int64(4) || in.Tasks[0].State != workflow.Succeeded {
			t.Errorf("weigh is %s, weight %v", in.Tasks[0].State, in.Data["weight"])
		}
		if by := in.Tasks[0].PerformedBy; by != "ana" || in.Tasks[0].ClaimedBy != "" {
			t.Errorf("it is shown as performed by %q", by)
		}
		if !slices.ContainsFunc(in.Incidents, func(i api.Incident) bool {
			return strings.Contains(i.What, `a result of bia is kept and does not count`) &&
				strings.Contains(i.What, "weight = 3")
		}) {
			t.Errorf("what bia made is not shown: %+v", in.Incidents)
		}
		log, err := tm.p["base"].api.Log(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, e := range log[1:] {
			said = append(said, e.Text)
		}
		want := []string{
			"given to bia (select)", "given back by bia", "result of bia: weight = 3", "given to ana (select)",
			"result of ana: weight = 4", "its item is closed with that result", "started", "succeeded: weight = 4",
		}
		if !slices.Equal(said, want) {
			t.Errorf("the log says %q", said)
		}
	})
}

// Many ask for one item at once, over several nodes: one gets it, the others are told who.
func TestManyAskAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := nurses(t)
		if err := tm.signIn("phone", tm.addUser("base", "rui", "nurse")); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		item := tm.items("tablet", "bia")[0].ID
		var got sync.Map
		var asked sync.WaitGroup
		for user, at := range map[string]string{"bia": "tablet", "ana": "base", "rui": "phone", "base": "base"} {
			asked.Go(func() {
				_, err := tm.p[at].api.ClaimItems(t.Context(),
					api.ClaimRequest{User: user, Claim: api.ClaimSelect, Items: []string{item}})
				got.Store(user, err)
			})
		}
		asked.Wait()
		winners := 0
		got.Range(func(user, err any) bool {
			if err == nil {
				winners++
				if by := tm.show("base", id).Tasks[0].ClaimedBy; by != user {
					t.Errorf("%s was told that it has the item, which %s has", user, by)
				}
			} else {
				wantCode(t, err.(error), api.Refused, "has ")
			}
			return true
		})
		if winners != 1 {
			t.Errorf("%d have the item", winners)
		}
	})
}

// Three users on three devices, each of which holds ten tasks, lock thirty items at once: each item is had by exactly
// one, whoever was told so; each user's list and what every device shows of the instance say the same.
func TestThirtyItemsAreLockedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		users := map[string]string{"bia": "tablet", "ana": "base", "rui": "phone"}
		tm := newTeam(t, "base:nurse", "tablet:nurse", "phone:nurse")
		for user, at := range users {
			if err := tm.signIn(at, tm.addUser("base", user, "nurse")); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Second)
		tm.add("base", thirty())
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "thirty"})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		shown := map[string][]api.Item{}
		for user, at := range users {
			if shown[user] = tm.items(at, user); len(shown[user]) != 30 {
				t.Fatalf("%s is shown %d items", user, len(shown[user]))
			}
		}
		var asked sync.WaitGroup
		var told sync.Map // the user who was told to have an item, by its task
		for user, at := range users {
			for _, x := range shown[user] {
				asked.Go(func() {
					_, err := tm.p[at].api.ClaimItems(t.Context(),
						api.ClaimRequest{User: user, Claim: api.ClaimLock, Items: []string{x.ID}})
					if err != nil {
						wantCode(t, err, api.Refused, " has ")
						return
					}
					if other, twice := told.LoadOrStore(x.Task, user); twice {
						t.Errorf("%s and %s are told that they have %s", user, other, x.Task)
					}
				})
			}
		}
		asked.Wait()
		pass(time.Second)
		listed := map[string]string{}
		for user, at := range users {
			for _, x := range tm.items(at, user) {
				if other := listed[x.Task]; x.State != api.ItemLocked || other != "" {
					t.Errorf("the list of %s has %s as %s; of %q it is too", user, x.Task, x.State, other)
				}
				listed[x.Task] = user
			}
		}
		for _, at := range users {
			for _, x := range tm.show(at, st.ID).Tasks {
				task := string(x.Name)
				had, _ := told.Load(task)
				if had == nil || x.ClaimedBy != had || listed[task] != had {
					t.Errorf("%s shows that %q has %s, whose list is that of %q; %v was told so", at, x.ClaimedBy, task,
						listed[task], had)
				}
			}
		}
	})
}

// thirty is a plan of thirty tasks that nurses may lock, ten of which each of three partners holds.
func thirty() string {
	tasks, places := "workflow: thirty\ntasks:\n", "partitions:\n"
	for _, at := range []string{"base", "tablet", "phone"} {
		var of []string
		for n := range 10 {
			of = append(of, fmt.Sprintf("%s-%d", at, n))
			tasks += fmt.Sprintf("  %s-%d: {type: manual, role: nurse, offline: true}\n", at, n)
		}
		places += fmt.Sprintf("  at-%s: {tasks: [%s], partner: %s}\n", at, strings.Join(of, ", "), at)
	}
	return tasks + places
}

// A holder that cannot make a grant durable gives none; who cannot be asked is not waited for.
func TestNoGrantBeforeItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t)
		item := tm.items("tablet", "bia")[0].ID
		tm.p["base"].disk.failWith(kv.ErrFull)
		if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err == nil {
			t.Error("an item is taken that is written down nowhere")
		}
		tm.p["base"].disk.failWith(nil)
		tm.p["base"].crash()
		tm.p["base"].start()
		tm.connect("base", "tablet")
		pass(time.Minute)
		tm.wantItems("base", "ana", "weigh READY")
		tm.disconnect("base", "tablet")
		synctest.Wait()
		pass(10 * time.Minute)
		tm.wantItems("tablet", "bia", "weigh READY")
		if x := tm.items("tablet", "bia")[0]; !strings.Contains(x.Known, "min ago") {
			t.Errorf("it is not said how old that is: %+v", x)
		}
		wantCode(t, tm.claim("tablet", "bia", api.ClaimSelect, item), api.Refused,
			"base, who holds weigh, cannot be asked now")
	})
}

// A user who is removed, or loses the role, loses the item; others may take it.
func TestARemovedUserLosesItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := nurses(t)
		item := tm.items("tablet", "bia")[0].ID
		if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		if _, err := tm.p["base"].api.RevokeRole(t.Context(), api.RoleRequest{User: "bia", Role: "nurse"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		tm.wantItems("base", "ana", "weigh READY")
		tm.wantItems("tablet", "bia")
		wantCode(t, tm.claim("tablet", "bia", api.ClaimSelect, item), api.NotAllowed, "for the role nurse")
		if said := lines(tm.log("base", id)); !strings.Contains(said, "taken back from bia: its user is no longer entitled") {
			t.Errorf("that bia lost it is said as %s", said)
		}
		if err := tm.claim("base", "ana", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		if _, err := tm.p["base"].api.RemoveUser(t.Context(), "ana"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if by := tm.show("base", id).Tasks[0].ClaimedBy; by != "" {
			t.Errorf("%s has an item, and was removed", by)
		}
	})
}

// What a user did out of reach, who was removed meanwhile, is kept as any result too late, and can be adopted; it ends
// nothing, and its device is not blamed. The user can say nothing else, nor bring anything by a key that was removed.
func TestTheResultOfARemovedUserIsKept(t *testing.T) {
	for _, key := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tm, id := nurses(t)
			tm.add("base", strings.Replace(strings.Replace(rota, "rota", "round", 1), "role: nurse, out",
				"role: nurse, offline: true, out", 1))
			if err := tm.p["base"].api.Cancel(t.Context(), id, "another"); err != nil {
				t.Fatal(err)
			}
			st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "round"})
			if err != nil {
				t.Fatal(err)
			}
			id = st.ID
			synctest.Wait()
			item := tm.items("tablet", "bia")[0].ID
			if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
				t.Fatal(err)
			}
			bia := tm.user("base", "bia")
			tm.disconnect("base", "tablet")
			synctest.Wait()
			if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "4"}); err != nil {
				t.Fatal(err)
			}
			gone := []string{"bia"}
			if key {
				gone = []string{bia.Keys[0].ID, "bia"}
			}
			for _, who := range gone {
				if _, err := tm.p["base"].api.RemoveUser(t.Context(), who); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
			}
			tm.connect("base", "tablet")
			pass(time.Minute)
			box, err := tm.p["tablet"].api.Outbox(t.Context(), "")
			if err != nil || len(box) != 1 {
				t.Fatal(box, err)
			}
			in := tm.show("base", id)
			kept := slices.IndexFunc(in.Incidents, func(x api.Incident) bool { return x.Result != "" })
			if key {
				if kept >= 0 || !strings.Contains(box[0].Refused, "removed") {
					t.Errorf("it is kept, though by a key that was removed: %+v, %+v", in.Incidents, box)
				}
				return
			}
			if kept < 0 || !strings.Contains(box[0].Refused, "it is kept there") {
				t.Fatalf("it is not kept: %+v, %+v", in.Incidents, box)
			}
			if in.Tasks[0].State == workflow.Succeeded {
				t.Error("it counts")
			}
			for _, r := range tm.refused("base", "tablet") {
				t.Errorf("its device is blamed for %s", r.Reason)
			}
			if err := tm.claim("base", "base", api.ClaimSelect, item); err != nil {
				t.Fatal(err)
			}
			if _, err := tm.p["base"].api.AdoptResult(t.Context(),
				api.AdoptRequest{ID: id, Result: in.Incidents[kept].Result}); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			const lost = "lost: weigh is no longer yours, as a result was adopted"
			if got := tm.messages("base", "base"); !slices.ContainsFunc(got,
				func(m string) bool { return strings.Contains(m, lost) }) {
				t.Errorf("base, who had it, is told %q", got)
			}
			if in := tm.show("base", id); in.Tasks[0].State != workflow.Succeeded || in.Data["weight"] != int64(4) {
				t.Errorf("adopted it is %s, with %v", in.Tasks[0].State, in.Data)
			}
		})
	}
}

// What a member brings in the name of somebody who is not at its node is refused, and counted;
// so is what nobody signed.
func TestNobodySpeaksForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := nurses(t)
		bia := tm.user("base", "bia").ID
		req, err := wire.EncodeItems(wire.Items{User: bia})
		if err != nil {
			t.Fatal(err)
		}
		to := tm.p["base"].id()
		if _, err := tm.p["tablet"].plug.Request(t.Context(), to, nil, "/mutirao/items/1.0.0", req); err != nil {
			t.Errorf("bia's own device is refused: %v", err)
		}
		if _, err := tm.p["phone"].plug.Request(t.Context(), to, nil, "/mutirao/items/1.0.0", req); err == nil {
			t.Error("phone is shown the items of bia, who is not there")
		}
		forged, err := wire.EncodeSpoken(wire.Spoken{Instance: instance(t, id), Says: []byte{0xa0}, Word: []byte{0xa0}})
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			if b, err := tm.p["phone"].plug.Request(t.Context(), to, nil, "/mutirao/claim/1.0.0", forged); err == nil &&
				!strings.Contains(string(b), "refusal") {
				t.Fatalf("a word that nobody said is answered with %s", b)
			}
		}
		counted := map[string]bool{}
		for _, r := range tm.refused("base", "phone") {
			counted[r.Reason] = true
		}
		for _, want := range []string{"items-of-others", "words-of-others", "words-too-fast"} {
			if !counted[want] {
				t.Errorf("%s is not counted: %v", want, counted)
			}
		}
		if log, err := tm.p["base"].api.Log(t.Context(), id); err != nil || len(log) != 1 {
			t.Errorf("the log has %d facts, %v", len(log), err)
		}
	})
}

// A role that no partner has, and a user does: the instance starts, the task waits at its holder, and
// the user's result ends it, although the holder may not do it itself.
func TestARoleThatOnlyAUserHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "tablet")
		if err := tm.signIn("tablet", tm.addUser("base", "bia", "nurse")); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.add("base", rota)
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "rota"})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		tm.wantItems("tablet", "bia", "weigh READY")
		tm.wantItems("base", "base")
		if list, err := tm.p["base"].api.Instances(t.Context(), false); err != nil || len(list) != 1 ||
			len(list[0].Needs) > 0 {
			t.Errorf("the instance needs somebody: %+v, %v", list, err)
		}
		for _, task := range []string{"weigh", "feed"} {
			item := tm.items("tablet", "bia")[0].ID
			if err := errors.Join(tm.claim("tablet", "bia", api.ClaimSelect, item),
				tm.hand("tablet", "bia", item, nil)); err != nil {
				t.Fatalf("%s: %v", task, err)
			}
		}
		tm.succeeds(st.ID, time.Minute, "base")
	})
}

// outbox is what waits at a node to be handed in.
func (tm *team) outbox(at string) (out []string) {
	tm.t.Helper()
	list, err := tm.p[at].api.Outbox(tm.t.Context(), "")
	if err != nil {
		tm.t.Fatal(err)
	}
	for _, x := range list {
		waits := strings.Join(x.WaitsFor, ",")
		if len(x.Awaits) > 0 {
			waits += " has it, after " + strings.Join(x.Awaits, ",")
		}
		out = append(out, strings.TrimSuffix(strings.Join([]string{x.User, x.Task, x.What, waits, x.Refused}, "|"), "|"))
	}
	return out
}

func (tm *team) wantOutbox(at string, want ...string) {
	tm.t.Helper()
	if got := tm.outbox(at); !slices.Equal(got, want) {
		tm.t.Errorf("the outbox of %s is %q, want %q", at, got, want)
	}
}

// offline is a mesh in which bia, at the tablet, has locked what base holds, and is out of reach.
func offline(t *testing.T) (tm *team, id, item string) { return offlineWith(t, true) }

// offlineWith is offline, where the tablet may not know what a result may set: its holder did not say.
func offlineWith(t *testing.T, sheet bool) (tm *team, id, item string) {
	tm = newTeam(t, "base:nurse", "tablet")
	tm.signInNurses()
	tm.add("base", strings.Replace(rota, "role: nurse, out", "role: nurse, offline: true, out", 1))
	st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "rota"})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	item = tm.items("tablet", "bia")[0].ID
	if !sheet {
		plug := tm.p["base"].plug
		plug.HandleRequest(worklists.ProtocolItem, false,
			func(workflow.PartnerID, []byte) ([]byte, error) { return nil, io.ErrClosedPipe })
		claim := plug.handlers[worklists.ProtocolClaim]
		plug.HandleRequest(worklists.ProtocolClaim, false, func(p workflow.PartnerID, req []byte) ([]byte, error) {
			b, err := claim(p, req)
			var said map[string]any
			if err == nil && json.Unmarshal(b, &said) == nil {
				delete(said, "got") // nor with what it gives
				b, err = json.Marshal(said)
			}
			return b, err
		})
	}
	if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
		t.Fatal(err)
	}
	tm.disconnect("base", "tablet")
	pass(time.Minute)
	return tm, st.ID, item
}

// A locked item is done out of reach; that outlives a crash of the device, and is handed in by itself.
func TestALockedItemIsDoneOutOfReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, item := offline(t)
		tm.wantItems("tablet", "bia", "weigh LOCKED")
		if x := tm.items("tablet", "bia")[0]; x.Known == "" {
			t.Errorf("it is not said how old that is: %+v", x)
		}
		if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "3"}); err != nil {
			t.Fatal(err)
		}
		tm.wantItems("tablet", "bia", "weigh DONE")
		tm.wantOutbox("tablet", "bia|weigh|completed|base")
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		pass(time.Minute)
		tm.wantItems("tablet", "bia", "weigh DONE")
		if in := tm.show("base", id); in.Tasks[0].State != workflow.Ready || in.Tasks[0].ClaimedBy != "bia" {
			t.Errorf("meanwhile it is %s, with %q", in.Tasks[0].State, in.Tasks[0].ClaimedBy)
		}
		tm.connect("base", "tablet")
		pass(time.Minute)
		tm.wantOutbox("tablet")
		tm.wantItems("tablet", "bia", "feed READY")
		if in := tm.show("base", id); in.Data["weight"] != int64(3) || in.Tasks[0].State != workflow.Succeeded {
			t.Errorf("weigh is %s, weight %v", in.Tasks[0].State, in.Data["weight"])
		}
	})
}

// Out of reach of its holder only what is locked can be done: what is selected is refused, and waits in no outbox.
func TestOnlyWhatIsLockedIsDoneOutOfReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		_, selected := tm.rounds("visits", nil)
		_, locked := tm.rounds("visits", nil)
		if err := errors.Join(tm.claim("tablet", "bia", api.ClaimSelect, selected),
			tm.claim("tablet", "bia", api.ClaimLock, locked)); err != nil {
			t.Fatal(err)
		}
		tm.disconnect("base", "tablet")
		synctest.Wait()
		wantCode(t, tm.hand("tablet", "bia", selected, nil), api.Refused, "base, who holds visit, cannot be asked now")
		tm.wantOutbox("tablet")
		if err := tm.hand("tablet", "bia", locked, nil); err != nil {
			t.Error(err)
		}
		tm.wantOutbox("tablet", "bia|visit|completed|base")
	})
}

// What a user has ended, and its holder has written down, does not come back as locked when that holder cannot be asked
// any more: what it said before, that the user has the item, is older.
func TestWhatIsEndedDoesNotComeBack(t *testing.T) {
	for _, away := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			tm, _, item := offline(t)
			tm.wantItems("tablet", "bia", "weigh LOCKED")
			if !away {
				tm.connect("base", "tablet")
				pass(time.Minute)
				tm.wantItems("tablet", "bia", "weigh LOCKED")
			}
			if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "3"}); err != nil {
				t.Fatal(err)
			}
			if away {
				tm.connect("base", "tablet")
				pass(time.Minute)
				tm.wantOutbox("tablet")
			}
			tm.disconnect("base", "tablet")
			pass(time.Minute)
			for _, x := range tm.items("tablet", "bia") {
				if x.Task == "weigh" {
					t.Errorf("handed in out of reach: %t; weigh was ended, and is listed as %s", away, x.State)
				}
			}
		})
	}
}

// What was done out of reach and cannot be taken stays, with the reason, until it is mended; what
// comes too late is kept by the holder, and its author is told.
func TestWhatWasDoneOutOfReachIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, item := offlineWith(t, false)
		if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "heavy"}); err != nil {
			t.Fatal(err)
		}
		tm.connect("base", "tablet")
		pass(time.Minute)
		if got := tm.outbox("tablet"); len(got) != 1 || !strings.Contains(got[0], "not a whole number") {
			t.Errorf("the outbox is %q", got)
		}
		tm.wantItems("tablet", "bia", "weigh LOCKED")
		tm.disconnect("base", "tablet")
		synctest.Wait()
		if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "3"}); err != nil {
			t.Fatal(err)
		}
		heavy := tm.drop("tablet", "bia", 0)
		if heavy.Outputs["weight"] != "heavy" {
			t.Errorf("what was dropped is %+v", heavy)
		}
		pass(8 * 24 * time.Hour) // the lease is over
		if err := tm.claim("base", "ana", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		tm.connect("base", "tablet")
		pass(time.Minute)
		tm.wantOutbox("tablet", "bia|weigh|completed||it does not count, as its lease is over; it is kept there")
		tm.wantItems("tablet", "bia")
		if in := tm.show("base", id); in.Tasks[0].ClaimedBy != "ana" || len(in.Incidents) != 1 {
			t.Errorf("weigh is with %q, incidents %+v", in.Tasks[0].ClaimedBy, in.Incidents)
		}
		pass(8 * 24 * time.Hour) // it stays until its user drops it
		tm.drop("tablet", "bia", 0)
		tm.wantOutbox("tablet")
	})
}

// Out of reach of its holder a result is checked by what is kept of the item: by the types of what it may set, their
// bounds, and by the names. What is wrong is said while its user can mend it, and is not in the outbox.
func TestAWrongResultIsRefusedOutOfReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		tm.add("base", `
workflow: meals
data:
  weight: {type: integer, min: 1, max: 30}
  food: {type: number, enum: [1, 1.5, 2]}
  sex: {type: string, enum: [f, m]}
  other: {type: string}
tasks: {weigh: {type: manual, role: nurse, offline: true, out: [weight, food, sex]}}
partitions: {home: {tasks: [weigh], partner: base}}
`)
		id, item := tm.rounds("meals", nil)
		if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
			t.Fatal(err)
		}
		tm.goesAway("tablet")
		for says, out := range map[string]map[string]string{
			`"abc" is not a whole number`:      {"weight": "abc"},
			"31 is not in the range 1 to 30":   {"weight": "31"},
			`"1,5" is not a number`:            {"weight": "3", "food": "1,5"},
			"3 is not one of 1, 1.5, 2":        {"food": "3"},
			"x is not one of f, m":             {"sex": "x"},
			`its result may not set "other"`:   {"weight": "3", "other": "a"},
			`its result may not set "nothing"`: {"nothing": "1"},
		} {
			wantCode(t, tm.hand("tablet", "bia", item, out), api.Invalid, says)
		}
		tm.wantOutbox("tablet")
		tm.wantItems("tablet", "bia", "weigh LOCKED")
		if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "3", "food": "1.5", "sex": "f"}); err != nil {
			t.Fatal(err)
		}
		tm.comesBack("tablet", "base")
		if in := tm.show("base", id); in.Data["weight"] != int64(3) || in.Data["food"] != 1.5 || in.Data["sex"] != "f" {
			t.Errorf("the data are %v", in.Data)
		}
	})
}

// The outbox calls what was handed in as the form did in which it was typed: by its label, or by what is said of it in
// short.
func TestTheOutboxCallsDataAsTheFormDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		tm.add("base", `
workflow: meals
data:
  weight: {type: integer, label: Weight in kg}
  food: {type: string, doc: What it ate}
  sex: {type: string}
tasks: {weigh: {type: manual, role: nurse, offline: true, out: [weight, food, sex]}}
partitions: {home: {tasks: [weigh], partner: base}}
`)
		_, item := tm.rounds("meals", nil)
		if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
			t.Fatal(err)
		}
		tm.goesAway("tablet")
		if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "3", "food": "hay", "sex": "f"}); err != nil {
			t.Fatal(err)
		}
		list, err := tm.p["tablet"].api.Outbox(t.Context(), "bia")
		want := map[string]string{"weight": "Weight in kg", "food": "What it ate"}
		if err != nil || len(list) != 1 || !maps.Equal(list[0].DataLabels, want) {
			t.Errorf("the outbox has %+v, %v", list, err)
		}
	})
}

// What waits to be handed in can be mended: the new result takes its place, and what it does not name, as a photo, is
// as it was given before. That it failed after all takes the place of all of it.
func TestWhatIsMendedOutOfReachKeepsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		tm.add("base", `
workflow: meals
data: {weight: {type: integer}, pic: {type: file}, note: {type: string}}
tasks: {weigh: {type: manual, role: nurse, offline: true, out: [weight, pic, note]}}
partitions: {home: {tasks: [weigh], partner: base}}
`)
		id, item := tm.rounds("meals", nil)
		f, err := tm.p["tablet"].api.PutFile(t.Context(), "pic.txt", strings.NewReader("a photo"))
		if err != nil {
			t.Fatal(err)
		}
		if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
			t.Fatal(err)
		}
		tm.goesAway("tablet")
		for _, out := range []map[string]string{
			{"weight": "3", "pic": f.Value}, {"note": "asleep"}, {"weight": "4"},
		} {
			if err := tm.hand("tablet", "bia", item, out); err != nil {
				t.Fatal(err)
			}
		}
		tm.wantOutbox("tablet", "bia|weigh|completed|base")
		tm.comesBack("tablet", "base")
		in := tm.show("base", id)
		if in.Data["weight"] != int64(4) || in.Data["note"] != "asleep" || in.Data["pic"] != f.Value {
			t.Errorf("the data are %v", in.Data)
		}
	})
}

// What a user gives of one item by two forms at one moment, out of reach, is kept from both.
func TestOfTwoResultsAtOneMomentBothAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		tm.add("base", `
workflow: meals
data: {weight: {type: integer}, height: {type: integer}}
tasks: {weigh: {type: manual, role: nurse, offline: true, out: [weight, height]}}
partitions: {home: {tasks: [weigh], partner: base}}
`)
		_, item := tm.rounds("meals", nil)
		if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
			t.Fatal(err)
		}
		tm.goesAway("tablet")
		for i := range 50 {
			gives := map[string]string{"weight": strconv.Itoa(i), "height": strconv.Itoa(i)}
			var both sync.WaitGroup
			for name, value := range gives {
				both.Go(func() {
					_, err := tm.p["tablet"].api.FinishItem(t.Context(),
						api.ItemResult{User: "bia", Item: item, Outputs: map[string]string{name: value}})
					if err != nil {
						t.Error(err)
					}
				})
			}
			both.Wait()
			out, err := tm.p["tablet"].api.Outbox(t.Context(), "")
			if err != nil || len(out) != 1 || !maps.Equal(out[0].Outputs, gives) {
				t.Fatalf("of %v there is %+v, %v", gives, out, err)
			}
		}
	})
}

// A list of instances counts as many incidents as the instance shows, also where a result is kept that nobody can adopt.
func TestAListCountsTheIncidentsThatAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, item := offline(t)
		if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "3"}); err != nil {
			t.Fatal(err)
		}
		if _, err := tm.p["base"].api.TransferItem(t.Context(),
			api.TransferRequest{User: "ana", Item: item, Back: true}); err != nil {
			t.Fatal(err)
		}
		if err := tm.claim("base", "ana", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		if err := tm.hand("base", "ana", item, map[string]string{"weight": "4"}); err != nil {
			t.Fatal(err)
		}
		tm.connect("base", "tablet")
		pass(time.Minute)
		list, err := tm.p["base"].api.Instances(t.Context(), true)
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		counted, in := 0, tm.show("base", id)
		for _, n := range list[0].Needs {
			if n.Kind == "incident" {
				counted += n.Number
			}
		}
		if len(in.Incidents) != 1 || len(in.Incidents[0].Commands) > 0 || counted != len(in.Incidents) {
			t.Errorf("the list counts %d incidents, want one that nobody can adopt: %+v", counted, in.Incidents)
		}
	})
}

// A result that came too late and may be adopted is among what needs a person, until that is decided.
func TestAKeptResultNeedsAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, item := offline(t)
		if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "3"}); err != nil {
			t.Fatal(err)
		}
		needs := func() []api.Need {
			list, err := tm.p["base"].api.Instances(t.Context(), false)
			if err != nil || len(list) != 1 {
				t.Fatalf("%+v, %v", list, err)
			}
			return list[0].Needs
		}
		if _, err := tm.p["base"].api.TransferItem(t.Context(),
			api.TransferRequest{User: "ana", Item: item, Back: true}); err != nil {
			t.Fatal(err)
		}
		if n := needs(); len(n) > 0 {
			t.Errorf("before it came: %+v", n)
		}
		tm.connect("base", "tablet")
		pass(time.Minute)
		n := needs()
		if len(n) != 1 || n[0].Kind != "incident" || n[0].Number != 1 || !slices.Equal(n[0].Tasks, []workflow.TaskName{"weigh"}) {
			t.Errorf("a result is kept: %+v", n)
		}
		in := tm.show("base", id)
		if _, err := tm.p["base"].api.AdoptResult(t.Context(),
			api.AdoptRequest{ID: id, Result: in.Incidents[0].Result}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if n := needs(); len(n) > 0 {
			t.Errorf("it was adopted: %+v", n)
		}
	})
}

// Of a refused result it is said how it is adopted only while it can be: not once its task is done, whether that was so
// when it was brought, or came later.
func TestOnlyWhatCanBeAdoptedIsSaidToBe(t *testing.T) {
	for _, before := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			tm, id, item := offline(t)
			if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "3"}); err != nil {
				t.Fatal(err)
			}
			if _, err := tm.p["base"].api.TransferItem(t.Context(),
				api.TransferRequest{User: "ana", Item: item, Back: true}); err != nil {
				t.Fatal(err)
			}
			does := func() {
				if err := errors.Join(tm.claim("base", "ana", api.ClaimSelect, item),
					tm.hand("base", "ana", item, map[string]string{"weight": "4"})); err != nil {
					t.Fatal(err)
				}
			}
			result := func() string {
				box, err := tm.p["tablet"].api.Outbox(t.Context(), "bia")
				if err != nil || len(box) != 1 || !strings.HasSuffix(box[0].Refused, "it is kept there") {
					t.Fatalf("bia did %+v, %v", box, err)
				}
				return box[0].Result
			}
			if before {
				does()
			}
			tm.connect("base", "tablet")
			pass(time.Minute)
			if !before {
				if result() == "" {
					t.Error("it can be adopted, and is not said to be")
				}
				does()
				pass(time.Hour)
			}
			if got := tm.stateOf("base", id, "weigh"); !strings.HasPrefix(got, "SUCCEEDED") {
				t.Fatalf("weigh is %s", got)
			}
			if got := result(); got != "" {
				t.Errorf("done before: %v; %s is said to be adoptable", before, got)
			}
		})
	}
}

// A refused result that was adopted is in the outbox of its author no longer, also where nobody else was there to tell the
// device: it asks. One that was not stays.
func TestAnAdoptedResultLeavesTheOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, item := offline(t)
		if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "3"}); err != nil {
			t.Fatal(err)
		}
		if _, err := tm.p["base"].api.TransferItem(t.Context(),
			api.TransferRequest{User: "ana", Item: item, Back: true}); err != nil {
			t.Fatal(err)
		}
		tm.connect("base", "tablet")
		pass(time.Hour)
		const why = "bia|weigh|completed||it does not count, as the item was put back; it is kept there"
		tm.wantOutbox("tablet", why)
		if theirs, err := tm.p["tablet"].api.Outbox(t.Context(), "tablet"); err != nil || len(theirs) > 0 {
			t.Errorf("the tablet itself did %+v, %v", theirs, err)
		}
		if _, err := tm.p["tablet"].api.Outbox(t.Context(), "nobody"); err == nil {
			t.Error("somebody did something who is not there")
		}
		box, err := tm.p["tablet"].api.Outbox(t.Context(), "bia")
		if err != nil || len(box) != 1 || box[0].Result != tm.show("base", id).Incidents[0].Result {
			t.Fatalf("bia did %+v, %v", box, err)
		}
		tm.disconnect("base", "tablet")
		if _, err := tm.p["base"].api.AdoptResult(t.Context(),
			api.AdoptRequest{ID: id, Result: box[0].Result}); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		tm.wantOutbox("tablet", why)
		if told := tm.adoptions("tablet", "bia"); len(told) > 0 {
			t.Errorf("bia is told of %v before the tablet could know", told)
		}
		tm.connect("base", "tablet")
		pass(time.Minute)
		tm.wantOutbox("tablet")
		told := tm.adoptions("tablet", "bia")
		if len(told) != 1 || told[0].Read || told[0].Task != "weigh" || told[0].Instance != id ||
			told[0].Text != "your result of weigh was adopted: it counts now" {
			t.Errorf("bia is told %+v", told)
		}
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		tm.connect("base", "tablet")
		tm.wantOutbox("tablet")
		if again := tm.adoptions("tablet", "bia"); !slices.EqualFunc(again, told, func(a, b api.Message) bool { return a.ID == b.ID }) {
			t.Errorf("started again, the tablet tells bia %+v", again)
		}
		if len(tm.adoptions("base", "ana")) > 0 {
			t.Error("ana is told of what bia brought")
		}
		// At a node that takes part it follows from the facts, and is the same message: what was read is read there.
		token, err := tm.p["tablet"].api.LinkUser(t.Context(), "bia", 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := tm.signIn("base", token.Token); err != nil {
			t.Fatal(err)
		}
		tm.readAll("tablet", "bia")
		pass(time.Minute)
		if there := tm.adoptions("base", "bia"); len(there) != 1 || there[0].ID != told[0].ID || !there[0].Read {
			t.Errorf("base tells bia %+v", there)
		}
	})
}

// Whoever was refused a result while connected hears that it was adopted, also at a node that takes no part, and after
// that was started again: the item is not said to be lost any more. Nothing of it is in the outbox. Nothing is told of a
// result beside which the task was done.
func TestWhoWasRefusedAtOnceHearsOfTheAdoption(t *testing.T) {
	for _, how := range []string{"adopted", "crashed", "done otherwise"} {
		synctest.Test(t, func(t *testing.T) {
			tm, id := nurses(t)
			item := tm.items("tablet", "bia")[0].ID
			if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
				t.Fatal(err)
			}
			if _, err := tm.p["base"].api.TransferItem(t.Context(),
				api.TransferRequest{User: "ana", ID: id, Task: "weigh", Back: true}); err != nil {
				t.Fatal(err)
			}
			for range 2 { // typed twice, it is one result
				wantCode(t, tm.hand("tablet", "bia", item, map[string]string{"weight": "3"}), api.Refused, "it is kept")
				pass(time.Minute)
			}
			tm.wantOutbox("tablet")
			tm.wantLost("tablet", "bia", "weigh as the item was put back")
			tm.wantLostAdoptable("tablet", "bia", true)
			tm.wantLostTold("tablet", "bia", "weigh is no longer yours, as the item was put back by ana: what you made of it is kept")
			if told := tm.adoptions("tablet", "bia"); len(told) > 0 {
				t.Errorf("bia is told %+v", told)
			}
			if how == "crashed" {
				tm.p["tablet"].crash()
				tm.p["tablet"].start()
				tm.connect("base", "tablet")
				pass(time.Second)
			}
			if how == "done otherwise" {
				if err := errors.Join(tm.claim("base", "ana", api.ClaimSelect, item),
					tm.hand("base", "ana", item, map[string]string{"weight": "4"})); err != nil {
					t.Fatal(err)
				}
			} else if _, err := tm.p["base"].api.AdoptResult(t.Context(),
				api.AdoptRequest{ID: id, Result: tm.show("base", id).Incidents[0].Result}); err != nil {
				t.Fatal(err)
			}
			pass(10 * time.Second)
			var want []string
			if how != "done otherwise" {
				want = []string{"your result of weigh was adopted: it counts now"}
			}
			var texts []string
			for _, m := range tm.adoptions("tablet", "bia") {
				texts = append(texts, m.Text)
			}
			if !slices.Equal(texts, want) {
				t.Errorf("%s: bia is told %q, want %q", how, texts, want)
			}
			if how != "done otherwise" {
				tm.wantLost("tablet", "bia")
				tm.wantLostTold("tablet", "bia")
			} else {
				pass(time.Hour)
				tm.wantLostAdoptable("tablet", "bia", false)
			}
			tm.wantOutbox("tablet")
		})
	}
}

// Also where the instance is, whoever was refused a result is told that it can be adopted, as long as it can.
func TestWhatWasRefusedHereIsSaidToBeAdoptable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := nurses(t)
		item := tm.items("base", "base")[0].ID
		if err := tm.claim("base", "base", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		if _, err := tm.p["base"].api.TransferItem(t.Context(),
			api.TransferRequest{User: "ana", ID: id, Task: "weigh", Back: true}); err != nil {
			t.Fatal(err)
		}
		tm.wantLostAdoptable("base", "base", false)
		wantCode(t, tm.hand("base", "base", item, map[string]string{"weight": "3"}), api.Refused, "it is kept")
		tm.wantLostAdoptable("base", "base", true)
		if err := errors.Join(tm.claim("tablet", "bia", api.ClaimSelect, item),
			tm.hand("tablet", "bia", item, map[string]string{"weight": "4"})); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.wantLostAdoptable("base", "base", false)
	})
}

// wantLostAdoptable checks whether a result of the one item that a user lost is said to be adoptable.
func (tm *team) wantLostAdoptable(at, user string, want bool) {
	tm.t.Helper()
	list, err := tm.p[at].api.WorklistLost(tm.t.Context(), user)
	if err != nil || len(list) != 1 || list[0].Adoptable != want {
		tm.t.Errorf("%s at %s is shown to have lost %+v, %v; want that it can be adopted: %t", user, at, list, err, want)
	}
}

// What was adopted was done by whoever brought it, though the task went to another partner meanwhile.
func TestAnAdoptedResultIsTheWorkOfWhoBroughtIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base:nurse", "tablet", "road:nurse")
		if err := tm.signIn("tablet", tm.addUser("base", "bia", "nurse")); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.add("base", strings.Replace(rota, "role: nurse, out", "role: nurse, offline: true, out", 1))
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "rota"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		id, item := st.ID, tm.items("tablet", "bia")[0].ID
		if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
			t.Fatal(err)
		}
		tm.disconnect("base", "tablet")
		tm.disconnect("road", "tablet")
		if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "3"}); err != nil {
			t.Fatal(err)
		}
		if err := tm.order("base", "base", id, api.TaskStop, "weigh"); err != nil {
			t.Fatal(err)
		}
		if _, err := tm.p["base"].api.OrderTask(t.Context(),
			api.TaskOrder{ID: id, Task: "weigh", Order: api.TaskAgain, To: "road"}); err != nil {
			t.Fatal(err)
		}
		tm.connect("base", "tablet")
		pass(time.Minute)
		counts := func(want map[string]api.User) {
			t.Helper()
			for _, at := range []string{"base", "road"} {
				for name, n := range want {
					if u := tm.user(at, name); u.Done != n.Done || u.Assigned != n.Assigned || u.Selected != n.Selected {
						t.Errorf("at %s %s has done %d, is to do %d and has %d, want %+v", at, name, u.Done, u.Assigned, u.Selected, n)
					}
				}
			}
		}
		counts(map[string]api.User{"bia": {}, "road": {Assigned: 1}, "base": {}})
		kept := tm.show("base", id).Incidents
		if len(kept) == 0 || kept[len(kept)-1].Result == "" {
			t.Fatalf("what bia brought is not kept: %+v", kept)
		}
		if _, err := tm.p["base"].api.AdoptResult(t.Context(),
			api.AdoptRequest{ID: id, Result: kept[len(kept)-1].Result}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if in := tm.show("base", id); in.Tasks[0].State != workflow.Succeeded {
			t.Errorf("weigh is %+v", in.Tasks[0])
		}
		counts(map[string]api.User{"bia": {Done: 1}, "road": {}, "base": {Assigned: 1}}) // what comes next is at base
	})
}

// adoptions are the messages to a user that somebody adopted what the user brought.
func (tm *team) adoptions(at, user string) []api.Message {
	tm.t.Helper()
	list, err := tm.p[at].api.Messages(tm.t.Context(), api.MessagesQuery{User: user})
	if err != nil {
		tm.t.Fatal(err)
	}
	return slices.DeleteFunc(list, func(m api.Message) bool { return m.Type != api.MessageAdopted })
}

// drop drops a refused result from an outbox.
func (tm *team) drop(at, user string, which int) *api.Undelivered {
	tm.t.Helper()
	list, err := tm.p[at].api.Outbox(tm.t.Context(), "")
	if err != nil || len(list) <= which || list[which].ID == "" {
		tm.t.Fatalf("the outbox is %+v, %v", list, err)
	}
	out, err := tm.p[at].api.DropRefused(tm.t.Context(), api.DropRequest{User: user, ID: list[which].ID})
	if err != nil {
		tm.t.Fatal(err)
	}
	return out
}

// Whoever was refused a result has the item no longer, also out of reach and after a crash: nobody does the work in
// vain. Each refusal stays in the outbox with what was done; the item can be taken once more, and what is refused then
// is another. Who decides may adopt either.
func TestARefusedResultLeavesNoItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, item := offline(t)
		const why = "bia|weigh|completed||it does not count, as the item was put back; it is kept there"
		refused := func(weight string) {
			t.Helper()
			if err := tm.hand("tablet", "bia", item, map[string]string{"weight": weight}); err != nil {
				t.Fatal(err)
			}
			if _, err := tm.p["base"].api.TransferItem(t.Context(),
				api.TransferRequest{User: "ana", Item: item, Back: true}); err != nil {
				t.Fatal(err)
			}
			tm.connect("base", "tablet")
			pass(time.Minute)
		}
		refused("3")
		tm.wantOutbox("tablet", why)
		tm.disconnect("base", "tablet") // nobody has looked at the list
		pass(time.Minute)
		tm.wantItems("tablet", "bia", "weigh READY")
		wantCode(t, tm.hand("tablet", "bia", item, map[string]string{"weight": "4"}), api.Refused, "")
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		pass(time.Minute)
		tm.wantItems("tablet", "bia")
		wantCode(t, tm.claim("tablet", "bia", api.ClaimLock, item), api.Refused, "")
		wantCode(t, tm.hand("tablet", "bia", item, map[string]string{"weight": "4"}), api.Refused, "")
		tm.wantOutbox("tablet", why)

		tm.connect("base", "tablet")
		pass(time.Minute)
		if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
			t.Fatal(err)
		}
		tm.disconnect("base", "tablet")
		pass(time.Minute)
		tm.wantItems("tablet", "bia", "weigh LOCKED")
		refused("5")
		tm.wantItems("tablet", "bia", "weigh READY")
		tm.wantOutbox("tablet", why, why)
		list, err := tm.p["tablet"].api.Outbox(t.Context(), "")
		if err != nil || list[0].Outputs["weight"] != "3" || list[1].Outputs["weight"] != "5" || list[0].ID == list[1].ID {
			t.Errorf("the outbox is %+v, %v", list, err)
		}
		adoptable := []string{}
		for _, x := range tm.show("base", id).Incidents {
			if x.Result != "" {
				adoptable = append(adoptable, x.Result)
			}
		}
		if len(adoptable) != 2 {
			t.Fatalf("incidents: %+v", tm.show("base", id).Incidents)
		}
		if _, err := tm.p["base"].api.AdoptResult(t.Context(),
			api.AdoptRequest{User: "ana", ID: id, Result: adoptable[0]}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if in := tm.show("base", id); in.Tasks[0].State != workflow.Succeeded || in.Data["weight"] == nil {
			t.Errorf("weigh is %s, weight %v", in.Tasks[0].State, in.Data["weight"])
		}
		tm.wantOutbox("tablet", why) // whoever looks has the holder asked: the other counts
		tm.drop("tablet", "bia", 0)
		tm.wantOutbox("tablet")
	})
}

// What was refused although its user still has the item leaves the outbox once it was mended.
func TestARefusedResultIsMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, item := offlineWith(t, false)
		if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "heavy"}); err != nil {
			t.Fatal(err)
		}
		tm.connect("base", "tablet")
		pass(time.Minute)
		tm.disconnect("base", "tablet")
		pass(time.Minute)
		tm.wantItems("tablet", "bia", "weigh LOCKED")
		if got := tm.outbox("tablet"); len(got) != 1 {
			t.Errorf("the outbox is %q", got)
		}
		if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "3"}); err != nil {
			t.Fatal(err)
		}
		tm.connect("base", "tablet")
		pass(time.Minute)
		tm.wantOutbox("tablet")
		if in := tm.show("base", id); in.Data["weight"] != int64(3) {
			t.Errorf("weight is %v", in.Data["weight"])
		}
	})
}

// Whoever signs out where something waits to be handed in is told what, since the key is deleted by which a partner would
// take it: it is refused. What is discarded all the same stays in the outbox, with what was set.
func TestSigningOutKeepsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, item := offline(t)
		if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "8"}); err != nil {
			t.Fatal(err)
		}
		out := func(discard bool) error {
			_, err := tm.p["tablet"].api.SignOutUser(t.Context(), api.SignOutRequest{User: "bia", Discard: discard})
			return err
		}
		wantCode(t, out(false), api.Refused, "what bia did here waits to be handed in, and would be lost: weigh")
		tm.wantItems("tablet", "bia", "weigh DONE")
		tm.connect("base", "tablet")
		pass(time.Minute)
		if in := tm.show("base", id); in.Data["weight"] != int64(8) {
			t.Errorf("weight is %v", in.Data["weight"])
		}
		if err := out(false); err != nil {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		tm, id, item := offline(t)
		if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "8"}); err != nil {
			t.Fatal(err)
		}
		if _, err := tm.p["tablet"].api.SignOutUser(t.Context(),
			api.SignOutRequest{User: "bia", Discard: true}); err != nil {
			t.Fatal(err)
		}
		tm.connect("base", "tablet")
		pass(time.Minute)
		list, err := tm.p["tablet"].api.Outbox(t.Context(), "")
		refused := len(list) == 1 && list[0].Refused != "" && list[0].Outputs["weight"] == "8"
		if counts := tm.show("base", id).Data["weight"] == int64(8); err != nil || counts == refused {
			t.Errorf("the outbox is %+v, %v; base took it, before it heard of the key: %t", list, err, counts)
		}
	})
}

// What was only selected needs its holder in reach.
func TestASelectedItemIsNotDoneOutOfReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _, item := offline(t)
		tm.connect("base", "tablet")
		pass(time.Second)
		if err := errors.Join(tm.claim("tablet", "bia", api.ClaimRelease, item),
			tm.claim("tablet", "bia", api.ClaimSelect, item)); err != nil {
			t.Fatal(err)
		}
		tm.disconnect("base", "tablet")
		synctest.Wait()
		tm.wantItems("tablet", "bia", "weigh SELECTED")
		wantCode(t, tm.hand("tablet", "bia", item, nil), api.Refused, "base, who holds weigh, cannot be asked now")
		tm.wantOutbox("tablet")
	})
}

// A partner that answers with items that another holds, as is known here, or with what cannot be
// shown to people, changes no list.
func TestALiarsItemsAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t)
		rows, err := tm.p["tablet"].plug.Request(t.Context(), tm.p["base"].id(), nil, "/mutirao/items/1.0.0",
			must(wire.EncodeItems(wire.Items{User: tm.user("base", "bia").ID})))
		if err != nil {
			t.Fatal(err)
		}
		answer := func(b []byte) {
			tm.p["phone"].plug.HandleRequest("/mutirao/items/1.0.0", false,
				func(workflow.PartnerID, []byte) ([]byte, error) { return b, nil })
		}
		answer(rows)
		if list := tm.items("base", "ana"); len(list) != 1 || list[0].Partner != "base" {
			t.Errorf("beside what phone says ana has %+v", list)
		}
		answer([]byte(strings.Replace(string(rows), `"task":"weigh"`, `"task":"\u001b[2J"`, 1)))
		if list := tm.items("base", "ana"); len(list) != 1 || list[0].Task != "weigh" {
			t.Errorf("beside what phone says ana has %+v", list)
		}
		if got := tm.refused("base", "phone"); len(got) != 1 || got[0].Reason != "items-malformed" {
			t.Errorf("of phone is refused %+v", got)
		}
	})
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// On a node that takes part, a selected item is shown with its age while its holder is away; what was
// done of it is not kept for later: it may be somebody else's by then.
func TestASelectedItemWaitsForItsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base:nurse", "tablet:nurse")
		tm.add("base", strings.Replace(rota, "partitions: {ward: {tasks: [weigh, feed], partner: base}}",
			"partitions: {ward: {tasks: [weigh], partner: base}, desk: {tasks: [feed], partner: tablet}}", 1))
		if _, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "rota"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		item := tm.items("tablet", "tablet")[0].ID
		if err := tm.claim("tablet", "tablet", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		tm.disconnect("base", "tablet")
		pass(10 * time.Minute)
		tm.wantItems("tablet", "tablet", "weigh SELECTED")
		if x := tm.items("tablet", "tablet")[0]; !strings.Contains(x.Known, "min ago") {
			t.Errorf("it is not said how old that is: %+v", x)
		}
		wantCode(t, tm.hand("tablet", "tablet", item, nil), api.Refused, "cannot be asked now")
		wantCode(t, tm.claim("tablet", "tablet", api.ClaimRelease, item), api.Refused, "cannot be asked now")
		tm.wantOutbox("tablet")
		tm.connect("base", "tablet")
		pass(time.Second)
		if err := tm.hand("tablet", "tablet", item, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// Items that came at one moment are listed by name, on all nodes, and a restart of their holder
// changes neither that nor since when they are there.
func TestTheOrderOfArrivalOutlivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t)
		tasks := []string{"air", "brew", "count", "make-beds", "sweep", "wash"}
		var source strings.Builder
		source.WriteString("workflow: morning\ntasks:\n")
		for _, x := range tasks {
			source.WriteString("  " + x + ": {type: manual, role: nurse}\n")
		}
		source.WriteString("partitions: {ward: {tasks: [" + strings.Join(tasks, ", ") + "], partner: base}}\n")
		pass(time.Minute)
		tm.add("base", source.String())
		tm.begin("base", "morning", nil)
		pass(time.Second)
		list := func() (out []string) {
			for _, x := range tm.items("tablet", "bia") {
				if x.Workflow == "morning" {
					out = append(out, x.Task+" "+x.Since.String())
				}
			}
			return out
		}
		before := list()
		for i, x := range before {
			if len(before) != len(tasks) || !strings.HasPrefix(x, tasks[i]+" ") {
				t.Fatalf("the list is %q, want the order %q", before, tasks)
			}
		}
		tm.p["base"].crash()
		pass(10 * time.Minute)
		tm.p["base"].start()
		tm.connect("base", "tablet")
		pass(time.Minute)
		if after := list(); !slices.Equal(after, before) {
			t.Errorf("after a restart the list is %q, before it was %q", after, before)
		}
	})
}

// A contingency that is a task in the flow as well may be two items at a time: one says in whose place
// it is, and the task whose place that is says how it stands.
func TestAStandInThatIsInTheFlowAsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t)
		tm.add("base", `
workflow: doubled
tasks:
  admit: {type: manual}
  weigh-again: {type: manual, role: nurse, on-failure: {contingency: look-after}}
  look-after: {type: manual, role: nurse, after: admit}
partitions: {ward: {tasks: [admit, weigh-again, look-after], partner: base}}
`)
		id := tm.begin("base", "doubled", nil)
		pass(time.Second)
		base := tm.p["base"].api
		if err := base.FinishTask(t.Context(),
			api.FinishRequest{ID: id, Task: "weigh-again", Failed: true, Reason: "broken"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		items := func() (out []string) {
			for _, x := range tm.items("tablet", "bia") {
				if x.Workflow == "doubled" {
					out = append(out, x.Task+" for "+x.InPlaceOf)
				}
			}
			return out
		}
		if got, want := items(), []string{"look-after for weigh-again"}; !slices.Equal(got, want) {
			t.Fatalf("the items are %q, want %q", got, want)
		}
		for _, x := range tm.items("tablet", "bia") {
			if x.InPlaceOf != "" {
				if err := tm.claim("tablet", "bia", api.ClaimSelect, x.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, x := range tm.show("base", id).Tasks {
			switch {
			case x.Name == "weigh-again" &&
				(x.StandIn == nil || x.StandIn.State != workflow.Ready || x.StandIn.Partner != "base" ||
					x.ClaimedBy != "bia"):
				t.Errorf("of what stands in for weigh-again it is shown: %+v, claimed by %q", x.StandIn, x.ClaimedBy)
			case x.Name == "look-after" && (x.State != workflow.NotReady || x.ClaimedBy != "" || x.StandIn != nil):
				t.Errorf("look-after in the flow is shown as %s, claimed by %q", x.State, x.ClaimedBy)
			}
		}
		tm.finish("base", id, "admit")
		if got, want := items(), []string{"look-after for weigh-again", "look-after for "}; !slices.Equal(got, want) {
			t.Errorf("the items are %q, want %q", got, want)
		}
	})
}

// An item that undoes a task is named as that where it is refused, and not as the task: that one was not refused.
func TestARefusedCompensationIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base")
		tm.add("base", "workflow: hire\ndata: {n: {type: integer, default: 0}}\ntasks:\n"+
			"  hand: {label: Hand it over, when: n == 0, repeat: true, type: manual, out: [n], compensate: {task: back}}\n"+
			"  ride: {when: n == 1, repeat: true, type: manual, out: [n]}\n"+
			"  back: {label: Take it back, type: manual, out: [n]}\nfinal: n == 2\n")
		id := tm.begin("base", "hire", nil)
		tm.ends("base", id, api.FinishRequest{Task: "hand", Outputs: map[string]string{"n": "1"}})
		pass(time.Second)
		tm.ends("base", id, api.FinishRequest{Task: "ride", Failed: true, Reason: "rain"})
		pass(time.Second)
		_, err := tm.p["base"].api.OrderTask(t.Context(), api.TaskOrder{
			ID: id, Order: api.TaskRecover, Recover: &api.RecoveryStep{Method: "compensate"},
		})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		items := tm.items("base", "base")
		if len(items) != 1 || items[0].Task != "back" {
			t.Fatalf("the items are %+v", items)
		}
		wantCode(t, tm.claim("base", "base", "lock", items[0].ID), api.Refused,
			"back (Take it back), which undoes hand (Hand it over): the task may not be done offline")
		if err := tm.claim("base", "base", "select", items[0].ID); err != nil {
			t.Error(err)
		}
	})
}

// What is only kept for somebody is not said to be had: to whoever else asks for it, or looks at it.
func TestWhatIsKeptForSomebodyIsNotHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "tablet", "phone")
		for at, user := range map[string]string{"tablet": "bia", "phone": "rui", "base": "ana"} {
			if err := tm.signIn(at, tm.addUser("base", user, "nurse")); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Second)
		tm.add("base", rota)
		tm.begin("base", "rota", nil)
		pass(time.Second)
		item := tm.itemOf("tablet", "bia", "weigh").ID
		if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		if _, err := tm.p["tablet"].api.TransferItem(t.Context(),
			api.TransferRequest{User: "bia", Item: item, To: "rui"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		const kept = "the task weigh is kept for rui, who may take it"
		for at, user := range map[string]string{"base": "ana", "tablet": "bia"} {
			wantCode(t, tm.claim(at, user, api.ClaimSelect, item), api.Refused, kept)
			s, err := tm.p[at].api.ItemSheet(t.Context(), api.ItemQuery{User: user, Item: item})
			if err != nil || s.Item.TakenBy != "rui" || s.Item.KeptUntil == nil {
				t.Errorf("%s sees %+v, %v", user, s, err)
			}
		}
		wantCode(t, tm.hand("base", "ana", item, nil), api.Refused, kept)
		if err := tm.claim("phone", "rui", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		wantCode(t, tm.claim("base", "ana", api.ClaimSelect, item), api.Refused, "rui has the task weigh")
	})
}
