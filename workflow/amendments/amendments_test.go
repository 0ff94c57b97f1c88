package amendments

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// TestScenarios runs the files in testdata. "define NAME" has a definition; "change NAME of=NAME" is another in
// which lines are replaced: after each line "- old" stands "+ new", which may be left out. "diff OLD NEW" tells what
// differs, "judge OLD NEW" what an instance does with that in which state=…, tasks=(a:RUNNING,…; * after a state:
// somebody has taken it) and data=(NAME:JSON,…), and "merge BASE ONE OTHER" merges.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		sources, defs := map[string]string{}, map[string]*workflow.Definition{}
		define := func(name, src string) string {
			def, err := workflow.Parse(name, []byte(src))
			if err != nil {
				return err.Error()
			}
			sources[name], defs[name] = src, def
			return "ok"
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			arg := func(i int) *workflow.Definition {
				def := defs[d.CmdArgs[i].Key]
				if def == nil {
					d.Fatalf(t, "no definition %s", d.CmdArgs[i].Key)
				}
				return def
			}
			switch d.Cmd {
			case "define":
				return define(d.CmdArgs[0].Key, d.Input)
			case "change":
				src := sources[d.CmdArgs[1].Vals[0]]
				for _, e := range edits(d.Input) {
					if strings.Count(src, e.old) != 1 {
						d.Fatalf(t, "%q stands %d times there", e.old, strings.Count(src, e.old))
					}
					src = strings.Replace(src, e.old, strings.Join(e.changed, "\n"), 1)
				}
				return define(d.CmdArgs[0].Key, src)
			case "diff":
				return lines(Lines(Between(arg(0), arg(1))))
			case "judge":
				var out []string
				for _, f := range Judge(arg(0), arg(1), standing(t, d)) {
					how := "no effect: "
					if f.Refused {
						how = "refused: "
					}
					out = append(out, how+f.String())
				}
				return lines(out)
			case "at-once":
				var out []string
				for _, f := range AtOnce(arg(0), arg(1), standing(t, d)) {
					out = append(out, f.String())
				}
				return lines(out)
			case "merge":
				merged, conflicts := Merge(arg(0), arg(1), arg(2))
				back, again := Merge(arg(0), arg(2), arg(1))
				if len(conflicts) != len(again) || merged != nil && merged.Hash() != back.Hash() {
					d.Fatalf(t, "merged the other way round it is not the same: %v, %v", conflicts, again)
				}
				var out []string
				for _, c := range conflicts {
					out = append(out, "conflict: "+c.String())
				}
				if merged != nil {
					out = append(out, Lines(Between(arg(0), merged))...)
				}
				return lines(out)
			}
			d.Fatalf(t, "no such step")
			return ""
		})
	})
}

// edit is a piece of text with the lines that take its place.
type edit struct {
	old     string
	changed []string
}

func edits(text string) (out []edit) {
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		line = strings.TrimSuffix(line, "\n")
		if old, is := strings.CutPrefix(line, "- "); is {
			out = append(out, edit{old: old})
		} else if len(out) > 0 {
			last := &out[len(out)-1]
			last.changed = append(last.changed, strings.TrimPrefix(strings.TrimPrefix(line, "+"), " "))
		}
	}
	return out
}

func lines(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, "\n")
}

func standing(t *testing.T, d *datadriven.TestData) *Standing {
	s := &Standing{
		State: workflow.InstanceRunning, Tasks: map[workflow.TaskName]Work{}, Data: map[workflow.DataName]workflow.Value{},
	}
	for _, a := range d.CmdArgs[2:] {
		for _, v := range a.Vals {
			name, value, _ := strings.Cut(v, ":")
			switch a.Key {
			case "state":
				s.State = workflow.InstanceState(v)
			case "tasks":
				state, taken := strings.CutSuffix(value, "*")
				state, asked := strings.CutSuffix(state, "?")
				s.Tasks[workflow.TaskName(name)] = Work{workflow.State(state), taken, asked}
			case "data":
				var x any
				if err := json.Unmarshal([]byte(value), &x); err != nil {
					d.Fatalf(t, "%s: %v", v, err)
				}
				s.Data[workflow.DataName(name)] = x
			}
		}
	}
	return s
}

