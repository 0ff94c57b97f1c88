package node_test

import (
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// An outlook names the interruption that it is of: a step that was looked at may have been taken by somebody else, and
// led to the very same interruption once more. Else all that is said of the two is the same.
func TestAnOutlookNamesItsInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one")
		tm.add("one", "workflow: hire\ndata: {key: {type: boolean}}\ntasks:\n"+
			"  hand: {when: key == null, repeat: true, type: manual, out: [key]}\nfinal: key\n")
		id := tm.begin("one", "hire", map[string]string{})
		step := api.RecoveryStep{Method: "offer"}
		var seen []api.Outlook
		for range 2 {
			pass(time.Second)
			tm.ends("one", id, api.FinishRequest{Task: "hand", Failed: true, Reason: "no key"})
			for range 2 {
				out, err := tm.p["one"].api.ForeseeRecovery(t.Context(), "", id, step)
				if err != nil {
					t.Fatal(err)
				}
				seen = append(seen, *out)
			}
			_, err := tm.p["one"].api.OrderTask(t.Context(), api.TaskOrder{ID: id, Order: api.TaskRecover, Recover: &step})
			if err != nil {
				t.Fatal(err)
			}
		}
		if !reflect.DeepEqual(seen[0], seen[1]) || seen[0].Interruption == "" || !reflect.DeepEqual(seen[2], seen[3]) {
			t.Errorf("of one interruption it is said once %+v, once %+v", seen[:2], seen[2:])
		}
		if seen[0].Interruption == seen[2].Interruption {
			t.Error("two interruptions have one name")
		}
		seen[2].Interruption = seen[0].Interruption
		if !reflect.DeepEqual(seen[0], seen[2]) {
			t.Errorf("the two differ in more than that, so it would be seen anyway: %+v, %+v", seen[0], seen[2])
		}
	})
}

// What interrupts an instance is shown with its data as they are declared by now: those that an amendment added, too.
func TestAnInterruptionDeclaresWhatAnAmendmentAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one")
		const hire = "workflow: hire\ndata: {key: {type: boolean}}\ntasks:\n" +
			"  hand: {when: key == null, repeat: true, type: manual, out: [key]}\nfinal: key\n"
		tm.add("one", hire)
		id := tm.begin("one", "hire", nil)
		_, err := tm.p["one"].api.AmendInstance(t.Context(), api.AmendRequest{ID: id, File: "hire.yaml",
			Source: strings.Replace(hire, "boolean}", "boolean}, crew: {type: integer, min: 1, max: 9}", 1)})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.ends("one", id, api.FinishRequest{Task: "hand", Failed: true, Reason: "no key"})
		in := tm.show("one", id)
		low, high := 1.0, 9.0
		want := []api.Declared{
			{Name: "crew", Type: workflow.TypeInteger, Min: &low, Max: &high}, {Name: "key", Type: workflow.TypeBoolean},
		}
		if in.Recovery == nil || !reflect.DeepEqual(in.Recovery.Data, want) {
			t.Errorf("it says %+v, want %+v", in.Recovery, want)
		}
	})
}

