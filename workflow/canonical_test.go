package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/internal/golden"
)

// The canonical forms in testdata/canonical are written out, so that a change
// of the form, which would change every hash, is seen.
func TestCanonicalGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/canonical/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Parse(filepath.Base(file), src)
		if err != nil {
			t.Error(err)
			continue
		}
		var b, rounds bytes.Buffer
		if err := errors.Join(json.Indent(&b, d.Canonical(), "", "  "), json.Indent(&rounds, d.WrittenOut(), "", "  ")); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n%s\n", d.Hash())
		if len(d.Loops()) > 0 {
			fmt.Fprintf(&b, "\nwith its rounds written out:\n%s\n", rounds.Bytes())
		}
		golden.Compare(t, strings.TrimSuffix(file, ".yaml")+".txt", b.Bytes())
	}
}

// Definitions that are written differently and mean the same have one hash.
func TestSameMeaningSameHash(t *testing.T) {
	for name, texts := range map[string][]string{
		"after": {
			"workflow: f\ntasks: {a: {}, b: {after: a}}",
			"workflow: f\ntasks: {b: {after: [a]}, a:}",
			"# a comment\ntasks:\n  a:\n  b:\n    after:\n      - a\nworkflow: f # here too\n",
			`{"workflow":"f","tasks":{"a":{},"b":{"after":["a"]}}}`,
			"{\n\t\"workflow\": \"f\",\n\t\"tasks\": {\n\t\t\"a\": {},\n\t\t\"b\": {\"after\": \"a\"}\n\t}\n}\n",
			"\ufeffworkflow: f\r\ntasks: {a: {}, b: {after: a}}\r\n",
			"---\nworkflow: f\ntasks: {a: {}, b: {after: a}}\n...\n",
		},
		"expressions": {
			"workflow: f\ndata: {n: {type: integer}}\ntasks: {a: {when: 'n>1 and not(n==null)'}}",
			"workflow: f\ndata: {n: {type: integer}}\ntasks: {a: {when: '((n > 1)) && !(n == nil)'}}",
			"workflow: f\ndata: {n: {type: integer}}\ntasks:\n  a:\n    when: |\n      n > 1\n        and not (n == null)\n",
		},
		"durations": {
			"workflow: f\ntasks: {a: {timeout: 90m, deadline: 36h}}",
			"workflow: f\ntasks: {a: {timeout: 1h30m, deadline: 1d12h}}",
			"workflow: f\ntasks: {a: {timeout: 1.5h, deadline: 1.5d}}",
		},
		"models": {
			"workflow: f\nmodels: {m: {type: manual, role: x, timeout: 1h}}\ntasks: {a: {model: m, timeout: 2h}}",
			"workflow: f\ntasks: {a: {type: manual, role: x, timeout: 2h}}",
		},
		"models and failure": {
			"workflow: f\nmodels: {m: {contingency: b}}\ntasks: {a: {model: m, on-failure: release}, b: {}}",
			"workflow: f\ntasks: {a: {on-failure: release}, b: {}}",
		},
		"defaults": {
			"workflow: f\ntasks: {a: {}}",
			"workflow: f\nversion: 0\ncoordination: choreography\ntasks: {a: {type: automatic, application: noop, on-failure: block, reconcile: keep-first, urgency: 0.8, offline: false, priority: 0, retries: 0, time-to-wait: 0s}}\npartitions: {main: [a]}",
		},
		"contingency": {
			"workflow: f\ntasks: {a: {contingency: b}, b: {}}",
			"workflow: f\ntasks: {a: {on-failure: {contingency: b}}, b: {}}",
			"workflow: f\ntasks: {a: {on-failure: {contingency: b}, contingency: b}, b: {}}",
		},
		"retries": {
			"workflow: f\ntasks: {a: {retries: 3}}",
			"workflow: f\ntasks: {a: {retries: {times: 3, backoff: 1000ms, factor: 2.0, max: 60s, jitter: 2e-1}}}",
		},
		"short forms": {
			"workflow: f\ntasks: {a: {type: workflow, uses: g, compensate: b}, b: {}}",
			"workflow: f\ntasks: {a: {type: workflow, uses: {workflow: g}, compensate: {task: b}}, b: {}}",
		},
		"values": {
			"workflow: f\ndata: {n: {type: number, default: 3, max: 1e3}, t: {type: time, default: 2026-07-01T08:00:00+02:00}}\ntasks: {a: {}}",
			"workflow: f\ndata: {n: {type: number, default: 3.0, max: 1000}, t: {type: time, default: '2026-07-01T06:00:00Z'}}\ntasks: {a: {}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var first *Definition
			for _, text := range texts {
				d, err := Parse("f", []byte(text))
				switch {
				case err != nil:
					t.Errorf("%v\n%s", err, text)
				case first == nil:
					first = d
				case d.Hash() != first.Hash():
					t.Errorf("\n%s\nis not\n%s\n%s\n%s", text, texts[0], d.Canonical(), first.Canonical())
				}
			}
		})
	}
}

