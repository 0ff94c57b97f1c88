package node_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// keyless is driven by its data, and is interrupted where no key is handed over.
const keyless = `
workflow: keyless
version: 1
administrators: chief
data: {status: {type: string, default: asked}, key: {type: boolean}}
tasks:
  open: {when: status == "asked", repeat: true, type: manual, out: [status], compensate: {application: set, with: {status: '"asked"'}}}
  hand: {when: status == "open" and key == null, repeat: true, type: manual, out: [key]}
final: status == "refused" or key
partitions: {all: {tasks: [open, hand], partner: two}}
`

// lacking is an instance that waits for whoever recovers it, at two; chief ana is signed in at the tablet, which takes
// no part in it, as the phone does not.
func lacking(t *testing.T) (tm *team, id string) {
	t.Helper()
	tm = newTeam(t, "two", "tablet", "phone")
	for user, role := range map[string]string{"ana": "chief", "rui": "nurse"} {
		if err := tm.signIn("tablet", tm.addUser("two", user, role)); err != nil {
			t.Fatal(err)
		}
	}
	pass(time.Second)
	tm.add("two", keyless)
	id = tm.begin("two", "keyless", nil)
	tm.ends("two", id, api.FinishRequest{Task: "open", Outputs: map[string]string{"status": "open"}})
	pass(time.Second)
	tm.ends("two", id, api.FinishRequest{Task: "hand", Failed: true, Reason: "no key"})
	pass(time.Second)
	return tm, id
}

// Whoever decides about an instance sees it at a node that takes no part as at one that does, with what it says of it and
// what can be done, and recovers it there. Nobody else sees anything.
func TestAnInstanceIsSeenWhereWhoDecidesIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := lacking(t)
		two, tablet, phone := tm.p["two"].api, tm.p["tablet"].api, tm.p["phone"].api
		ctx := t.Context()
		step := api.RecoveryStep{Method: "compensate"}
		same := func(what string, here any, err error, there any, no error) {
			t.Helper()
			if one, other := inJSON(t, here), inJSON(t, there); err != nil || no != nil || one != other {
				t.Errorf("%s here is %+v, %v; there %+v, %v", what, here, err, there, no)
			}
		}
		for _, ref := range []string{id, id[:9]} {
			states, err := two.History(ctx, ref)
			seen, no := tablet.History(ctx, ref)
			same("the history", states, err, seen, no)
			log, err := two.Log(ctx, ref)
			read, no := tablet.Log(ctx, ref)
			same("the log", log, err, read, no)
			outlook, err := two.ForeseeRecovery(ctx, "", ref, step)
			foreseen, no := tablet.ForeseeRecovery(ctx, "", ref, step)
			same("the outlook", outlook, err, foreseen, no)
			in, err := two.Show(ctx, ref)
			shown, no := tablet.Show(ctx, ref)
			if shown.Recovery != nil {
				shown.Recovery.AsOf, shown.Recovery.Known = nil, "" // here it is as of now
			}
			same("the menu", in.Recovery, err, shown.Recovery, no)
			if shown.Told == nil || shown.Told.By.Name != "two" {
				t.Errorf("it is told by %+v", shown.Told)
			}
			for _, format := range []string{"svg", "gantt-en"} {
				drawn, err := two.Diagram(ctx, ref, format)
				as, no := tablet.Diagram(ctx, ref, format)
				same("the drawing", len(drawn), err, len(as), no)
			}
			if _, err := tablet.Refresh(ctx, ref); err != nil {
				t.Error(err)
			}
		}
		for user, want := range map[string]api.Deciding{
			"ana": {User: "ana", May: true, MayCancel: true, Responsible: "two", Administrators: "chief"},
		} {
			if d, err := tablet.Deciding(ctx, api.DecidingQuery{User: user, ID: id}); err != nil || *d != want {
				t.Errorf("%s decides: %+v, %v", user, d, err)
			}
		}
		for _, user := range []string{"rui", "tablet"} { // the node is shown it, as ana decides
			d, err := tablet.Deciding(ctx, api.DecidingQuery{User: user, ID: id})
			if err != nil || d.May || d.Responsible != "two" {
				t.Errorf("%s decides: %+v, %v", user, d, err)
			}
		}
		_, err := phone.Deciding(ctx, api.DecidingQuery{User: "phone", ID: id})
		wantCode(t, err, api.NotAllowed, "two answers for the instance")
		_, err = phone.Show(ctx, id)
		wantCode(t, err, api.NotAllowed, "takes no part in instance "+id+", and is not shown it: two answers for the instance")
		_, err = phone.History(ctx, id)
		wantCode(t, err, api.NotAllowed, "two answers for the instance")
		_, err = tablet.Show(ctx, "ffff")
		wantCode(t, err, api.NotFound, "no instance")
		_, err = tablet.ForeseeRecovery(ctx, "", id, api.RecoveryStep{Method: "jump-back"})
		wantCode(t, err, api.Refused, "the state is consistent")
		_, err = tablet.ForeseeRecovery(ctx, "", id, api.RecoveryStep{Method: "compensate", When: "=="})
		wantCode(t, err, api.Invalid, "is no condition over the data of keyless")

		jump, refused := api.RecoveryStep{Method: "jump-forward"}, "refused"
		jump.Set = map[workflow.DataName]*string{"status": &refused}
		if _, err := tablet.OrderTask(ctx, api.TaskOrder{
			User: "ana", ID: id, Order: api.TaskRecover, Recover: &jump,
		}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if in, err := tablet.Show(ctx, id); err != nil || in.State != workflow.InstanceSucceeded {
			t.Errorf("after it was recovered from afar it is %+v, %v", in, err)
		}
	})
}

