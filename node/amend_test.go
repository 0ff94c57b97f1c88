package node_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/test/sample"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
)

const patrol = `
workflow: patrol
version: 1
administrators: chief
tasks:
  walk: {type: manual, timeout: 1h, on-failure: release}
  rest: {type: manual, after: walk, timeout: 1h, on-failure: release}
partitions:
  there: {tasks: [walk], partner: two}
  here:  {tasks: [rest], partner: one}
`

// amend has a user at a node amend an instance of patrol, in which pieces of the text are others.
func (tm *team) amend(at, user, id string, pairs ...string) (*api.Amended, error) {
	tm.t.Helper()
	done, err := tm.p[at].api.AmendInstance(tm.t.Context(), api.AmendRequest{
		User: user, ID: id, File: "patrol.yaml", Source: strings.NewReplacer(pairs...).Replace(patrol),
	})
	synctest.Wait()
	return done, err
}

// Whoever holds a task goes by the amended limit from when it hears of it; who had not heard of it judged by the old
// one, and that stands. A user who may not amend, and what cannot be changed, is refused, and changes nothing.
func TestAmendedLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", patrol)
		told, untold := tm.begin("one", "patrol", nil), tm.begin("one", "patrol", nil)
		if _, err := tm.amend("two", "two", told, "timeout: 1h, on", "timeout: 5h, on"); err == nil {
			t.Error("one who does not decide about it amends it")
		} else {
			wantCode(t, err, api.NotAllowed, "")
		}
		_, err := tm.amend("one", "one", told, "rest: {type: manual", "rest: {type: manual, offline: true")
		wantCode(t, err, api.Refused, "cannot be changed so yet: task rest, offline")
		if in := tm.show("two", told); in.Version != 1 || len(in.Amended) > 0 {
			t.Errorf("it was changed: %+v", in.Amended)
		}
		if done, err := tm.amend("one", "one", told, "version: 1", "version: 2", "walk: {type: manual, timeout: 1h",
			"walk: {type: manual, timeout: 5h"); err != nil || done.Version != 2 || done.Already {
			t.Fatalf("%+v, %v", done, err)
		}
		for _, at := range []string{"one", "two"} {
			if in := tm.show(at, told); in.Version != 2 || len(in.Amended) != 1 || in.Amended[0].User != "one" ||
				strings.Join(in.Amended[0].Lines, "; ") != "workflow, version: 2; task walk, timeout: 5h" {
				t.Errorf("%s shows %d, %+v", at, in.Version, in.Amended)
			}
		}
		tm.disconnect("one", "two")
		tm.disconnect("three", "two") // else it hears of the second change by way of the third
		pass(time.Second)
		if _, err := tm.amend("one", "one", untold, "walk: {type: manual, timeout: 1h",
			"walk: {type: manual, timeout: 5h"); err != nil {
			t.Fatal(err)
		}
		pass(70 * time.Minute)
		if s := tm.task("two", told, "walk"); s != workflow.Ready {
			t.Errorf("with five hours walk is %s after 70 minutes", s)
		}
		if s := tm.task("two", untold, "walk"); s != workflow.Failed {
			t.Errorf("with an hour, as far as its holder knows, walk is %s after 70 minutes", s)
		}
		tm.connect("one", "two")
		tm.connect("three", "two")
		pass(5 * time.Second)
		for _, id := range []string{told, untold} {
			a, _ := tm.p["one"].node.Fingerprint(t.Context(), id)
			b, _ := tm.p["two"].node.Fingerprint(t.Context(), id)
			if string(a) != string(b) {
				t.Errorf("they differ:\n%s\n%s", a, b)
			}
		}
		if s := tm.task("one", untold, "walk"); s != workflow.Failed {
			t.Errorf("what its holder said is %s", s)
		}
	})
}

// spread has a partition more than patrol, for a partner that takes no part yet.
var spread = []string{
	"version: 1", "version: 2", "after: walk,", "after: [walk, call],",
	"  rest:", "  call: {type: manual, after: walk, timeout: 9h}\n  rest:",
	"partitions:", "partitions:\n  far: {tasks: [call], partner: three}",
}

// A partition is new, at a partner that took no part: it is brought in while another is cut off, which hears of it
// later. A partner that is not there, and one that cannot do it, is refused, and nothing is changed.
func TestAPartitionIsAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", patrol)
		id := tm.begin("one", "patrol", nil)
		wrong := append(slices.Clone(spread[:len(spread)-1]), strings.Replace(spread[len(spread)-1], "three", "four", 1))
		_, err := tm.amend("one", "one", id, wrong...)
		wantCode(t, err, api.Refused, "partition far: nobody could have it")
		if in := tm.show("one", id); in.Version != 1 || len(in.Amended) > 0 {
			t.Errorf("it was changed: %+v", in.Amended)
		}
		tm.disconnect("one", "two")
		tm.disconnect("three", "two")
		pass(time.Second)
		done, err := tm.amend("one", "one", id, spread...)
		if err != nil || !slices.Contains(done.Lines, "partition far is at three") {
			t.Fatalf("%+v, %v", done, err)
		}
		pass(5 * time.Second)
		if in := tm.show("three", id); in.Version != 2 || len(in.Partitions) != 3 {
			t.Errorf("three shows %d, %+v", in.Version, in.Partitions)
		}
		tm.p["three"].crash()
		tm.p["three"].start()
		tm.connect("one", "three")
		tm.connect("one", "two")
		pass(5 * time.Second)
		tm.finish("two", id, "walk")
		pass(5 * time.Second)
		if s := tm.task("one", id, "rest"); s != workflow.NotReady {
			t.Errorf("rest is %s before call is done", s)
		}
		tm.finish("three", id, "call")
		pass(5 * time.Second)
		tm.finish("one", id, "rest")
		pass(5 * time.Second)
		for _, at := range []string{"one", "two", "three"} {
			if in := tm.show(at, id); in.State != workflow.InstanceSucceeded {
				t.Errorf("at %s it is %s", at, in.State)
			}
		}
		a, _ := tm.p["one"].node.Fingerprint(t.Context(), id)
		b, _ := tm.p["three"].node.Fingerprint(t.Context(), id)
		if string(a) != string(b) {
			t.Errorf("they differ:\n%s\n%s", a, b)
		}
	})
}

