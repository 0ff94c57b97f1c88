package node

import (
	"maps"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file reads values for an instance's data, as users type them.

// inputs reads the values given at the start by the types of the data. Those of null have none, whatever their default.
func inputs(
	def *workflow.Definition, given map[string]string, null []string,
) (map[workflow.DataName]workflow.Value, error) {
	input := map[workflow.DataName]workflow.Value{}
	for i := range def.Data {
		d := &def.Data[i]
		text, ok := given[string(d.Name)]
		empty := slices.Contains(null, string(d.Name))
		switch {
		case ok && empty:
			return nil, api.Errorf(api.Invalid, "%s is to have a value, and none: give it either --input or --null", d.Name)
		case empty && d.Required:
			return nil, api.Errorf(api.Invalid, "--null %s: workflow %s needs a value for it (%s)", d.Name, def.Name, d.Type).
				WithHint("give it: %s", asGiven(d))
		case empty:
			input[d.Name] = nil
		case ok && d.Type == workflow.TypeQuery:
			return nil, api.Errorf(api.Invalid, "--input %s: database %s answers that, and nobody else", d.Name,
				d.Database).
				WithHint("leave it out: a task asks for it")
		case ok:
			v, err := workflow.ReadGiven(d, text)
			if err != nil {
				return nil, api.Errorf(api.Invalid, "--input %v", err)
			}
			input[d.Name] = v
		case d.Required && d.Default == nil:
			return nil, api.Errorf(api.Invalid, "workflow %s needs a value for %s (%s)", def.Name, d.Name, d.Type).
				WithHint("give it: %s", asGiven(d))
		}
	}
	for _, k := range append(slices.Sorted(maps.Keys(given)), null...) {
		if def.Datum(workflow.DataName(k)) == nil {
			return nil, noData(api.Invalid, def, k)
		}
	}
	return input, nil
}

// asGiven is how a value is given at the start.
func asGiven(d *workflow.DataDecl) string {
	if d.Type == workflow.TypeFile {
		return "--file " + string(d.Name) + "=PATH"
	}
	return "--input " + string(d.Name) + "=…"
}

// checkGiven says what is wrong with values, as text, beside their types (workflow.CheckGiven).
func checkGiven(def *workflow.Definition, values map[workflow.DataName]workflow.Value) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text, is := values[name].(string)
		if d := def.Datum(name); d != nil && is {
			if err := workflow.CheckGiven(d, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// stepGiven says what is wrong with a step of recovery however the instance stands: with the condition at which it
// stops, or the values that it sets.
func stepGiven(def *workflow.Definition, step dataflow.Step) error {
	if step.When != "" {
		if _, err := def.ParseCondition(step.When); err != nil {
			return api.Errorf(api.Invalid, "--when %v", err)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(step.Set)) {
		text, d := step.Set[n], def.Datum(n)
		if d == nil {
			return noData(api.Invalid, def, string(n))
		}
		if text == nil || d.Type == workflow.TypeFile { // a jump brings no file
			continue
		}
		if _, err := workflow.ReadGiven(d, *text); err != nil {
			return api.Errorf(api.Invalid, "--set %v", err)
		}
	}
	return nil
}

// shownName is how much is shown of a name that there is not, in columns.
const shownName = 80

// noData says that a definition has no such data, and which may be meant: people read labels.
func noData(code api.Code, def *workflow.Definition, text string) error {
	err := api.Errorf(code, "workflow %s has no data %q", def.Name, plain.Cut(text, shownName))
	if meant := def.MeantData(text); meant != "" {
		return err.WithHint("did you mean %s?", meant)
	}
	var names []string
	for i := range def.Data {
		names = append(names, string(def.Data[i].Name))
	}
	return err.WithHint("%s", declares(names))
}

// declares says which data a workflow has.
func declares(names []string) string {
	if len(names) == 0 {
		return "it declares no data"
	}
	return "it has: " + strings.Join(names, ", ")
}