// Whoever has the role that administers an instance is told what interrupts it, at each node that takes part, until it
// is resolved: also who gets the role, or signs in, when that has happened already. Nobody else is, but for whoever
// answers for it; and of all else an administrator is told nothing.
func TestAdministratorsAreToldOfAnInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "tablet")
		for user, role := range map[string]string{"ana": "chief", "bia": "chief", "rui": "nurse"} {
			at := map[string]string{"ana": "base", "bia": "tablet", "rui": "tablet"}[user]
			if err := tm.signIn(at, tm.addUser("base", user, role)); err != nil {
				t.Fatal(err)
			}
		}
		later := tm.addUser("base", "eva", "chief")
		pass(time.Second)
		tm.add("base", "workflow: hire\nadministrators: chief\ndata: {key: {type: boolean}}\ntasks:\n"+
			"  hand: {when: key == null, repeat: true, type: manual, out: [key]}\nfinal: key\n"+
			"partitions: {all: {tasks: [hand], partner: tablet}}\n")
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "hire", Responsible: "base"})
		if err != nil {
			t.Fatal(err)
		}
		id := st.ID
		pass(time.Second)
		tm.ends("tablet", id, api.FinishRequest{Task: "hand", Failed: true, Reason: "no key"})
		const began, stuck = "*hire started: it has started",
			"*hire failed: hand has failed: the instance is interrupted: no key"
		told := func(base, ana, bia []string) {
			t.Helper()
			tm.wantMessages("base", "base", base...)
			tm.wantMessages("base", "ana", ana...)
			tm.wantMessages("tablet", "bia", bia...)
			tm.wantMessages("tablet", "tablet")
		}
		told([]string{began, stuck}, []string{stuck}, []string{stuck})
		tm.wantMessages("tablet", "rui")

		if _, err := tm.p["base"].api.GrantRole(t.Context(), api.RoleRequest{User: "rui", Role: "chief"}); err != nil {
			t.Fatal(err)
		}
		if err := tm.signIn("tablet", later); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.wantMessages("tablet", "rui", stuck)
		tm.wantMessages("tablet", "eva", stuck)
		tm.readAll("base", "ana")
		tm.p["base"].crash()
		tm.p["base"].start()
		told([]string{began, stuck}, []string{stuck[1:]}, []string{stuck})

		tm.connect("base", "tablet")
		pass(time.Second)
		step := api.RecoveryStep{Method: "restart"}
		if _, err := tm.p["tablet"].api.OrderTask(t.Context(),
			api.TaskOrder{User: "bia", ID: id, Order: api.TaskRecover, Recover: &step}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		told([]string{began}, nil, nil)
		tm.wantMessages("tablet", "rui")
	})
}

// Whoever goes on with a flow is shown to hold it, while it is interrupted and nobody works at it as well.
func TestWhoHoldsAnInterruptedFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "tablet")
		tm.add("base", "workflow: hire\ndata: {key: {type: boolean}}\ntasks:\n"+
			"  hand: {when: key == null, repeat: true, type: manual, out: [key]}\nfinal: key\n"+
			"partitions: {all: {tasks: [hand], partner: tablet}}\n")
		id := tm.begin("base", "hire", nil)
		pass(time.Second)
		tm.ends("tablet", id, api.FinishRequest{Task: "hand", Failed: true, Reason: "no key"})
		holds := func(want, first string) {
			t.Helper()
			p := tm.show("base", id).Partitions[0]
			if p.Partner != want || len(p.Also) > 0 || p.First != first {
				t.Errorf("%s holds it, %q as well, %q at first, want %s alone, %q at first", p.Partner, p.Also, p.First,
					want, first)
			}
		}
		holds("tablet", "")
		tm.expel("base", "tablet")
		pass(time.Minute)
		holds("base", "tablet")
		if _, err := tm.p["base"].api.OrderTask(t.Context(), api.TaskOrder{
			ID: id, Order: api.TaskRecover, Recover: &api.RecoveryStep{Method: "restart"},
		}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		holds("base", "tablet")
	})
}

// A step that says for what state and interruption it is meant is taken once, however often and by how many it is
// ordered, also at the same moment: else somebody's undoes what another saw it undo already.
func TestAStepIsTakenForWhatWasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base")
		tm.add("base", "workflow: hire\ndata: {key: {type: boolean}, out: {type: boolean}}\ntasks:\n"+
			"  key: {when: key == null, repeat: true, type: manual, out: [key], compensate: {application: set, with: {key: 'null'}}}\n"+
			"  hand: {when: key and out == null, repeat: true, type: manual, out: [out]}\nfinal: out\n")
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "hire", Responsible: "base"})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.ends("base", st.ID, api.FinishRequest{Task: "key", Outputs: map[string]string{"key": "true"}})
		pass(time.Second)
		tm.ends("base", st.ID, api.FinishRequest{Task: "hand", Failed: true, Reason: "no hand"})
		pass(time.Second)
		step := api.RecoveryStep{Method: "restart"}
		out, err := tm.p["base"].api.ForeseeRecovery(t.Context(), "", st.ID, step)
		if err != nil {
			t.Fatal(err)
		}
		step.From, step.Interruption = &out.From, out.Interruption
		order := func() error {
			_, err := tm.p["base"].api.OrderTask(t.Context(),
				api.TaskOrder{User: "base", ID: st.ID, Order: api.TaskRecover, Recover: &step})
			return err
		}
		errs := make(chan error, 5)
		for range cap(errs) {
			go func() { errs <- order() }()
		}
		var taken int
		for range cap(errs) {
			if err := <-errs; err == nil {
				taken++
			} else if !strings.Contains(err.Error(), "not interrupted") {
				t.Errorf("it is refused otherwise: %v", err)
			}
		}
		if taken != 1 {
			t.Errorf("it was taken %d times", taken)
		}
		pass(time.Second)
		tm.ends("base", st.ID, api.FinishRequest{Task: "hand", Failed: true, Reason: "no hand"})
		pass(time.Second)
		wantCode(t, order(), api.Refused, "it was meant for an interruption that is over")
		step.From, step.Interruption = new(int), ""
		wantCode(t, order(), api.Refused, "it was meant for S0, and the instance is in S1 by now")
		step.From = nil
		if err := order(); err != nil {
			t.Error(err)
		}
	})
}

