package workflow

import (
	"strings"
	"testing"
)

const inspection = `
workflow: inspection
data:
  plan:  {type: file}
  photo: {type: file, readers: [crew]}
tasks:
  look: {type: manual, in: [plan], out: [photo]}
`

// inspected is a workflow with these data and this task that uses inspection.
func inspected(t *testing.T, data, task string) (def, used *Definition) {
	t.Helper()
	for source, at := range map[string]**Definition{
		inspection: &used, "workflow: day\ndata: {" + data + "}\ntasks: {sub: {type: workflow, " + task + "}}\n": &def,
	} {
		var err error
		if *at, err = Parse("test.yaml", []byte(source)); err != nil {
			t.Fatal(err)
		}
	}
	return def, used
}

// A file that others may read in the workflow that does a task than where the task is, is named; not one with the same
// readers.
func TestOtherReadersOfAFileAreNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		data, task string
		want       []string
	}{
		"given to all": {
			"plan: {type: file, readers: [commander]}", "uses: {workflow: inspection, input: {plan: plan}}",
			[]string{"it gives file plan, which only commander may read here"},
		},
		"taken for all": {
			"photo: {type: file}", "uses: inspection, out: [photo]",
			[]string{"it takes file photo, which whoever has a task that reads it may read here, and in workflow inspection, " +
				"as photo, only crew may read"},
		},
		"both alike": {
			"plan: {type: file}, photo: {type: file, readers: [crew]}",
			"uses: {workflow: inspection, input: {plan: plan}}, out: [photo]", nil,
		},
	} {
		def, used := inspected(t, tt.data, tt.task)
		known := func(Name) *Definition { return used }
		if wrong := CheckUses("test.yaml", def, known); len(wrong) > 0 {
			t.Errorf("%s: mistakes: %v", name, wrong)
		}
		got := CheckReaders("test.yaml", def, known)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %v, want %q", name, got, tt.want)
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(got[i].Message, want) || got[i].Line != 3 {
				t.Errorf("%s: %v, want %q", name, got[i], want)
			}
		}
	}
}

// A text cannot become a file: to give one where a workflow wants a file is a mistake, and to set one is warned of.
func TestATextIsNoFile(t *testing.T) {
	def, used := inspected(t, "where: {type: string}", "uses: {workflow: inspection, input: {plan: where}}")
	wrong := CheckUses("test.yaml", def, func(Name) *Definition { return used })
	if len(wrong) != 1 || !strings.Contains(wrong[0].Message, "plan of workflow inspection is a file, and is given a text") {
		t.Errorf("the mistakes are %v", wrong)
	}
	set := func(value string) []Doubt {
		source := "workflow: copy\ndata: {s: {type: string}, f: {type: file}, g: {type: file}, m: {type: map}}\n" +
			"tasks: {a: {application: set, with: {g: '" + value + "'}, out: [g]}}\n"
		if _, err := Parse("test.yaml", []byte(source)); err != nil {
			t.Fatal(err)
		}
		return Doubts("test.yaml", []byte(source), nil)
	}
	for value, doubted := range map[string]bool{"s": true, `"x" + s`: true, "f": false, `m["k"]`: false, "null": false} {
		got := set(value)
		if is := len(got) > 0 && strings.Contains(got[0].Message, "g is a file, and this is a text that is none"); is != doubted {
			t.Errorf("%s: %v", value, got)
		}
	}
}
