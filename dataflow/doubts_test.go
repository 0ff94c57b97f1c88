package dataflow_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/internal/test/sample"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// warned is what check says of a flow.
type warned struct {
	again   []string   // tasks that fire again at each state that they make
	circles [][]string // tasks that fire one another for ever
	never   []string   // tasks that never fire, whatever the start gives
	unless  []resting  // tasks that never fire where data begin with their defaults
	always  []string   // tasks whose rule always holds where all of them do
	// The end is not reached, or not after the start; endsUnless: where data begin with their defaults.
	ends, endsLater bool
	endsUnless      []resting
	times           bool // some of that because of the times of tasks
}

// resting is what is said of a task, or of the end, where data begin with their defaults: these, or all (nil).
type resting struct {
	task string
	on   []workflow.DataName
}

var (
	saysAgain  = regexp.MustCompile(`^nothing that (\w+) sets ends its own rule`)
	saysCircle = regexp.MustCompile(`^(.*) and (\w+) fire one another for ever`)
	saysNever  = regexp.MustCompile(`^the rule of (\w+) can never hold`)
	saysUnless = regexp.MustCompile(`^the rule of (\w+) never holds`)
	saysAlways = regexp.MustCompile(`^the rule of (\w+) always holds`)
	saysGiven  = regexp.MustCompile(`: (\w+) is only ever .*, unless the start gives another( .*)?$`)
)

// restsOn reads from which data a warning says that it asks for their defaults.
func restsOn(task, message string) resting {
	x := resting{task: task}
	if of := saysGiven.FindStringSubmatch(message); of != nil {
		x.on = []workflow.DataName{workflow.DataName(of[1])}
		for _, n := range strings.Fields(strings.NewReplacer(",", "", " or ", " ").Replace(of[2])) {
			x.on = append(x.on, workflow.DataName(n))
		}
	}
	return x
}

func readWarnings(text string) (w warned) {
	for _, x := range workflow.Doubts("flow.yaml", []byte(text), nil) {
		w.times = w.times || strings.Contains(x.Message, "no more often than their times say")
		switch m := x.Message; {
		case saysAgain.MatchString(m):
			w.again = append(w.again, saysAgain.FindStringSubmatch(m)[1])
		case saysCircle.MatchString(m):
			of := saysCircle.FindStringSubmatch(m)
			w.circles = append(w.circles, append(strings.Split(of[1], ", "), of[2]))
		case saysNever.MatchString(m):
			w.never = append(w.never, saysNever.FindStringSubmatch(m)[1])
		case saysUnless.MatchString(m):
			w.unless = append(w.unless, restsOn(saysUnless.FindStringSubmatch(m)[1], m))
		case saysAlways.MatchString(m):
			w.always = append(w.always, saysAlways.FindStringSubmatch(m)[1])
		case strings.HasPrefix(m, "final can never hold"):
			w.ends = true
		case strings.HasPrefix(m, "no task sets what final asks for"):
			w.endsLater = true
		case strings.HasPrefix(m, "final never holds"):
			w.endsUnless = append(w.endsUnless, restsOn("", m))
		}
	}
	return w
}