// An interruption is shown as old as it is where its data states are kept elsewhere, so that nobody decides about what
// has long become otherwise.
func TestHowOldAnInterruptionIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamWith(t, connectionTime(10*time.Minute), seldom, "base", "tablet")
		tm.add("base", "workflow: hire\ndata: {key: {type: boolean}}\ntasks:\n"+
			"  hand: {when: key == null, repeat: true, type: manual, out: [key]}\nfinal: key\n"+
			"partitions: {all: {tasks: [hand], partner: tablet}}\n")
		id := tm.begin("base", "hire", nil)
		pass(time.Second)
		tm.ends("tablet", id, api.FinishRequest{Task: "hand", Failed: true, Reason: "no key"})
		pass(time.Second)
		known := func(at, want string, dated bool) {
			t.Helper()
			if r := tm.show(at, id).Recovery; r == nil || r.Known != want || (r.AsOf != nil) != dated {
				t.Errorf("at %s the interruption is %+v, want that it is known %q", at, r, want)
			}
		}
		known("base", "", true)
		known("tablet", "", false)
		tm.disconnect("base", "tablet")
		pass(13*time.Minute/2 - time.Second)
		known("base", "as known 6 min ago", true)
		tm.connect("base", "tablet")
		pass(time.Second)
		known("base", "", true)
	})
}

