package once

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
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

// A key is a field's only as it is spelled, at whatever depth; else a field could be there twice after all.
func TestFieldsAreSpelledAsTheyAre(t *testing.T) {
	type inner struct {
		X any `json:"x"`
	}
	type embedded struct {
		Name string `json:"name"`
	}
	type request struct {
		embedded
		Outputs map[string]any `json:"outputs"`
		Of      []*inner       `json:"of,omitempty"`
		Plain   int
		At      time.Time `json:"at"`
	}
	for _, text := range []string{
		`{}`, `{"outputs":{"x":1,"X":2},"of":[{"x":{"y":1,"Y":2}}, null],"Plain":3,"name":"n","at":"2026-11-28T00:00:00Z"}`,
		`{"outputs":null,"of":null}`,
	} {
		if err := DecodeStrict([]byte(text), &request{}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, key := range map[string]string{
		`{"outputs":{"x":1},"Outputs":{"x":2}}`: "Outputs",
		`{"OUTPUTS":{}}`:                        "OUTPUTS",
		`{"of":[{"x":1},{"X":1}]}`:              "X",
		`{"name":"a","Name":"b"}`:               "Name",
		`{"plain":1}`:                           "plain",
		`{"none":1}`:                            "none",
	} {
		if err := DecodeStrict([]byte(text), &request{}); err == nil || !strings.Contains(err.Error(), strconv.Quote(key)) {
			t.Errorf("%s: got %v, want an unknown field %q", text, err, key)
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
