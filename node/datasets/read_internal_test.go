package datasets

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// What a partner gives for its data set is read into what the task would write:
// all of it, each of its type, or nothing.
func FuzzDataSet(f *testing.F) {
	def, err := workflow.Parse("map.yaml", []byte(`
workflow: map
data:
  level: {type: number}
  name: {type: string}
tasks:
  both: {out: [level, name]}
  one: {out: [level]}
`))
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		`{"level": 4.2, "name": "north"}`, `{"level": null}`, "4.2\n", `[1]`, `{"level": "high", "name": 7}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, task := range def.Tasks {
			values, err := valuesFor(def, task, content)
			if err == nil && len(values) != len(task.Out) {
				t.Errorf("task %s would write %v, read %v", task.Name, task.Out, values)
			}
			for name, v := range values {
				if _, err := workflow.CheckValue(declaration(def, name), v); err != nil {
					t.Errorf("%s = %v: %v", name, v, err)
				}
			}
		}
	})
}
