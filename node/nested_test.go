package node_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const evacuation = `
workflow: evacuation
data:
  where:  {type: string, required: true}
  people: {type: integer}
  rooms:  {type: integer, default: 0}
tasks:
  ask:   {type: manual, out: [people]}
  count: {after: ask, application: set, with: {rooms: people + 1}, out: [rooms]}
partitions: {first: {tasks: [ask], partner: two}, second: {tasks: [count], partner: one}}
`

const inundation = `
workflow: inundation
data:
  place:  {type: string, default: quay}
  people: {type: integer}
  rooms:  {type: integer}
tasks:
  evacuate: {type: workflow, uses: {workflow: evacuation, input: {where: '"at " + place'}}, out: [people, rooms], contingency: by-hand%s}
  by-hand:  {type: manual}
  report:   {after: evacuate, application: set, with: {rooms: rooms * 2}, out: [rooms]}
partitions: {p: {tasks: [evacuate], partner: two}, q: {tasks: [report], partner: one}}
`

// nests is a team of two with both workflows, and a parent that one began.
func nests(t *testing.T, more string) (tm *team, parent string) {
	tm = newTeam(t, "one", "two")
	tm.add("two", evacuation)
	tm.add("one", fmt.Sprintf(inundation, more))
	parent = tm.begin("one", "inundation", nil)
	pass(time.Second)
	return tm, parent
}

// childrenAt are the instances of evacuation that a node has, in states other than some.
func (tm *team) childrenAt(at string, but ...workflow.InstanceState) (out []string) {
	tm.t.Helper()
	list, err := tm.p[at].api.Instances(tm.t.Context(), true)
	if err != nil {
		tm.t.Fatal(err)
	}
	for _, x := range list {
		if x.Workflow == "evacuation" && !slices.Contains(but, x.State) {
			out = append(out, x.ID)
		}
	}
	return out
}

// onlyChild is the one instance of evacuation that a node has.
func (tm *team) onlyChild(at string) string {
	tm.t.Helper()
	list := tm.childrenAt(at)
	if len(list) != 1 {
		tm.t.Fatalf("%s has %d children, want 1", at, len(list))
	}
	return list[0]
}

// ends ends a person's task that a node holds.
func (tm *team) ends(at, id string, r api.FinishRequest) {
	tm.t.Helper()
	r.ID = id
	if err := tm.p[at].api.FinishTask(tm.t.Context(), r); err != nil {
		tm.t.Fatal(err)
	}
	pass(time.Second)
}

// A task of type workflow is done by an instance that its holder begins: it gets what the parent's expressions
// give, whoever answers for the parent answers for it, both name each other at every node, and its data of the
// names in out are the result.
func TestAWorkflowDoesATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, parent := nests(t, "")
		child := tm.onlyChild("two")
		for _, at := range []string{"one", "two"} {
			in, part := tm.show(at, parent), tm.show(at, child)
			i := slices.IndexFunc(in.Tasks, func(t api.Task) bool { return t.Name == "evacuate" })
			if in.Tasks[i].Child != child || part.Parent == nil || part.Parent.Instance != parent ||
				part.Parent.Task != "evacuate" {
				t.Errorf("at %s the parent names %q, the child %+v", at, in.Tasks[i].Child, part.Parent)
			}
			if part.Data["where"] != "at quay" || part.Responsible != "one" {
				t.Errorf("at %s the child has %v, and %s answers for it", at, part.Data["where"], part.Responsible)
			}
		}
		tm.ends("two", child, api.FinishRequest{Task: "ask", Outputs: map[string]string{"people": "7"}})
		tm.succeeds(parent, time.Minute, "one", "two")
		if in := tm.show("one", parent); in.Data["people"] != int64(7) || in.Data["rooms"] != int64(0) {
			t.Errorf("the parent has %v", in.Data)
		}
		tm.once(parent, []string{"evacuate", "report"}, "one", "two")
	})
}

