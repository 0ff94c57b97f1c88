package workflow

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/internal/golden"
)

const storm = `
workflow: storm
data:
  level: {type: integer}
  area: {type: string}
tasks:
  warn: {when: level > 3}
  measure: {out: [level], contingency: estimate, timeout: 1h}
  estimate: {out: [level], contingency: guess, timeout: 1h}
  guess: {timeout: 1h}
  leave: {after: [warn, measure], compensate: return}
  return: {}
  report: {when: succeeded("estimate") or failed("leave")}
`

func TestLinks(t *testing.T) {
	d, err := Parse("storm", []byte(storm))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		have any
		want string
	}{
		{"predecessors of leave", d.Predecessors("leave"), "[measure warn]"},
		{"predecessors of warn", d.Predecessors("warn"), "[]"},
		{"writers of level", d.Writers("level"), "[estimate measure]"},
		{"order", d.TopoOrder(), "[measure estimate guess warn leave return report]"},
	} {
		if have := fmt.Sprint(c.have); have != c.want {
			t.Errorf("%s: %s, want %s", c.what, have, c.want)
		}
	}
	var only []TaskName
	for _, task := range d.Tasks {
		if task.ContingencyOnly {
			only = append(only, task.Name)
		}
	}
	if !slices.Equal(only, []TaskName{"estimate", "guess", "return"}) {
		t.Errorf("only contingencies or compensations: %v", only)
	}
	if len(d.Partitions) != 1 || d.Partitions[0].Name != "main" ||
		len(d.Partitions[0].Tasks) != len(d.Tasks)-len(only) {
		t.Errorf("the cut of a definition without partitions: %v", d.Partitions)
	}
}

// Features names what a definition asks of a node, with its line.
func TestFeatures(t *testing.T) {
	src, err := os.ReadFile("testdata/canonical/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := Parse("everything", src)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range Features(d) {
		fmt.Fprintf(&b, "%d %s %s\n", f.Line, f.Feature, f.Task)
	}
	golden.Compare(t, "testdata/features.txt", []byte(b.String()))

	src, err = os.ReadFile("testdata/canonical/flow.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if d, err = Parse("flow", src); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	for _, f := range Features(d) {
		fmt.Fprintf(&b, "%d %s %s\n", f.Line, f.Feature, f.Task)
	}
	if want := "10 repeat count-up\n11 on-conflict count-up\n17 enabled count-down\n18 repeat count-down\n"; b.String() != want {
		t.Errorf("a flow that is driven by its data asks for\n%swant\n%s", b.String(), want)
	}

	plain, err := Parse("plain", []byte("workflow: f\ntasks: {a: {}, b: {after: a, application: fail, with: {reason: x}, time-to-wait: 0s, offline: false}}"))
	if err != nil {
		t.Fatal(err)
	}
	if have := Features(plain); len(have) != 0 {
		t.Errorf("a plain definition asks for %v", have)
	}
}

// What must be accepted although it looks odd.
func TestNoFalseAlarms(t *testing.T) {
	for name, src := range map[string]string{
		"succeeded and failed of a task that releases": `{a: {on-failure: release}, b: {when: succeeded("a") and failed("a")}}`,
		"released by the last contingency":             `{a: {contingency: c}, c: {on-failure: release}, b: {when: succeeded("a") and failed("a")}}`,
		"a trigger whose rule contradicts itself":      `{a: {timeout: 1h}, b: {when: succeeded("a") and failed("a"), time-to-wait: 1h}}`,
		"ready and failed":                             `{a: {}, b: {when: ready("a") and failed("a") or running("a")}}`,
		"one contingency for two":                      `{a: {contingency: c}, b: {contingency: c}, c: {}}`,
		"a contingency of its own standing":            `{a: {contingency: c}, b: {}, c: {after: b}}`,
		"after a contingency":                          `{a: {contingency: c}, c: {}, d: {when: succeeded("c")}}`,
		"a rule with many ways": `{a: {}, b: {when: ` +
			strings.Repeat(`(succeeded("a") or failed("a")) and `, 12) + `ready("a")}}`,
		"a trigger behind a trigger":        `{a: {}, b: {after: a, timeout: 1h}, c: {after: b, timeout: 1h}}`,
		"a trigger with data alone":         `{a: {when: n > 1, time-to-wait: 1h}}`,
		"names that look like other things": `{1: {}, true: {after: 1}, 1.5: {after: [true, "1"]}, nan: {}}`,
		"a rule that is always true":        `{a: {when: true}, b: {when: n == n or true}}`,
	} {
		if _, err := Parse("f", []byte("workflow: f\ndata: {n: {type: integer}}\ntasks: "+src)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCutsThatCycle(t *testing.T) {
	_, err := Parse(
		"f", []byte("workflow: f\ntasks: {a: {}, b: {after: a}, c: {after: b}}\npartitions: {p: [a, c], q: [b]}"))
	if err != nil {
		t.Errorf("partitions may wait for each other both ways: %v", err)
	}
}
