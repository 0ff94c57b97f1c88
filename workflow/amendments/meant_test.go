package amendments

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

const paper = `workflow: paper
data: {ok: {type: boolean, default: false}, sure: {type: boolean, default: false}}
tasks:
  plan: {type: manual}
  draft: {after: plan, type: manual, on-failure: release}
  review: {after: draft, type: manual, out: [ok], on-failure: release, repeat: {times: 3, from: draft, while: not ok}}
  print: {after: review, type: manual}
partitions: {desk: {tasks: [plan, draft, review, print]}}
`

func times(t testing.TB, n int) *workflow.Definition {
	return edited(t, paper, "times: 3", fmt.Sprintf("times: %d", n))
}

// fitting is what a patch means that makes one edition of another.
func fitting(t testing.TB, def, known, changed *workflow.Definition) Meant {
	t.Helper()
	m, err := Fits(def, known, mustPatch(t, known, changed), anyDefinition)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A patch says of a loop what its author wrote, and what it means are the rounds that it makes.
func TestAPatchOfALoop(t *testing.T) {
	old := parse(t, paper)
	p := asRead(t, old, times(t, 6))
	if len(p) != 1 || !p.IsHeavy() || p.Lines()[0] != "loop review, times: 6" {
		t.Errorf("%s, heavy: %t", p.Text(), p.IsHeavy())
	}
	m := fitting(t, old, old, times(t, 6))
	want := "draft.4 draft.5 draft.6 review.4 review.4.again review.5 review.5.again review.6 review.6.again"
	if got := strings.Trim(fmt.Sprint(m.Adds()), "[]"); got != want {
		t.Errorf("it adds %s", got)
	}
	if got := m.Steers(); !slices.Equal(got, []workflow.TaskName{"review.end"}) {
		t.Errorf("it steers %s", got)
	}
	said, home := m.Said("draft.4")
	five := fitting(t, old, old, times(t, 5))
	other, _ := five.Said("draft.4")
	if home != "desk" || said != other {
		t.Errorf("the fourth round is %q, and %q", said, other)
	}
	if got := m.Lines(); got[1] != "loop review has more rounds: draft.4, review.4, draft.5, review.5, draft.6, review.6" {
		t.Errorf("%q", got)
	}
	for _, x := range [][2]string{
		{"while: not ok", "while: not ok or not sure"}, {"from: draft", "from: plan"},
		{", repeat: {times: 3, from: draft, while: not ok}", ""}, {"print: {after: review", "print: {after: review, repeat: {times: 2}"},
	} {
		m := fitting(t, old, old, edited(t, paper, x[0], x[1]))
		if got, left := Effective(old, []Meant{m}, nil, anyDefinition); len(left) > 0 ||
			len(Between(edited(t, paper, x[0], x[1]), got)) > 0 {
			t.Errorf("%s: it makes %s", x[1], Lines(Between(old, got)))
		}
	}
}

// Both sides of a cut change one loop unlike: it is as the later one says, and what facts may name of the other is kept.
func TestALoopThatIsChangedUnlike(t *testing.T) {
	old := parse(t, paper)
	four, six := fitting(t, old, old, times(t, 4)), fitting(t, old, old, times(t, 6))
	if c := Clashes(four, six); len(c) != 1 || c[0].String() != "loop review, times: 4 against 6" {
		t.Errorf("they clash in %v", c)
	}
	side := func(i int) bool { return i == 1 }
	more, left := Effective(old, []Meant{four, six}, side, anyDefinition)
	if len(left) > 0 || more.Hash() != times(t, 6).Hash() || len(more.Kept().Tasks) > 0 {
		t.Errorf("left are %v: %s", left, Lines(Between(old, more)))
	}
	got, left := Effective(old, []Meant{six, four}, side, anyDefinition)
	if len(left) > 0 || len(Between(times(t, 4), got)) > 0 {
		t.Errorf("left are %v: %s", left, Lines(Between(times(t, 4), got)))
	}
	if isKept(got, "review.4.again") {
		t.Error("what a loop has is kept besides")
	}
	for _, n := range []workflow.TaskName{"draft.5", "review.6", "review.5.again"} {
		x := got.Task(n)
		round, is := got.Round(n)
		if x == nil || !x.Disabled || x.Type != more.Task(n).Type || !slices.Equal(x.Out, more.Task(n).Out) ||
			len(x.After) > 0 || !isKept(got, n) || !is || round.String() != string(n[strings.Index(string(n), ".")+1:][0]) {
			t.Errorf("%s is %+v, round %s", n, x, round)
		}
	}
	if got.Hash() == times(t, 4).Hash() {
		t.Error("a definition that keeps rounds is that which has none")
	}
	// It has more rounds once more: what was kept are rounds again.
	back := fitting(t, old, got, times(t, 6))
	again, left := Effective(old, []Meant{six, four, back}, nil, anyDefinition)
	if len(left) > 0 || again.Hash() != times(t, 6).Hash() || len(back.Adds()) > 0 ||
		slices.Contains(back.Steers(), "draft.5") {
		t.Errorf("left are %v: it adds %s, steers %s: %s", left, back.Adds(), back.Steers(), Lines(Between(old, again)))
	}
	none := fitting(t, old, old, edited(t, paper, ", repeat: {times: 3, from: draft, while: not ok}", ""))
	if got := none.Steers(); !slices.Contains(got, "draft.2") || slices.Contains(got, "review.again") {
		t.Errorf("without the loop it steers %s", got)
	}
}

// Of a patch that does not go together with others its rounds are there all the same.
func TestRoundsOfAPatchThatSetsNothing(t *testing.T) {
	old := parse(t, paper)
	circle := fitting(t, old, old, edited(t, paper, "plan: {type: manual}", "plan: {after: again, type: manual}\n  again: {type: manual}",
		"times: 3", "times: 4", "print]", "print, again]"))
	and := fitting(t, old, old, edited(t, paper, "plan: {type: manual}", "plan: {type: manual}\n  again: {after: plan, type: manual}",
		"print]", "print, again]"))
	got, left := Effective(old, []Meant{and, circle}, func(i int) bool { return i == 1 }, anyDefinition)
	if !slices.Equal(left, []int{1}) || len(got.Loops()) != 1 || got.Loops()[0].Times != 3 || !isKept(got, "draft.4") {
		t.Errorf("left are %v: %s", left, Lines(Between(old, got)))
	}
}

// How many rounds a patch may add follows from the room that there is for all; the refusal names a step that fits.
func TestAsManyRoundsAsThereIsRoomFor(t *testing.T) {
	body := "workflow: w\ntasks:\n  t0: {}\n"
	for i := 1; i < 30; i++ {
		body += fmt.Sprintf("  t%d: {after: t%d}\n", i, i-1)
	}
	of := func(n int) string {
		return body + fmt.Sprintf("  last: {after: t29, repeat: {times: %d, from: t0}}\n", n)
	}
	old := parse(t, of(2))
	p := mustPatch(t, old, parse(t, of(64)))
	_, err := Fits(old, old, p, anyDefinition)
	want := "loop last, times: its rounds are 1922 tasks more, and one amendment may add 139 of these " +
		"(go in steps, first to times: 6)"
	var many *ManyRoundsError
	if !errors.As(err, &many) || many.Finding().String() != want {
		t.Fatalf("%v", err)
	}
	if _, err := Fits(old, old, mustPatch(t, old, parse(t, of(6))), anyDefinition); err != nil {
		t.Error(err)
	}
	if _, err := Fits(old, old, mustPatch(t, old, parse(t, of(7))), anyDefinition); err == nil {
		t.Error("a larger step fits as well")
	}
}

// Conditions and constraints that two add unlike under one name are as the first of them says, as a whole.
func TestConstraintsThatAreAddedUnlike(t *testing.T) {
	old := parse(t, paper)
	add := func(constraint string) Meant {
		return fitting(t, old, old, parse(t, paper+"constraints: [{name: safe, "+constraint+"}]\n"))
	}
	one, other := add("when: ok or sure, strict: true"), add("when: not ok")
	got, left := Effective(old, []Meant{one, other}, func(i int) bool { return i == 1 }, anyDefinition)
	if c := got.Constraints; len(left) > 0 || len(c) != 1 || !c[0].Strict || c[0].When.String() != "ok or sure" {
		t.Errorf("left are %v: %+v", left, c)
	}
	got, _ = Effective(old, []Meant{other, one}, func(i int) bool { return i == 1 }, anyDefinition)
	if c := got.Constraints; len(c) != 1 || c[0].Strict || c[0].When.String() != "not ok" {
		t.Errorf("%+v", c)
	}
	if c := Clashes(one, other); len(c) != 1 || c[0].String() != "constraint safe: both add it" {
		t.Errorf("they clash in %v", c)
	}
	if c := Clashes(one, add("when: ok or sure, strict: true")); len(c) > 0 {
		t.Errorf("alike they clash in %v", c)
	}
	// One that there is changes key by key.
	both, _ := Effective(old, []Meant{one}, nil, anyDefinition)
	milder := fitting(t, old, both, parse(t, paper+"constraints: [{name: safe, when: ok or sure}]\n"))
	got, _ = Effective(old, []Meant{one, milder}, nil, anyDefinition)
	if c := got.Constraints; len(c) != 1 || c[0].Strict {
		t.Errorf("%+v", c)
	}
}

// Whoever stands in for what asks whether a loop goes on may be named by facts, so it stays.
func TestWhatStandsInForALoopStays(t *testing.T) {
	old := parse(t, paper)
	p, no := PatchOf(old, edited(t, paper, "out: [ok], on-failure: release", "out: [ok]"), nil)
	if p != nil || len(no) != 1 || no[0].String() != "workflow: loop review: "+standsInWhy {
		t.Errorf("%s: %v", p.Text(), no)
	}
	x, err := DecodePatch(`[{"kind":"task","name":"review","key":"on-failure"}]`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Fits(old, old, x, anyDefinition); err == nil {
		t.Error("it fits")
	}
	asRead(t, old, edited(t, paper, "draft: {after: plan, type: manual, on-failure: release}", "draft: {after: plan, type: manual}"))
	// One side makes it a loop that is asked for, the other has its failure answered in another way: both cannot be.
	const plain = "workflow: w\ndata: {ok: {type: boolean}}\ntasks: {a: {}, b: {after: a, repeat: {times: 3}}}\n"
	base := parse(t, plain)
	asks := fitting(t, base, base, edited(t, plain, "times: 3", "times: 3, while: ok"))
	goes := fitting(t, base, base, edited(t, plain, "b: {after: a", "b: {on-failure: release, after: a"))
	for i, c := range [][]Meant{{asks, goes}, {goes, asks}} {
		got, left := Effective(base, c, func(i int) bool { return i == 1 }, anyDefinition)
		if !slices.Equal(left, []int{1}) || got.Task("b.2.again") == nil {
			t.Errorf("%d: left are %v: %s", i, left, Lines(Between(base, got)))
		}
	}
}

// Whatever rounds a loop had before: what it has now is as in an instance that is started with it now. What is kept of
// rounds is left out, and nothing waits for it.
func TestALoopIsAsIfItHadNeverBeenAnother(t *testing.T) {
	const body = `workflow: paper
data: {ok: {type: boolean, default: false}}
tasks:
  plan: {type: manual}
  draft: {after: plan, type: manual}
  review: {after: draft, type: manual, out: [ok]%s%s}
  print: {after: review, type: manual}
%spartitions: {desk: {tasks: [plan, draft, review, print]}}
`
	for _, failure := range [][2]string{
		{}, {", on-failure: release"}, {", on-failure: {contingency: ask}", "  ask: {type: manual, out: [ok]}\n"},
	} {
		var forms []*workflow.Definition
		for _, repeat := range []string{
			"", "times: 3", "times: 2, while: not ok", "times: 3, while: not ok", "times: 2, from: draft, while: not ok",
			"times: 4, from: draft, while: not ok",
		} {
			if repeat != "" {
				repeat = ", repeat: {" + repeat + "}"
			}
			forms = append(forms, parse(t, fmt.Sprintf(body, failure[0], repeat, failure[1])))
		}
		for _, first := range forms {
			for _, second := range forms {
				for _, third := range forms {
					amended(t, first, second, third)
				}
			}
		}
	}
}

// amended checks what becomes of a definition that is amended to become others, one after the other.
func amended(t *testing.T, first *workflow.Definition, others ...*workflow.Definition) {
	t.Helper()
	var patches []Meant
	got := first
	for _, to := range others {
		if len(Between(got, to)) == 0 {
			continue
		}
		patches = append(patches, fitting(t, first, got, to))
		got, _ = Effective(first, patches, nil, anyDefinition)
		started, is := writtenOut(to), writtenOut(got)
		for _, x := range to.Tasks {
			at := Part{OfTask, string(x.Name)}
			if was := started[at]; differ(was, is[at], keys(was, is[at])) {
				t.Errorf("%v: %s is\n%s\nwhen it is amended to that, and\n%s\nfrom the start", to.Loops(), x.Name,
					written(is[at]), written(was))
			}
			if i := slices.IndexFunc(got.Predecessors(x.Name), func(p workflow.TaskName) bool { return isKept(got, p) }); i >= 0 {
				t.Errorf("%v: %s waits for %s, which is left out", to.Loops(), x.Name, got.Predecessors(x.Name)[i])
			}
		}
		for n := range got.Kept().Tasks {
			if x := got.Task(n); !x.Disabled && !x.ContingencyOnly {
				t.Errorf("%v: %s is kept, and not left out", to.Loops(), n)
			}
		}
	}
}
