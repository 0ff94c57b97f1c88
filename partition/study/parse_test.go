package study

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// files are those that a process: key may name in tests.
func files(name string) ([]byte, error) {
	switch name {
	case "office.lxpdl":
		return []byte(`<lxpdl><tasks>
			<task name="A" time="5"><role name="clerk"/></task><task name="B" time="3"><role name="clerk"/></task>
			<task name="C" time="4"><role name="clerk"/></task><task name="D" time="1"><role name="clerk"/></task><start name="A"/></tasks>
			<transitions><transition source="A" destination="B"/><transition source="A" destination="C"/>
			<transition source="B" destination="D"/><transition source="C" destination="D"/></transitions></lxpdl>`), nil
	case "loop.lxpdl":
		return []byte(`<lxpdl><tasks><task name="A"/><task name="B"/><start name="A"/></tasks><transitions>
			<transition source="A" destination="B"/><transition source="B" destination="A"/></transitions></lxpdl>`), nil
	case "broken.lxpdl":
		return []byte(`<lxpdl>`), nil
	}
	return nil, fmt.Errorf("open %s: %w", name, os.ErrNotExist)
}

// TestParse prints scenarios as they were understood, or their mistakes.
func TestParse(t *testing.T) {
	datadriven.RunTest(t, "testdata/parse.txt", func(t *testing.T, d *datadriven.TestData) string {
		s, err := Parse("office.yaml", []byte(d.Input), files)
		if err != nil {
			return err.Error()
		}
		if _, err := Run(s, s.Example(), append(aptitude.Mechanisms(), aptitude.SelPushPull), 1); err != nil {
			t.Errorf("%s: the scenario does not run: %v", d.Pos, err)
		}
		var b strings.Builder
		for _, task := range s.Tasks {
			fmt.Fprintf(&b, "%+v\n", task)
		}
		for _, r := range s.Resources {
			fmt.Fprintf(&b, "%+v\n", r)
		}
		rest := *s
		rest.Process, rest.Tasks, rest.Resources = nil, nil, nil
		fmt.Fprintf(&b, "%+v\n", rest)
		return b.String()
	})
}

func TestFiveIsThePublishedScenario(t *testing.T) {
	s := Five()
	if len(s.Tasks) != 3 || len(s.Resources) != 15 || len(s.Conditions()) != 27 || len(s.Trials()) != 540 ||
		s.ResourcesPerRole != 5 || s.Instances != 20 || s.Urgency.Initial != 0.8 || s.Name != "five" {
		t.Errorf("got %+v", s)
	}
	published := map[aptitude.TaskID][]float64{
		"task 1": {1.0, 0.9, 0.8, 0.8, 0.8}, "task 2": {0.8, 0.8, 0.6, 1.0, 0.7}, "task 3": {0.4, 1.0, 0.9, 0.8, 0.5},
	}
	for i, task := range s.Tasks {
		for j, want := range published[task.Name] {
			if got := s.Resources[5*i+j].Suitability[task.Name]; got != want {
				t.Errorf("%s, resource %d: %v, want %v", task.Name, j+1, got, want)
			}
		}
	}
}

func TestHostileFilesEndSoon(t *testing.T) {
	for name, src := range map[string]string{
		"deep":  strings.Repeat("[", 10_000),
		"keys":  strings.Repeat("? a\n", MaxSize/8),
		"tasks": "tasks:\n" + strings.Repeat("- a\n", MaxSize/8),
		"big":   strings.Repeat(" ", MaxSize+1),
	} {
		if _, err := Parse(name, []byte(src), nil); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(fiveFile)
	f.Add([]byte(
		"process: office.lxpdl\nresources: [{name: x, roles: [clerk], suitability: {A: 1, B: 1, C: 1, D: 1}}]\n"))
	f.Add([]byte("tasks: &a [*a, <<: *a, !!x 1, ~, .inf, 0x10, |\n  text]\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := Parse("fuzz.yaml", src, files)
		var problems workflow.Errors
		switch {
		case err == nil && (len(s.Tasks) == 0 || len(s.Resources) == 0 || len(s.Conditions()) == 0):
			t.Fatalf("an empty scenario was accepted: %+v", s)
		case err != nil && (!errors.As(err, &problems) || len(problems) == 0):
			t.Fatalf("not a list of problems: %v", err)
		}
	})
}