// What nobody can do is refused, as a start refuses it: a task of a role that nobody has, be it of a graph or fired by
// data, and a trigger that becomes a program which its holder does not have.
func TestNobodyCanDoWhatIsAmended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", patrol)
		tm.add("one", hire)
		id, flow := tm.begin("one", "patrol", nil), tm.begin("one", "hire", nil)
		pass(time.Second)
		refused := func(id, source, why string, pairs ...string) {
			t.Helper()
			r := api.AmendRequest{User: "one", ID: id, File: "f.yaml", Source: strings.NewReplacer(pairs...).Replace(source)}
			seen, err := tm.p["one"].api.ForeseeAmendment(t.Context(), r)
			if err != nil || len(seen.Refused) != 1 || !strings.Contains(seen.Refused[0].Line, why) {
				t.Fatalf("%+v, %v", seen, err)
			}
			_, err = tm.p["one"].api.AmendInstance(t.Context(), r)
			wantCode(t, err, api.Refused, why)
		}
		refused(id, patrol, "task n: nobody could do it: nobody has role nobody", "tasks: [rest]", "tasks: [rest, n]",
			"  rest:", "  n: {type: manual, role: nobody}\n  rest:")
		refused(flow, hire, "task n: nobody could do it: nobody has role nobody", "[choose, agree]", "[choose, agree, n]",
			"  agree:", "  n: {when: car == \"x\", repeat: true, type: manual, role: nobody, out: [car]}\n  agree:")
		refused(flow, hire, "task agree: nobody could do it: nobody has role nobody",
			"true, type: manual, out: [status]", "true, type: manual, role: nobody, out: [status]")
		refused(flow, hire, "keeps the data states, and lacks application frob (agree) (name what that partner is able to do",
			"true, type: manual, out: [status]", "true, application: frob, out: [status]")
	})
}

// New partitions of one amendment are shared out, as a start shares them out, and each pin is looked at as there.
func TestPartitionsAreAddedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three", "four")
		tm.add("one", patrol)
		id := tm.begin("one", "patrol", nil)
		more := func(at string) []string {
			return []string{"  rest:", "  a: {type: manual}\n  b: {type: manual}\n  rest:",
				"partitions:", "partitions:\n  pa: {tasks: [a]}\n  pb: {tasks: [b]" + at + "}"}
		}
		_, err := tm.amend("one", "one", id, more(", partner: zzz")...)
		wantCode(t, err, api.Refused, "it is pinned to zzz, which is not on the partner list")
		if done, err := tm.amend("one", "one", id, more("")...); err != nil {
			t.Fatal(err)
		} else if lines := strings.Join(done.Lines, "; "); !strings.Contains(lines, "partition pa is at three") &&
			!strings.Contains(lines, "partition pa is at four") || strings.Contains(lines, "is at one") ||
			strings.Contains(lines, "is at two") || strings.Count(lines, "is at three") != 1 {
			t.Errorf("they are not shared out: %s", lines)
		}
	})
}