// Definitions that mean different things have different hashes.
func TestOtherMeaningOtherHash(t *testing.T) {
	texts := []string{
		"workflow: f\ntasks: {a: {}, b: {}}",
		"workflow: g\ntasks: {a: {}, b: {}}",
		"workflow: f\nversion: 1\ntasks: {a: {}, b: {}}",
		"workflow: f\ntasks: {a: {}, b: {after: a}}",
		"workflow: f\ntasks: {a: {}, b: {when: ready(\"a\")}}",
		"workflow: f\ntasks: {a: {}, b: {when: failed(\"a\")}}",
		"workflow: f\ntasks: {a: {application: fail}, b: {}}",
		"workflow: f\ntasks: {a: {application: sleep, with: {for: 1s}}, b: {}}",
		"workflow: f\ntasks: {a: {application: sleep, with: {for: 2s}}, b: {}}",
		"workflow: f\ntasks: {a: {timeout: 1s}, b: {}}",
		"workflow: f\ntasks: {a: {on-failure: release}, b: {}}",
		"workflow: f\ntasks: {a: {contingency: b}, b: {}}",
		"workflow: f\ntasks: {a: {compensate: b}, b: {}}",
		"workflow: f\ntasks: {a: {}, b: {}}\npartitions: {p: [a, b]}",
		"workflow: f\ntasks: {a: {}, b: {}}\npartitions: {p: [a], q: [b]}",
		"workflow: f\ntasks: {a: {}, b: {}}\ncoordination: orchestration",
		"workflow: f\ntasks: {a: {application: x, with: {k: 1}}, b: {}}",
		"workflow: f\ntasks: {a: {application: x, with: {k: '1'}}, b: {}}",
	}
	seen := map[Hash]string{}
	for _, text := range texts {
		d, err := Parse("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if other, found := seen[d.Hash()]; found {
			t.Errorf("one hash:\n%s\n%s", other, text)
		}
		seen[d.Hash()] = text
	}
}

// Whatever the order of keys and the style, the canonical form is the same, and
// is its own canonical form.
func TestCanonicalProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := drawDefinition(t)
		styles := []string{"block", "flow", "json"}
		var first *Definition
		for _, style := range styles {
			var b strings.Builder
			write(t, &b, tree, style, 0)
			d, err := Parse(style, []byte(b.String()))
			if err != nil {
				t.Fatalf("%v\n%s", err, b.String())
			}
			if first == nil {
				first = d
			}
			if d.Hash() != first.Hash() {
				t.Fatalf("%s\nhas the canonical form\n%s\nnot\n%s", b.String(), d.Canonical(), first.Canonical())
			}
			if !slices.Equal(d.TopoOrder(), first.TopoOrder()) {
				t.Fatalf("the order depends on how it was written: %v, %v", d.TopoOrder(), first.TopoOrder())
			}
		}
		again, err := Parse("canonical", first.Canonical())
		if err != nil {
			t.Fatalf("%v\n%s", err, first.Canonical())
		}
		if !bytes.Equal(again.Canonical(), first.Canonical()) {
			t.Fatalf("%s\nthen\n%s", first.Canonical(), again.Canonical())
		}
		for _, task := range first.Tasks {
			if have, want := describe(again.Task(task.Name).Rule), describe(task.Rule); have != want {
				t.Fatalf("the rule of %s is %s, from the canonical form %s", task.Name, want, have)
			}
		}
	})
}

