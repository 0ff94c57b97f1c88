package workflow

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func ptr(f float64) *float64 { return &f }

// aFile is what a data item of type file may hold.
var aFile = File{Name: "f:1", Size: 1}.String()

func TestCheckValue(t *testing.T) {
	deep := any("x")
	for range MaxDepth + 2 {
		deep = []any{deep}
	}
	for _, c := range []struct {
		decl  DataDecl
		value Value
		want  Value
		fails string
	}{
		{DataDecl{Type: TypeInteger}, 3.0, int64(3), ""},
		{DataDecl{Type: TypeInteger}, 3, int64(3), ""},
		{DataDecl{Type: TypeInteger}, json.Number("9007199254740993"), int64(9007199254740993), ""},
		{DataDecl{Type: TypeInteger}, 3.5, nil, "want an integer, have a number"},
		{DataDecl{Type: TypeInteger}, "3", nil, "want an integer, have a string"},
		{DataDecl{Type: TypeInteger}, uint64(math.MaxUint64), nil, "too great"},
		{DataDecl{Type: TypeInteger}, json.Number("99999999999999999999"), nil,
			"d: 99999999999999999999 is out of range: an integer is one from -9223372036854775808 to 9223372036854775807"},
		{DataDecl{Type: TypeInteger}, -1e19, nil, "d: -10000000000000000000 is out of range"},
		{DataDecl{Type: TypeInteger, Min: ptr(1), Max: ptr(5)}, int64(6), nil, "6 is not in the range 1 to 5"},
		{DataDecl{Type: TypeInteger, Min: ptr(1)}, int64(0), nil, "0 is not in the range 1 to …"},
		{DataDecl{Type: TypeNumber}, int64(3), 3.0, ""},
		{DataDecl{Type: TypeNumber}, math.NaN(), nil, "NaN is not a number that can be counted with"},
		{DataDecl{Type: TypeNumber}, math.Inf(1), nil, "not a number that can be counted with"},
		{DataDecl{Type: TypeString}, "x", "x", ""},
		{DataDecl{Type: TypeString}, nil, nil, ""},
		{DataDecl{Type: TypeString, Enum: []Value{"red", "green"}}, "blue", nil, "blue is not one of red, green"},
		{DataDecl{Type: TypeString}, strings.Repeat("x", MaxValue), nil, "at most 65536 are allowed"},
		{DataDecl{Type: TypeBoolean}, "true", nil, "want a boolean"},
		{DataDecl{Type: TypeTime}, "2026-07-01T08:00:00+02:00", "2026-07-01T06:00:00Z", ""},
		{DataDecl{Type: TypeTime}, time.Date(2026, 7, 1, 8, 0, 0, 5, time.UTC), "2026-07-01T08:00:00.000000005Z", ""},
		{DataDecl{Type: TypeTime}, "soon", nil, "is not a time"},
		{DataDecl{Type: TypeTime}, int64(5), nil, "want a time, have an integer"},
		{DataDecl{Type: TypeFile}, aFile, aFile, ""},
		{DataDecl{Type: TypeList}, []any{1.0, 2.5, map[string]any{"a": 1e17}},
			[]any{int64(1), 2.5, map[string]any{"a": int64(1e17)}}, ""},
		{DataDecl{Type: TypeList}, "x", nil, "want a list"},
		{DataDecl{Type: TypeList}, deep, nil, "more than 32 deep"},
		{DataDecl{Type: TypeMap}, map[string]any{"a": nil}, map[string]any{"a": nil}, ""},
		{DataDecl{Type: TypeMap}, map[string]any{"a": struct{}{}}, nil, "has no place in a workflow"},
		{DataDecl{Type: TypeQuery}, []any{int64(1)}, []any{int64(1)}, ""},
	} {
		c.decl.Name = "d"
		have, err := CheckValue(&c.decl, c.value)
		switch {
		case c.fails == "" && (err != nil || !reflect.DeepEqual(have, c.want)):
			t.Errorf("%s %v: %v (%T), %v; want %v", c.decl.Type, c.value, have, have, err, c.want)
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s %.40v: %v; want an error with %q", c.decl.Type, c.value, err, c.fails)
		}
	}
}

func TestParseValue(t *testing.T) {
	for _, c := range []struct {
		typ   DataType
		text  string
		want  Value
		fails bool
	}{
		{TypeInteger, "42", int64(42), false}, {TypeInteger, "4.2", nil, true}, {TypeInteger, "", nil, true},
		{TypeNumber, "42", 42.0, false}, {TypeNumber, "x", nil, true}, {TypeNumber, "NaN", nil, true},
		{TypeBoolean, "true", true, false}, {TypeBoolean, "yes", nil, true},
		{TypeString, "42", "42", false}, {TypeString, "", "", false},
		{TypeTime, "2026-07-01", "2026-07-01T00:00:00Z", false},
		{TypeList, `[1, "a", 12345678901234567]`, []any{int64(1), "a", int64(12345678901234567)}, false},
		{TypeList, `[1`, nil, true}, {TypeList, `[] []`, nil, true},
		{TypeMap, `{"a": 1.5}`, map[string]any{"a": 1.5}, false}, {TypeMap, `[]`, nil, true},
		{TypeQuery, `null`, nil, false},
	} {
		have, err := ParseValue(&DataDecl{Name: "d", Type: c.typ}, c.text)
		if (err != nil) != c.fails || !reflect.DeepEqual(have, c.want) {
			t.Errorf("%s %q: %v (%T), %v", c.typ, c.text, have, have, err)
		}
	}
}

func TestDurations(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration
	}{
		{"90s", 90 * time.Second}, {"15m", 15 * time.Minute}, {"1h30m", 90 * time.Minute}, {"3d", 72 * time.Hour},
		{"1.5h", 90 * time.Minute},
		{"0", 0}, {"0s", 0}, {"250ms", 250 * time.Millisecond}, {"1us2ns", 1002}, {"3650d", MaxDuration},
		{"0.1s", 100 * time.Millisecond},
	} {
		if have, err := ParseDuration(c.text); have != c.want || err != nil {
			t.Errorf("%s: %v, %v", c.text, have, err)
		}
	}
	for _, text := range []string{
		"", "1", "-1s", "1w", "h", "1h 30m", "1 h", "1..5h", "3651d", "3650d1ns", "99999999999999999999d", "1e9s",
		"+1s", "∞",
	} {
		if have, err := ParseDuration(text); err == nil {
			t.Errorf("%q is read as %v", text, have)
		}
	}
	if have := FormatDuration(-90 * time.Second); have != "-1m30s" {
		t.Error(have)
	}
	if have := FormatDuration(math.MinInt64); have != "-106751d23h47m16s854ms775us808ns" {
		t.Error(have)
	}
}

// What is printed is read back.
func TestDurationProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(MaxDuration)).Draw(t, "duration"))
		if back, err := ParseDuration(FormatDuration(d)); back != d || err != nil {
			t.Fatalf("%d is printed %s and read %d, %v", d, FormatDuration(d), back, err)
		}
	})
}