// Any two definitions: what differs between one and itself is nothing; merged with no change, a change is itself;
// merged with itself likewise; both ways round two merge alike; and what is merged has all that either changed.
func TestMergeOfRandomChanges(t *testing.T) {
	merged, conflicted := 0, 0
	for seed := range uint64(600) {
		g := rand.New(rand.NewPCG(seed, 1))
		base := random(t, g, nil)
		one, other := random(t, g, base), random(t, g, base)
		mustBe := func(want *workflow.Definition, a, b *workflow.Definition) {
			t.Helper()
			got, conflicts := Merge(base.def, a, b)
			if got == nil || got.Hash() != want.Hash() {
				t.Fatalf("seed %d: merged it is not what it is: %v", seed, conflicts)
			}
		}
		if x := Between(one.def, one.def); len(x) > 0 {
			t.Fatalf("seed %d: it differs from itself: %v", seed, x)
		}
		mustBe(one.def, one.def, base.def)
		mustBe(one.def, base.def, one.def)
		mustBe(one.def, one.def, one.def)
		got, conflicts := Merge(base.def, one.def, other.def)
		back, again := Merge(base.def, other.def, one.def)
		if len(conflicts) != len(again) || (got == nil) != (back == nil) || got != nil && got.Hash() != back.Hash() {
			t.Fatalf("seed %d: merged the other way round it is not the same", seed)
		}
		if got == nil {
			conflicted++
			continue
		}
		merged++
		for _, side := range []*workflow.Definition{one.def, other.def} {
			for _, c := range Between(base.def, side) {
				for _, k := range c.Keys {
					if !isSet(c.Kind, k.Key) && k.Key != "version" && kept(got, c.Part, k.Key) != string(k.Is) {
						t.Fatalf("seed %d: %s, %s is lost", seed, c.Part, k.Key)
					}
				}
			}
		}
	}
	if merged < 60 || conflicted < 60 {
		t.Errorf("%d merged, %d conflicted: want more of both", merged, conflicted)
	}
}

func kept(d *workflow.Definition, p Part, key string) string { return string(partsOf(d)[p][key]) }

// definition is one of random tests, as it is written.
type definition struct {
	tasks   []string // of which each waits for some before it
	timeout map[string]string
	after   map[string]string
	def     *workflow.Definition
}

// random is a definition, or one that was made of another by a few changes.
func random(t *testing.T, g *rand.Rand, of *definition) *definition {
	d := &definition{timeout: map[string]string{}, after: map[string]string{}}
	if of == nil {
		for i := range 2 + g.IntN(5) {
			d.add(g, fmt.Sprintf("t%d", i))
		}
	} else {
		for _, n := range of.tasks {
			d.tasks = append(d.tasks, n)
			d.timeout[n], d.after[n] = of.timeout[n], of.after[n]
		}
		for range 1 + g.IntN(4) {
			n := d.tasks[g.IntN(len(d.tasks))]
			switch g.IntN(3) {
			case 0:
				d.timeout[n] = fmt.Sprintf("%dm", 1+g.IntN(3))
			case 1:
				d.add(g, fmt.Sprintf("n%d", g.IntN(4)))
			case 2:
				d.after[n] = "" // fewer to wait for
			}
		}
	}
	var b strings.Builder
	b.WriteString("workflow: w\ntasks:\n")
	for _, n := range d.tasks {
		fmt.Fprintf(&b, "  %s: {after: [%s], timeout: %s}\n", n, d.after[n], d.timeout[n])
	}
	def, err := workflow.Parse("w", []byte(b.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	d.def = def
	return d
}

func (d *definition) add(g *rand.Rand, n string) {
	if d.timeout[n] != "" {
		return
	}
	var after []string
	for _, x := range d.tasks {
		if g.IntN(3) == 0 {
			after = append(after, x)
		}
	}
	d.tasks, d.timeout[n], d.after[n] = append(d.tasks, n), fmt.Sprintf("%dm", 1+g.IntN(3)), strings.Join(after, ", ")
}
