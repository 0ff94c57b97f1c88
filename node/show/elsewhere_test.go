package show

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
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