// Wherever the holder is killed, one child is for a try, and the try ends as it does.
func TestOneChildWhereverItsHolderIsKilled(t *testing.T) {
	for n := 1; n <= 8; n++ {
		t.Run(fmt.Sprintf("commit %d", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeam(t, "one", "two")
				tm.add("two", evacuation)
				tm.add("one", fmt.Sprintf(inundation, ""))
				again := func() {
					tm.p["two"].crash()
					tm.p["two"].disk.free()
					tm.p["two"].start()
					tm.connect("one", "two")
					pass(40 * time.Second)
				}
				tm.p["two"].disk.holdAt(n)
				parent := tm.begin("one", "inundation", nil)
				pass(time.Second)
				again()
				if len(tm.childrenAt("two")) == 0 {
					t.Logf("at one:\n%s\nat two:\n%s", lines(tm.log("one", parent)), lines(tm.log("two", parent)))
				}
				child := tm.onlyChild("two")
				tm.p["two"].disk.holdAt(n)
				done := make(chan error, 1)
				go func() {
					done <- tm.p["two"].api.FinishTask(t.Context(),
						api.FinishRequest{ID: child, Task: "ask", Outputs: map[string]string{"people": "7"}})
				}()
				pass(time.Second)
				again()
				if err := <-done; err != nil { // it was not durable, so it was not done
					tm.ends("two", child, api.FinishRequest{Task: "ask", Outputs: map[string]string{"people": "7"}})
				}
				tm.succeeds(parent, 2*time.Minute, "one", "two")
				tm.onlyChild("two")
				if in := tm.show("one", parent); in.Data["people"] != int64(7) {
					t.Errorf("the parent has %v", in.Data)
				}
			})
		})
	}
}

// The child of a task that is not wanted any more is cancelled: the parent was cancelled, also while the holder
// was down, or the task's time is over. A child that fails fails its task, whose contingency stands in.
func TestAChildEndsWithItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, parent := nests(t, "")
		child := tm.onlyChild("two")
		if err := tm.p["one"].api.Cancel(t.Context(), parent, "no flood"); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if s := tm.state("one", child); s != workflow.InstanceCancelled {
			t.Errorf("the child of what was cancelled is %s", s)
		}
		parent = tm.begin("one", "inundation", nil)
		pass(time.Second)
		tm.p["two"].crash()
		if err := tm.p["one"].api.Cancel(t.Context(), parent, "no flood"); err != nil {
			t.Fatal(err)
		}
		tm.p["two"].start()
		tm.connect("one", "two")
		pass(time.Minute)
		if left := tm.childrenAt("two", workflow.InstanceCancelled); len(left) != 0 || len(tm.childrenAt("two")) != 2 {
			t.Errorf("of %d children %d go on", len(tm.childrenAt("two")), len(left))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		tm, parent := nests(t, ", timeout: 5m")
		child := tm.onlyChild("two")
		pass(6 * time.Minute)
		if s := tm.state("two", child); s != workflow.InstanceCancelled ||
			tm.task("one", parent, "by-hand") != workflow.Ready {
			t.Errorf("when its time is over the child is %s, and what stands in for its task %s", s,
				tm.task("one", parent, "by-hand"))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		tm, parent := nests(t, "")
		child := tm.onlyChild("two")
		tm.ends("two", child, api.FinishRequest{Task: "ask", Failed: true, Reason: "no boats"})
		in := tm.show("one", parent)
		i := slices.IndexFunc(in.Tasks, func(t api.Task) bool { return t.Name == "evacuate" })
		if in.Tasks[i].State != workflow.Failed ||
			!strings.Contains(in.Tasks[i].Reason, "is blocked; task ask: no boats") {
			t.Errorf("the task is %s: %s", in.Tasks[i].State, in.Tasks[i].Reason)
		}
		if tm.task("one", parent, "by-hand") != workflow.Ready || tm.state("two", child) != workflow.InstanceCancelled {
			t.Errorf("by-hand is %s, the child %s", tm.task("one", parent, "by-hand"), tm.state("two", child))
		}
	})
}

