package once

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestKeysStandOnce(t *testing.T) {
	for text, key := range map[string]string{
		`{"a":1,"a":2}`:                           "a",
		`{"a":1,"b":{"c":[],"c":null}}`:           "c",
		`[{"a":1},{"b":[{"d":"x","d":"x"}]}]`:     "d",
		`{"a":{"b":1},"a":{"b":1}}`:               "a",
		`{"a":"a","b":"a","a":1}`:                 "a",
		`{"a":1,"\u0061":2}`:                      "a",
		`{"":1,"":2}`:                             "",
		`{"a":{},"b":[],"c":{"a":1,"b":2},"b":1}`: "b",
	} {
		var v any
		var twice *Twice
		if err := Decode([]byte(text), &v); !errors.As(err, &twice) || twice.Key != key {
			t.Errorf("%s: %v, want the key %q", text, err, key)
		}
	}
	for _, text := range []string{
		`{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}`, `["a","a"]`, `{"a":"a","A":"a"}`, `"a"`, `3`, `null`, `{}`, `[]`,
		`{"a":["a","a"],"b":"b"}`,
	} {
		var v any
		if err := Decode([]byte(text), &v); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestOneValue(t *testing.T) {
	var v any
	if err := Decode([]byte(`{} {}`), &v); !errors.Is(err, ErrMore) {
		t.Error(err)
	}
	if err := Decode([]byte(`{"a":12345678901234567890}`), &v); err != nil ||
		v.(map[string]any)["a"] != json.Number("12345678901234567890") {
		t.Error(v, err)
	}
	var known struct{ A int }
	if err := DecodeStrict([]byte(`{"a":1,"b":2}`), &known); err == nil || !strings.Contains(err.Error(), `"b"`) {
		t.Error(err)
	}
	if Decode([]byte(`{"a":1,"a":`), &v) == nil || Check([]byte(`{"a":1,"a":`)) == nil || Check([]byte(`{]`)) != nil {
		t.Error("a text that is no JSON")
	}
}