type tree = map[string]any

// drawDefinition makes a definition without mistakes: tasks wait only for
// earlier ones.
func drawDefinition(t *rapid.T) tree {
	text := rapid.StringOf(rapid.RuneFrom([]rune("ab cé\"'\\:#{}[],&*!|>%@`-?\t\n~=0.9truenl\u2028\x7f😀")))
	label := rapid.SampledFrom([]string{"", "Été à la mairie", "溪水 – 看", "⚠️ rain: \"heavy\" #1"})
	duration := rapid.SampledFrom([]string{"90s", "15m", "1h30m", "3d", "1.5h", "250ms"})
	definition := tree{"workflow": "w", "doc": text.Draw(t, "doc"), "data": tree{
		"n": tree{"type": "integer", "min": -3, "default": rapid.IntRange(-3, 99).Draw(t, "default")},
		"x": tree{"type": "number", "default": rapid.Float64Range(-1e30, 1e30).Draw(t, "number")},
		"s": tree{"type": "string", "default": text.Draw(t, "string"), "doc": text.Draw(t, "doc")},
		"l": tree{"type": "list", "default": []any{text.Draw(t, "item"), 1.5, true, tree{"k": text.Draw(t, "v")}}},
	}}
	tasks, cut := tree{}, tree{}
	count := rapid.IntRange(1, 7).Draw(t, "tasks")
	for i := range count {
		task := tree{"doc": text.Draw(t, "doc"), "timeout": duration.Draw(t, "timeout"), "out": []any{"n"}}
		if i > 0 {
			before := rapid.SliceOfNDistinct(rapid.IntRange(0, i-1), 0, 3, rapid.ID).Draw(t, "after")
			var after []any
			for _, j := range before {
				after = append(after, fmt.Sprintf("t%d", j))
			}
			if len(after) > 0 {
				task["after"] = after
			}
			task["when"] = rapid.SampledFrom([]string{
				`n > 1 or failed("t0")`, `not (running("t0") and x <= 2.5e3)`, `s == "a\n\"é" and n in [1, 2]`,
				`ready("t0")`, `(n + 1) * 2 >= -n`,
			}).Draw(t, "when")
		}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			task["application"], task["with"] = "app", tree{"arg": text.Draw(t, "arg"), "n": []any{1, nil, "x"}}
		case 1:
			task["application"], task["with"] = "set", tree{"n": "n + 1"}
		case 2:
			task["type"], task["role"], task["offline"] = "manual", "crew", true
			task["suitability"] = tree{"crew": 0.5, "p-1": 1}
		}
		name := fmt.Sprintf("t%d", i)
		tasks[name] = task
		p := rapid.SampledFrom([]string{"p", "q"}).Draw(t, "partition")
		list, _ := cut[p].([]any)
		cut[p] = append(list, name)
	}
	definition["tasks"], definition["partitions"] = tasks, cut
	for _, of := range []tree{definition, definition["data"].(tree)["n"].(tree), tasks["t0"].(tree)} {
		if l := label.Draw(t, "label"); l != "" {
			of["label"] = l
		}
	}
	return definition
}

// write prints a tree as YAML or JSON with its keys in a random order.
func write(t *rapid.T, b *strings.Builder, v any, style string, indent int) {
	pad := "\n" + strings.Repeat("  ", indent)
	switch v := v.(type) {
	case tree:
		keys := rapid.Permutation(slices.Sorted(maps.Keys(v))).Draw(t, "order")
		if style != "block" {
			b.WriteString("{")
		}
		for i, k := range keys {
			switch {
			case style == "block":
				b.WriteString(pad)
			case i > 0:
				b.WriteString(", ")
			}
			if style == "json" {
				k = fmt.Sprintf("%q", k)
			}
			b.WriteString(k + ": ")
			write(t, b, v[strings.Trim(k, `"`)], style, indent+1)
		}
		if style != "block" {
			b.WriteString("}")
		}
	case []any:
		inner := style
		if style == "block" {
			inner = "flow"
		}
		b.WriteString("[")
		for i, item := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			write(t, b, item, inner, indent)
		}
		b.WriteString("]")
	default:
		out, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(out)
	}
}
