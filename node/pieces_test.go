package node_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Of a file all models and applications are listed, or none: where the name of one belongs to another, those before it
// are not listed either.
func TestOfSeveralModelsAllAreListedOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", "models: {visit: {type: manual}}\n")
		pass(time.Second)
		_, err := tm.p["two"].api.AddWorkflow(t.Context(), "part.yaml",
			[]byte("models: {aaa: {type: manual}, visit: {type: manual, timeout: 1h}, zzz: {type: manual}}\n"))
		wantCode(t, err, api.NotAllowed, "the name model/visit belongs to another")
		list, err := tm.p["two"].api.Workflows(t.Context())
		if err != nil || len(list) != 1 || list[0].Name != "model/visit" {
			t.Errorf("two lists %+v, %v", list, err)
		}
	})
}

// Models and applications by themselves are listed, spread and taken off the list like workflows, outlive a
// restart, and a definition that takes one keeps it as it was then. Nothing is started by one.
func TestModelsByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", "models: {visit: {type: manual, timeout: 2h}}\napplications: {form: {os: linux}}\n")
		names := func(at string) (out []string) {
			list, err := tm.p[at].api.Workflows(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range list {
				out = append(out, w.Kind+" "+string(w.Name))
			}
			return out
		}
		want := []string{"application application/form", "model model/visit"}
		if got := names("two"); !slices.Equal(got, want) {
			t.Fatalf("two lists %q", got)
		}
		tm.p["two"].crash()
		tm.p["two"].start()
		tm.connect("one", "two")
		pass(time.Second)
		if got := names("two"); !slices.Equal(got, want) {
			t.Errorf("after a restart two lists %q", got)
		}
		tm.add("two", "workflow: rounds\ntasks: {upper: {model: visit, application: form, type: semi-automatic, role: nurse}}")
		w, err := tm.p["one"].api.Workflow(t.Context(), "rounds")
		if err != nil {
			t.Fatal(err)
		}
		def, err := workflow.Parse("rounds", w.Definition)
		if err != nil || def.Task("upper").Timeout != 2*time.Hour || len(def.Applications) != 1 {
			t.Errorf("rounds is %s: %v", w.Definition, err)
		}
		for _, ref := range []string{"model/visit", "application/form"} {
			_, err := tm.p["one"].api.Start(t.Context(), api.StartRequest{Workflow: ref})
			wantCode(t, err, api.Refused, "is no workflow")
		}
		var no *api.Error
		_, err = tm.p["one"].api.Workflow(t.Context(), "visit")
		if !errors.As(err, &no) || no.Hint != "did you mean model/visit?" {
			t.Errorf("by its own name: %+v", err)
		}
		if _, err := tm.p["one"].api.RemoveWorkflow(t.Context(), "model/visit"); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if got := names("two"); !slices.Equal(got, []string{"application application/form", " rounds"}) {
			t.Errorf("when the model is off the list two lists %q", got)
		}
		_, err = tm.p["two"].api.AddWorkflow(t.Context(), "x.yaml", []byte("workflow: x\ntasks: {a: {model: visit}}"))
		wantCode(t, err, api.Invalid, `there is no model "visit"`)
	})
}