// Whoever has an item of an instance, or had one, sees how that stands at a node that takes no part in it, and finds it
// in lists while it runs, also when nobody can be asked, with the values that the task reads and sets: others, and what
// only whoever decides may know, are not shown. Who has the role and took nothing sees nothing.
func TestAnInstanceIsSeenWhereWhoTookPartIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "two", "tablet", "phone")
		for user, at := range map[string]string{"ana": "tablet", "rui": "phone"} {
			if err := tm.signIn(at, tm.addUser("two", user, "nurse")); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Second)
		tm.add("two", "workflow: rounds\nversion: 1\ndata:\n  weight: {type: integer}\n  code: {type: string, default: red}\n"+
			"  secret: {type: string}\ntasks:\n  hide: {type: manual, out: [secret]}\n"+
			"  walk: {type: manual, role: nurse, after: hide, in: [code], out: [weight]}\n"+
			"  rest: {type: manual, role: nurse, after: walk}\npartitions: {all: {tasks: [hide, walk, rest], partner: two}}\n")
		id := tm.begin("two", "rounds", nil)
		tm.ends("two", id, api.FinishRequest{Task: "hide", Outputs: map[string]string{"secret": "moon"}})
		pass(time.Second)
		tablet, phone, ctx := tm.p["tablet"].api, tm.p["phone"].api, t.Context()
		lists := func(at, want string) {
			t.Helper()
			list, err := tm.p[at].api.Instances(ctx, false)
			got := ""
			for _, in := range list {
				got += in.ID + " " + string(in.State) + " by " + in.KnownBy[0].Name + in.Known
			}
			if err != nil || got != want {
				t.Errorf("%s lists %q, %v; want %q", at, got, err, want)
			}
		}
		lists("tablet", "")
		_, err := tablet.Show(ctx, id)
		wantCode(t, err, api.NotAllowed, "is not shown it")

		sees := func(when string) {
			t.Helper()
			pass(10 * time.Second)
			for _, ref := range []string{id, id[:9]} {
				in, err := tablet.Show(ctx, ref)
				if err != nil || in.Told == nil || in.Told.By.Name != "two" || len(in.Tasks) != 3 ||
					in.Data["code"] != "red" || strings.Contains(inJSON(t, in), "moon") {
					t.Errorf("%s: it is shown as %+v, %v", when, in, err)
				}
				log, no := tablet.Log(ctx, ref)
				if text := inJSON(t, log); strings.Contains(text, "moon") || !strings.Contains(text, "instance created") {
					t.Errorf("%s: its log is %s", when, text)
				}
				_, err = tablet.Diagram(ctx, ref, "svg")
				if err := errors.Join(no, err); err != nil {
					t.Errorf("%s: %v", when, err)
				}
			}
			_, err = tablet.ForeseeRecovery(ctx, "", id, api.RecoveryStep{Method: "compensate"})
			wantCode(t, err, api.NotAllowed, "two answers for the instance")
			if d, err := tablet.Deciding(ctx, api.DecidingQuery{User: "ana", ID: id}); err != nil || d.May {
				t.Errorf("%s: she decides: %+v, %v", when, d, err)
			}
			_, err = tablet.History(ctx, id)
			wantCode(t, err, api.NotAllowed, "two answers for the instance")
			_, err = phone.Show(ctx, id)
			wantCode(t, err, api.NotAllowed, "is not shown it")
			lists("tablet", id+" running by two")
			lists("phone", "")
		}
		does := func(task string, sees func()) {
			t.Helper()
			item := tm.items("tablet", "ana")[0]
			if err := tm.claim("tablet", "ana", api.ClaimSelect, item.ID); err != nil || item.Task != task {
				t.Fatalf("%s is %+v, %v", task, item, err)
			}
			sees()
			if err := tm.hand("tablet", "ana", item.ID, nil); err != nil {
				t.Fatal(err)
			}
		}
		does("walk", func() { sees("she has an item") })
		sees("she had an item")
		tm.disconnect("two", "tablet")
		pass(time.Minute)
		_, err = tablet.Show(ctx, id)
		wantCode(t, err, api.Refused, "nobody can be asked now that is known to: two")
		lists("tablet", id+" running by twoas known 1 min ago")
		tm.connect("two", "tablet")
		pass(time.Minute)
		does("rest", func() {})
		pass(10 * time.Second)
		lists("tablet", "") // it does not run any more
	})
}

func inJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A member may not have an instance shown for a person who is not at its node, nor for itself if it does not decide;
// what is asked for that nobody shows is refused.
func TestAnInstanceIsShownToNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := lacking(t)
		ask := func(from string, x wire.Sight) string {
			t.Helper()
			x.Instance = instance(t, id)
			req, err := wire.EncodeSight(x)
			if err != nil {
				t.Fatal(err)
			}
			b, err := tm.p[from].plug.Request(t.Context(), tm.p["two"].id(), nil, worklists.ProtocolSight, req)
			if err != nil {
				return err.Error()
			}
			return string(b)
		}
		ana := tm.user("two", "ana").ID
		if got := ask("tablet", wire.Sight{User: ana}); !strings.Contains(got, `"shows":`) {
			t.Errorf("to whoever decides it says %s", got)
		}
		for what, got := range map[string]string{
			"for a person elsewhere": ask("phone", wire.Sight{User: ana}),
			"for itself":             ask("phone", wire.Sight{User: string(tm.p["phone"].id())}),
			"for nobody":             ask("phone", wire.Sight{User: "nobody"}),
			"of no step":             ask("tablet", wire.Sight{User: ana, What: wire.LookOutlook}),
			"of what is no step":     ask("tablet", wire.Sight{User: ana, What: wire.LookOutlook, Step: []byte("[")}),
		} {
			if strings.Contains(got, `"shows":`) {
				t.Errorf("%s it shows %s", what, got)
			}
		}
	})
}

// What a partner shows that cannot be, or more and more of it, is not shown, and it is named. Whoever does not answer is
// not asked first again.
func TestAnInstanceIsMisshown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := lacking(t)
		tablet := tm.p["tablet"].api
		ctx := t.Context()
		plug := tm.p["two"].plug
		was := plug.handlers[worklists.ProtocolSight]
		say := func(what string) {
			plug.HandleRequest(worklists.ProtocolSight, false, func(workflow.PartnerID, []byte) ([]byte, error) {
				if what == "" {
					return nil, errors.New("there is no such protocol")
				}
				return []byte(what), nil
			})
		}
		for _, what := range []string{"", "{", "{}", `{"shows":{"id":"x"}}`, `{"shows":[],"next":1}`, `{"shows":{}}`, `{"shows":null}`} {
			say(what)
			_, err := tablet.Show(ctx, id)
			wantCode(t, err, api.Failed, "and two does not show it")
			_, err = tablet.ForeseeRecovery(ctx, "", id, api.RecoveryStep{Method: "offer"})
			if what != `{"shows":{"id":"x"}}` && what != `{"shows":{}}` { // that is an outlook, of nothing
				wantCode(t, err, api.Failed, "and two does not show it")
			}
		}
		plug.HandleRequest(worklists.ProtocolSight, false, was)
		if _, err := tablet.Show(ctx, id); err != nil {
			t.Error(err)
		}
		say("")
		_, err := tablet.History(ctx, id)
		wantCode(t, err, api.Failed, "and two does not show it")
		tm.disconnect("two", "tablet")
		pass(time.Second)
		_, err = tablet.Show(ctx, id)
		wantCode(t, err, api.Refused, "nobody can be asked now that is known to: two (not heard of since 2")
	})
}