// What is only looked at is refused alike: whoever may not amend the instance, where it was amended as often as it may
// be, and at a node that takes no part, which names one that does. How work is distributed has no effect.
func TestAnAmendmentIsForeseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", patrol)
		id := tm.begin("one", "patrol", nil)
		ask := func(at string, pairs ...string) (*api.Amendment, error) {
			return tm.p[at].api.ForeseeAmendment(t.Context(), api.AmendRequest{
				User: at, ID: id, File: "patrol.yaml", Source: strings.NewReplacer(pairs...).Replace(patrol),
			})
		}
		both := func(at, text string, pairs ...string) {
			t.Helper()
			_, err := ask(at, pairs...)
			_, real := tm.amend(at, at, id, pairs...)
			if err == nil || real == nil || err.Error() != real.Error() || !strings.Contains(err.Error(), text) {
				t.Errorf("%v, and %v: want %s", err, real, text)
			}
		}
		both("two", "one answers for the instance", "timeout: 1h, on", "timeout: 5h, on")
		both("three", "one answers for the instance", "timeout: 1h, on", "timeout: 5h, on")
		if seen, err := ask("one", "tasks:\n", "distribution: {mechanism: Push}\ntasks:\n"); err != nil ||
			len(seen.NotYet)+len(seen.Refused) > 0 || len(seen.NoEffect) != 1 {
			t.Errorf("%+v, %v", seen, err)
		}
		for i := range amendments.MaxPatches {
			if _, err := tm.amend("one", "one", id, "version: 1", fmt.Sprintf("version: %d", i+2)); err != nil {
				t.Fatal(err)
			}
		}
		seen, err := ask("one", "version: 1", "version: 99")
		if err != nil || len(seen.Refused) != 1 ||
			!strings.HasPrefix(seen.Refused[0].Line, "workflow: the instance was amended 64 times, at most 64 (start") {
			t.Errorf("%+v, %v", seen, err)
		}
		_, err = tm.amend("one", "one", id, "version: 1", "version: 99")
		wantCode(t, err, api.Refused, "amended 64 times, at most 64")
		if err := tm.p["one"].api.Cancel(t.Context(), id, "enough"); err != nil {
			t.Fatal(err)
		}
		if seen, err := ask("one", "version: 1", "version: 99"); err != nil || !seen.Ended || len(seen.Refused) != 1 {
			t.Errorf("%+v, %v", seen, err)
		}
	})
}

// Whoever administers a workflow amends an instance from a node that takes no part: it compares by itself, and a
// participant writes down what the person signed. A dry run says the same as where the instance is, and changes
// nothing, and who may not amend it is refused.
func TestAnAmendmentAtANodeThatTakesNoPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three:chief", "four")
		tm.add("one", patrol)
		id := tm.begin("two", "patrol", nil)
		tm.finish("two", id, "walk")
		pass(time.Second)
		dry := func(at string, pairs ...string) (*api.Amendment, error) {
			return tm.p[at].api.ForeseeAmendment(t.Context(), api.AmendRequest{
				User: at, ID: id, File: "patrol.yaml", Source: strings.NewReplacer(pairs...).Replace(patrol),
			})
		}
		change := append(slices.Clone(spread), "rest: {type: manual, after: walk, timeout: 1h",
			"rest: {type: manual, after: [walk, call], timeout: 9h")
		change = slices.DeleteFunc(change, func(s string) bool {
			return s == "after: walk," || s == "after: [walk, call],"
		})
		change[slices.Index(change, "partitions:")+1] = "partitions:\n  far: {tasks: [call], partner: four}"
		here, err := dry("two", change...)
		if err != nil {
			t.Fatal(err)
		}
		there, err := dry("three", change...)
		if err != nil || !reflect.DeepEqual(here, there) || len(there.Refused)+len(there.NotYet) > 0 ||
			!slices.Contains(there.Lines, "partition far is at four") {
			t.Errorf("%v: a node that takes part sees %+v, one that does not %+v", err, here, there)
		}
		if seen, err := dry("three", "walk: {type: manual", "walk: {type: manual, in: []",
			"after: walk", "after: []"); err != nil {
			t.Error(err)
		} else if is, err := dry("two", "walk: {type: manual", "walk: {type: manual, in: []",
			"after: walk", "after: []"); err != nil || !reflect.DeepEqual(seen, is) {
			t.Errorf("%v: it sees %+v, and one that takes part %+v", err, seen, is)
		}
		_, err = dry("four", change...)
		wantCode(t, err, api.NotAllowed, "two answers for the instance")
		_, err = tm.amend("four", "four", id, change...)
		wantCode(t, err, api.NotAllowed, "two answers for the instance")
		if in := tm.show("one", id); len(in.Amended) > 0 {
			t.Fatalf("it was changed: %+v", in.Amended)
		}
		done, err := tm.amend("three", "three", id, change...)
		if err != nil || done.Version != 2 || !slices.Contains(done.Lines, "partition far is at four") {
			t.Fatalf("%+v, %v", done, err)
		}
		pass(5 * time.Second)
		for _, at := range []string{"one", "two", "four"} {
			if in := tm.show(at, id); in.Version != 2 || len(in.Amended) != 1 || in.Amended[0].User != "three" {
				t.Errorf("%s shows %d, %+v", at, in.Version, in.Amended)
			}
		}
		if done, err := tm.amend("three", "three", id, change...); err != nil || !done.Already {
			t.Errorf("once more: %+v, %v", done, err)
		}
		_, err = tm.amend("three", "three", id[:9], change...)
		wantCode(t, err, api.Refused, "begins the ID of an instance of which only")
		tm.finish("four", id, "call")
		pass(5 * time.Second)
		tm.finish("one", id, "rest")
		pass(5 * time.Second)
		if in := tm.show("two", id); in.State != workflow.InstanceSucceeded {
			t.Errorf("it is %s", in.State)
		}
		_, err = tm.amend("three", "three", id, "version: 1", "version: 4")
		wantCode(t, err, api.Refused, "the instance has ended")
	})
}

