package workflow_test

import (
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

const shelf = `
models:
  visit: {type: manual, role: nurse, timeout: 2h, out: [notes]}
  quick: {timeout: 1m}
applications:
  survey-form: {size: 12MB, os: linux, hosts: [office, depot]}
`

func shelved(t *testing.T, src string) workflow.Shared {
	t.Helper()
	list, err := workflow.ParsePieces("shelf.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return func(kind workflow.PieceKind, name string) *workflow.Piece {
		for _, p := range list {
			if p.Kind == kind && p.Name == name {
				return p
			}
		}
		return nil
	}
}

// A definition takes models and applications that it has not, its own go before, and what they were is written
// out in it: so its hash changes with them, and it means the same where they are not known.
func TestDefinitionsTakePieces(t *testing.T) {
	const src = `
workflow: rounds
data: {notes: {type: string}}
models: {quick: {timeout: 5m}}
tasks:
  upper: {model: visit, timeout: 4h}
  ask:   {model: quick, application: survey-form}
`
	def, err := workflow.ParseWith("rounds.yaml", []byte(src), shelved(t, shelf))
	if err != nil {
		t.Fatal(err)
	}
	upper, ask := def.Task("upper"), def.Task("ask")
	if upper.Type != workflow.Manual || upper.Role != "nurse" || upper.Timeout.Hours() != 4 ||
		ask.Timeout.Minutes() != 5 {
		t.Errorf("upper is %+v, ask %+v", upper, ask)
	}
	if len(def.Applications) != 1 || def.Applications[0].OS != "linux" {
		t.Errorf("the applications are %+v", def.Applications)
	}
	again, err := workflow.Parse("again", def.Canonical())
	if err != nil || again.Hash() != def.Hash() {
		t.Errorf("by itself it is another: %v", err)
	}
	other, err := workflow.ParseWith("rounds.yaml", []byte(src),
		shelved(t, strings.Replace(shelf, "role: nurse", "role: doctor", 1)))
	if err != nil || other.Hash() == def.Hash() {
		t.Errorf("with another model it is the same: %v", err)
	}
	if _, err := workflow.Parse("rounds.yaml", []byte(src)); err == nil ||
		!strings.Contains(err.Error(), `rounds.yaml:6:18: there is no model "visit"`) {
		t.Errorf("without the model: %v", err)
	}
	_, err = workflow.ParseWith("bad.yaml", []byte("workflow: w\ntasks:\n  a: {model: visit}\n"), shelved(t, shelf))
	if err == nil || !strings.HasPrefix(err.Error(), "bad.yaml:3:") {
		t.Errorf("a mistake that a model makes here is said to be at %v", err)
	}
}

// The canonical form of a piece is a file with it alone, and is its own canonical form.
func TestPiecesHaveOneForm(t *testing.T) {
	list, err := workflow.ParsePieces("shelf.yaml", []byte(shelf))
	if err != nil || len(list) != 3 {
		t.Fatal(len(list), err)
	}
	for _, p := range list {
		again, err := workflow.ParsePiece(p.Canonical())
		if err != nil || again.Hash() != p.Hash() || again.Ref() != p.Ref() {
			t.Errorf("%s: %s: %v", p.Ref(), p.Canonical(), err)
		}
		if !workflow.HoldsPieces(p.Canonical()) {
			t.Errorf("%s is taken for a definition", p.Ref())
		}
	}
	for src, want := range map[string]string{
		"models: {a: {tipe: manual}}": `shelf.yaml:1:14: unknown key "tipe"`,
		"models: {a: {model: b}}":     "a model cannot take another model",
		"models: {a b: {}}":           "not a valid name",
		"models: {a: {type: semi-automatic, application: b, role: c, retries: 2}}": "retries belong to automatic tasks",
		"applications: {noop: {}}":        "is built in",
		"models: {a: {}}\nversion: 3":     `unknown key "version"`,
		"models: {}":                      "has no models and no applications",
		"applications: {a: {size: many}}": "is not a size",
		"models: [a]":                     "want a mapping of names",
	} {
		if _, err := workflow.ParsePieces("shelf.yaml", []byte(src)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want something about %q", src, err, want)
		}
	}
	for src, want := range map[string]bool{
		shelf: true, "workflow: w\nmodels: {a: {}}\ntasks: {b: {}}": false, "tasks: {b: {}}\nmodels: {}": false,
		"": false, "[": false,
	} {
		if got := workflow.HoldsPieces([]byte(src)); got != want {
			t.Errorf("%q holds pieces: %t", src, got)
		}
	}
}