// smallFlow is a random flow of few tasks over few data.
func smallFlow(r *rand.Rand) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	atom := func() string {
		return pick(
			"n "+pick("==", "!=", "<", "<=", ">", ">=")+" "+pick("-1", "0", "1", "2", "3", "40", "41"),
			"s "+pick("==", "!=")+" "+pick(`"a"`, `"b"`, `"c"`), `s in ["a", "c"]`, `s == "a"`, `s == "b"`,
			"f "+pick("==", "!=")+" null", "f", "not f", "x "+pick("<", ">=")+" "+pick("0.5", "2"),
			"x == null", "n % 2 == 0", "n + 1 > x", `t == "p"`, "t == null", "n % (n - 1) == 0",
		)
	}
	ages := false
	var rule func(depth int) string
	rule = func(depth int) string {
		if depth > 0 && r.IntN(2) == 0 {
			return pick(rule(depth-1)+" and "+rule(depth-1), rule(depth-1)+" and "+rule(depth-1),
				"("+rule(depth-1)+" or "+rule(depth-1)+")", "not ("+rule(depth-1)+")")
		}
		if ages && r.IntN(3) == 0 {
			return fmt.Sprintf(`instance.age %s duration("%s")`, pick("<", "<=", ">", ">=", ">"), pick("1h", "2h", "3h"))
		}
		return atom()
	}
	set := map[string]func() string{
		"n": func() string {
			return pick("n + 1", "n - 1", "0", "1", "2", "3", "n + n", "n % 2", "null", "f ? 1 : 2", "n * 2", "n % (n - 1)")
		},
		"s": func() string {
			return pick(`"a"`, `"b"`, `"c"`, `"b"`, "null", "s", `f ? "a" : "b"`, `s == "a" ? "b" : "a"`)
		},
		"f": func() string { return pick("true", "false", "not f", "n > 1", "null") },
		"x": func() string { return pick("x + 1", "0.5", "x - 0.5", "n + 0.25", "2", "x * x", "null") },
		"t": func() string { return pick(`"p"`, `"q"`, "t", `t + "p"`) },
	}
	var b strings.Builder
	b.WriteString("workflow: w\ndata:\n")
	fmt.Fprintf(&b, "  n: {type: integer%s%s}\n", pick("", ", default: 0", ", default: 1", ", required: true"),
		pick("", "", ", max: 3", ", min: 0, max: 50"))
	fmt.Fprintf(&b, "  s: {type: string, enum: [a, b, c]%s}\n", pick("", ", default: a", ", default: a"))
	fmt.Fprintf(&b, "  f: {type: boolean%s}\n", pick("", ", default: false"))
	fmt.Fprintf(&b, "  x: {type: number%s}\n  t: {type: string%s}\ntasks:\n", pick("", ", default: 0", ", default: 0.5"),
		pick("", ", default: p"))
	others, free := 1+r.IntN(4), []string{"n", "s", "f", "x", "t"}
	if r.IntN(4) == 0 { // some that pass s on, maybe to each other, beside others
		others--
		if r.IntN(2) == 0 {
			free = []string{"x", "t"}
		}
		for i, from := range []string{"a", "b", "c"}[:2+r.IntN(2)] {
			fmt.Fprintf(&b, "  r%d: {when: '%s%s', repeat: true, application: set, with: {s: '%s'}, out: [s]}\n", i,
				fmt.Sprintf("s == %q", from), pick("", "", " and f", " and n < 3"),
				pick(`"a"`, `"b"`, `"b"`, `"c"`, `s == "a" ? "b" : "a"`))
		}
	}
	if r.IntN(4) == 0 { // one that counts, up to or down from a number
		fmt.Fprintf(&b, "  c: {when: 'n %s %s', repeat: "+pick("true", "true", "{times: 1}", "{times: 3}")+", application: set, with: {n: 'n %s %s'}, out: [n]}\n",
			pick("<", "<=", ">=", ">"), pick("-1", "1", "3", "40"), pick("+", "-"), pick("1", "1", "2", "-1"))
	}
	if r.IntN(6) == 0 { // one that counts a few times, what asks for how far it came, and others that do not count
		fmt.Fprintf(&b, "  d: {when: 'n < 4', repeat: {times: %d}, application: set, with: {n: 'n + 1'}, out: [n]}\n", 1+r.IntN(3))
		fmt.Fprintf(&b, "  e: {when: 'n == %d', repeat: true, application: set, with: {x: '2'}, out: [x]}\n", 1+r.IntN(4))
		free, others = []string{"s", "f", "t"}, min(others, 1)
	}
	ages = r.IntN(3) == 0
	for i := range others {
		outs := slices.Clone(free)
		r.Shuffle(len(outs), func(i, j int) { outs[i], outs[j] = outs[j], outs[i] })
		outs = outs[:1+r.IntN(2)]
		does := "application: work"
		if r.IntN(3) > 0 {
			var with []string
			for _, n := range outs {
				with = append(with, fmt.Sprintf("%s: '%s'", n, set[n]()))
			}
			does = "application: set, with: {" + strings.Join(with, ", ") + "}"
		}
		fmt.Fprintf(&b, "  t%d: {when: '%s', repeat: %s, %s, out: [%s]}\n", i, rule(2),
			pick("true", "true", "true", "{times: 2}"), does, strings.Join(outs, ", "))
	}
	ages = false
	if r.IntN(4) == 0 {
		fmt.Fprintf(&b, "constraints: [{name: bound, when: '%s', strict: true}]\n", rule(1))
	}
	if r.IntN(5) == 0 {
		fmt.Fprintf(&b, "initial: '%s'\n", rule(1))
	}
	fmt.Fprintf(&b, "final: '%s'\n", rule(1))
	return b.String()
}

