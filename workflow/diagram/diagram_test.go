package diagram

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mutirao-mesh/mutirao/internal/golden"
	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func parse(t *testing.T, src string) *workflow.Definition {
	t.Helper()
	d, err := workflow.Parse("test", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func example(t *testing.T, name string) *workflow.Definition {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("../../configs/workflows", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(src))
}

// The examples' pictures, in every format, are those in testdata. Look at a
// changed one before accepting it with -rewrite.
func TestGolden(t *testing.T) {
	running := Options{
		States: map[workflow.TaskName]workflow.State{
			"dispatch": workflow.Succeeded, "procedure-1": workflow.Failed, "procedure-2": workflow.Running,
			"close": workflow.NotReady,
		},
		Partners: map[workflow.PartitionName]string{"engine": "engine-7"},
		Known:    map[workflow.TaskName]string{"procedure-2": "as known 12 min ago"},
	}
	for _, c := range []struct {
		name string
		opt  Options
	}{{"fire-call", running}, {"eleven", Options{}}, {"ferry-inspection", Options{}}, {"water-quality", Options{}}} {
		for _, format := range Formats {
			t.Run(c.name+"."+format, func(t *testing.T) {
				have, err := Render(example(t, c.name), format, c.opt)
				if err != nil {
					t.Fatal(err)
				}
				file := filepath.Join("testdata", c.name+"."+format)
				golden.Compare(t, file, have)
			})
		}
		t.Run(c.name+".tall", func(t *testing.T) {
			c.opt.Tall, c.opt.Language = true, Portuguese
			have, err := Render(example(t, c.name), "svg", c.opt)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, filepath.Join("testdata", c.name+".tall.svg"), have)
		})
	}
}

// hostile holds texts that mean something to XML, Mermaid or DOT.
const hostile = `
workflow: hostile
doc: "</desc><script>alert(1)</script> \" end \\ ]--> \u0001 &amp;"
data:
  s: {type: string}
tasks:
  a: {application: x}
  b: {after: a, when: 's == "</title><script>" or s == "\"]; evil"', application: x}
partitions:
  p: {tasks: [a, b], partner: x}
`

func TestHostileTextStaysText(t *testing.T) {
	d := parse(t, hostile)
	// No parser lets these pass. They are drawn as text all the same.
	d.Task("a").Application, d.Task("b").Application = `<b>"x"</b>`, `x"];t0-->evil`
	d.Partitions[0].Partner = `"]<&>`
	hostileStates := Options{States: map[workflow.TaskName]workflow.State{
		"a": `x" onload="alert(1)`, "b": `"></g><script>x"]`,
	}}
	out, err := Render(d, "svg", hostileStates)
	if err != nil {
		t.Fatal(err)
	}
	for _, element := range elements(t, out) {
		if element == "script" || element == "b" {
			t.Errorf("a text became the element %s", element)
		}
	}
	if bytes.Contains(out, []byte(`onload="`)) {
		t.Errorf("a text became an attribute:\n%s", out)
	}
	tall, err := Render(d, "svg", Options{States: hostileStates.States, Tall: true})
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(elements(t, tall), "script") || slices.Contains(elements(t, tall), "b") ||
		bytes.Contains(tall, []byte(`onload="`)) {
		t.Errorf("a text became more than that:\n%s", tall)
	}
	out, err = Render(d, "mermaid", hostileStates)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out, []byte(`x"]`)) || bytes.Contains(out, []byte("<script")) ||
		bytes.Contains(out, []byte("<b>")) {
		t.Errorf("a text is read as Mermaid:\n%s", out)
	}
	out, err = Render(d, "dot", hostileStates)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out, []byte(`x"]`)) {
		t.Errorf("a text is read as DOT:\n%s", out)
	}
}

