package show

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What a partner shows of an instance is read into something that can be drawn, or
// refused.
func FuzzShown(f *testing.F) {
	def, err := workflow.Parse("shown.yaml", []byte("workflow: shown\ntasks: {a: {}, b: {after: a}}\n"))
	if err != nil {
		f.Fatal(err)
	}
	id := workflow.InstanceID{1}
	seed := func(v any) {
		b, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	seed(api.Instance{
		ID: id.String(), Workflow: "shown", State: workflow.InstanceRunning,
		Partitions: []api.Partition{{Name: "main", Partner: "<one>", State: "READY"}},
		Tasks:      []api.Task{{Name: "a", State: workflow.Running}, {Name: "b", State: workflow.NotReady}},
	})
	seed(api.Instance{
		ID: id.String(), Tasks: []api.Task{{Name: "a", State: "<script>"}}, Told: &api.Told{Summary: true},
	})
	seed([]api.LogEntry{{At: time.Unix(0, 0), Kind: "start", Task: "a", Text: "started"}})
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := ReadLog(b); err == nil && !json.Valid(b) {
			t.Error("a log was read from what is no JSON")
		}
		in, err := ReadInstance(b, id)
		if err != nil {
			return
		}
		if in.ID != id.String() || in.Told != nil {
			t.Errorf("what is shown is %+v", in)
		}
		for _, format := range []string{"svg", "mermaid", "dot"} {
			drawing, err := Draw(def, in, format)
			if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			if format == "svg" {
				wellFormed(t, drawing)
			}
		}
	})
}

// Files that are only with the partner that shows an instance are not said to be only here.
func TestWhatIsOnlyAtAnotherIsNotOnlyHere(t *testing.T) {
	id := workflow.InstanceID{1}
	b, err := json.Marshal(api.Instance{ID: id.String(), OnlyHere: []workflow.DataName{"photo"}})
	if err != nil {
		t.Fatal(err)
	}
	if in, err := ReadInstance(b, id); err != nil || len(in.OnlyHere) > 0 {
		t.Errorf("it is shown as %+v, %v", in, err)
	}
}

// A partner may call things what it likes: what is no label is left out, here and in a log.
func TestLabelsThatPartnersShowAreLabels(t *testing.T) {
	id := workflow.InstanceID{1}
	for _, bad := range []string{"two\nlines", "\x1b[31mred", "\u202eturned", strings.Repeat("x", 81), " ", " a "} {
		b, err := json.Marshal(api.Instance{
			ID: id.String(), Label: bad, Recovery: &api.Recovery{Label: bad},
			Partitions: []api.Partition{{Name: "main", Label: bad}},
			Tasks:      []api.Task{{Name: "a", State: workflow.Running, Label: bad}},
			Asks:       []api.Ask{{Task: "a", Label: bad}},
			TaskLabels: map[string]string{"a": bad, "b": "Say what happened"}, DataLabels: map[string]string{"x": bad},
		})
		if err != nil {
			t.Fatal(err)
		}
		in, err := ReadInstance(b, id)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{in.Label, in.Recovery.Label, in.Partitions[0].Label, in.Tasks[0].Label, in.Asks[0].Label,
			in.TaskLabels["a"], in.DataLabels["x"]}
		if s := strings.Join(got, ""); s != "" || in.TaskLabels["b"] != "Say what happened" {
			t.Errorf("%q is shown as %q, and %v", bad, got, in.TaskLabels)
		}
		b, err = json.Marshal([]api.LogEntry{{Task: "a", Label: bad}})
		if err != nil {
			t.Fatal(err)
		}
		if log, err := ReadLog(b); err != nil || log[0].Label != "" {
			t.Errorf("%q is in the log as %v, %v", bad, log, err)
		}
	}
	many := map[string]string{}
	for i := range workflow.MaxTasks + 1 {
		many[strconv.Itoa(i)] = "x"
	}
	b, err := json.Marshal(api.Instance{ID: id.String(), TaskLabels: many})
	if err != nil {
		t.Fatal(err)
	}
	if in, err := ReadInstance(b, id); err != nil || len(in.TaskLabels) > 0 {
		t.Errorf("%d labels are shown: %v", len(in.TaskLabels), err)
	}
}

func wellFormed(t *testing.T, b []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(b)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("the drawing is no XML: %v\n%s", err, b)
		}
	}
}