// anyValue is one that a data item may have, or null.
func anyValue(r *rand.Rand, d *workflow.DataDecl) workflow.Value {
	list := map[workflow.DataType][]any{
		workflow.TypeInteger: {-1, 0, 1, 2, 3, 4, 40, 41, 7},
		workflow.TypeNumber:  {-1.0, 0.0, 0.25, 0.5, 1.0, 2.0, 2.5},
		workflow.TypeString:  {"a", "b", "c", "p", "q", "pp"},
		workflow.TypeBoolean: {true, false},
	}[d.Type]
	for range 3 {
		if v, err := workflow.CheckValue(d, list[r.IntN(len(list))]); err == nil && r.IntN(6) > 0 {
			return v
		}
	}
	return nil
}

// doubtful is a run of a flow of which check has said something.
type doubtful struct {
	*story
	def *workflow.Definition
	r   *rand.Rand
	w   warned
	// defaults: its data were to begin with their defaults; began: with which they did.
	defaults bool
	began    values
	seen     map[string]int
	aged     map[string]bool // the tasks whose rule asks for instance.age
}

var ofAge = regexp.MustCompile(`(?m)^  (\w+): \{when: '[^']*instance\.age`)

// starts are data with which an instance may begin.
func (x *doubtful) starts() values {
	out := values{}
	for i := range x.def.Data {
		d := &x.def.Data[i]
		if d.Default != nil && (x.r.IntN(3) == 0 || x.defaults) {
			out[d.Name] = d.Default
		} else if v := anyValue(x.r, d); v != nil {
			out[d.Name] = v
		}
	}
	return out
}

// anyResult is what a task may set: what its definition says, or else anything.
func anyResult(r *rand.Rand, def *workflow.Definition, t *workflow.Task, input values) (values, error) {
	if t.Application != workflow.AppSet {
		out := values{}
		for _, n := range t.Out {
			if r.IntN(4) > 0 {
				out[n] = anyValue(r, def.Datum(n))
			}
		}
		return out, nil
	}
	out, err := t.With.Values(input, "i", 0)
	for n, v := range out {
		if err == nil {
			out[n], err = workflow.CheckValue(def.Datum(n), v)
		}
	}
	return out, err
}

// finish ends a pending transition, as its application would.
func (x *doubtful) finish(p *dataflow.Pending) {
	alone, before := p.State == x.b.State(), x.b.State()
	out, err := anyResult(x.r, x.def, p.Task, p.Input)
	if err != nil {
		x.b.Fail(p.Job, x.id(), err.Error(), 1)
		return
	}
	name := string(p.Task.Name)
	x.done(p.Task.Name, out)
	if x.b.State() == before {
		return
	}
	if alone && slices.Contains(x.w.again, name) {
		x.seen["fires again"]++
		if x.aged[name] {
			x.seen["fires again by age"]++
		}
		x.wants(name+" fires again", x.b.IsPending(p.Task.Name), true)
	}
	for _, circle := range x.w.circles {
		if slices.Contains(circle, name) {
			x.seen["circle"]++
			x.wants("the circle goes on", slices.ContainsFunc(circle, func(n string) bool {
				return x.b.IsPending(workflow.TaskName(n))
			}), true)
		}
	}
}