// Names of any alphabet are in every format, and within their boxes.
func TestNamesOfAnyAlphabet(t *testing.T) {
	d := parse(t, `
workflow: chamada-de-incêndio
tasks:
  triagem-médica: {}
  救護隊を現場に派遣して負傷者を搬送する: {after: triagem-médica}
partitions:
  estação: [triagem-médica]
  пожар: [救護隊を現場に派遣して負傷者を搬送する]
`)
	for _, format := range Formats {
		out, err := Render(d, format, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"incêndio", "triagem-médica", "救護隊を", "estação", "пожар"} {
			if !bytes.Contains(out, []byte(name)) {
				t.Errorf("%s lacks %s", format, name)
			}
		}
		if format == "svg" && !bytes.Contains(out, []byte(">救護隊を現場に派遣…<")) {
			t.Errorf("the long name is not cut to its box:\n%s", out)
		}
	}
}

// What steers a terminal or turns the direction of writing is in no format.
func TestDrawingsArePlain(t *testing.T) {
	d := parse(t, `
workflow: w
doc: "\e[2J\a \u202egnp\u2069"
tasks:
  a: {application: "x", doc: "\u009b31m"}
  b: {after: a, doc: "\u200f\u061c"}
`)
	opt := Options{
		States:   map[workflow.TaskName]workflow.State{"a": "\x1b[31m\u202e", "b": "\u2066"},
		Partners: map[workflow.PartitionName]string{"main": "ana\u202e\x9b"},
	}
	for _, format := range Formats {
		if out, err := Render(d, format, opt); err != nil || !plain.IsPlain(string(out)) {
			t.Errorf("%s: %v\n%q", format, err, out)
		}
	}
}

// elements reads the SVG strictly and gives the names of its elements.
func elements(t *testing.T, svg []byte) []string {
	t.Helper()
	var names []string
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
		if start, ok := token.(xml.StartElement); ok {
			names = append(names, start.Name.Local)
		}
	}
}

// Every task and arrow of a definition is in the picture; failures are dashed.
func TestNothingIsLeftOut(t *testing.T) {
	d := example(t, "ferry-inspection")
	out, err := Render(d, "svg", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range d.Tasks {
		if !strings.Contains(string(out), ">"+string(task.Name)+"<") {
			t.Errorf("%s is not in the picture", task.Name)
		}
	}
	for class, want := range map[string]int{
		"success": 5, "failure": 3, "contingency": 1,
	} { // one of each of the first two is in the legend
		if have := strings.Count(string(out), `<path class="`+class+`"`); have != want {
			t.Errorf("%d arrows of class %s, want %d", have, class, want)
		}
	}
	if !strings.Contains(string(out), `class="clock"`) || !strings.Contains(string(out), ">6h<") {
		t.Error("the emergency trigger has no clock with its time")
	}
}

// Boxes never lie on each other.
func TestBoxesApart(t *testing.T) {
	for _, name := range []string{"eleven", "fire-call", "ferry-inspection", "water-quality", "clinic-survey"} {
		s := newScene(example(t, name), Options{})
		g, err := arrange(s)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for i, c := range g.cells {
			at := fmt.Sprint(s.boxes[i].lane, c)
			if j, taken := seen[at]; taken {
				t.Errorf("%s: %s and %s are in one place", name, s.boxes[i].task.Name, s.boxes[j].task.Name)
			}
			seen[at] = i
		}
	}
}

func TestSameBytesFromManyGoroutines(t *testing.T) {
	d := example(t, "eleven")
	want, err := Render(d, "svg", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if have, err := Render(d, "svg", Options{}); err != nil || !bytes.Equal(have, want) {
				t.Errorf("another picture, or %v", err)
			}
		})
	}
	group.Wait()
}

func TestRefusals(t *testing.T) {
	if _, err := Render(example(t, "eleven"), "png", Options{}); err == nil ||
		!strings.Contains(err.Error(), "svg, mermaid or dot") {
		t.Errorf("format png: %v", err)
	}
	var b strings.Builder
	b.WriteString("workflow: big\ntasks:\n")
	for i := range maxDrawn + 1 {
		fmt.Fprintf(&b, "  t%d: {}\n", i)
	}
	d := parse(t, b.String())
	if _, err := Render(d, "svg", Options{}); err == nil || !strings.Contains(err.Error(), "at most 400") {
		t.Errorf("%d tasks: %v", maxDrawn+1, err)
	}
	if _, err := Render(d, "dot", Options{}); err != nil {
		t.Errorf("dot has no such limit: %v", err)
	}
}

