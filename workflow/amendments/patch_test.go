package amendments

import (
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

const limits = `
workflow: storm
version: 1
data: {n: {type: integer}}
tasks:
  a: {timeout: 1h, priority: 1}
  b: {after: a, timeout: 1h, time-to-wait: 2h}
  c: {after: b}
partitions:
  p: {tasks: [a, b, c], timeout: 9h}
`

func parse(t testing.TB, src string) *workflow.Definition {
	t.Helper()
	def, err := workflow.Parse("w", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return def
}

func edited(t testing.TB, src string, pairs ...string) *workflow.Definition {
	t.Helper()
	changed := strings.NewReplacer(pairs...).Replace(src)
	if changed == src {
		t.Fatalf("%q changes nothing", pairs)
	}
	return parse(t, changed)
}

func effective(def *workflow.Definition, patches []Patch) *workflow.Definition {
	out, _ := Effective(def, read(patches), nil, anyDefinition)
	return out
}

// read are patches of definitions without loops.
func read(patches []Patch) (out []Meant) {
	for _, p := range patches {
		out = append(out, Meant{Patch: p})
	}
	return out
}

func anyDefinition(*workflow.Definition) error { return nil }

// asRead is the patch that makes one definition of the other, as it is read from its text: it fits, and makes that.
func asRead(t *testing.T, old, changed *workflow.Definition) Patch {
	t.Helper()
	p := mustPatch(t, old, changed)
	back, err := DecodePatch(p.Text())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Fits(old, old, back, anyDefinition); err != nil {
		t.Fatal(err)
	}
	if got := effective(old, []Patch{back}); got.Hash() != changed.Hash() {
		t.Errorf("it makes %s", Lines(Between(changed, got)))
	}
	return back
}

func mustPatch(t testing.TB, old, changed *workflow.Definition) Patch {
	t.Helper()
	p, heavy := PatchOf(old, changed, nil)
	if len(heavy) > 0 {
		t.Fatal(heavy)
	}
	return p
}

// What a patch of two editions makes of the old one is the new one; written down and read it is the same.
func TestAPatchMakesTheChangedEdition(t *testing.T) {
	old := parse(t, limits)
	changed := edited(t, limits, "version: 1", "version: 2\nlabel: A storm", "{timeout: 1h, priority: 1}",
		"{timeout: 3h, doc: 'Look, and <say>.'}", "time-to-wait: 2h", "time-to-wait: 5h", "timeout: 9h", "timeout: 10h",
		"{type: integer}", "{type: integer, label: Trees}")
	asRead(t, old, changed)
	if got := effective(old, nil); got != old {
		t.Error("nothing makes another")
	}
}

// Limits of tasks come and go, and so do their tries. One that comes changes nothing of what partners said, any other
// may: another task may have a time-to-wait only because of a timeout.
func TestAPatchOfLimits(t *testing.T) {
	old := parse(t, limits)
	for _, x := range []struct {
		from, to string
		heavy    bool
	}{
		{"c: {after: b}", "c: {after: b, timeout: 1h}", false},
		{"c: {after: b}", "c: {after: b, retries: 2}", true},
		{"c: {after: b}", "c: {after: b, time-to-wait: 3h}", true},
		{", time-to-wait: 2h", "", true},
		{"b: {after: a, timeout: 1h", "b: {after: a", true},
		{", timeout: 9h", "", true},
		{"timeout: 9h", "timeout: 8h", false},
	} {
		if p := asRead(t, old, edited(t, limits, x.from, x.to)); len(p) != 1 || p.IsHeavy() != x.heavy {
			t.Errorf("%s: %s, heavy: %t", x.to, p.Text(), p.IsHeavy())
		}
	}
	bare := edited(t, limits, ", timeout: 9h", "")
	if p := asRead(t, bare, old); len(p) != 1 || p.IsHeavy() {
		t.Errorf("a partition has a limit: %s, heavy: %t", p.Text(), p.IsHeavy())
	}
	added := asRead(t, old, edited(t, limits, "c: {after: b}", "c: {after: b}\n  d: {time-to-wait: 1h, after: b, "+
		"type: manual, offline: true, deadline: 3h, transfer: 1h}", ", c]", ", c, d]"))
	if len(added.Adds()) != 1 || len(added.Dates()) != 0 {
		t.Errorf("it adds %s", added.Text())
	}
}

// Deadlines, and what follows from them, come and go.
func TestAPatchOfDeadlines(t *testing.T) {
	const src = "workflow: w\ndata: {sails: {type: time}}\ntasks:\n" +
		"  x: {type: manual, deadline: 9h, transfer: 1h, warnings: [2h]}\n  y: {type: manual}\n"
	old := parse(t, src)
	for _, c := range []struct {
		from, to string
		dates    int
	}{
		{"deadline: 9h", "deadline: 8h", 1},
		{"deadline: 9h", "deadline: sails", 1},
		{", deadline: 9h, transfer: 1h, warnings: [2h]", "", 1},
		{"y: {type: manual}", "y: {type: manual, deadline: 2026-03-01T20:00:00Z}", 1},
		{"transfer: 1h", "transfer: 2h", 0},
		{", transfer: 1h", "", 0},
		{"warnings: [2h]", "warnings: [2h, 1h]", 0},
		{"workflow: w", "workflow: w\nwarnings: [3h]\ntransfer: 2h", 0},
	} {
		if p := asRead(t, old, edited(t, src, c.from, c.to)); len(p.Dates()) != c.dates || !p.IsHeavy() {
			t.Errorf("%s: %s gives %s another deadline, heavy: %t", c.to, p.Text(), p.Dates(), p.IsHeavy())
		}
	}
	const flow = "workflow: w\ndata: {n: {type: integer, default: 0}}\ntasks:\n" +
		"  x: {type: manual, when: n < 3, repeat: true}\n"
	if p, no := PatchOf(parse(t, flow), edited(t, flow, "repeat: true", "repeat: true, deadline: 9h"), nil); p != nil ||
		len(no) != 1 || no[0].Key != "deadline" {
		t.Errorf("a trigger has a deadline: %v", no)
	}
	none := mustPatch(t, old, edited(t, src, ", deadline: 9h, transfer: 1h, warnings: [2h]", ""))
	more := mustPatch(t, old, edited(t, src, "transfer: 1h", "transfer: 2h"))
	side := func(i int) bool { return i == 1 }
	got, left := Effective(old, read([]Patch{none, more}), side, anyDefinition)
	if len(left) != 1 || got.Task("x").Deadline != nil || got.Task("x").Transfer != 0 {
		t.Errorf("left are %v: %s", left, Lines(Between(old, got)))
	}
}

// Partitions are added with their tasks, and others may have those that there are; tasks stay in theirs. Of a partition
// that two add unlike there is the first, with the tasks of both.
func TestAPatchOfPartitions(t *testing.T) {
	const src = "workflow: w\ntasks: {x: {}, y: {}}\npartitions:\n  p: [x]\n  q: [y]\n"
	old := parse(t, src)
	add := func(task, part string) *workflow.Definition {
		return edited(t, src, "y: {}", "y: {}, "+task+": {after: x}",
			"q: [y]\n", "q: [y]\n  r: {tasks: ["+task+"]"+part+"}\n")
	}
	one := asRead(t, old, add("d", ", timeout: 3h, partner: truck"))
	other := asRead(t, old, add("e", ", roles: [crew], needs: [winch], label: There"))
	if !one.IsHeavy() || !slices.Equal(one.Parts(), []workflow.PartitionName{"r"}) || len(one.Replaces()) > 0 ||
		len(one.Adds()) != 1 {
		t.Errorf("it adds %s, and replaces %s: %s", one.Parts(), one.Replaces(), one.Text())
	}
	side := func(i int) bool { return i == 1 }
	for _, c := range [][]Patch{{one, other}, {other, one}} {
		got, left := Effective(old, read(c), side, anyDefinition)
		r := got.Partition("r")
		if len(left) > 0 || r == nil || len(r.Tasks) != 2 || (r.Partner == "truck") != (&c[0][0] == &one[0]) ||
			(len(r.Roles) == 1) == (r.Partner == "truck") {
			t.Errorf("left are %v: %+v", left, r)
		}
		if n := Clashes(Meant{Patch: c[0]}, Meant{Patch: c[1]}); len(n) != 1 || n[0].String() != "partition r: both add it" {
			t.Errorf("they clash in %v", n)
		}
	}
	moved := asRead(t, old, edited(t, src, "q: [y]", "q: {tasks: [y], partner: truck, needs: [winch]}"))
	if !moved.IsHeavy() || !slices.Equal(moved.Replaces(), []workflow.PartitionName{"q"}) || len(moved.Parts()) > 0 {
		t.Errorf("it adds %s, and replaces %s: %s", moved.Parts(), moved.Replaces(), moved.Text())
	}
	for _, x := range [][]string{
		{"y: {}", "y: {}, d: {}", "q: [y]\n", "r: [y, d]\n"},
		{"p: [x]\n  q: [y]\n", "p: [x, y]\n"},
	} {
		if p, no := PatchOf(old, edited(t, src, x...), nil); p != nil || len(no) == 0 {
			t.Errorf("%q: %s", x, p.Text())
		}
	}
	bare, err := DecodePatch(`[{"kind":"partition","name":"r","key":"add","value":true}]`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Fits(old, old, bare, anyDefinition); err == nil {
		t.Error("a partition without tasks is added")
	}
	const flow = "workflow: w\ndata: {n: {type: integer, default: 0}}\ntasks:\n" +
		"  x: {type: manual, when: n < 3, repeat: true}\n" +
		"partitions:\n  p: {tasks: [x]}\n"
	for _, x := range [][]string{
		{"tasks: [x]", "tasks: [x], partner: truck"},
		{"partitions:", "  y: {type: manual, when: n < 2, repeat: true}\npartitions:\n  q: {tasks: [y]}"},
	} {
		if p, no := PatchOf(parse(t, flow), edited(t, flow, x...), nil); p != nil || len(no) == 0 {
			t.Errorf("%q of a flow: %s", x, p.Text())
		}
	}
}

// A resource is added, with a task that holds a unit of it, and there is more of it; it does not move, and is not taken
// out. Of two that add one of a name it is as the first says.
func TestAPatchOfResources(t *testing.T) {
	const src = "workflow: w\ntasks: {x: {}, y: {}}\npartitions: {p: [x], q: [y]}\n"
	const stock = "partitions: {p: [x, z], q: [y]}\nresources: {crane: {capacity: 1, partition: p}}\n"
	more := []string{
		"y: {}", "y: {}, z: {holds: crane, produces: {name: lifted}}", "partitions: {p: [x], q: [y]}\n", stock,
	}
	old := parse(t, src)
	one := asRead(t, old, edited(t, src, more...))
	if !one.IsHeavy() || one.StoreOf("crane") != "p" || one.StoreOf("tug") != "" {
		t.Errorf("heavy: %t, crane is at %q: %s", one.IsHeavy(), one.StoreOf("crane"), one.Text())
	}
	held := strings.NewReplacer(more...).Replace(src)
	if rise := asRead(t, parse(t, held), edited(t, held, "capacity: 1", "capacity: 4")); rise.StoreOf("crane") != "" {
		t.Errorf("it adds the resource: %s", rise.Text())
	}
	for _, x := range [][]string{
		{"partition: p}}", "partition: q}}"},
		{"z: {holds: crane, ", "z: {", "resources: {crane: {capacity: 1, partition: p}}\n", ""},
		{"z: {holds: crane, ", "z: {"},
	} {
		if p, no := PatchOf(parse(t, held), edited(t, held, x...), nil); p != nil || len(no) == 0 {
			t.Errorf("%q: %s", x, p.Text())
		}
	}
	other := mustPatch(t, old, edited(t, src, "y: {}", "y: {}, d: {holds: crane}", "q: [y]}\n",
		"q: [y, d]}\nresources: {crane: {capacity: 2, partition: q}}\n"))
	for i, c := range [][]Patch{{one, other}, {other, one}} {
		m := read(c)
		got, left := Effective(old, m, func(i int) bool { return i == 1 }, anyDefinition)
		if len(left) > 0 || got.Task("d") == nil || got.Task("z") == nil || got.Resources[0].Capacity != i+1 {
			t.Errorf("left are %v: %s", left, Lines(Between(old, got)))
		}
		if n := Clashes(m[0], m[1]); len(n) != 1 || n[0].String() != "resource crane: both add it" {
			t.Errorf("they clash in %v", n)
		}
	}
}

// The limits of data are others, new, or none any more. Two that go together by themselves and not with each other: the
// later one sets nothing.
func TestAPatchOfRanges(t *testing.T) {
	src := strings.Replace(limits, "{type: integer}", "{type: integer, min: 1, max: 9}", 1)
	old := parse(t, src)
	for _, x := range []string{"min: 1, max: 4", "max: 9", "min: 1", "enum: [2, 3]"} {
		if p := asRead(t, old, edited(t, src, "min: 1, max: 9", x)); !p.IsHeavy() {
			t.Errorf("%s: it does not matter who had heard of it", x)
		}
	}
	one := mustPatch(t, old, edited(t, src, "min: 1", "min: 6"))
	other := mustPatch(t, old, edited(t, src, "max: 9", "max: 4"))
	side := func(i int) bool { return i == 1 }
	if _, left := Effective(old, read([]Patch{one, other}), side, anyDefinition); len(left) != 1 {
		t.Errorf("no value fits both, and of these nothing sets nothing: %v", left)
	}
}

// What changes more than limits, weights and words is refused.
func TestWhatAPatchMayNotChange(t *testing.T) {
	old := parse(t, limits)
	for _, x := range [][]string{
		{"c: {after: b}", "c: {after: b, application: sleep, with: {for: 1s}}"},
		{"a: {timeout: 1h", "a: {application: ring, timeout: 1h"},
		{"c: {after: b}", "c: {after: b}\n  d: {}", "partitions:", "partitions:\n  q: [c, d]", "[a, b, c]", "[a, b]"},
		{"c: {after: b}", "c: {after: b, contingency: d}\n  d: {}", "[a, b, c]", "[a, b, c, d]"},
		{"c: {after: b}", "c: {after: b, repeat: {times: 2}, contingency: d}\n  d: {}"},
		{"version: 1", "version: 1\ninitial: n == 1"},
		{"version: 1", "version: 1\nresources: {crane: {capacity: 1, partition: p}}", "{after: b}",
			"{after: b, holds: crane}"},
		{"{n: {type: integer}}", "{n: {type: string}}"},
		{"version: 1", "version: 1\nresponsible: bia"},
		{"version: 1", "version: 1\ndoc: '" + strings.Repeat("x", MaxPatch) + "'"},
	} {
		p, heavy := PatchOf(old, edited(t, limits, x...), nil)
		if p != nil || len(heavy) == 0 || !heavy[0].Refused || heavy[0].Why == "" {
			t.Errorf("%q: %v, %v", x, p, heavy)
		}
	}
}

// A task is given what undoes it, another, or none any more; but none that is done by itself becomes one that only
// undoes others, nor the other way round.
func TestAPatchOfCompensations(t *testing.T) {
	src := strings.Replace(limits, "c: {after: b}", "c: {after: b, compensate: d}\n  d: {type: manual}", 1)
	old := parse(t, src)
	for _, x := range [][]string{
		{"{timeout: 1h, priority: 1}", "{timeout: 1h, priority: 1, compensate: {application: noop}}"},
		{"{timeout: 1h, priority: 1}", "{timeout: 1h, priority: 1, compensate: d}"},
		{"{after: b, compensate: d}", "{after: b, compensate: c2}", "d: {type: manual}",
			"d: {type: manual}\n  c2: {after: a}", ", c]", ", c, c2, d]"},
	} {
		changed := edited(t, src, x...)
		p, no := PatchOf(old, changed, nil)
		if changed.Task("d").ContingencyOnly != old.Task("d").ContingencyOnly {
			if p != nil || !strings.Contains(no[len(no)-1].Why, "would be done by itself") {
				t.Errorf("%q: %v, %v", x, p, no)
			}
			continue
		}
		back := asRead(t, old, changed)
		if !back.IsHeavy() || len(back.Compensates()) != 1 {
			t.Errorf("%q: heavy %t, gives %s what undoes it", x, back.IsHeavy(), back.Compensates())
		}
	}
	gone := mustPatch(t, parse(t, strings.Replace(limits, "time-to-wait: 2h", "compensate: {application: noop}", 1)),
		parse(t, strings.Replace(limits, ", time-to-wait: 2h", "", 1)))
	if len(gone) != 1 || len(gone[0].Value) > 0 || len(gone.Compensates()) > 0 {
		t.Errorf("none any more: %s", gone.Text())
	}
	bare := parse(t, strings.Replace(limits, "c: {after: b}", "c: {}", 1))
	changed := edited(t, limits, "{timeout: 1h, priority: 1}", "{timeout: 1h, compensate: c}", "c: {after: b}", "c: {}",
		", c]", "]")
	if p, no := PatchOf(bare, changed, nil); p != nil || len(no) == 0 {
		t.Errorf("what is done by itself only undoes: %v", p)
	}
}

// A task is added that only undoes others, with what it undoes, and is gone once it undoes nothing. Where another adds one
// of its name that is done by itself, that is there, whichever came first.
func TestAPatchOfWhatUndoes(t *testing.T) {
	const src = "workflow: w\ntasks: {x: {}, y: {}}\npartitions: {p: [x], q: [y]}\n"
	old := parse(t, src)
	with := edited(t, src, "y: {}", "y: {compensate: d}, d: {type: manual}")
	undo := asRead(t, old, with)
	if len(undo.Adds()) != 1 || len(undo.Compensates()) != 1 || !slices.Contains(undo.Lines(), "task d is new") {
		t.Errorf("it adds %s, and gives %s what undoes it: %q", undo.Adds(), undo.Compensates(), undo.Lines())
	}
	gone := mustPatch(t, with, edited(t, src, "y: {}", "y: {compensate: {application: noop}}"))
	if _, err := Fits(old, with, gone, anyDefinition); err != nil || len(gone) != 1 {
		t.Errorf("%s: %v", gone.Text(), err)
	}
	if got := effective(old, []Patch{undo, gone}); got.Task("d") != nil || got.Task("y").Compensate == nil {
		t.Errorf("what undoes nothing stays: %s", Lines(Between(old, got)))
	}
	own := asRead(t, old, edited(t, src, "y: {}", "y: {}, d: {type: manual}", "[x]", "[d, x]"))
	more := asRead(t, old, edited(t, src, "y: {}", "y: {compensate: d}, d: {}, e: {after: x, compensate: d}", "[y]", "[e, y]"))
	for i, c := range [][]Patch{{undo, own}, {own, undo}, {more, own}, {own, more}} {
		got, left := Effective(old, read(c), func(i int) bool { return i == 1 },
			func(d *workflow.Definition) error { return turned(old, d) })
		d := got.Task("d")
		if len(left) != 1 || d == nil || d.ContingencyOnly || got.Task("y").Compensate != nil || i > 1 && got.Task("e") == nil {
			t.Errorf("%d: left are %v: %s", i, left, Lines(Between(old, got)))
		}
	}
	// Whoever knew of what undoes, and has more undone by it, sets nothing then; all else counts.
	also := mustPatch(t, with, edited(t, src, "x: {}, y: {}", "x: {compensate: d}, y: {compensate: d}, d: {type: manual}"))
	loud := mustPatch(t, old, edited(t, src, "y: {}", "y: {retries: 2}"))
	got, left := Effective(old, read([]Patch{undo, also, own, loud}), func(i int) bool { return i > 1 },
		func(d *workflow.Definition) error { return turned(old, d) })
	if d := got.Task("d"); !slices.Equal(left, []int{0, 1}) || d == nil || d.ContingencyOnly || got.Task("x").Compensate != nil ||
		got.Task("y").Retries.Times != 2 {
		t.Errorf("left are %v: %s", left, Lines(Between(old, got)))
	}
	for _, x := range [][]string{
		{"y: {}", "y: {compensate: d}, d: {type: manual}", "[x]", "[d, x]"},
		{"y: {}", "y: {contingency: d}, d: {type: manual}", "[x]", "[d, x]"},
	} {
		if p, no := PatchOf(old, edited(t, src, x...), nil); p != nil || len(no) == 0 {
			t.Errorf("%q: %s", x, p.Text())
		}
	}
	for _, text := range []string{
		`[{"kind":"task","name":"d","key":"add-to","value":""},{"kind":"task","name":"d","key":"after","value":["x"]},` +
			`{"kind":"task","name":"y","key":"compensate","value":{"task":"d"}}]`,
		`[{"kind":"task","name":"y","key":"compensate","value":{"task":"d"}}]`,
	} {
		p, err := DecodePatch(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Fits(old, old, p, anyDefinition); err == nil {
			t.Errorf("%s fits", text)
		}
	}
}

// Tasks are added, wait for others and are waited for, and are not done any more: a patch of two editions makes the new
// one. A task that is taken out stays, and is not enabled.
func TestAPatchOfTasks(t *testing.T) {
	old := parse(t, limits)
	changed := edited(t, limits, "c: {after: b}", "c: {after: [b, d], on-failure: release}\n  d: {after: a, in: [n], "+
		"role: crew, type: manual, timeout: 1h, on-failure: release}\n  e: {when: failed(\"d\")}", ", c]", ", c, d, e]")
	back := asRead(t, old, changed)
	if !back.IsHeavy() || len(back.Adds()) != 2 || len(back.Steers()) != 1 {
		t.Errorf("heavy: %t, adds %s, steers %s", back.IsHeavy(), back.Adds(), back.Steers())
	}
	without := edited(t, limits, "  c: {after: b}\n", "", ", c]", "]")
	gone := mustPatch(t, old, without)
	left := effective(old, []Patch{gone})
	if x := left.Task("c"); x == nil || !x.Disabled {
		t.Errorf("what is taken out is %+v", x)
	}
	if again := mustPatch(t, left, without); len(again) > 0 {
		t.Errorf("once more: %s", again.Lines())
	}
}

// What two add under one name is one task, as the first of them wrote it down. Of two that make a circle the later one
// sets nothing, unless somebody has set it right who knew of both; what it adds is there.
func TestPatchesThatDoNotGoTogether(t *testing.T) {
	const src = "workflow: w\ntasks: {x: {}, y: {}, z: {}}\npartitions: {p: [x, y], q: [z]}\n"
	old := parse(t, src)
	one := mustPatch(t, old, edited(t, src, "x: {}, y: {}", "x: {after: y}, y: {}, d: {priority: 1}",
		"[x, y]", "[x, y, d]"))
	other := mustPatch(t, old, edited(t, src, "x: {}, y: {}", "x: {}, y: {after: x}, d: {priority: 2}, e: {after: d}",
		"[x, y]", "[x, y, e]", "[z]", "[d, z]"))
	side := func(i int) bool { return i == 1 }
	for _, c := range []struct {
		patches  []Patch
		x, y     int
		priority int
		home     workflow.PartitionName
	}{
		{[]Patch{one, other}, 1, 0, 1, "p"},
		{[]Patch{other, one}, 0, 1, 2, "q"},
	} {
		got, left := Effective(old, read(c.patches), side, anyDefinition)
		if len(left) != 1 || left[0] != 1 || len(got.Task("x").After) != c.x || len(got.Task("y").After) != c.y {
			t.Fatalf("left are %v: %s", left, Lines(Between(old, got)))
		}
		if got.Task("d").Priority != c.priority || got.Task("e") == nil ||
			!slices.Contains(got.Partition(c.home).Tasks, "d") {
			t.Errorf("of what they add there is %s", Lines(Between(old, got)))
		}
		if n := Clashes(Meant{Patch: c.patches[0]}, Meant{Patch: c.patches[1]}); len(n) != 1 || n[0].String() != "task d: both add it" {
			t.Errorf("they clash in %v", n)
		}
	}
	settled := mustPatch(t, effective(old, []Patch{one}), old)
	got, left := Effective(old, read([]Patch{one, other, settled}), side, anyDefinition)
	if len(left) != 1 || len(got.Task("x").After) != 0 || len(got.Task("y").After) != 0 {
		t.Errorf("settled, but for %v: %s", left, Lines(Between(old, got)))
	}
	if all, _ := Effective(old, read([]Patch{one, other}), nil, anyDefinition); all != old {
		t.Error("a circle is no definition")
	}
}

// Two patches go together, in either order, unless they set one key unlike: then the last one counts, and it is
// said.
func TestPatchesTogether(t *testing.T) {
	old := parse(t, limits)
	one := mustPatch(t, old, edited(t, limits, "a: {timeout: 1h", "a: {timeout: 2h", "version: 1", "version: 2"))
	other := mustPatch(t, old, edited(t, limits, "priority: 1", "priority: 5"))
	third := mustPatch(t, old, edited(t, limits, "a: {timeout: 1h", "a: {timeout: 3h", "version: 1", "version: 2"))
	a, b := effective(old, []Patch{one, other}), effective(old, []Patch{other, one})
	if a.Hash() != b.Hash() || a.Task("a").Priority != 5 || a.Task("a").Timeout.Hours() != 2 || a.Version != 2 {
		t.Error(Lines(Between(a, b)), a.Task("a"))
	}
	if c := Clashes(Meant{Patch: one}, Meant{Patch: other}); len(c) > 0 {
		t.Error(c)
	}
	if c := Clashes(Meant{Patch: one}, Meant{Patch: third}); len(c) != 1 || c[0].String() != "task a, timeout: 2h against 3h" {
		t.Error(c)
	}
	if got := effective(old, []Patch{third, one}).Task("a").Timeout.Hours(); got != 2 {
		t.Errorf("%v hours", got)
	}
}

// As many patches as there may be, as long as they may be, go with the longest definition that is amended.
func TestThereIsRoomForAllPatches(t *testing.T) {
	var src strings.Builder
	src.WriteString("workflow: long\ntasks:\n")
	name := func(i int) string { return "t" + strings.Repeat("x", i) }
	for i := range MaxPatches + 1 {
		src.WriteString("  " + name(i) + ": {}\n")
	}
	long := func(n int) *workflow.Definition {
		return parse(t, src.String()+"doc: '"+strings.Repeat("<", n)+"'\n")
	}
	room := MaxPatched - len(long(1).Canonical()) + 1
	old := long(room)
	var patches []Patch
	for i := range MaxPatches {
		p := Patch{{Part: Part{OfTask, name(i)}, Key: "doc", Value: written("")}}
		p[0].Value = written(strings.Repeat("y", MaxPatch-len(p.Text())))
		if len(p.Text()) != MaxPatch {
			t.Fatalf("%d bytes", len(p.Text()))
		}
		patches = append(patches, p)
	}
	if _, err := Fits(old, old, patches[0], anyDefinition); err != nil {
		t.Fatal(err)
	}
	for _, x := range effective(old, patches).Tasks[:MaxPatches] {
		if x.Doc == "" {
			t.Fatalf("the patch of %s does not count", x.Name)
		}
	}
	if _, err := Fits(long(room+1), long(room+1), patches[0], anyDefinition); err == nil {
		t.Error("one that is longer is amended")
	}
}

func TestWhatDoesNotFit(t *testing.T) {
	old := parse(t, limits)
	for _, p := range []string{
		`[{"kind":"task","name":"z","key":"timeout","value":"1h"}]`,
		`[{"kind":"task","name":"a","key":"time-to-wait","value":"1h"}]`,
		`[{"kind":"task","name":"a","key":"timeout","value":"soon"}]`,
		`[{"kind":"task","name":"a","key":"priority","value":{"x":1}}]`,
		`[{"kind":"workflow","name":"","key":"version","value":-3}]`,
		`[{"kind":"workflow","name":"x","key":"version","value":3}]`,
	} {
		x, err := DecodePatch(p)
		if err != nil {
			t.Errorf("%s: %v", p, err)
			continue
		}
		if _, err := Fits(old, old, x, anyDefinition); err == nil {
			t.Errorf("%s fits", p)
		}
	}
}

func FuzzDecodePatch(f *testing.F) {
	for _, s := range []string{
		`[{"kind":"task","name":"a","key":"timeout","value":"1h"}]`, `[]`, `null`, `[{}]`, `[null]`,
		`[{"kind":"task","name":"a","key":"timeout"}]`, `[{"kind":"task","name":"a","key":"after","value":["b"]}]`,
		`[{"kind":"task","name":"a","key":"doc","value":"1"},{"kind":"task","name":"a","key":"doc","value":"1"}]`,
		`[{"kind":"task","name":"a","key":"priority","value":1e400}] `,
		`[{"kind":"task","name":"a","key":"suitability","value":{"crew":0.5}}]`,
	} {
		f.Add(s)
	}
	def := parse(f, limits)
	f.Fuzz(func(t *testing.T, s string) {
		p, err := DecodePatch(s)
		if err != nil {
			return
		}
		if p.Text() != s {
			t.Fatalf("%q is written as %q", s, p.Text())
		}
		p.Lines()
		if _, err := Fits(def, def, p, anyDefinition); err == nil && effective(def, []Patch{p}) == nil {
			t.Fatal("no definition")
		}
	})
}
