package amendments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mutirao-mesh/mutirao/internal/plain"
)

// sets are the keys whose value is a list of which the order means nothing.
var sets = map[Kind][]string{
	OfTask:      {"after", "needs", "in", "out", "holds"},
	OfPartition: {"tasks", "roles", "needs"},
	OfData:      {"readers"},
}

func isSet(k Kind, key string) bool { return slices.Contains(sets[k], key) }

// maxShown bounds what is shown of a value, in characters.
const maxShown = 200

// Lines tell people what differs, a line for each part and, further in, one for each of its keys.
func Lines(changes []Change) (out []string) {
	for i := range changes {
		c := &changes[i]
		switch c.How {
		case Added:
			out = append(out, "+ "+c.String())
		case Removed:
			out = append(out, "- "+c.String())
		case Changed:
			out = append(out, "~ "+c.String())
		}
		for _, k := range c.Keys {
			out = append(out, "    "+k.line(c))
		}
	}
	return out
}

// line tells one key: what it is, of a part that is new; of a list of which the order means nothing,
// what is new and what is gone; else what it was and is.
func (k *Key) line(c *Change) string {
	switch {
	case c.How == Added:
		return k.Key + ": " + Shown(k.Is)
	case isSet(c.Kind, k.Key):
		was, is := names(k.Was), names(k.Is)
		var words []string
		for _, n := range without(is, was) {
			words = append(words, "+"+plain.Line(n))
		}
		for _, n := range without(was, is) {
			words = append(words, "-"+plain.Line(n))
		}
		return k.Key + ": " + strings.Join(words, " ")
	}
	return k.Key + ": " + Shown(k.Was) + " -> " + Shown(k.Is)
}

// without are those of a list that another does not have.
func without[N ~string](list, other []N) []N {
	return slices.DeleteFunc(slices.Clone(list), func(n N) bool { return slices.Contains(other, n) })
}

// Shown is a value for people, on one line.
func Shown(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "(not written)"
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil { // cannot be: it is JSON of ours
		v = string(raw)
	}
	s := []rune(plain.Line(words(v, true)))
	if len(s) > maxShown {
		return string(s[:maxShown]) + "…"
	}
	return string(s)
}

// Apart is Shown in a sentence: what has several words stands between quotes, so that it is seen where it ends.
func Apart(raw json.RawMessage) string {
	if s := Shown(raw); len(raw) > 0 && raw[0] == '"' && strings.Contains(s, " ") {
		return "“" + s + "”"
	}
	return Shown(raw)
}

// words writes a value as YAML has it on one line, quoting as little as possible: outermost, nothing but
// what is not one line or empty.
func words(v any, outermost bool) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	case string:
		if v == "" || strings.TrimSpace(v) != v || strings.ContainsAny(v, "\n\r\t") ||
			!outermost && strings.ContainsAny(v, `,[]{}:"`) {
			return strconv.Quote(v)
		}
		return v
	case []any:
		items := make([]string, len(v))
		for i, x := range v {
			items[i] = words(x, false)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		var items []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			items = append(items, key+": "+words(v[key], false))
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	return fmt.Sprint(v)
}
