package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/mutirao-mesh/mutirao/internal/plain"
)

// What is asked for as YAML is YAML, also where a text of others has characters that no terminal gets as they are; and
// it says what the JSON says.
func TestYAMLOfTextsThatCannotBeShown(t *testing.T) {
	for name, text := range map[string]string{
		"harmless": "São Tomé: 3 #1", "an emoji": "⚠️ fire", "an escape": "red \x1b[31m", "turned": "a\u202eb", "tag": "x\U000e0041",
		"lines": "one\n\ttwo\u2028three", "quotes": `say "no" \ 'yes'`,
	} {
		t.Run(name, func(t *testing.T) {
			of := []any{
				map[string]any{"id": "true", "text": text, "none": nil, "list": []any{}, "map": map[string]any{}, "n": 1.5},
				[]any{text, map[string]any{text: []any{true, text}, "deep": map[string]any{"a": text}}}, text,
			}
			doc, err := json.MarshalIndent(of, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			out, err := asYAML(doc)
			if err != nil {
				t.Fatal(err)
			}
			if s := string(out); strings.HasPrefix(s, "[") || strings.Contains(s, "{\n") || !plain.IsPlain(s) {
				t.Errorf("it is printed as\n%q", s)
			}
			if quoted, err := quotedYAML(doc); err != nil {
				t.Error(err)
			} else {
				for _, s := range [][]byte{out, quoted} {
					var back any
					if err := yaml.Unmarshal(s, &back); err != nil {
						t.Fatalf("%v:\n%s", err, s)
					}
					if !reflect.DeepEqual(back, any(of)) {
						t.Errorf("it reads as %#v\n%s", back, s)
					}
				}
			}
		})
	}
}

// A value that is no text is shown as JSON, in which < and & stay as they are.
func TestValuesAreNotEscapedForHTML(t *testing.T) {
	if got, want := text([]any{"<b>", "x & y"}), `["<b>","x & y"]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
