package workflow

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// schemaObject is the part of JSON Schema that the test looks at.
type schemaObject struct {
	Properties map[string]schemaObject `json:"properties"`
	Enum       []string                `json:"enum"`
	Additional any                     `json:"additionalProperties"`
}

// The JSON Schema for editors and the parser's tables have the same keys, and
// the schema allows no others.
func TestSchemaHasTheParsersKeys(t *testing.T) {
	src, err := os.ReadFile("../configs/workflow.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		schemaObject
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(src, &schema); err != nil {
		t.Fatal(err)
	}
	def := func(name string) schemaObject {
		var o schemaObject
		if err := json.Unmarshal(schema.Defs[name], &o); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return o
	}
	for _, c := range []struct {
		name   string
		schema schemaObject
		keys   []string
	}{
		{"definition", schema.schemaObject, keyList(definitionKeys)},
		{"task", def("task"), keyList(taskKeys)},
		{"data", def("data"), keyList(dataKeys)},
		{"application", def("application"), keyList(applicationKeys)},
		{"partition", def("partition"), keyList(partitionKeys)},
		{"resource", def("resource"), keyList(resourceKeys)},
		{"constraint", def("constraint"), keyList(constraintKeys)},
		{"distribution", def("distribution"), keyList(distributionKeys)},
		{"retries", def("retries"), keyList(retriesKeys)},
		{"on-failure", def("on-failure"), keyList(onFailureKeys)},
		{"repeat", def("repeat"), keyList(repeatKeys)},
		{"produces", def("produces"), keyList(producesKeys)},
		{"uses", def("uses"), keyList(usesKeys)},
		{"compensation", def("compensation"), keyList(compensateKeys)},
	} {
		for _, key := range c.keys {
			if _, ok := c.schema.Properties[key]; !ok {
				t.Errorf("%s: the schema lacks %q", c.name, key)
			}
		}
		for key := range c.schema.Properties {
			if !slices.Contains(c.keys, key) {
				t.Errorf("%s: the parser does not know %q", c.name, key)
			}
		}
		if c.schema.Additional != false {
			t.Errorf("%s: the schema allows unknown keys", c.name)
		}
	}
	if have := def("distribution").Properties["mechanism"].Enum; !slices.Equal(have, Mechanisms) {
		t.Errorf("mechanisms: the schema has %v, the parser %v", have, Mechanisms)
	}
}
