package amendments

import (
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
	p := mustPatch(t, old, changed)
	back, err := DecodePatch(p.Text())
	if err != nil {
		t.Fatal(err)
	}
	if err := Fits(old, back); err != nil {
		t.Fatal(err)
	}
	if got := Effective(old, []Patch{back}); got.Hash() != changed.Hash() {
		t.Errorf("it makes %s", Lines(Between(changed, got)))
	}
	if got := Effective(old, nil); got != old {
		t.Error("nothing makes another")
	}
}

// What changes more than limits, weights and words is refused, and so is a limit that comes or goes.
func TestWhatAPatchMayNotChange(t *testing.T) {
	old := parse(t, limits)
	for _, x := range [][]string{
		{"c: {after: b}", "c: {after: a}"},
		{"c: {after: b}", "c: {after: b, application: sleep, with: {for: 1s}}"},
		{"c: {after: b}", "c: {after: b, timeout: 1h}"},
		{"a: {timeout: 1h", "a: {application: ring, timeout: 1h"},
		{"c: {after: b}", "c: {after: b, on-failure: release}"},
		{", timeout: 9h", ""},
		{"  c: {after: b}\n", "", ", c]", "]"},
		{"c: {after: b}", "c: {after: b}\n  d: {}", ", c]", ", c, d]"},
		{"version: 1", "version: 1\nfinal: n == 1"},
		{"version: 1", "version: 1\nresponsible: bia"},
		{"version: 1", "version: 1\ndoc: '" + strings.Repeat("x", MaxPatch) + "'"},
	} {
		p, heavy := PatchOf(old, edited(t, limits, x...), nil)
		if p != nil || len(heavy) == 0 || !heavy[0].Refused || heavy[0].Why == "" {
			t.Errorf("%q: %v, %v", x, p, heavy)
		}
	}
}

// Two patches go together, in either order, unless they set one key unlike: then the last one counts, and it is
// said.
func TestPatchesTogether(t *testing.T) {
	old := parse(t, limits)
	one := mustPatch(t, old, edited(t, limits, "a: {timeout: 1h", "a: {timeout: 2h", "version: 1", "version: 2"))
	other := mustPatch(t, old, edited(t, limits, "priority: 1", "priority: 5"))
	third := mustPatch(t, old, edited(t, limits, "a: {timeout: 1h", "a: {timeout: 3h", "version: 1", "version: 2"))
	a, b := Effective(old, []Patch{one, other}), Effective(old, []Patch{other, one})
	if a.Hash() != b.Hash() || a.Task("a").Priority != 5 || a.Task("a").Timeout.Hours() != 2 || a.Version != 2 {
		t.Error(Lines(Between(a, b)), a.Task("a"))
	}
	if c := Clashes(one, other); len(c) > 0 {
		t.Error(c)
	}
	if c := Clashes(one, third); len(c) != 1 || c[0].String() != "task a, timeout: 2h and 3h" {
		t.Error(c)
	}
	if got := Effective(old, []Patch{third, one}).Task("a").Timeout.Hours(); got != 2 {
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
	if err := Fits(old, patches[0]); err != nil {
		t.Fatal(err)
	}
	for _, x := range Effective(old, patches).Tasks[:MaxPatches] {
		if x.Doc == "" {
			t.Fatalf("the patch of %s does not count", x.Name)
		}
	}
	if err := Fits(long(room+1), patches[0]); err == nil {
		t.Error("one that is longer is amended")
	}
}

func TestWhatDoesNotFit(t *testing.T) {
	old := parse(t, limits)
	for _, p := range []string{
		`[{"kind":"task","name":"z","key":"timeout","value":"1h"}]`,
		`[{"kind":"task","name":"c","key":"timeout","value":"1h"}]`,
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
		if Fits(old, x) == nil {
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
		if Fits(def, p) == nil && Effective(def, []Patch{p}) == nil {
			t.Fatal("no definition")
		}
	})
}
