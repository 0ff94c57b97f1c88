package node_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const languageFile = "../docs/language.md"

// notYet is what an example of docs/language.md says that this version cannot start.
var notYet = regexp.MustCompile(`(?m)^# not yet: (.*)$`)

// Every example of docs/language.md is a definition without mistakes, or a part of
// one, and says what of it this version cannot start.
func TestLanguageExamples(t *testing.T) {
	examples := languageExamples(t)
	if len(examples) < 40 {
		t.Errorf("%d examples were read of %s: want its yaml blocks", len(examples), languageFile)
	}
	for _, x := range examples {
		def, err := workflow.Parse("example", []byte(whole(x)))
		if err != nil {
			t.Errorf("the example\n%s\n%v", x, err)
			continue
		}
		if err := library.Check(def); err != nil {
			t.Errorf("the example\n%s\n%v", x, err)
		}
		var want, said []string
		for _, f := range node.NotYet(def) {
			want = append(want, f.Feature)
		}
		slices.Sort(want)
		want = slices.Compact(want)
		if m := notYet.FindStringSubmatch(x); m != nil {
			said = strings.Split(m[1], ", ")
			slices.Sort(said)
		}
		if !slices.Equal(want, said) {
			t.Errorf("the example\n%s\nsays \"# not yet: %s\": this version lacks %q", x, strings.Join(said, ", "),
				want)
		}
	}
}

// In docs/language.md every key of the schema has its place and an example, and every
// function its place in the table of functions.
func TestLanguageIsWhole(t *testing.T) {
	text, examples := readText(t, languageFile), strings.Join(languageExamples(t), "\n")
	keys := schemaKeys(t)
	if len(keys) < 60 {
		t.Errorf("only %d keys were found in the schema", len(keys))
	}
	for _, key := range keys {
		if !strings.Contains(text, "`"+key+"`") {
			t.Errorf("%s does not explain the key %q", languageFile, key)
		}
		if !regexp.MustCompile(`(^|[\s{,])` + regexp.QuoteMeta(key) + `:`).MatchString(examples) {
			t.Errorf("%s has no example of the key %q", languageFile, key)
		}
	}
	for _, f := range functionNames(t) {
		if !strings.Contains(text, "`"+f+"(") {
			t.Errorf("%s does not explain the function %s", languageFile, f)
		}
	}
}

// whole makes a definition of an example that is only a part of one.
func whole(example string) string {
	if !regexp.MustCompile(`(?m)^workflow:`).MatchString(example) {
		example = "workflow: example\n" + example
	}
	if !regexp.MustCompile(`(?m)^tasks:`).MatchString(example) {
		example += "tasks: {look: {}}\n"
	}
	return example
}

func languageExamples(t *testing.T) (out []string) {
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(readText(t, languageFile), -1) {
		out = append(out, m[1])
	}
	return out
}

// schemaKeys are all keys that the schema knows, sorted.
func schemaKeys(t *testing.T) (keys []string) {
	var schema any
	if err := json.Unmarshal([]byte(readText(t, "../configs/workflow.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	var visit func(any)
	visit = func(x any) {
		switch x := x.(type) {
		case []any:
			for _, item := range x {
				visit(item)
			}
		case map[string]any:
			if properties, ok := x["properties"].(map[string]any); ok {
				for key := range properties {
					keys = append(keys, key)
				}
			}
			for _, part := range x {
				visit(part)
			}
		}
	}
	visit(schema)
	slices.Sort(keys)
	return slices.Compact(keys)
}

// functionNames are those that the checker lists when it is asked for one that it
// does not have.
func functionNames(t *testing.T) []string {
	t.Helper()
	_, err := workflow.Parse("example", []byte("workflow: w\ntasks: {a: {when: 'nosuchfunction() == 1'}}\n"))
	if err == nil {
		t.Fatal("a function that does not exist was not noticed")
	}
	_, list, found := strings.Cut(err.Error(), "the functions are ")
	list, _, _ = strings.Cut(list, ")")
	if names := strings.Split(list, ", "); found && len(names) > 10 {
		return names
	}
	t.Fatalf("the functions are not listed: %v", err)
	return nil
}

func readText(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