// A dense definition of the greatest size is drawn in reasonable time.
func TestLargest(t *testing.T) {
	var b strings.Builder
	b.WriteString("workflow: big\ntasks:\n  t0: {}\n")
	for i := 1; i < maxDrawn; i++ {
		fmt.Fprintf(&b, "  t%d: {when: succeeded(\"t%d\") and succeeded(\"t%d\")}\n", i, i/2, max(0, i-7))
	}
	out, err := Render(parse(t, b.String()), "svg", Options{})
	if err != nil {
		t.Fatal(err)
	}
	elements(t, out)
}

// A picture of many arrows is bounded: laying it out takes steps in proportion to its
// arrows, up to a limit from which on the longest are left out, which the picture says.
func TestManyArrows(t *testing.T) {
	dense := func(tasks, each int) *scene {
		var b strings.Builder
		b.WriteString("workflow: dense\ntasks:\n")
		for i := range tasks {
			fmt.Fprintf(&b, "  t%d: {after: [", i)
			for j := max(i-each, 0); j < i; j++ {
				fmt.Fprintf(&b, "t%d, ", j)
			}
			b.WriteString("]}\n")
		}
		return newScene(parse(t, strings.ReplaceAll(b.String(), "after: []", "")), Options{})
	}
	for _, c := range []struct{ tasks, each int }{{4, 3}, {40, 10}, {400, 60}} {
		s := dense(c.tasks, c.each)
		all := len(s.edges)
		picture, err := svg(s)
		if err != nil {
			t.Fatal(err)
		}
		if s.steps > maxArrows+maxPassages || len(picture) > 2<<20 {
			t.Errorf("%d arrows took %d steps and %d bytes", all, s.steps, len(picture))
		}
		narrow := dense(c.tasks, c.each)
		tall, err := tallSVG(narrow)
		if err != nil {
			t.Fatal(err)
		}
		if most := maxTracks*maxPassages + maxArrows; narrow.steps > most || len(tall) > 2<<20 {
			t.Errorf("%d arrows took %d steps (at most %d) and %d bytes downwards", all, narrow.steps, most, len(tall))
		}
		says := strings.Contains(string(picture), "arrows are left out, the longest ones: the format dot has them all")
		if says != (c.tasks == 400) || s.leftOut+len(s.edges) != all {
			t.Errorf("of %d arrows %d are drawn and %d left out; the picture says so: %t", all, len(s.edges), s.leftOut,
				says)
		}
	}
}

// In Portuguese no word of a picture is English but those of the definition, and of others nothing changes.
func TestPortuguese(t *testing.T) {
	d := parse(t, `
workflow: w
data: {level: {type: number}}
tasks:
  aa: {type: manual, timeout: 5m, out: [level], contingency: ee, compensate: {task: ff}}
  bb: {when: failed("aa"), time-to-wait: 1h, timeout: 1h, type: semi-automatic, role: cc, application: noop}
  dd: {after: aa, when: level > 2}
  gg: {when: not succeeded("aa") or running("bb")}
  ee: {type: manual, timeout: 5m}
  ff: {}
partitions: {pp: [aa, dd, gg], qq: [bb, ff]}
`)
	opt := Options{
		Language: Portuguese, States: map[workflow.TaskName]workflow.State{
			"aa": workflow.Running, "bb": workflow.NotReady,
		},
		Known: map[workflow.TaskName]string{"aa": "as known 12 min ago", "bb": "nothing was heard of it yet"},
	}
	b, err := Render(d, "svg", opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{
		"anyone", "available", "undo", "partition", "after ", "timeout", "starts", "known", "heard", "tasks",
	} {
		if strings.Contains(string(b[strings.Index(string(b), "</style>"):]), word) {
			t.Errorf("the picture says %q", word)
		}
	}
	golden.Compare(t, "testdata/portuguese.svg", b)
}