// Where the definition changed after a node that takes no part compared it, nothing is done. What is brought twice counts
// once. Partners that do not say alike by which definition the instance runs are named, and so is one that says what
// cannot be.
func TestAnAmendmentFromElsewhereIsOfOneDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three:chief")
		tm.add("one", patrol)
		id := tm.begin("two", "patrol", nil)
		pass(time.Second)
		wrap := func(protocol string, by func(was func() ([]byte, error)) ([]byte, error), at ...string) (undo func()) {
			before := map[string]func(workflow.PartnerID, []byte) ([]byte, error){}
			for _, a := range at {
				plug := tm.p[a].plug
				was := plug.handlers[protocol]
				before[a] = was
				plug.HandleRequest(protocol, false, func(from workflow.PartnerID, req []byte) ([]byte, error) {
					return by(func() ([]byte, error) { return was(from, req) })
				})
			}
			return func() {
				for a, was := range before {
					tm.p[a].plug.HandleRequest(protocol, false, was)
				}
			}
		}
		versions := func() (out []int) {
			pass(5 * time.Second)
			for _, at := range []string{"one", "two"} {
				out = append(out, tm.show(at, id).Version, len(tm.show(at, id).Amended))
			}
			return out
		}
		// Another amends it between the comparison and the signature's arrival.
		undo := wrap(worklists.ProtocolAmend, func(was func() ([]byte, error)) ([]byte, error) {
			if _, err := tm.p["two"].api.AmendInstance(t.Context(), api.AmendRequest{
				User: "two", ID: id, File: "patrol.yaml", Source: strings.Replace(patrol, "version: 1", "version: 2", 1),
			}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			return was()
		}, "one", "two")
		_, err := tm.amend("three", "three", id, "version: 1", "version: 3", "timeout: 1h, on", "timeout: 5h, on")
		wantCode(t, err, api.Refused, "has changed meanwhile; nothing is changed")
		undo()
		if got := versions(); !slices.Equal(got, []int{2, 1, 2, 1}) {
			t.Errorf("versions and amendments are %v, want the other one alone", got)
		}
		// It is written down, and the answer is lost: it is brought once more.
		lost := false
		undo = wrap(worklists.ProtocolAmend, func(was func() ([]byte, error)) ([]byte, error) {
			if _, err := was(); err != nil {
				t.Error(err)
			}
			lost = true
			return was()
		}, "one", "two")
		_, err = tm.amend("three", "three", id, "version: 1", "version: 3", "timeout: 1h, on", "timeout: 5h, on")
		undo()
		if got := versions(); err != nil || !lost || !slices.Equal(got, []int{3, 2, 3, 2}) {
			t.Errorf("%v; versions and amendments are %v, want one more", err, got)
		}
		// One says that it runs by something else.
		undo = wrap(worklists.ProtocolTarget, func(was func() ([]byte, error)) ([]byte, error) {
			b, err := was()
			var a map[string]map[string]any
			if err != nil || json.Unmarshal([]byte(strings.Replace(string(b), `"here":true`, `"here":{}`, 1)), &a) != nil {
				return b, err
			}
			a["target"]["runs"] = make([]int, 32)
			target, err := json.Marshal(a["target"])
			return []byte(`{"here":true,"target":` + string(target) + `}`), err
		}, "two")
		_, err = tm.amend("three", "three", id, "version: 1", "version: 4")
		wantCode(t, err, api.Refused, "do not say alike by which definition it runs")
		undo()
		// What they say of it is no definition, or another one.
		for _, says := range []string{`{"basis":"e30="}`, `{}`, `{"basis":"eyJkZWZpbml0aW9uIjoiZTMwPSJ9"}`} {
			undo = wrap(worklists.ProtocolBasis, func(func() ([]byte, error)) ([]byte, error) {
				return []byte(says), nil
			}, "one", "two")
			_, err = tm.amend("three", "three", id, "version: 1", "version: 4")
			wantCode(t, err, api.Refused, "says of instance "+id+" cannot be")
			undo()
		}
		undo = wrap(worklists.ProtocolBasis, func(func() ([]byte, error)) ([]byte, error) {
			return nil, errors.New("there is no such protocol")
		}, "one", "two")
		_, err = tm.amend("three", "three", id, "version: 1", "version: 4")
		wantCode(t, err, api.Refused, "does not say how far that has got")
		undo()
		if got := versions(); !slices.Equal(got, []int{3, 2, 3, 2}) {
			t.Errorf("versions and amendments are %v, and nothing was to change", got)
		}
		tm.disconnect("three", "one")
		tm.disconnect("three", "two")
		pass(time.Second)
		_, err = tm.amend("three", "three", id, "version: 1", "version: 4")
		wantCode(t, err, api.NotFound, "no instance")
	})
}

