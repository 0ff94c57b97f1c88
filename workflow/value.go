package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/once"
	"github.com/mutirao-mesh/mutirao/internal/plain"
)

// MaxValue bounds one value of a data item, as JSON, in bytes. What is greater
// belongs into a file.
const MaxValue = 64 << 10

// CheckValue brings a value to the form that Value promises for its type and
// checks it against the declaration: an integer that came as 3.0 from JSON
// becomes int64(3), a time moves to UTC. Nil is null and fits every type.
func CheckValue(decl *DataDecl, v Value) (Value, error) {
	v, err := conform(decl, v)
	if err != nil || v == nil {
		return nil, err
	}
	if err := checkRange(decl, v); err != nil {
		return nil, err
	}
	return v, checkSize(decl, v)
}

// HasType reports whether a value is one of the type of its declaration, whatever limits that has (enum, min, max).
func HasType(decl *DataDecl, v Value) bool {
	d := *decl
	d.Enum, d.Min, d.Max = nil, nil, nil
	_, err := CheckValue(&d, v)
	return err == nil
}

// ParseValue reads a value from text, as a command line gives it, and checks
// it. Lists, maps and query results are JSON.
func ParseValue(decl *DataDecl, s string) (Value, error) {
	var v Value = s
	switch decl.Type {
	case TypeInteger:
		i, err := strconv.ParseInt(s, 10, 64)
		if errors.Is(err, strconv.ErrRange) {
			return nil, fmt.Errorf("%s: %w", decl.Name, outOfRange(s))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s is not a whole number of 64 bits", decl.Name, excerpt(s))
		}
		v = i
	case TypeNumber:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %s is not a number", decl.Name, excerpt(s))
		}
		v = f
	case TypeBoolean:
		b, known := map[string]bool{"true": true, "false": false}[s]
		if !known {
			return nil, fmt.Errorf("%s: %s is not a boolean: write true or false", decl.Name, excerpt(s))
		}
		v = b
	case TypeList, TypeMap, TypeQuery:
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber()
		if err := d.Decode(&v); err != nil || d.More() {
			return nil, fmt.Errorf("%s: want one JSON value of type %s", decl.Name, decl.Type)
		}
	}
	return CheckValue(decl, v)
}

// NotAsFile refuses a reference to a file where the data item is of another type: it would stand there as
// if somebody had typed it, and nobody would get its content.
func NotAsFile(decl *DataDecl, text string) error {
	if decl.Type == TypeFile {
		return nil
	}
	f, err := ParseFile(text)
	if err != nil {
		return nil // a text like any other
	}
	return fmt.Errorf("%s: file %s was given, and %s is data of type %s: %s", decl.Name, plain.Cut(f.Name, shown),
		decl.Name, decl.Type, decl.Type.insteadOfFile())
}

// insteadOfFile says what to do where a file was given for data of another type.
func (t DataType) insteadOfFile() string {
	if t == TypeQuery {
		return "its database answers it, and nobody else"
	}
	return "give its value instead, or have the definition declare it with type: file"
}

// CheckGiven says what is asked of a value as text that somebody gives now, beside what ParseValue asks; nil: nothing is
// wrong. It is no part of ParseValue, as what was given before this was asked still counts.
func CheckGiven(decl *DataDecl, text string) error {
	switch decl.Type {
	case TypeList, TypeMap, TypeQuery:
		if err := once.Check([]byte(text)); err != nil {
			return fmt.Errorf("%s: %w", decl.Name, err)
		}
	}
	return NotAsFile(decl, text)
}

// ReadGiven is ParseValue for what somebody gives now.
func ReadGiven(decl *DataDecl, s string) (Value, error) {
	if err := CheckGiven(decl, s); err != nil {
		return nil, err
	}
	return ParseValue(decl, s)
}

// conform checks the type alone.
func conform(decl *DataDecl, given Value) (Value, error) {
	v, err := plainValue(given, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", decl.Name, err)
	}
	ok := v == nil
	switch w := v.(type) {
	case string:
		if decl.Type == TypeFile {
			_, err := ParseFile(w)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", decl.Name, err)
			}
			return w, nil
		}
		ok = decl.Type == TypeString
		if decl.Type == TypeTime {
			t, err := parseTime(w)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", decl.Name, err)
			}
			return export(t), nil
		}
	case bool:
		ok = decl.Type == TypeBoolean
	case int64:
		ok = decl.Type == TypeInteger
		if decl.Type == TypeNumber {
			return float64(w), nil
		}
	case float64:
		ok = decl.Type == TypeNumber
		if decl.Type == TypeInteger && w == math.Trunc(w) {
			text, as := given.(json.Number) // as it is written
			if !as {
				text = json.Number(strconv.FormatFloat(w, 'f', -1, 64))
			}
			return nil, fmt.Errorf("%s: %w", decl.Name, outOfRange(string(text)))
		}
	case []any:
		ok = decl.Type == TypeList || decl.Type == TypeQuery
	case map[string]any:
		ok = decl.Type == TypeMap
	}
	if !ok && decl.Type != anyData {
		text, _ := json.Marshal(v) //nolint:errcheck // plain values; what cannot be written is left out
		return nil, fmt.Errorf("%s: %s: want %s, have %s", decl.Name, plain.Cut(string(text), shown), decl.Type.a(),
			typeOf(v).a())
	}
	return v, nil
}

