package amendments

import (
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

const spares = "workflow: w\ntasks: {a: {contingency: c}, b: {}, c: {type: manual}}\npartitions: {p: [a], q: [b]}\n"

// notTurned is what an instance asks of a definition at least.
func notTurned(old *workflow.Definition) func(*workflow.Definition) error {
	return func(d *workflow.Definition) error { return turned(old, d) }
}

// What stands in for a task comes, goes and becomes another. What only stood in stays, as facts may name it, though
// nobody wrote it any more; and it stands in again for whoever names it as it was.
func TestAPatchOfWhatStandsIn(t *testing.T) {
	old := parse(t, spares)
	changed := edited(t, spares, "a: {contingency: c}", "a: {contingency: d}", "c: {type: manual}", "d: {type: manual}")
	one, err := DecodePatch(mustPatch(t, old, changed).Text())
	if err != nil {
		t.Fatal(err)
	}
	if !one.IsHeavy() || !one.Answers() || !slices.Contains(one.Lines(), "task d is new, and stands in for others") ||
		!slices.Contains(one.Lines(), "task a, contingency: d") {
		t.Errorf("it says %q", one.Lines())
	}
	m := read([]Patch{one})
	got, left := Effective(old, m, nil, notTurned(old))
	c := got.Task("c")
	if len(left) > 0 || got.Task("a").Contingency != "d" || c == nil || !c.ContingencyOnly || !isStandIn(got, "c") {
		t.Fatalf("left are %v: %s", left, Lines(Between(old, got)))
	}
	if n := Between(changed, got); len(n) > 0 || got.Hash() == changed.Hash() || Written(got).Hash() != changed.Hash() {
		t.Errorf("it is not what was written: %s", Lines(n))
	}
	const with = "workflow: w\ntasks: {a: {contingency: d}, "
	const parts = "}\npartitions: {p: [a], q: [b]}\n"
	for _, x := range []string{
		"b: {contingency: c}, c: {type: manual}, d: {type: manual}",
		"b: {}, c: {type: manual}, d: {type: manual, contingency: c}",
		"b: {contingency: d, timeout: 2h}, c: {type: manual}, d: {type: manual, contingency: c}",
	} {
		more := parse(t, with+x+parts)
		p := mustPatch(t, got, more)
		if _, err := Fits(old, got, p, notTurned(old)); err != nil || len(p.Adds()) > 0 {
			t.Errorf("%s: %s: %v", x, p.Text(), err)
		}
		again, left := Effective(old, read([]Patch{one, p}), nil, notTurned(old))
		if len(left) > 0 || len(Between(more, again)) > 0 || len(again.Kept().StandIns) > 0 {
			t.Errorf("%s: left are %v, %s", x, left, Lines(Between(more, again)))
		}
	}
	for _, x := range []string{
		"b: {contingency: c}, c: {type: manual, timeout: 2h}, d: {type: manual}",
		"b: {after: a}, c: {after: b, type: manual}, d: {type: manual}",
	} {
		text := with + x + parts
		if strings.Contains(x, "after: b") {
			text = with + x + "}\npartitions: {p: [a], q: [b, c]}\n"
		}
		if p, no := PatchOf(got, parse(t, text), nil); p != nil || len(no) == 0 || no[0].Part != (Part{OfTask, "c"}) {
			t.Errorf("%s: %s, %v", x, p.Text(), no)
		}
	}
}

// What the failure of a task does is one thing, whether it is written as contingency or as on-failure: of two that set
// it unlike the later one counts, and they clash.
func TestWhoStandsInIsOneThing(t *testing.T) {
	old := parse(t, spares)
	released := mustPatch(t, old, edited(t, spares, "a: {contingency: c}", "a: {on-failure: release}", ", c: {type: manual}", ""))
	another := mustPatch(t, old, edited(t, spares, "a: {contingency: c}", "a: {contingency: d}", "c: {", "d: {"))
	none := mustPatch(t, old, edited(t, spares, "a: {contingency: c}", "a: {}", ", c: {type: manual}", ""))
	named := mustPatch(t, old, edited(t, spares, "b: {}", "b: {contingency: c}"))
	for i, x := range []struct {
		patches     []Patch
		contingency workflow.TaskName
		answer      workflow.FailureAction
		clashes     int
	}{
		{[]Patch{released, another}, "d", workflow.FailContingency, 2},
		{[]Patch{another, released}, "", workflow.FailRelease, 2},
		{[]Patch{another, none}, "", workflow.FailBlock, 1},
		{[]Patch{none, another}, "d", workflow.FailContingency, 1},
		{[]Patch{named, none}, "", workflow.FailBlock, 0},
		{[]Patch{released, none}, "", workflow.FailBlock, 1},
	} {
		m := read(x.patches)
		got, left := Effective(old, m, func(i int) bool { return i == 1 }, notTurned(old))
		a := got.Task("a")
		if len(left) > 0 || a.Contingency != x.contingency || a.OnFailure != x.answer {
			t.Errorf("%d: left are %v: %s", i, left, Lines(Between(old, got)))
		}
		if n := Clashes(m[0], m[1]); len(n) != x.clashes {
			t.Errorf("%d: they clash in %v", i, n)
		}
	}
	// What another stands in for stays where only one side takes it away.
	got, _ := Effective(old, read([]Patch{none, named}), func(i int) bool { return i == 1 }, notTurned(old))
	if got.Task("b").Contingency != "c" || isStandIn(got, "c") {
		t.Errorf("%s", Lines(Between(old, got)))
	}
	// An older form of a patch says on-failure alone.
	alone := Patch{{Part: Part{OfTask, "a"}, Key: "on-failure", Value: written("release")}}
	if got := effective(old, []Patch{alone}); got.Task("a").OnFailure != workflow.FailRelease || got.Task("a").Contingency != "" {
		t.Errorf("%s", Lines(Between(old, got)))
	}
}

// Two add one task: one only to stand in, the other to be done by itself. It is done by itself, whichever came first,
// and nobody stands in by the first. Of two that stand in unlike it is as the first says.
func TestStandInsOfOneName(t *testing.T) {
	old := parse(t, spares)
	spare := mustPatch(t, old, edited(t, spares, "b: {}", "b: {contingency: d}, d: {type: manual}"))
	own := mustPatch(t, old, edited(t, spares, "b: {}", "b: {}, d: {type: manual}", "[b]", "[b, d]"))
	other := mustPatch(t, old, edited(t, spares, "b: {}", "b: {contingency: d}, d: {type: manual, timeout: 2h}"))
	undo := mustPatch(t, old, edited(t, spares, "b: {}", "b: {compensate: d}, d: {type: manual}"))
	later := func(i int) bool { return i == 1 }
	for i, x := range [][]Patch{{spare, own}, {own, spare}} {
		got, left := Effective(old, read(x), later, notTurned(old))
		if d := got.Task("d"); len(left) != 1 || d == nil || d.ContingencyOnly || got.Task("b").Contingency != "" {
			t.Errorf("%d: left are %v: %s", i, left, Lines(Between(old, got)))
		}
	}
	for i, x := range [][]Patch{{spare, other}, {other, spare}} {
		m := read(x)
		got, left := Effective(old, m, later, notTurned(old))
		if len(left) > 0 || (got.Task("d").Timeout > 0) != (i == 1) {
			t.Errorf("%d: left are %v: %s", i, left, Lines(Between(old, got)))
		}
		if n := Clashes(m[0], m[1]); len(n) != 1 || n[0].Part != (Part{OfTask, "d"}) {
			t.Errorf("%d: they clash in %v", i, n)
		}
	}
	for i, x := range [][]Patch{{spare, undo}, {undo, spare}} {
		got, left := Effective(old, read(x), later, notTurned(old))
		if len(left) > 0 || got.Task("b").Contingency != "d" || got.Task("b").Compensate == nil {
			t.Errorf("%d: left are %v: %s", i, left, Lines(Between(old, got)))
		}
	}
	// One that does not go together with another leaves what stands in, as facts may name it.
	clash := mustPatch(t, old, edited(t, spares, "a: {", "a: {after: b, ", "b: {}", "b: {contingency: e}, e: {type: manual}"))
	circle := mustPatch(t, old, edited(t, spares, "b: {}", "b: {after: a}"))
	got, left := Effective(old, read([]Patch{circle, clash}), later, notTurned(old))
	if e := got.Task("e"); !slices.Equal(left, []int{1}) || e == nil || !isStandIn(got, "e") {
		t.Errorf("left are %v: %s", left, Lines(Between(old, got)))
	}
}

// What stands in cannot undo others as well, nor be what nobody could give out in time; and patches that say so are
// none.
func TestWhatCannotStandIn(t *testing.T) {
	old := parse(t, spares)
	for _, x := range [][]string{
		{"b: {}", "b: {contingency: d, compensate: d}, d: {type: manual}"},
		{"b: {}", "b: {contingency: d}, d: {type: manual}", "[b]", "[b, d]"},
		{"b: {}", "b: {contingency: d}, d: {holds: crane}", "[b]}\n", "[b]}\nresources: {crane: {capacity: 1, partition: p}}\n"},
		{"b: {}", "b: {contingency: d}, d: {produces: lifted}"},
		{"b: {}", "b: {contingency: d, repeat: {times: 2}}, d: {}"},
		{"a: {contingency: c}", "a: {}"},
		{"a: {contingency: c}", "a: {contingency: b}", ", c: {type: manual}", ""},
	} {
		changed, err := workflow.Parse("changed", []byte(strings.NewReplacer(x...).Replace(spares)))
		if err != nil {
			continue
		}
		p, no := PatchOf(old, changed, nil)
		if len(no) == 0 {
			_, err = Fits(old, old, p, notTurned(old))
		}
		if len(no) == 0 && err == nil {
			t.Errorf("%q: %s", x, p.Text())
		}
	}
	for _, text := range []string{
		`[{"kind":"task","name":"b","key":"contingency","value":"c"}]`,
		`[{"kind":"task","name":"b","key":"contingency","value":7},{"kind":"task","name":"b","key":"on-failure"}]`,
		`[{"kind":"task","name":"b","key":"contingency","value":"c"},{"kind":"task","name":"b","key":"on-failure","value":"release"}]`,
		`[{"kind":"task","name":"b","key":"contingency","value":"d"},{"kind":"task","name":"b","key":"on-failure"}]`,
		`[{"kind":"task","name":"d","key":"add-to","value":"p"},{"kind":"task","name":"d","key":"stands-in","value":true}]`,
		`[{"kind":"task","name":"d","key":"add-to","value":""},{"kind":"task","name":"d","key":"stands-in","value":false}]`,
		`[{"kind":"task","name":"b","key":"stands-in","value":true}]`,
	} {
		p, err := DecodePatch(text)
		if err == nil {
			_, err = Fits(old, old, p, notTurned(old))
		}
		if err == nil {
			t.Errorf("%s fits", text)
		}
	}
	// What was added to undo others does not stand in for them later, nor the other way round.
	undo := edited(t, spares, "b: {}", "b: {compensate: d}, d: {type: manual}")
	spare := edited(t, spares, "b: {}", "b: {contingency: d}, d: {type: manual}")
	for _, x := range [][2]*workflow.Definition{{undo, spare}, {spare, undo}} {
		p, no := PatchOf(x[0], x[1], nil)
		if _, err := Fits(old, x[0], p, notTurned(old)); err == nil && len(no) == 0 {
			t.Errorf("%s fits", p.Text())
		}
	}
}