// A node that takes no part sees just what one sees that does, also of an instance that is driven by its data, of loops
// that have become shorter, of values and of what has begun.
func TestAnAmendmentIsForeseenElsewhereAsThere(t *testing.T) {
	const review = `
workflow: review
version: 1
administrators: chief
data: {ok: {type: boolean}, n: {type: integer, max: 9}, l: {type: list}}
tasks:
  draft: {type: manual, out: [n, l], compensate: {application: noop}}
  look:  {type: manual, after: draft, out: [ok], repeat: {times: 4, from: draft, while: not ok}}
  print: {type: manual, after: look}
partitions:
  there: {tasks: [draft, look], partner: two}
  here:  {tasks: [print], partner: one}
`
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three:chief")
		led := strings.Replace(hire, "version: 1", "version: 1\nadministrators: chief", 1)
		tm.add("one", review)
		tm.add("one", led)
		loop, flow := tm.begin("two", "review", nil), tm.begin("two", "hire", nil)
		pass(time.Second)
		source := func(of string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(of) }
		do := func(at, id, source string) {
			t.Helper()
			if _, err := tm.p[at].api.AmendInstance(t.Context(), api.AmendRequest{
				User: at, ID: id, File: "f.yaml", Source: source,
			}); err != nil {
				t.Fatal(err)
			}
			pass(5 * time.Second)
		}
		done := func(id string, task workflow.TaskName, outputs map[string]string) {
			t.Helper()
			if err := tm.p["two"].api.FinishTask(t.Context(), api.FinishRequest{ID: id, Task: task, Outputs: outputs}); err != nil {
				t.Fatal(err)
			}
			pass(5 * time.Second)
		}
		same := func(id, source string, lines int) {
			t.Helper()
			var seen []*api.Amendment
			for _, at := range []string{"two", "three"} {
				x, err := tm.p[at].api.ForeseeAmendment(t.Context(), api.AmendRequest{
					User: at, ID: id, File: "f.yaml", Source: source,
				})
				if err != nil {
					t.Fatal(err)
				}
				seen = append(seen, x)
			}
			n := len(seen[0].Refused) + len(seen[0].NotYet) + len(seen[0].NoEffect)
			if n != lines || !reflect.DeepEqual(seen[0], seen[1]) {
				t.Errorf("%d findings, want %d; where it is it sees\n%+v\nelsewhere\n%+v", n, lines, seen[0], seen[1])
			}
		}
		same(loop, source(review, "times: 4", "times: 3", "max: 9", "max: 5"), 0)
		do("three", loop, source(review, "times: 4", "times: 2"))
		done(loop, "draft", map[string]string{"n": "7", "l": `["a"]`})
		same(loop, source(review, "times: 4", "times: 3", "max: 9", "max: 5", "draft: {type: manual,",
			"draft: {type: manual, role: pilot,", "compensate: {application: noop}", "timeout: 2h"), 2)
		same(flow, source(led, rehired...), 0)
		do("three", flow, source(led, rehired...))
		done(flow, "choose", map[string]string{"car": "red"})
		same(flow, source(source(led, rehired...), "version: 2", "version: 3", "enum: [here, lost]", "enum: [here]",
			"choose: {when: car == null", "choose: {when: car == null and papers == null"), 0)
		same(flow, source(source(led, rehired...), "car: {type: string}", "car: {type: string, enum: [blue]}"), 1)
	})
}

// The coordinator hears of instances in which it takes no part: there the beginning of an ID says which is meant.
func TestTheCoordinatorAmendsWhatItHearsOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three:chief")
		tm.add("one", patrol)
		tm.elect("three")
		id := tm.begin("two", "patrol", nil)
		pass(10 * time.Second)
		if got := tm.overview("three", id); got == "" {
			t.Fatal("three does not hear of it: the test does not test what it should")
		}
		done, err := tm.amend("three", "three", id[:9], "version: 1", "version: 2")
		if err != nil || done.ID != id {
			t.Fatalf("%+v, %v", done, err)
		}
		pass(5 * time.Second)
		if in := tm.show("one", id); in.Version != 2 || len(in.Amended) != 1 || in.Amended[0].User != "three" {
			t.Errorf("one shows %d, %+v", in.Version, in.Amended)
		}
		three := tm.p["three"].api
		_, err = three.History(t.Context(), id)
		wantCode(t, err, api.Refused, "is not driven by its data")
		_, none := three.History(t.Context(), "ffff")
		wantCode(t, none, api.NotFound, "")
	})
}

// A partition moves to another partner, which took no part: its holder is cut off, and gives it on when it hears of it,
// unless it has begun it.
func TestAPartitionMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", patrol)
		begun, waits := tm.begin("one", "patrol", nil), tm.begin("one", "patrol", nil)
		tm.disconnect("one", "two")
		tm.disconnect("three", "two")
		pass(time.Second)
		for _, id := range []string{begun, waits} {
			done, err := tm.amend("one", "one", id, "partner: two", "partner: three")
			if err != nil || !slices.Contains(done.Lines, "partition there moves to three") {
				t.Fatalf("%+v, %v", done, err)
			}
		}
		done, err := tm.amend("one", "one", waits, "partner: two", "partner: three", "partner: one", "roles: []")
		if err != nil || slices.ContainsFunc(done.Lines, func(l string) bool { return strings.Contains(l, "moves") }) {
			t.Errorf("what may stay moves: %+v, %v", done, err)
		}
		tm.finish("two", begun, "walk")
		tm.connect("one", "two")
		tm.connect("three", "two")
		pass(5 * time.Second)
		if s := tm.task("three", waits, "walk"); s != workflow.Ready || tm.taskOf("one", waits, "walk").Partner != "three" {
			t.Errorf("walk is %s, at %s", s, tm.taskOf("one", waits, "walk").Partner)
		}
		tm.p["two"].crash()
		tm.p["two"].start()
		tm.connect("one", "two")
		tm.finish("three", waits, "walk")
		pass(5 * time.Second)
		for _, id := range []string{begun, waits} {
			tm.finish("one", id, "rest")
			pass(5 * time.Second)
			if in := tm.show("one", id); in.State != workflow.InstanceSucceeded {
				t.Errorf("it is %s", in.State)
			}
		}
	})
}