// A task waits for a file that its child has brought, or is to be given: the instance says so, as of a program.
func TestATaskThatWaitsForItsChildsFileSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		tm.add("base", `
workflow: outing
data: {pic: {type: file}}
tasks: {snap: {type: manual, out: [pic]}}
partitions: {p: {tasks: [snap], partner: tablet}}
`)
		tm.add("base", `
workflow: day
data: {pic: {type: file}}
tasks: {walk: {type: workflow, uses: outing, out: [pic]}}
partitions: {p: {tasks: [walk], partner: base}}
`)
		parent := tm.begin("base", "day", nil)
		pass(time.Second)
		child := tm.taskOf("base", parent, "walk").Child
		answer := tm.p["tablet"].plug.handlers[files.Protocol]
		tm.p["tablet"].plug.HandleRequest(files.Protocol, false, func(workflow.PartnerID, []byte) ([]byte, error) {
			return nil, errors.New("not now")
		})
		f, err := tm.p["tablet"].api.PutFile(t.Context(), "river.txt", strings.NewReader("a river"))
		if err != nil {
			t.Fatal(err)
		}
		tm.ends("tablet", child, api.FinishRequest{Task: "snap", Outputs: map[string]string{"pic": f.Value}})
		pass(10 * time.Second)
		if walk := tm.taskOf("base", parent, "walk"); walk.State != workflow.Running ||
			!strings.Contains(walk.Reason, "waits for file river.txt: ") {
			t.Errorf("it is %s: %q", walk.State, walk.Reason)
		}
		tm.p["tablet"].plug.HandleRequest(files.Protocol, false, answer)
		tm.succeeds(parent, 30*time.Minute, "base")
		if walk := tm.taskOf("base", parent, "walk"); walk.Reason != "" {
			t.Errorf("once it is here it says %q", walk.Reason)
		}
	})
}

// Once a task has ended without its child, nothing is offered in the child that would count nowhere, and such an order
// is refused, with what can be ordered in its place; also by partners that do not know the task's instance.
func TestOrdersInAChildThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", `
workflow: evacuation
tasks: {ask: {type: manual}, call: {after: ask, type: manual}}
partitions: {first: {tasks: [ask, call], partner: three}}
`)
		tm.add("one", `
workflow: inundation
tasks: {evacuate: {type: workflow, uses: evacuation}, report: {after: evacuate, type: manual}}
partitions: {p: {tasks: [evacuate], partner: two}, q: {tasks: [report], partner: one}}
`)
		parent := tm.begin("one", "inundation", nil)
		pass(time.Second)
		child := tm.onlyChild("two")
		tm.ends("three", child, api.FinishRequest{Task: "ask"})
		if in := tm.show("three", child); in.Parent.Ended {
			t.Error("while its task goes on, it is said to have ended")
		}
		tm.ends("three", child, api.FinishRequest{Task: "call", Failed: true, Reason: "no boats"})
		for _, at := range []string{"one", "two", "three"} {
			if in := tm.show(at, child); len(in.Asks) > 0 || !in.Parent.Ended {
				t.Errorf("at %s the child is %s, and offers %+v", at, in.State, in.Asks)
			}
		}
		err := tm.order("one", "one", child, api.TaskAgain, "call")
		wantCode(t, err, api.Refused, "does task evacuate of instance "+parent)
		var no *api.Error
		if errors.As(err, &no); !strings.Contains(no.Hint, "mutirao task again "+parent+" evacuate") {
			t.Errorf("the hint is %q", no.Hint)
		}
		if s := tm.state("two", child); s != workflow.InstanceFailed {
			t.Errorf("the child is %s", s)
		}
		if err := tm.order("one", "one", parent, api.TaskAgain, "evacuate"); err != nil {
			t.Error(err)
		}
		pass(time.Second)
		if n := len(tm.childrenAt("two")); n != 2 {
			t.Errorf("there are %d children, want another", n)
		}
	})
}

// What is left of a child whose task has failed is cancelled: also where nobody has the parent it is said, of each order
// and whatever was ordered before, where one can be given.
func TestOrdersInAChildThatWasCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three", "four")
		tm.add("one", `
workflow: evacuation
tasks: {call: {type: manual}, board: {type: manual}, go: {after: board, type: manual}}
partitions: {first: {tasks: [call], partner: three}, second: {tasks: [board, go], partner: four}}
`)
		tm.add("one", `