// plainValue reduces the many Go types that decoders produce to those of Value. A
// number without a fraction becomes an integer, since JSON does not tell them
// apart.
func plainValue(v Value, depth int) (Value, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("lists and maps lie more than %d deep in each other", MaxDepth)
	}
	switch v := v.(type) {
	case nil, string, bool, int64:
		return v, nil
	case int:
		return int64(v), nil
	case uint64:
		if v > math.MaxInt64 {
			return nil, fmt.Errorf("%d is too great: whole numbers have 64 bits", v)
		}
		return int64(v), nil
	case json.Number:
		return plainNumber(v)
	case float64:
		return plainFloat(v)
	case time.Time:
		return export(v), nil
	case []any:
		return plainList(v, depth)
	case map[string]any:
		return plainMap(v, depth)
	}
	return nil, fmt.Errorf("a value of Go type %T has no place in a workflow", v)
}

func plainNumber(v json.Number) (Value, error) {
	if i, err := v.Int64(); err == nil {
		return i, nil
	}
	f, err := v.Float64()
	if err != nil {
		return nil, fmt.Errorf("%s is not a number that can be counted with", v)
	}
	return plainFloat(f)
}

func plainFloat(f float64) (Value, error) {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil, fmt.Errorf("%v is not a number that can be counted with", f)
	case f == math.Trunc(f) && f >= -(1<<63) && f < 1<<63:
		return int64(f), nil
	}
	return f, nil
}

// outOfRange says which integers there are, of a whole number that is none.
func outOfRange(text string) error {
	return fmt.Errorf("%s is out of range: an integer is one from %d to %d", plain.Cut(text, shown),
		int64(math.MinInt64), int64(math.MaxInt64))
}

func plainList(v []any, depth int) (Value, error) {
	out := make([]any, len(v))
	for i, item := range v {
		p, err := plainValue(item, depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = p
	}
	return out, nil
}

func plainMap(v map[string]any, depth int) (Value, error) {
	out := make(map[string]any, len(v))
	for k, item := range v {
		p, err := plainValue(item, depth+1)
		if err != nil {
			return nil, err
		}
		out[k] = p
	}
	return out, nil
}

func checkRange(decl *DataDecl, v Value) error {
	if f, ok := float(v); ok {
		if decl.Min != nil && f < *decl.Min || decl.Max != nil && f > *decl.Max {
			return fmt.Errorf("%s: %v is not in the range %s", decl.Name, v, rangeText(decl))
		}
	}
	if len(decl.Enum) > 0 && !slices.ContainsFunc(decl.Enum, func(e Value) bool { return equal(e, v) }) {
		return fmt.Errorf("%s: %v is not one of %s", decl.Name, v, enumText(decl))
	}
	return nil
}

func rangeText(decl *DataDecl) string {
	low, high := "…", "…"
	if decl.Min != nil {
		low = strconv.FormatFloat(*decl.Min, 'g', -1, 64)
	}
	if decl.Max != nil {
		high = strconv.FormatFloat(*decl.Max, 'g', -1, 64)
	}
	return low + " to " + high
}

func enumText(decl *DataDecl) string {
	var words []string
	for _, e := range decl.Enum {
		words = append(words, fmt.Sprint(e))
	}
	return strings.Join(words, ", ")
}

func checkSize(decl *DataDecl, v Value) error {
	b, err := json.Marshal(v)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", decl.Name, err)
	case len(b) > MaxValue:
		return fmt.Errorf("%s: the value has %d bytes: at most %d are allowed, greater things belong into a file",
			decl.Name, len(b), MaxValue)
	}
	return nil
}

// parseTime reads RFC 3339, or a date, which is its first moment in UTC.
func parseTime(s string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time: write for example 2026-07-01T08:00:00Z", s)
}

// ParseTime reads a point in time as definitions and values of data do: RFC 3339, or a date.
func ParseTime(s string) (time.Time, error) { return parseTime(s) }

// importValue brings a data item's value into the evaluator: a time becomes
// one that can be compared. What lists and maps hold is looked at when it is
// read.
func importValue(decl *DataDecl, v Value) (any, error) {
	switch v := v.(type) {
	case nil, []any, map[string]any:
		return v, nil
	case string:
		if decl.Type == TypeTime {
			return parseTime(v)
		}
		return v, nil
	}
	return conform(decl, v)
}

// importAny brings a list's or map's member into the evaluator.
func importAny(v Value) (any, error) {
	switch v.(type) {
	case []any, map[string]any:
		return v, nil
	}
	return plainValue(v, 0)
}