// reworked has tasks other than patrol: one is new, at the holder that may be cut off, and another waits for it.
var reworked = []string{
	"version: 1", "version: 2", "timeout: 1h, on", "timeout: 9h, on",
	"after: walk,", "after: [walk, call],", "tasks: [walk]", "tasks: [walk, call]",
	"  rest:", "  call: {type: manual, after: walk, timeout: 9h}\n  rest:",
}

// A task is new at another node, and one waits for it that nobody had begun. One that has begun can wait for nothing
// else any more; a node that takes no part amends nothing.
func TestTasksAreAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", patrol)
		begun, waits := tm.begin("one", "patrol", nil), tm.begin("one", "patrol", nil)
		tm.finish("two", begun, "walk")
		pass(time.Second)
		tm.disconnect("one", "two")
		tm.disconnect("one", "three")
		pass(time.Second)
		for _, id := range []string{begun, waits} {
			if _, err := tm.amend("three", "one", id, reworked...); err == nil {
				t.Error("somebody amends it at a node that takes no part")
			}
		}
		tm.finish("one", begun, "rest") // by what is known there
		tm.connect("one", "two")
		pass(5 * time.Second)
		_, err := tm.amend("one", "one", begun, reworked...)
		wantCode(t, err, api.Refused, "")
		if done, err := tm.amend("one", "one", waits, reworked...); err != nil || done.Version != 2 {
			t.Fatalf("%+v, %v", done, err)
		}
		pass(5 * time.Second)
		tm.finish("two", waits, "walk")
		pass(time.Second)
		if s := tm.task("one", waits, "rest"); s != workflow.NotReady {
			t.Errorf("rest is %s though call was not made", s)
		}
		tm.finish("two", waits, "call")
		pass(time.Second)
		tm.finish("one", waits, "rest")
		pass(5 * time.Second)
		for _, at := range []string{"one", "two"} {
			if in := tm.show(at, waits); in.State != workflow.InstanceSucceeded {
				t.Errorf("%s: %s", at, in.State)
			}
		}
	})
}

// Many instances are amended at once while a partner is cut off that holds a part of each. When it is back, all agree, and
// none was missed; a restart of the one that amended them changes nothing. What the partner had done meanwhile by the
// definition of before counts. Half of them were begun by one, half by three.
func TestManyInstancesAreAmended(t *testing.T) {
	for _, many := range []manyAmended{
		{"tasks follow a graph", "patrol", patrol, reworked, func(tm *team, id string) { tm.finish("two", id, "walk") },
			func(in *api.Instance, done bool) bool {
				walk, call := stateOf(in, "walk"), stateOf(in, "call")
				return done && walk == workflow.Succeeded && call == workflow.Ready ||
					!done && walk == workflow.Ready && call == workflow.NotReady
			}},
		{"driven by data", "hire", hire, rehired, func(tm *team, id string) {
			if err := tm.put("two", id, "choose", "car", "beetle"); err != nil {
				tm.t.Fatal(err)
			}
		}, func(in *api.Instance, done bool) bool {
			choose, bring := stateOf(in, "choose"), stateOf(in, "bring")
			return bring == workflow.Ready && (done && in.Data["car"] == "beetle" && choose != workflow.Ready ||
				!done && in.Data["car"] == nil && choose == workflow.Ready)
		}},
	} {
		t.Run(many.name, func(t *testing.T) { synctest.Test(t, many.amend) })
	}
}

// manyAmended are instances that are amended at once.
type manyAmended struct {
	name     string
	workflow string
	source   string
	changed  []string                                   // pieces of the source, each with what is in its place
	work     func(tm *team, id string)                  // what two does of half of them while it is cut off
	fits     func(in *api.Instance, workedAt bool) bool // whether it stands as it should in the end
}

func (many manyAmended) amend(t *testing.T) {
	tm := newTeam(t, "one", "two", "three")
	tm.add("one", many.source)
	pass(time.Second)
	n := sample.Of(100, 1000)
	if testing.Short() {
		n = 40
	}
	var ids []string
	for i := range n {
		ids = append(ids, tm.begin([]string{"one", "three"}[i%2], many.workflow, nil))
	}
	pass(10 * time.Second)
	tm.cut([]string{"one", "three"}, []string{"two"})
	pass(time.Second)
	source := strings.NewReplacer(many.changed...).Replace(many.source)
	for i, id := range ids {
		at := []string{"one", "three"}[i%2]
		if _, err := tm.p[at].api.AmendInstance(t.Context(), api.AmendRequest{
			User: at, ID: id, File: "changed.yaml", Source: source,
		}); err != nil {
			t.Fatal(err)
		}
		if i%4 < 2 {
			many.work(tm, id)
		}
	}
	tm.p["one"].crash()
	tm.p["one"].start()
	tm.connect("one", "three")
	if in := tm.show("two", ids[0]); in.Version != 1 {
		t.Errorf("version %d at one that is cut off", in.Version)
	}
	tm.connect("one", "two")
	tm.connect("three", "two")
	back := time.Now()
	for pass(time.Second); !tm.agree(ids); pass(time.Second) {
		if time.Since(back) > 10*time.Minute {
			t.Fatal("they do not agree ten minutes after the cut")
		}
	}
	t.Logf("%d instances: all agree %s after the cut", len(ids), time.Since(back))
	for i, id := range ids {
		for _, at := range []string{[]string{"one", "three"}[i%2], "two"} {
			if in := tm.show(at, id); in.Version != 2 || !many.fits(in, i%4 < 2) {
				t.Fatalf("at %s %s has version %d and %v, its tasks are %+v", at, id, in.Version, in.Data, in.Tasks)
			}
		}
	}
}