workflow: inundation
tasks: {evacuate: {type: workflow, uses: evacuation}, report: {after: evacuate, type: manual}}
partitions: {p: {tasks: [evacuate, report], partner: two}}
`)
		parent := tm.begin("one", "inundation", nil)
		pass(time.Second)
		child := tm.onlyChild("two")
		tm.ends("three", child, api.FinishRequest{Task: "call", Failed: true, Reason: "no boats"})
		if err := tm.order("one", "one", child, api.TaskAgain, "call"); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.ends("three", child, api.FinishRequest{Task: "call", Failed: true, Reason: "no boats again"})
		tm.ends("four", child, api.FinishRequest{Task: "board"})
		if err := tm.order("one", "one", child, api.TaskCancel, ""); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if s := tm.task("two", parent, "evacuate"); s != workflow.Failed {
			t.Fatalf("the parent's task is %s", s)
		}
		for _, at := range []string{"one", "two", "three", "four"} {
			if in := tm.show(at, child); len(in.Asks) > 0 || !in.Parent.Ended {
				t.Errorf("at %s the child is %s, its parent %+v, and it offers %+v", at, in.State, in.Parent, in.Asks)
			}
		}
		for _, order := range []string{api.TaskAgain, api.TaskSkip, api.TaskContinue} {
			for range 4 { // whichever partner says what it is about
				err := tm.order("one", "one", child, order, "call")
				wantCode(t, err, api.Refused, "does task evacuate of instance "+parent)
				var no *api.Error
				if errors.As(err, &no); !strings.Contains(no.Hint, "mutirao task again "+parent+" evacuate") {
					t.Errorf("the hint of %s is %q", order, no.Hint)
				}
			}
		}
	})
}

// Whoever holds a task of a child judges by itself whether an order about it still counts for something, as the partner
// that was asked what it is about may lie. A word that it wrote down before is not refused when it comes once more.
func TestTheHolderJudgesAnOrderInAChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three", "four")
		if err := tm.signIn("four", tm.addUser("one", "lia")); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.add("one", `
workflow: evacuation
tasks: {call: {type: manual}}
partitions: {first: {tasks: [call], partner: three}}
`)
		tm.add("one", `