// concerns reports whether what is said where some data begin with their defaults is said of this run.
func (x *doubtful) concerns(said resting) bool {
	if said.on == nil {
		return x.defaults
	}
	return !slices.ContainsFunc(said.on, func(n workflow.DataName) bool {
		return x.def.Datum(n).Default != x.began[n]
	})
}

// check holds a state against what was said of all.
func (x *doubtful) check() {
	for _, p := range x.b.Pending() {
		name := string(p.Task.Name)
		if slices.Contains(x.w.never, name) || slices.ContainsFunc(x.w.unless, func(said resting) bool {
			return said.task == name && x.concerns(said)
		}) {
			x.t.Errorf("%s fires", name)
		}
	}
	for _, name := range x.w.always {
		if x.defaults {
			x.seen["always"]++
			rule := x.def.Task(workflow.TaskName(name)).Condition
			x.wants("the rule of "+name, dataflow.Holds(rule, x.b.Values()), true)
		}
	}
	if x.b.Ended() && (x.w.ends || x.b.State() > 0 && x.w.endsLater || slices.ContainsFunc(x.w.endsUnless, x.concerns)) {
		x.t.Errorf("it ends in S%d", x.b.State())
	}
}

// Whatever check says of a flow is so, in every run: what is said to fire for ever does, what is said never to fire
// does not, and an end that is said not to be reached is not.
func TestWhatIsDoubtedIsSo(t *testing.T) {
	seen, said := map[string]int{}, map[string]int{}
	flows := sample.Of(1400, 4200)
	for seed := range uint64(flows) {
		r := rand.New(rand.NewPCG(seed, 26))
		text := smallFlow(r)
		def, err := workflow.Parse("flow.yaml", []byte(text))
		if err != nil {
			said["mistake"]++
			continue
		}
		w := readWarnings(text)
		for what, yes := range map[string]bool{
			"again": w.again != nil, "circle": w.circles != nil, "never": w.never != nil, "unless": w.unless != nil, "always": w.always != nil,
			"ends": w.ends, "ends later": w.endsLater, "ends unless": w.endsUnless != nil,
			"times": w.times, "nothing": fmt.Sprint(w) == fmt.Sprint(warned{}),
		} {
			if yes {
				said[what]++
			}
		}
		for run := range 6 {
			x := &doubtful{def: def, r: r, w: w, defaults: run%3 == 0, seen: seen, aged: map[string]bool{}}
			for _, m := range ofAge.FindAllStringSubmatch(text, -1) {
				x.aged[m[1]] = true
			}
			data := (&doubtful{def: def, r: r, defaults: x.defaults}).starts()
			x.began = data
			if dataflow.New(def).Rejects(data) != "" {
				continue
			}
			for _, said := range slices.Concat(w.unless, w.endsUnless) {
				if !x.defaults && x.concerns(said) {
					seen["some defaults"]++
				}
				if def.Initial != nil && x.concerns(said) {
					seen["initial"]++
				}
			}
			x.story = begin(t, def, data)
			x.check()
			for range 60 {
				if next, has := x.b.NextAge(); has && (len(x.b.Pending()) == 0 || r.IntN(8) == 0) {
					x.age(next + time.Duration(r.IntN(2))*30*time.Minute)
					seen["age"]++
					x.check()
				}
				pending := x.b.Pending()
				if len(pending) == 0 {
					break
				}
				x.finish(pending[r.IntN(len(pending))])
				x.check()
			}
			if x.b.Ended() {
				seen["ended"]++
			}
			if t.Failed() {
				t.Fatalf("seed %d: %+v\n%s%v", seed, w, text, data)
			}
		}
	}
	t.Log(said, seen)
	for _, what := range []string{"again", "circle", "never", "unless", "ends later", "ends unless", "times", "nothing"} {
		if said[what] < flows/420 {
			t.Errorf("%s: that was said of %d flows, want more", what, said[what])
		}
	}
	for _, what := range []string{"fires again", "circle", "ended", "age", "fires again by age", "always", "some defaults", "initial"} {
		if seen[what] < flows/42 {
			t.Errorf("%s: that came about %d times, want more", what, seen[what])
		}
	}
}