// stateOf is how a task stands; "": there is none of that name.
func stateOf(in *api.Instance, task workflow.TaskName) workflow.State {
	for _, x := range in.Tasks {
		if x.Name == task {
			return x.State
		}
	}
	return ""
}

// agree reports whether all of the team that have some instances have the same of each, and two and another have each.
func (tm *team) agree(ids []string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool {
		two, _ := tm.p["two"].node.Fingerprint(tm.t.Context(), id)
		have := 0
		for _, at := range []string{"one", "three"} {
			other, _ := tm.p[at].node.Fingerprint(tm.t.Context(), id)
			if len(other) > 0 {
				have++
			}
			if len(other) > 0 && string(other) != string(two) {
				return true
			}
		}
		return have == 0
	})
}

const hire = `
workflow: hire
version: 1
data: {status: {type: string, default: asked}, car: {type: string}}
tasks:
  choose: {when: car == null, repeat: true, type: manual, out: [car]}
  agree:  {when: car != null and status == "asked", repeat: true, type: manual, out: [status]}
partitions:
  desk: {tasks: [choose, agree], partner: two}
final: status == "agreed"
`

// Where the holder of the data states is silent, and the connection with it not closed yet, an amendment says so, too.
func TestAnAmendmentSaysThatTheHolderIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, brisk, "one", "two")
		tm.add("one", hire)
		id := tm.begin("one", "hire", nil)
		pass(time.Second)
		tm.f.losing(func(workflow.PartnerID, workflow.PartnerID, *wire.Message) bool { return true })
		for range 60 {
			if pass(time.Second); tm.partnerState("one", "two") == string(membership.Unreachable) {
				break
			}
		}
		done, err := tm.p["one"].api.AmendInstance(t.Context(), api.AmendRequest{
			User: "one", ID: id, File: "hire.yaml", Source: strings.NewReplacer(rehired...).Replace(hire),
		})
		if err != nil || done.Unheard != "two" {
			t.Errorf("two is %s: %+v, %v", tm.partnerState("one", "two"), done, err)
		}
	})
}

// rehired has a paper to be brought besides, which hire does not know of.
var rehired = []string{
	"version: 1", "version: 2", "car: {type: string}}", "car: {type: string}, papers: {type: string, enum: [here, lost]}}",
	"car != null and", `car != null and papers == "here" and`, "[choose, agree]", "[choose, agree, bring]",
	"  agree:", "  bring:  {when: papers == null, repeat: true, type: manual, out: [papers]}\n  agree:",
}

// Whoever keeps the data states goes by the changed definition from when it hears of that: what it did before counts,
// a restart changes nothing, and people are asked for data that are new.
func TestAFlowIsAmended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", hire)
		id := tm.begin("one", "hire", nil)
		pass(time.Second)
		tm.cut([]string{"one", "three"}, []string{"two"})
		pass(time.Second)
		done, err := tm.p["one"].api.AmendInstance(t.Context(), api.AmendRequest{
			User: "one", ID: id, File: "hire.yaml", Source: strings.NewReplacer(rehired...).Replace(hire),
		})
		if err != nil || done.Version != 2 || done.Unheard != "two" {
			t.Fatalf("%+v, %v", done, err)
		}
		if err := tm.put("two", id, "choose", "car", "beetle"); err != nil { // by what is known there
			t.Fatal(err)
		}
		for _, at := range []string{"one", "three"} {
			tm.connect(at, "two")
		}
		pass(5 * time.Second)
		if a, b := tm.task("one", id, "agree"), tm.task("one", id, "bring"); a != workflow.Ready || b != workflow.Ready {
			t.Errorf("agree, which was fired before, is %s, and bring %s", a, b)
		}
		tm.p["two"].crash()
		tm.p["two"].start()
		for _, at := range []string{"one", "three"} {
			tm.connect(at, "two")
		}
		pass(20 * time.Second)
		bring := tm.itemOf("two", "two", "bring")
		if f := tm.sheet("two", "two", bring.ID).Fields; len(f) != 1 || f[0].Name != "papers" || len(f[0].Enum) != 2 {
			t.Errorf("a person is asked for %+v", f)
		}
		if err := tm.put("two", id, "bring", "papers", "found"); err == nil {
			t.Error("a value counts that the new data may not have")
		}
		if err := tm.put("two", id, "bring", "papers", "here"); err != nil {
			t.Fatal(err)
		}
		if err := tm.put("two", id, "agree", "status", "agreed"); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		for _, at := range []string{"one", "two"} {
			if in := tm.show(at, id); in.State != workflow.InstanceSucceeded || in.Data["papers"] != "here" {
				t.Errorf("at %s it is %s, with %v", at, in.State, in.Data)
			}
		}
		if !tm.agree([]string{id}) {
			t.Error("they do not agree")
		}
	})
}