workflow: inundation
tasks: {evacuate: {type: workflow, uses: evacuation}}
partitions: {p: {tasks: [evacuate], partner: two}}
`)
		begun, err := tm.p["one"].api.Start(t.Context(), api.StartRequest{Workflow: "inundation", Responsible: "lia"})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		child := tm.onlyChild("two")
		tm.ends("three", child, api.FinishRequest{Task: "call", Failed: true, Reason: "no boats"})
		for _, at := range []string{"one", "two", "three"} {
			plug := tm.p[at].plug
			was := plug.handlers[worklists.ProtocolTarget]
			plug.HandleRequest(worklists.ProtocolTarget, false, func(p workflow.PartnerID, req []byte) ([]byte, error) {
				b, err := was(p, req)
				return bytes.Replace(b, []byte(`"outlived"`), []byte(`"unsaid"`), 1), err
			})
		}
		err = tm.order("four", "lia", child, api.TaskAgain, "call")
		wantCode(t, err, api.Refused, "does task evacuate of instance "+begun.ID)
		if tm.task("three", child, "call") != workflow.Failed {
			t.Error("it is done once more, and counts nowhere")
		}
		if err := tm.order("four", "lia", begun.ID, api.TaskAgain, "evacuate"); err != nil {
			t.Error(err)
		}
	})
}

// What a name under uses stands for is fixed at the start: what is listed, or taken off the list, after that
// changes nothing. A holder that lacks a definition gets it from partners.
func TestWhatAWorkflowUsesIsFixedAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", evacuation)
		waits := strings.Replace(fmt.Sprintf(inundation, ""), "  evacuate: {",
			"  wait: {type: manual}\n  evacuate: {after: wait, ", 1)
		tm.add("one", strings.Replace(waits, "tasks: [evacuate]", "tasks: [wait, evacuate]", 1))
		parent := tm.begin("one", "inundation", map[string]string{"q": "one"})
		tm.add("one", strings.Replace(evacuation, "default: 0", "default: 100", 1))
		if _, err := tm.p["one"].api.RemoveWorkflow(t.Context(), "evacuation"); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Minute) // what nobody uses is swept away
		for _, at := range []string{"one", "two"} {
			if err := tm.p[at].api.FinishTask(t.Context(), api.FinishRequest{ID: parent, Task: "wait"}); err == nil {
				break
			}
		}
		pass(time.Minute)
		child := tm.onlyChild("two")
		tm.ends("two", child, api.FinishRequest{Task: "ask", Outputs: map[string]string{"people": "7"}})
		tm.succeeds(parent, time.Minute, "one", "two")
		if in := tm.show("one", parent); in.Data["rooms"] != int64(0) {
			t.Errorf("the parent has %v", in.Data)
		}
	})
}

// What does not fit is refused at the start, and said when it is added.
func TestUsesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		refused := func(source, want string) {
			t.Helper()
			w, err := tm.p["one"].api.AddWorkflow(t.Context(), "test.yaml", []byte(source))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(w.Refused, func(s string) bool { return strings.Contains(s, want) }) {
				t.Errorf("when it is added: %q, want something about %q", w.Refused, want)
			}
			_, err = tm.p["one"].api.Start(t.Context(), api.StartRequest{Workflow: string(w.Name)})
			wantCode(t, err, api.Refused, want)
		}
		refused(fmt.Sprintf(inundation, ""), "evacuation, which is not listed here")
		tm.add("one", evacuation)
		refused("workflow: a\ntasks: {t: {type: workflow, uses: evacuation}}", "needs a value for where")
		refused("workflow: b\ntasks: {t: {type: workflow, uses: {workflow: evacuation, input: {where: 3}}}}",
			"is a string, and is given an integer")
		refused("workflow: c\ntasks: {t: {type: workflow, uses: {workflow: evacuation, input: {where: '\"x\"', wher: 3}}}}", "has no data wher to be given")
		refused("workflow: d\ndata: {people: {type: string}}\ntasks: {t: {type: workflow, out: [people], uses: {workflow: evacuation, input: {where: '\"x\"'}}}}",
			"people is a string here, and an integer in workflow evacuation")
		refused("workflow: e\ntasks: {t: {type: workflow, uses: e}}", "e uses e: a workflow cannot be part of itself")
		tm.add("one", "workflow: shots\ndata: {pic: {type: file, readers: [crew]}}\ntasks: {t: {type: manual, out: [pic]}}")
		w, err := tm.p["one"].api.AddWorkflow(t.Context(), "test.yaml",
			[]byte("workflow: day\ndata: {pic: {type: file}}\ntasks: {t: {type: workflow, out: [pic], uses: shots}}"))
		if err != nil || !slices.ContainsFunc(w.Notes, func(s string) bool {
			return strings.Contains(s, "as pic, only crew may read")
		}) {
			t.Errorf("of a file with other readers it says %+v, %v", w, err)
		}
		tm.add("one", "workflow: f\ntasks: {t: {type: workflow, uses: g}}")
		refused("workflow: g\ntasks: {t: {type: workflow, uses: f}}", "g uses f uses g")
		tm.add("one", "workflow: n0\ntasks: {t: {}}")
		for i := 1; i <= 8; i++ {
			tm.add("one", fmt.Sprintf("workflow: n%d\ntasks: {t: {type: workflow, uses: n%d}}", i, i-1))
		}
		tm.succeeds(tm.begin("one", "n8", nil), time.Minute, "one")
		refused("workflow: n9\ntasks: {t: {type: workflow, uses: n8}}", "instances are nested 8 deep at most")
	})
}

// Of instances that one member began a node has only so many children under way: the others wait.
func TestOneMembersChildrenWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Instances = 32 }, "one", "two")
		tm.add("two", evacuation)
		tm.add("one", fmt.Sprintf(inundation, ""))
		for range 3 {
			tm.begin("one", "inundation", nil)
		}
		pass(2 * time.Minute)
		if n := len(tm.childrenAt("two")); n != 2 {
			t.Fatalf("%d children are under way, want 2", n)
		}
		tm.ends("two", tm.childrenAt("two")[0],
			api.FinishRequest{Task: "ask", Outputs: map[string]string{"people": "7"}})
		pass(2 * time.Minute)
		if n := len(tm.childrenAt("two")); n != 3 {
			t.Errorf("%d children were begun, want 3", n)
		}
	})
}

// Nobody has others start what it may not start itself: the holder has the role that the child's workflow wants,
// and so must whoever began the parent.
func TestACreatorRoleIsAskedOfTheWholeLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two:chief", "three:chief")
		tm.add("two", strings.Replace(evacuation, "workflow: evacuation", "workflow: evacuation\ncreator-role: chief",
			1))
		tm.add("one", fmt.Sprintf(inundation, ""))
		reason := func(id string) string {
			in := tm.show("two", id)
			i := slices.IndexFunc(in.Tasks, func(t api.Task) bool { return t.Name == "evacuate" })
			return string(in.Tasks[i].State) + ": " + in.Tasks[i].Reason
		}
		began, err := tm.p["one"].api.Start(t.Context(), api.StartRequest{Workflow: "inundation"})
		if err != nil {
			t.Fatal(err)
		}
		want := "task evacuate will fail: one, which begins this instance, may not start workflow evacuation: role chief does that"
		if !slices.Contains(began.Notes, want) {
			t.Errorf("at the start it is said: %s", began.Notes)
		}
		id := began.ID
		pass(time.Second)
		if r := reason(id); !strings.HasPrefix(r, "FAILED") ||
			!strings.Contains(r, "one, which began an instance that it is part of, may not start workflow evacuation: role chief does that") ||
			!strings.Contains(r, "the workflow that uses it needs creator-role: chief, too") {
			t.Errorf("the task of what one began is %s", r)
		}
		st, err := tm.p["three"].api.Start(t.Context(), api.StartRequest{Workflow: "inundation"})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if strings.Contains(strings.Join(st.Notes, "\n"), "will fail") {
			t.Errorf("of what three may start it is said: %s", st.Notes)
		}
		if r := reason(st.ID); r != "RUNNING: " || len(tm.childrenAt("two")) != 1 {
			t.Errorf("the task of what three began is %s, with %d children", r, len(tm.childrenAt("two")))
		}
	})
}

// A holder that lacks the role with which a child is started is told to have it, though a user at its node has it: no
// user starts a child.
func TestAHolderStartsItsChildByItsCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one:chief", "two")
		if err := tm.signIn("two", tm.addUser("one", "bia", "chief")); err != nil {
			t.Fatal(err)
		}
		tm.add("two", strings.Replace(evacuation, "workflow: evacuation", "workflow: evacuation\ncreator-role: chief", 1))
		tm.add("one", fmt.Sprintf(inundation, ""))
		id := tm.begin("one", "inundation", nil)
		pass(time.Second)
		reason := tm.taskOf("two", id, "evacuate").Reason
		if !strings.Contains(reason, "two may not start workflow evacuation: role chief does that, and its certificate gives it no role") ||
			!strings.Contains(reason, "list it under roles of the task's partition") || strings.Contains(reason, "--user") {
			t.Errorf("it failed as %s", reason)
		}
	})
}

// Where only a user has the role with which a child is started, what helps is said: a partner that joins with it. To
// list the role alone leads to the same.
func TestOnlyAUserHasTheRoleOfAChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		if err := tm.signIn("two", tm.addUser("one", "bia", "chief")); err != nil {
			t.Fatal(err)
		}
		tm.add("two", strings.Replace(evacuation, "workflow: evacuation", "workflow: evacuation\ncreator-role: chief", 1))
		tm.add("one", fmt.Sprintf(inundation, ""))
		id := tm.begin("one", "inundation", nil)
		pass(time.Second)
		if reason := tm.taskOf("two", id, "evacuate").Reason; !strings.Contains(reason, "no partner has that role: have one join with it (mutirao invite --role chief)") {
			t.Errorf("it failed as %s", reason)
		}
		tm.add("one", strings.Replace(fmt.Sprintf(inundation, ""), "tasks: [evacuate], partner: two", "tasks: [evacuate], roles: [chief]", 1))
		_, err := tm.p["one"].api.Start(t.Context(), api.StartRequest{Workflow: "inundation"})
		if err == nil || !strings.Contains(err.Error(), "have a partner join with it: mutirao invite --role chief; leave this one out only") {
			t.Errorf("with the role listed: %v", err)
		}
	})
}

// A new task is done by a workflow that the instance uses already, as its start says which one that is. Of any other it
// does not say that, and what does not fit is refused: nothing is changed.
func TestAnAddedTaskUsesAWorkflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, parent := nests(t, "")
		first := tm.onlyChild("two")
		amend := func(uses string, dry bool) (*api.Amended, error) {
			src := strings.NewReplacer("  report:", "  again: {type: workflow, uses: "+uses+", out: [people]}\n  report:",
				"{tasks: [evacuate]", "{tasks: [evacuate, again]").Replace(fmt.Sprintf(inundation, ""))
			r := api.AmendRequest{User: "one", ID: parent, File: "more.yaml", Source: src}
			if dry {
				seen, err := tm.p["one"].api.ForeseeAmendment(t.Context(), r)
				if err == nil && len(seen.NotYet) != 1 {
					t.Errorf("foreseen is %+v", seen)
				}
				return nil, err
			}
			done, err := tm.p["one"].api.AmendInstance(t.Context(), r)
			pass(time.Second)
			return done, err
		}
		tm.add("one", strings.Replace(evacuation, "workflow: evacuation", "workflow: shelter", 1))
		_, err := amend("{workflow: shelter, input: {where: place}}", false)
		wantCode(t, err, api.Refused, "a new task uses shelter")
		if _, err = amend("{workflow: shelter, input: {where: place}}", true); err != nil {
			t.Error(err)
		}
		if _, err = amend("{workflow: evacuation, input: {there: place}}", false); err == nil ||
			!strings.Contains(err.Error(), "there") {
			t.Errorf("what does not fit: %v", err)
		}
		if in := tm.show("two", parent); len(in.Amended) > 0 {
			t.Errorf("it was changed: %+v", in.Amended)
		}
		if _, err = amend("{workflow: evacuation, input: {where: '\"up \" + place'}}", false); err != nil {
			t.Fatal(err)
		}
		children := tm.childrenAt("two")
		if len(children) != 2 {
			t.Fatalf("two has %d children, want 2", len(children))
		}
		if children[0] != first {
			slices.Reverse(children)
		}
		for i, c := range children {
			if where := tm.show("two", c).Data["where"]; c != first && where != "up quay" {
				t.Errorf("the second is at %v", where)
			}
			tm.ends("two", c, api.FinishRequest{Task: "ask", Outputs: map[string]string{"people": fmt.Sprint(7 + i)}})
		}
		tm.succeeds(parent, time.Minute, "one", "two")
		if people := tm.show("one", parent).Data["people"]; people != int64(8) {
			t.Errorf("with the result of the new task there are %v people, want 8", people)
		}
		tm.once(parent, []string{"evacuate", "again", "report"}, "one", "two")
	})
}

// evacuates has one begin an instance of which the first task, at two, is done by a child, of which the only task is at
// three. More is what else is said of that first task, with what may stand in for it, by-hand, at one.
func (tm *team) evacuates(more string) (parent, child string) {
	tm.t.Helper()
	tm.add("one", `
