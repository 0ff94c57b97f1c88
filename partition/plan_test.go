package partition_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// The order in which tasks and partitions are written changes nothing: nodes
// that read one definition from different texts have one plan.
func TestPlanDoesNotDependOnTheOrderOfWriting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := randomDefinition(t, shape{contingencies: true, waits: true, roles: true})
		other := *def
		other.Tasks = rapid.Permutation(def.Tasks).Draw(t, "tasks")
		other.Partitions = rapid.Permutation(def.Partitions).Draw(t, "partitions")
		for i, p := range other.Partitions {
			other.Partitions[i].Tasks = rapid.Permutation(p.Tasks).Draw(t, "tasks of "+string(p.Name))
		}
		if diff := cmp.Diff(facts(partition.New(def)), facts(partition.New(&other))); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(partition.Suggest(def, 3), partition.Suggest(&other, 3)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// facts is all that a plan says, by name.
func facts(p *partition.Plan) map[string]any {
	out := map[string]any{
		"partitions": p.Partitions(), "edges": p.Edges(), "crossing": p.Crossing(), "warnings": partition.Check(p),
	}
	for _, task := range p.Definition().Tasks {
		ready, ok := p.WorstCase(task.Name)
		end, endOK := p.WorstEnd(task.Name)
		wait, waitOK := p.WaitStart(task.Name)
		out[string(task.Name)] = []any{
			p.Home(task.Name), p.Chain(task.Name), p.Listeners(task.Name), p.EmergencyListeners(task.Name),
			ready, ok, end, endOK, wait, waitOK,
		}
	}
	return out
}

// A definition that workflow.Parse would refuse gives no answers, but an end:
// tasks on a cycle have no bound, and a loop of contingencies is followed once.
func TestNewEndsOnWhatParseRefuses(t *testing.T) {
	def := &workflow.Definition{
		Tasks: []*workflow.Task{
			{Name: "a", Rule: after("b", "nobody"), Timeout: 1, OnFailure: workflow.FailContingency, Contingency: "b"},
			{Name: "b", Rule: after("a", "b"), Timeout: 1, OnFailure: workflow.FailContingency, Contingency: "a"},
			{Name: "c", Rule: after("b"), Timeout: 1},
		},
		Partitions: []workflow.PartitionDecl{
			{Name: "p", Tasks: []workflow.TaskName{"a", "b", "ghost"}}, {Name: "q", Tasks: []workflow.TaskName{"c"}},
		},
	}
	plan := partition.New(def)
	for _, name := range []workflow.TaskName{"a", "b", "c", "ghost"} {
		if _, ok := plan.WorstCase(name); ok {
			t.Errorf("%s has a bound", name)
		}
	}
	if got := plan.Timeout("p"); got != 0 {
		t.Errorf("timeout %v on a cycle", got)
	}
	if got, want := plan.Chain("a"), []workflow.TaskName{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("chain %v, want %v", got, want)
	}
	if got := len(partition.Suggest(def, 3)); got != 3 {
		t.Errorf("%d partitions, want 3", got)
	}
}

// What is not there has zero values.
func TestUnknownNames(t *testing.T) {
	plan := partition.New(&workflow.Definition{Tasks: []*workflow.Task{{Name: "a"}}})
	if plan.Partition("p") != nil || plan.Timeout("p") != 0 ||
		partition.Candidates(plan, "p", []partition.Partner{{ID: "x"}}) != nil {
		t.Error("there is a partition p")
	}
	if plan.Home("b") != "" || plan.Chain("b") != nil || plan.ResponseImmediate("b") {
		t.Error("there is a task b")
	}
	if plan.Home("a") != "" {
		t.Error("a is placed")
	}
}

// A role that only users have keeps every partner from a partition that lists it: check and start say so alike. A role
// with which nobody may start a workflow is a warning.
func TestRolesOfUsersAlone(t *testing.T) {
	def, err := workflow.Parse("rota.yaml", []byte(`
workflow: rota
creator-role: chief
tasks: {a: {type: manual, role: nurse}}
partitions: {main: {tasks: [a], roles: [nurse]}}
`))
	if err != nil {
		t.Fatal(err)
	}
	partners := []partition.Partner{{ID: "x", Name: "base", Reachable: true}}
	var warned []string
	for _, w := range partition.Unknown(def, partners, []partition.Person{{Name: "bia", Roles: []workflow.RoleName{"nurse"}}}) {
		warned = append(warned, w.String())
	}
	if len(warned) != 2 || !strings.HasPrefix(warned[0], "creator-role: nobody has role chief, so nobody can start it (have somebody") {
		t.Fatalf("warned is\n%s", strings.Join(warned, "\n"))
	}
	_, _, err = partition.Distribute(partition.New(def), partition.Situation{
		Partners: partners, Self: "x", OfUsers: []workflow.RoleName{"nurse"},
	}, nil)
	if err == nil || err.Error() != warned[1] {
		t.Errorf("it is refused as\n%v\nand check says\n%s", err, warned[1])
	}
}

// A sum of spans beyond 292 years stays there instead of becoming negative.
func TestLongTimeoutsDoNotWrapAround(t *testing.T) {
	def := &workflow.Definition{
		Tasks: []*workflow.Task{
			{Name: "a", Timeout: math.MaxInt64 - 1},
			{Name: "b", Rule: after("a"), Timeout: 2},
			{Name: "c", Rule: after("b"), Timeout: 2},
		},
		Partitions: []workflow.PartitionDecl{{Name: "p", Tasks: []workflow.TaskName{"a", "b", "c"}}},
	}
	plan := partition.New(def)
	if got := plan.Timeout("p"); got != math.MaxInt64 {
		t.Errorf("timeout %v", got)
	}
	if got, ok := plan.WorstEnd("c"); !ok || got != math.MaxInt64 {
		t.Errorf("worst end %v %v", got, ok)
	}
}

// eleven is Fig. 16 without its cut.
const eleven = `
workflow: eleven
tasks:
  a: {timeout: 10m}
  b: {after: a, timeout: 10m}
  c: {after: [a, e], timeout: 10m}
  d: {after: [b, c], timeout: 10m}
  e: {timeout: 10m}
  f: {after: e, timeout: 10m}
  g: {after: f, timeout: 1h}
  h: {after: d, timeout: 10m}
  i: {after: h, timeout: 10m}
  j: {after: [h, g], time-to-wait: 1h, timeout: 10m}
  k: {after: [i, j], timeout: 10m}
`

func parseEleven(t rapid.TB, cut string) *workflow.Definition {
	t.Helper()
	def, err := workflow.Parse("eleven.yaml", []byte(eleven+cut))
	if err != nil {
		t.Fatal(err)
	}
	return def
}

// In the cut of Fig. 16 d, e and g report at once, and they alone.
func TestElevenTasksReportAsInTheFigure(t *testing.T) {
	plan := partition.New(parseEleven(t, "partitions: {p1: [a, b, c, d], p2: [h, i, j, k], p3: [e, f, g]}"))
	var immediate []workflow.TaskName
	for _, task := range plan.Definition().Tasks {
		if plan.ResponseImmediate(task.Name) {
			immediate = append(immediate, task.Name)
		}
	}
	if want := []workflow.TaskName{"d", "e", "g"}; !slices.Equal(immediate, want) {
		t.Errorf("%v report at once, want %v", immediate, want)
	}
}

// However the eleven tasks are cut, a task reports at once exactly if an arrow
// of the figure leads from it to another partition; uncut, none does.
func TestElevenTasksReportAcrossAnyCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		uncut := parseEleven(t, "")
		def := *uncut
		def.Partitions = make([]workflow.PartitionDecl, rapid.IntRange(1, 5).Draw(t, "partitions"))
		for i := range def.Partitions {
			def.Partitions[i].Name = workflow.PartitionName(rune('p' + i))
		}
		for _, task := range def.Tasks {
			part := &def.Partitions[rapid.IntRange(0, len(def.Partitions)-1).Draw(t, "home of "+string(task.Name))]
			part.Tasks = append(part.Tasks, task.Name)
		}
		plan := partition.New(&def)
		for _, task := range def.Tasks {
			want := slices.ContainsFunc(def.Tasks, func(s *workflow.Task) bool {
				return slices.Contains(uncut.Predecessors(s.Name), task.Name) &&
					homeOf(&def, s.Name) != homeOf(&def, task.Name)
			})
			if got := plan.ResponseImmediate(task.Name); got != want {
				t.Fatalf("%s: responseImmediate %v, want %v", task.Name, got, want)
			}
			if partition.New(uncut).ResponseImmediate(task.Name) {
				t.Fatalf("%s reports at once, though there is one partition", task.Name)
			}
		}
	})
}
