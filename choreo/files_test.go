package choreo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Which files tasks here read is told in a few steps, however many tasks there are: it is
// asked for with each change. As tasks end, and the file is another, it follows.
func TestStepsOfFilesToRead(t *testing.T) {
	first, second := workflow.File{Name: "plan", Size: 5, Root: [32]byte{1}},
		workflow.File{Name: "plan", Size: 5, Root: [32]byte{2}}
	for _, n := range []int{10, 100, 1000} {
		var b strings.Builder
		b.WriteString("workflow: survey\ndata:\n  plan: {type: file}\n  other: {type: file}\ntasks:\n")
		for i := range n {
			fmt.Fprintf(&b, "  t%04d: {type: manual, in: [plan, other]}\n", i)
		}
		b.WriteString("  redraw: {type: manual, out: [plan]}\n")
		w := newMesh(t, parse(t, b.String()))
		at := map[workflow.PartitionName]workflow.PartnerID{}
		for _, p := range w.plan.Partitions() {
			at[p.Name] = "ana"
		}
		g := w.genesis(at, "ana")
		g.Input = map[workflow.DataName]workflow.Value{"plan": first.String()}
		if err := w.start("ana", g); err != nil {
			t.Fatal(err)
		}
		m := w.nodes["ana"].m
		want := func(files ...workflow.File) {
			t.Helper()
			m.look()
			before := m.log.Steps
			got := m.FilesToRead()
			if steps := m.log.Steps - before; steps > 5 {
				t.Errorf("of %d tasks: %d steps", n, steps)
			}
			ok := len(got) == len(files)
			for i := range files {
				ok = ok && got[i].Item == "plan" && got[i].File == files[i]
			}
			if !ok {
				t.Errorf("of %d tasks %v are read, want %v", n, got, files)
			}
		}
		want(first)
		w.say("ana", "t0000")
		want(first)
		res := Result{Outputs: map[workflow.DataName]workflow.Value{"plan": second.String()}}
		if err := m.Finish("redraw", res, w.moment(), w); err != nil {
			t.Fatal(err)
		}
		w.step(w.nodes["ana"])
		want(second)
		if of := m.FilesOf(w.def.Task("t0001")); len(of) != 1 || of[0].File != second {
			t.Errorf("a task reads %v", of)
		}
		for i := 1; i < n && n <= 100; i++ {
			w.say("ana", workflow.TaskName(fmt.Sprintf("t%04d", i)))
		}
		if n <= 100 {
			want()
		}
	}
}

// Whoever takes part can give itself the contingency of another's task. That it then reads what the
// task reads is so only with the task's role.
func TestReadsWithItsRole(t *testing.T) {
	w := newMesh(t, parse(t, `workflow: care
data: {photo: {type: file}}
tasks:
  hello: {}
  treat: {type: manual, role: medic, after: [hello], on-failure: {contingency: other}}
  other: {type: manual, role: medic, in: [photo]}
partitions: {a: [treat], b: [hello]}
`))
	if err := w.start("ana", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"a": "ana", "b": "mal"}, "ana",
		"mal")); err != nil {
		t.Fatal(err)
	}
	m := w.nodes["ana"].m
	reads := func(has bool) bool {
		return m.Reads("mal", "photo", func(r workflow.RoleName) bool { return has && r == "medic" })
	}
	if reads(true) {
		t.Error("somebody reads a file who has no task that does")
	}
	v := &fact.Verdict{Cause: fact.CauseTimeout, Actions: []fact.Action{
		{Attempt: fact.AttemptID{Slot: "treat"}, Kind: workflow.FailContingency, Task: "other", Partner: "mal"},
	}}
	m.mustTake(t, penOf(t, m, "mal", 7).write(fact.Body{Verdict: v}, m.log.Genesis().Head()))
	if reads(false) || !reads(true) {
		t.Errorf("without the role: %t, with it: %t", reads(false), reads(true))
	}
}

// Those who gave a file are told in as many steps as they are, however many tasks there are and however many other
// files they gave: any partner can ask for that. Those whose file another has replaced are known, too, and each once.
func TestStepsOfWhoGaveAFile(t *testing.T) {
	file := func(i int) string {
		return workflow.File{Name: "photo", Size: 5, Root: [32]byte{byte(i), byte(i >> 8), 1}}.String()
	}
	for _, n := range []int{10, 100, 1000} {
		var b strings.Builder
		b.WriteString("workflow: survey\ndata: {photo: {type: file}, words: {type: string}}\ntasks:\n")
		var parts [2][]string
		for i := range n {
			fmt.Fprintf(&b, "  t%04d: {type: manual, out: [photo, words]}\n", i)
			parts[i%2] = append(parts[i%2], fmt.Sprintf("t%04d", i))
		}
		fmt.Fprintf(&b, "partitions: {a: [%s], b: [%s]}\n", strings.Join(parts[0], ", "), strings.Join(parts[1], ", "))
		w := newMesh(t, parse(t, b.String()))
		g := w.genesis(map[workflow.PartitionName]workflow.PartnerID{"a": "ana", "b": "bia"}, "ana", "bia")
		g.Input = map[workflow.DataName]workflow.Value{"photo": file(0)}
		if err := w.start("ana", g); err != nil {
			t.Fatal(err)
		}
		w.stabilize(false)
		for i := range 9 {
			who := w.nodes[[]workflow.PartnerID{"ana", "bia"}[i%2]]
			res := Result{Outputs: map[workflow.DataName]workflow.Value{"photo": file(i / 3), "words": file(7)}}
			if err := who.m.Finish(workflow.TaskName(fmt.Sprintf("t%04d", i)), res, w.moment(), w); err != nil {
				t.Fatal(err)
			}
			w.step(who)
		}
		w.meetAll()
		w.stabilize(false)
		for _, of := range []string{"ana", "bia"} {
			m := w.nodes[workflow.PartnerID(of)].m
			for i, want := range []int{2, 2, 2, 0} {
				before := m.log.Steps
				got := m.GivenBy("photo", file(i))
				if len(got) != want || i == 0 && got[0] != "ana" {
					t.Errorf("of %d tasks: at %s, file %d was given by %v", n, of, i, got)
				}
				if steps := m.log.Steps - before; steps > 2 {
					t.Errorf("of %d tasks: %d steps", n, steps)
				}
			}
			if got := m.GivenBy("words", file(7)); len(got) > 0 {
				t.Errorf("what is no file was given by %v", got)
			}
		}
	}
}