// An instance whose participants cannot be asked is refused as that, with who they are, where somebody was told of it or
// saw it. Elsewhere it is not known.
func TestAnInstanceOutOfReachIsNotUnknown(t *testing.T) {
	for _, told := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			tm, id := lacking(t)
			tablet := tm.p["tablet"].api
			ctx := t.Context()
			if told {
				tm.wantWaiting("tablet", "keyless interrupted by two: interrupted")
			} else if _, err := tablet.History(ctx, id); err != nil {
				t.Fatal(err)
			}
			tm.disconnect("two", "tablet")
			tm.disconnect("two", "phone")
			pass(time.Minute)
			const want = ", and nobody can be asked now that is known to: two (not heard of since 2"
			for _, ref := range []string{id, strings.ToUpper(id), id[:9]} {
				for what, ask := range map[string]func() error{
					"show":    func() error { _, err := tablet.Show(ctx, ref); return err },
					"history": func() error { _, err := tablet.History(ctx, ref); return err },
					"log":     func() error { _, err := tablet.Log(ctx, ref); return err },
					"diagram": func() error { _, err := tablet.Diagram(ctx, ref, "svg"); return err },
					"gantt":   func() error { _, err := tablet.Diagram(ctx, ref, "gantt-en"); return err },
					"recover": func() error {
						_, err := tablet.ForeseeRecovery(ctx, "", ref, api.RecoveryStep{Method: "compensate"})
						return err
					},
					"amend": func() error {
						_, err := tablet.ForeseeAmendment(ctx, api.AmendRequest{
							User: "ana", ID: ref, File: "a.yaml", Source: keyless,
						})
						return err
					},
					"cancel": func() error { return tm.order("tablet", "ana", ref, api.TaskCancel, "") },
				} {
					err := ask()
					wantCode(t, err, api.Refused, "this node takes no part in instance "+id+want)
					var e *api.Error
					if errors.As(err, &e); !strings.Contains(e.Hint, "a node that takes part, such as two") {
						t.Errorf("%s: the hint is %q", what, e.Hint)
					}
				}
			}
			_, err := tm.p["phone"].api.Show(ctx, id)
			wantCode(t, err, api.NotFound, "no instance")
			if _, err := tablet.SignOutUser(ctx, api.SignOutRequest{User: "ana"}); err != nil {
				t.Fatal(err)
			}
			_, err = tablet.Show(ctx, id)
			wantCode(t, err, api.NotFound, "no instance")
		})
	}
}

// A prefix that begins the IDs of several instances elsewhere is refused as one of several here is: also where partners
// have one each, where one has all, and where one of them cannot be asked. Whoever gives the whole ID sees that one.
func TestAPrefixOfSeveralInstancesElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "two", "three", "tablet:chief")
		tm.add("two", keyless)
		tm.add("three", strings.NewReplacer("keyless", "spare", "partner: two", "partner: three").Replace(keyless))
		ctx, tablet := t.Context(), tm.p["tablet"].api
		begin := func(at, name string) (id string) {
			t.Helper()
			id = tm.begin(at, name, nil)
			tm.ends(at, id, api.FinishRequest{Task: "open", Outputs: map[string]string{"status": "open"}})
			pass(time.Second)
			tm.ends(at, id, api.FinishRequest{Task: "hand", Failed: true, Reason: "no key"})
			pass(time.Second)
			return id
		}
		one := begin("two", "keyless")
		like := func() string { // another whose ID begins alike, at three
			for {
				if id := begin("three", "spare"); id[0] == one[0] {
					return id
				}
			}
		}
		several := func(n string) {
			t.Helper()
			_, err := tablet.Show(ctx, one[:1])
			wantCode(t, err, api.Invalid, `"`+one[:1]+`" begins the IDs of `+n+` instances`)
			err = tm.order("tablet", "tablet", one[:1], api.TaskCancel, "")
			wantCode(t, err, api.Invalid, `"`+one[:1]+`" begins the IDs of `+n+` instances`)
		}
		other := like()
		several("2")
		for _, id := range []string{one, other} {
			if in, err := tablet.Show(ctx, id); err != nil || in.ID != id {
				t.Errorf("of the whole ID it shows %+v, %v", in, err)
			}
		}
		tm.waiting("tablet")
		tm.disconnect("three", "tablet")
		pass(time.Second)
		several("2") // the other is known to be at three
		tm.disconnect("two", "tablet")
		pass(time.Second)
		several("2")
		tm.connect("two", "tablet")
		tm.connect("three", "tablet")
		pass(time.Minute)
		like()
		several("2") // as three says
	})
}

// A history that is larger than an answer comes in parts.
func TestALongHistoryIsSeenInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "two", "tablet:chief")
		tm.add("two", "workflow: count\nadministrators: chief\ndata:\n  n: {type: integer, default: 0}\n"+
			"  text: {type: string, default: "+strings.Repeat("x", 12000)+"}\ntasks:\n"+
			"  add: {when: n < 200, repeat: true, type: manual, out: [n]}\n"+
			"final: n == 200\npartitions: {all: {tasks: [add], partner: two}}\n")
		id := tm.begin("two", "count", nil)
		for n := range 200 {
			tm.ends("two", id, api.FinishRequest{Task: "add", Outputs: map[string]string{"n": strconv.Itoa(n + 1)}})
		}
		pass(time.Second)
		here, err := tm.p["two"].api.History(t.Context(), id)
		there, no := tm.p["tablet"].api.History(t.Context(), id)
		if err != nil || no != nil || len(here) != 201 || len(there) != 201 || *there[200].State != 200 {
			t.Errorf("%d states, %v; from afar %d, %v", len(here), err, len(there), no)
		}
	})
}