// An amendment of which whoever keeps the data states hears after these have ended is said to have come too late, where
// the changes are shown and in the log.
func TestAFlowIsAmendedTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", hire)
		id := tm.begin("one", "hire", nil)
		pass(time.Second)
		tm.disconnect("one", "two")
		if _, err := tm.p["one"].api.AmendInstance(t.Context(), api.AmendRequest{
			User: "one", ID: id, File: "hire.yaml", Source: strings.NewReplacer(rehired...).Replace(hire),
		}); err != nil {
			t.Fatal(err)
		}
		says := func(at, want string, late bool) {
			t.Helper()
			log := lines(tm.log(at, id))
			if in := tm.show(at, id); len(in.Amended) != 1 || in.Amended[0].Late != late || !strings.Contains(log, want) {
				t.Errorf("at %s the changes are %+v, and the log says\n%s", at, in.Amended, log)
			}
		}
		says("one", "the instance runs with ", false)
		for _, x := range [][3]string{{"choose", "car", "beetle"}, {"agree", "status", "agreed"}} {
			if err := tm.put("two", id, workflow.TaskName(x[0]), x[1], x[2]); err != nil {
				t.Fatal(err)
			}
		}
		tm.connect("one", "two")
		pass(5 * time.Second)
		for _, at := range []string{"one", "two"} {
			says(at, "an amendment that came too late has no effect: ", true)
		}
	})
}

// put completes a task by hand, with a value.
func (tm *team) put(at, id string, task workflow.TaskName, item, value string) error {
	err := tm.p[at].api.FinishTask(tm.t.Context(), api.FinishRequest{
		ID: id, Task: task, Outputs: map[string]string{item: value},
	})
	synctest.Wait()
	return err
}

// Of what was amended on both sides of a cut, the log and the changes that are shown say what does not count.
func TestWhatIsLostOfAnAmendment(t *testing.T) {
	led := strings.Replace(hire, "version: 1", "version: 1\nadministrators: chief", 1)
	const sideBySide = "an amendment that does not go together with one that was made side by side has no effect: "
	for _, x := range []struct {
		name     string
		two, one []string          // what two says comes after what one does, in the order of facts
		lost     map[string]string // of each
		says     []string
	}{
		{
			"no definition together",
			[]string{
				"car: {type: string}", "car: {type: string}, c: {type: integer}", `final: status == "agreed"`,
				`final: status == "agreed" and c > 3`,
			},
			[]string{"car: {type: string}", "car: {type: string}, c: {type: string}"},
			map[string]string{"two": `workflow, final: status == "agreed" and c > 3; data c is new; data c, type: integer`},
			[]string{
				sideBySide + `workflow, final: status == "agreed" and c > 3; data c is new; data c, type: integer, says two`,
				"the instance runs with data c is new; data c, type: string from now on, says one",
			},
		},
		{
			"one key unlike", []string{`final: status == "agreed"`, `final: status != "asked"`},
			[]string{"version: 1", "version: 2", `final: status == "agreed"`, `final: status == "gone"`},
			map[string]string{"one": `workflow, final: status == "gone"`},
			[]string{
				"the instance runs with workflow, version: 2 from now on; what does not go together with an amendment that was " +
					"made side by side has no effect: workflow, final: status == \"gone\", says one",
				`the instance runs with workflow, final: status != "asked" from now on, says two`,
			},
		},
		{
			"one condition unlike", []string{"\ntasks:", "\nconditions: {c: status != car}\ntasks:"},
			[]string{"\ntasks:", "\nconditions: {c: status == car}\ntasks:"},
			map[string]string{"two": "condition c, expression: status != car"},
			[]string{
				sideBySide + "condition c, expression: status != car, says two",
				"the instance runs with condition c, expression: status == car from now on, says one",
			},
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeam(t, "one", "two:chief")
				tm.add("one", led)
				id := tm.begin("one", "hire", nil)
				pass(time.Second)
				tm.disconnect("one", "two")
				if err := tm.put("two", id, "choose", "car", "beetle"); err != nil { // so its next fact comes later
					t.Fatal(err)
				}
				for i, at := range []string{"one", "two"} {
					pass(time.Second)
					pairs := [][]string{x.one, x.two}[i]
					_, err := tm.p[at].api.AmendInstance(t.Context(), api.AmendRequest{
						User: at, ID: id, File: "hire.yaml", Source: strings.NewReplacer(pairs...).Replace(led),
					})
					if err != nil {
						t.Fatal(err)
					}
				}
				tm.connect("one", "two")
				pass(5 * time.Second)
				for _, at := range []string{"one", "two"} {
					in, log := tm.show(at, id), lines(tm.log(at, id))
					for _, a := range in.Amended {
						if lost := strings.Join(a.Lost, "; "); lost != x.lost[a.User] {
							t.Errorf("at %s of what %s amended is lost: %q", at, a.User, lost)
						}
					}
					for _, says := range x.says {
						if !strings.Contains(log, says) {
							t.Errorf("at %s the log says\n%s, want %s", at, log, says)
						}
					}
				}
			})
		})
	}
}
