package node_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// waiting are the instances that a node lists as known by others, with why each needs a person.
func (tm *team) waiting(at string) string {
	tm.t.Helper()
	list, err := tm.p[at].api.Instances(tm.t.Context(), false)
	if err != nil {
		tm.t.Fatal(err)
	}
	var out []string
	for _, in := range list {
		for _, by := range in.KnownBy {
			for _, n := range in.Needs {
				out = append(out, string(in.Workflow)+" "+string(in.State)+" by "+by.Name+": "+n.Kind)
			}
		}
	}
	return strings.Join(out, ", ")
}

func (tm *team) wantWaiting(at, want string) {
	tm.t.Helper()
	if got := tm.waiting(at); got != want {
		tm.t.Errorf("%s lists of others %q, want %q", at, got, want)
	}
}

// wantKnown checks whose word a node's list of instances goes by, and how old that is said to be.
func (tm *team) wantKnown(at, want string) {
	tm.t.Helper()
	list, err := tm.p[at].api.Instances(tm.t.Context(), false)
	if err != nil {
		tm.t.Fatal(err)
	}
	var out []string
	for _, in := range list {
		out = append(out, in.Of+": "+in.Known)
	}
	if got := strings.Join(out, ", "); got != want {
		tm.t.Errorf("%s lists what is known as of %q, want %q", at, got, want)
	}
}

// Whoever decides about an instance is told what interrupts it, and has it listed, at a node that takes no part: until it
// is resolved, also while nobody can be asked, and again after a restart. Nobody else is.
func TestWhoDecidesIsToldElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := lacking(t)
		const stuck, listed = "*keyless failed: hand has failed: the instance is interrupted: no key",
			"keyless interrupted by two: interrupted"
		tm.wantMessages("tablet", "ana", stuck)
		tm.wantMessages("tablet", "rui")
		tm.wantMessages("tablet", "tablet")
		tm.wantMessages("phone", "phone")
		tm.wantWaiting("tablet", listed)
		tm.wantWaiting("phone", "")
		tm.wantWaiting("two", "")
		pass(3 * time.Second)
		tm.wantKnown("tablet", "two: as known 3 s ago")

		tm.readAll("tablet", "ana")
		tm.disconnect("two", "tablet")
		pass(time.Minute)
		tm.wantMessages("tablet", "ana", stuck[1:])
		tm.wantWaiting("tablet", listed)
		tm.wantKnown("tablet", "two: as known 1 min ago")
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		tm.wantWaiting("tablet", "")
		tm.connect("two", "tablet")
		pass(10 * time.Second)
		tm.wantMessages("tablet", "ana", stuck[1:])
		tm.wantWaiting("tablet", listed)

		jump, refused := api.RecoveryStep{Method: "jump-forward"}, "refused"
		jump.Set = map[workflow.DataName]*string{"status": &refused}
		if _, err := tm.p["tablet"].api.OrderTask(t.Context(), api.TaskOrder{
			User: "ana", ID: id, Order: api.TaskRecover, Recover: &jump,
		}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second) // it is asked again, though it had answered just before
		tm.wantWaiting("tablet", "")
		tm.wantMessages("tablet", "ana")
	})
}

// Whoever answers for an instance whose tasks follow a graph is told elsewhere what failed and waits for an order, also
// once it has ended and is not in memory, and after a restart; administrators have it listed. Where several partners say
// so it is told once.
func TestWhoAnswersIsToldElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "two", "three", "tablet", "phone:chief")
		if err := tm.signIn("tablet", tm.addUser("two", "ana")); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.add("two", "workflow: rounds\nadministrators: chief\ntasks:\n  walk: {type: manual}\n  rest: {type: manual, after: walk}\n"+
			"partitions:\n  a: {tasks: [walk], partner: two}\n  b: {tasks: [rest], partner: three}\n")
		st, err := tm.p["two"].api.Start(t.Context(), api.StartRequest{Workflow: "rounds", Responsible: "ana"})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.wantMessages("tablet", "ana")
		tm.ends("two", st.ID, api.FinishRequest{Task: "walk", Failed: true, Reason: "rain"})
		const failed = "*rounds failed: walk has failed: rain"
		for range 2 {
			pass(10 * time.Second)
			tm.wantMessages("tablet", "ana", failed)
			tm.wantMessages("phone", "phone")
			for _, at := range []string{"tablet", "phone"} {
				if got := tm.waiting(at); !strings.HasPrefix(got, "rounds blocked by t") || strings.Count(got, "failed") != 1 {
					t.Errorf("%s lists of others %q", at, got)
				}
			}
			pass(time.Hour)
			tm.p["two"].crash()
			tm.p["two"].start()
			tm.connect("two", "three")
			tm.connect("two", "tablet")
			tm.connect("two", "phone")
		}
		pass(10 * time.Second)
		if err := tm.order("tablet", "ana", st.ID, api.TaskContinue, "walk"); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		tm.wantMessages("tablet", "ana")
	})
}

// What a partner says that cannot be is not shown, and a partner that does not answer holds nobody up for long.
func TestWhatCannotBeStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := lacking(t)
		plug := tm.p["two"].plug
		was := plug.handlers[worklists.ProtocolStuck]
		for _, says := range []string{
			"", "{", `[{"shown":{"id":"x"}}]`, `[{"shown":{"id":"` + id + `"},"messages":[{"Text":"come"}]}]`,
			"[" + strings.Repeat(`{"shown":{"id":"`+id+`"}},`, 200) + `{"shown":{"id":"` + id + `"}}]`,
		} {
			plug.HandleRequest(worklists.ProtocolStuck, false, func(workflow.PartnerID, []byte) ([]byte, error) {
				if says == "" {
					return nil, errors.New("there is no such protocol")
				}
				return []byte(says), nil
			})
			pass(time.Minute)
			tm.wantMessages("tablet", "ana")
			tm.wantWaiting("tablet", "")
		}
		plug.HandleRequest(worklists.ProtocolStuck, false, was)
		pass(time.Minute)
		tm.wantWaiting("tablet", "keyless interrupted by two: interrupted")
	})
}