workflow: evacuation
data: {people: {type: integer}}
tasks:
  count: {type: manual, out: [people]}
partitions: {first: {tasks: [count], partner: three}}
`)
	tm.add("one", fmt.Sprintf(`
workflow: inundation
data: {people: {type: integer}}
tasks:
  evacuate: {type: workflow, uses: evacuation, out: [people]%s}
  by-hand:  {type: manual, out: [people]}
  report:   {after: evacuate}
partitions: {p: {tasks: [evacuate], partner: two}, q: {tasks: [by-hand, report], partner: one}}
`, more))
	parent = tm.begin("one", "inundation", nil)
	pass(time.Second)
	return parent, tm.onlyChild("two")
}

// wantEvacuated demands states of that first task and, unless it is empty, of what stands in for it. Only with its success
// the parent has the seven people of the child.
func (tm *team) wantEvacuated(parent string, task, standIn workflow.State) {
	tm.t.Helper()
	if s := tm.task("one", parent, "evacuate"); s != task {
		tm.t.Errorf("its task is %s, want %s", s, task)
	}
	if s := tm.task("one", parent, "by-hand"); standIn != "" && s != standIn {
		tm.t.Errorf("what stands in is %s, want %s", s, standIn)
	}
	if people := tm.show("one", parent).Data["people"]; (people == int64(7)) != (task == workflow.Succeeded) {
		tm.t.Errorf("the parent has %v", people)
	}
}

// What a child comes to while its holder is gone counts for its task as what the holder itself does meanwhile: with its
// success the task has succeeded, and what stands in for it is not needed, or what its author chose counts. One that
// goes on is cancelled a little later.
func TestAChildEndsWhileItsHolderIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		contingency   string
		begun, goesOn bool
		task, standIn workflow.State
		child         workflow.InstanceState
	}{
		"nothing stands in": {"", false, false, workflow.Succeeded, "", workflow.InstanceSucceeded},
		"not begun": {", contingency: by-hand", false, false, workflow.Succeeded, workflow.Skipped,
			workflow.InstanceSucceeded},
		"begun": {", contingency: by-hand", true, false, workflow.Succeeded, workflow.Aborted,
			workflow.InstanceSucceeded},
		"begun, and kept": {", contingency: by-hand, reconcile: keep-replacement", true, false, workflow.Failed,
			workflow.Running, workflow.InstanceSucceeded},
		"goes on": {", contingency: by-hand", false, true, workflow.Failed, workflow.Ready,
			workflow.InstanceCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeam(t, "one", "two", "three")
				parent, child := tm.evacuates(", timeout: 20h" + c.contingency)
				tm.p["two"].crash()
				pass(2 * time.Hour)
				if c.begun {
					if err := tm.p["one"].api.BeginTask(t.Context(), api.BeginRequest{ID: parent, Task: "by-hand"}); err != nil {
						t.Fatal(err)
					}
				}
				if !c.goesOn {
					tm.ends("three", child, api.FinishRequest{Task: "count", Outputs: map[string]string{"people": "7"}})
				}
				tm.p["two"].start()
				tm.connect("one", "two")
				tm.connect("three", "two")
				pass(time.Minute)
				if s := tm.state("three", child); s != c.child {
					t.Errorf("the child is %s, want %s", s, c.child)
				}
				tm.wantEvacuated(parent, c.task, c.standIn)
			})
		})
	}
}

// A child that has failed only as others presume, since somebody is out of reach there, ends no try from whose failure
// nothing would follow but a block: what the person did counts when it comes. Where something stands in for its task,
// that does so, and the child is cancelled; once the person's device is gone for good, the try has failed.
func TestAChildThatIsPresumedToHaveFailed(t *testing.T) {
	for name, c := range map[string]struct {
		failure       string
		evicted       bool
		task, standIn workflow.State
		child         workflow.InstanceState
	}{
		"blocks":   {"", false, workflow.Succeeded, "", workflow.InstanceSucceeded},
		"gone":     {"", true, workflow.Failed, "", workflow.InstanceFailed},
		"stand-in": {", on-failure: {contingency: by-hand}", false, workflow.Failed, workflow.Ready, workflow.InstanceCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeam(t, "one", "two", "three")
				parent, child := tm.evacuates(c.failure)
				for _, at := range []string{"one", "two"} {
					tm.disconnect(at, "three")
				}
				pass(time.Hour)
				tm.p["two"].crash() // what it waits for is found again
				tm.p["two"].start()
				tm.connect("one", "two")
				pass(time.Minute)
				if c.evicted {
					_, err := tm.p["one"].api.Evict(t.Context(), api.EvictRequest{Partner: "three", Reason: "lost"})
					if err != nil {
						t.Fatal(err)
					}
					pass(time.Minute)
				} else {
					err := tm.p["three"].api.FinishTask(t.Context(), api.FinishRequest{ID: child, Task: "count",
						Outputs: map[string]string{"people": "7"}})
					if err != nil {
						t.Fatal(err)
					}
					for _, at := range []string{"one", "two"} {
						tm.connect(at, "three")
					}
				}
				pass(time.Minute)
				if s := tm.state("two", child); s != c.child {
					t.Errorf("the child is %s, want %s", s, c.child)
				}
				tm.wantEvacuated(parent, c.task, c.standIn)
			})
		})
	}
}