// An offer undoes what ran beside work that came to nothing. A person's task and a job for workers run from when somebody
// takes them, also if it was given back since; what nobody had taken asks for nothing.
func TestAnOfferGoesByWhatWasTaken(t *testing.T) {
	for _, how := range []string{"nobody", "taken", "given back"} {
		synctest.Test(t, func(t *testing.T) {
			tm := newTeamOf(t, func(c *configs.Config) {
				c.Applications = map[workflow.ApplicationName]configs.Application{"weigh": {Worker: true}}
			}, "one")
			node := tm.p["one"].api
			tm.add("one", "workflow: hire\ndata: {key: {type: boolean}, boat: {type: boolean}, load: {type: boolean}, "+
				"out: {type: boolean}}\ntasks:\n"+
				"  key: {when: key == null, repeat: true, type: manual, out: [key], "+
				"compensate: {application: set, with: {key: 'null'}}}\n"+
				"  boat: {label: Find the boat, when: boat == null, repeat: true, type: manual, out: [boat]}\n"+
				"  load: {when: load == null, repeat: true, application: weigh, out: [load]}\n"+
				"  hand: {when: key and out == null, repeat: true, type: manual, out: [out]}\nfinal: out\n")
			id := tm.begin("one", "hire", map[string]string{})
			pass(time.Second)
			claim := func(what string) {
				t.Helper()
				for _, x := range tm.items("one", "one") {
					if x.Task == "boat" {
						if err := tm.claim("one", "one", what, x.ID); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			var want []api.Beside
			if how != "nobody" {
				claim("select")
				tm.mustTake("scales")
				want = []api.Beside{{Task: "boat", Label: "Find the boat", Mark: "aborted"}, {Task: "load", Mark: "aborted"}}
			}
			if how == "given back" {
				claim("release")
			}
			tm.ends("one", id, api.FinishRequest{Task: "key", Outputs: map[string]string{"key": "true"}})
			pass(time.Second)
			tm.ends("one", id, api.FinishRequest{Task: "hand", Failed: true, Reason: "no boat"})
			step := api.RecoveryStep{Method: "offer"}
			out, err := node.ForeseeRecovery(t.Context(), "", id, step)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(out.Beside, want) || len(out.Undoes) != min(len(want), 1) {
				t.Errorf("%s: undoes %v because of %+v", how, out.Undoes, out.Beside)
			}
			if _, err := node.OrderTask(t.Context(), api.TaskOrder{ID: id, Order: api.TaskRecover, Recover: &step}); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			// The hand of these tests brings nothing, so what undoes the key does not lead to where it was, and that is told.
			r := tm.show("one", id).Recovery
			if undoes := r != nil && strings.Contains(r.Since, "the compensation of key"); undoes != (how != "nobody") {
				t.Errorf("%s: after it the interruption is %+v", how, r)
			}
		})
	}
}

// Whoever may not order a step of recovery is not told what it would lead to, by the same words as an order is refused.
func TestOnlyWhoDecidesForeseesARecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base")
		for user, role := range map[string]string{"ana": "chief", "rui": "nurse"} {
			if err := tm.signIn("base", tm.addUser("base", user, role)); err != nil {
				t.Fatal(err)
			}
		}
		tm.add("base", "workflow: hire\nadministrators: chief\ndata: {key: {type: boolean}}\ntasks:\n"+
			"  hand: {when: key == null, repeat: true, type: manual, out: [key]}\nfinal: key\n")
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "hire", Responsible: "base"})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.ends("base", st.ID, api.FinishRequest{Task: "hand", Failed: true, Reason: "no key"})
		pass(time.Second)
		step := api.RecoveryStep{Method: "restart"}
		for user, may := range map[string]bool{"base": true, "ana": true, "rui": false} {
			_, err := tm.p["base"].api.ForeseeRecovery(t.Context(), user, st.ID, step)
			if may && err != nil {
				t.Errorf("%s: %v", user, err)
			}
			if !may {
				wantCode(t, err, api.NotAllowed, "base answers for the instance: that is decided by base, or by who has the role chief")
				_, no := tm.p["base"].api.OrderTask(t.Context(),
					api.TaskOrder{User: user, ID: st.ID, Order: api.TaskRecover, Recover: &step})
				if no == nil || no.Error() != err.Error() {
					t.Errorf("an order is refused otherwise: %v", no)
				}
			}
		}
		_, err = tm.p["base"].api.ForeseeRecovery(t.Context(), "nobody", st.ID, step)
		if err == nil {
			t.Error("nobody foresees it")
		}
	})
}

// What was taken while another partner kept the data states ran from then, as far as whoever keeps them since knew of it
// when it took them over.
func TestAnOfferGoesByWhatALostHolderGave(t *testing.T) {
	for _, taken := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tm := newTeam(t, "base", "tablet")
			tm.add("base", "workflow: hire\ndata: {key: {type: boolean}, boat: {type: boolean}, out: {type: boolean}}\ntasks:\n"+
				"  key: {when: key == null, repeat: true, type: manual, out: [key], "+
				"compensate: {application: set, with: {key: 'null'}}}\n"+
				"  boat: {when: boat == null, repeat: true, type: manual, out: [boat]}\n"+
				"  hand: {when: key and out == null, repeat: true, type: manual, out: [out]}\nfinal: out\n")
			st, err := tm.p["tablet"].api.Start(t.Context(), api.StartRequest{
				Workflow: "hire", Assign: map[string]string{"main": "base"},
			})
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
			var want []api.Beside
			if taken {
				for _, x := range tm.items("base", "base") {
					if x.Task == "boat" {
						if err := tm.claim("base", "base", "select", x.ID); err != nil {
							t.Fatal(err)
						}
					}
				}
				want = []api.Beside{{Task: "boat", Mark: "aborted"}}
			}
			pass(time.Minute)
			tm.disconnect("base", "tablet")
			pass(time.Hour)
			tm.ends("tablet", st.ID, api.FinishRequest{Task: "key", Outputs: map[string]string{"key": "true"}})
			pass(time.Second)
			tm.ends("tablet", st.ID, api.FinishRequest{Task: "hand", Failed: true, Reason: "no boat"})
			out, err := tm.p["tablet"].api.ForeseeRecovery(t.Context(), "", st.ID, api.RecoveryStep{Method: "offer"})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(out.Beside, want) || len(out.Undoes) != len(want) {
				t.Errorf("taken %t: it undoes %v because of %+v, want %+v", taken, out.Undoes, out.Beside, want)
			}
		})
	}
}
