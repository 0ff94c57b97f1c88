// Package native has what importers of other formats share: valid names, scalars and
// predicates of the native format, the search for a cycle, and the list of mistakes.
//
// Promises: no I/O, no clock, no goroutine; the same calls in the same order give
// the same names.
//
// It imports workflow; workflow/lxpdl, workflow/pdl, workflow/wedsql and workflow/wedxml
// import it.
package native

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Names gives each foreign name a native one, no two the same.
type Names struct {
	make  func(string) string
	join  string            // between a name and the number that tells it from others
	given map[string]string // by foreign name
	taken map[string]bool
	last  map[string]int // the last number that was given to a name that many want
}

// NewNames gives names of tasks, roles and the like.
func NewNames() Names { return newNames(workflow.MakeName, "-") }

// NewDataNames gives names of data, which expressions can mention.
func NewDataNames() Names { return newNames(workflow.MakeDataName, "_") }

func newNames(valid func(string) string, join string) Names {
	return Names{
		make: valid, join: join,
		given: make(map[string]string), taken: make(map[string]bool), last: make(map[string]int),
	}
}

// Of is the native name of a foreign one; fallback if nothing of it can stay.
func (ns Names) Of(name, fallback string) string { return ns.OfKind("", name, fallback) }

// OfKind is Of where things of several kinds share the native names, and things of
// two kinds may have one foreign name.
func (ns Names) OfKind(kind, name, fallback string) string {
	key := kind + "\x00" + name
	if v, ok := ns.given[key]; ok {
		return v
	}
	base := cmp.Or(ns.make(name), fallback)
	v := base
	for i := max(ns.last[base], 1) + 1; ns.taken[v]; i++ {
		suffix := fmt.Sprint(ns.join, i)
		v = strings.ToValidUTF8(base[:min(len(base), workflow.MaxName-len(suffix))], "") + suffix
		ns.last[base] = i
	}
	ns.given[key], ns.taken[v] = v, true
	return v
}

// Keep gives the foreign names of a kind that are valid to themselves, ahead of those that have to be changed: what
// is valid stays as it is, wherever it stands in the file.
func (ns Names) Keep(kind string, names ...string) {
	for _, name := range names {
		if ns.make(name) == name && !ns.taken[name] {
			ns.OfKind(kind, name, name)
		}
	}
}

// BuiltIn reports whether a name is that of an application that each node has, so that a foreign one of that name
// needs another.
func BuiltIn(name string) bool {
	return slices.Contains([]workflow.ApplicationName{
		workflow.AppNoop, workflow.AppSleep, workflow.AppSet, workflow.AppFail,
	}, workflow.ApplicationName(name))
}

// Kept says where a foreign name stays for which another was made: the key label, or doc where it cannot be
// a label, with the text; both are empty if nothing was changed.
func Kept(name, made string) (key, text string) {
	label := strings.Join(strings.Fields(name), " ")
	switch {
	case name == made || label == "":
		return "", ""
	case workflow.LabelRule(label) == "":
		return "label", label
	}
	return "doc", name
}

var (
	unquoted = regexp.MustCompile(`^\pL[\pL\pM0-9_.-]*$`)
	reserved = regexp.MustCompile(`^(?i:true|false|null|yes|no|on|off|y|n)$`)

	plainExpression = regexp.MustCompile(`^[A-Za-z_(][A-Za-z0-9_ ()<>=!.]*$`)
)

// Quoted writes a text so that YAML reads it back, whatever is in it, on one line.
func Quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // a string can always be written
	}
	return strings.NewReplacer("\u2028", `\u2028`, "\u2029", `\u2029`, "\u0085", `\u0085`, "\u007f", `\u007f`).
		Replace(string(b))
}

// Scalar writes a valid name so that YAML reads it as text.
func Scalar(name string) string {
	if unquoted.MatchString(name) && !reserved.MatchString(name) {
		return name
	}
	return fmt.Sprintf("%q", name)
}

// List writes valid names as a list of YAML.
func List(names []string) string {
	scalars := make([]string, len(names))
	for i, n := range names {
		scalars[i] = Scalar(n)
	}
	return "[" + strings.Join(scalars, ", ") + "]"
}

// Cycle finds nodes of which each comes before the next, and the last before the
// first; nil if there are none. before says, for each node by its number, which
// come before it. The first node is written once more at the end.
func Cycle(before [][]int) []int {
	left, after := make([]int, len(before)), make([][]int, len(before))
	for n, bs := range before {
		left[n] = len(bs)
		for _, b := range bs {
			after[b] = append(after[b], n)
		}
	}
	var free []int
	for n := range before {
		if left[n] == 0 {
			free = append(free, n)
		}
	}
	for ; len(free) > 0; free = free[1:] {
		for _, next := range after[free[0]] {
			if left[next]--; left[next] == 0 {
				free = append(free, next)
			}
		}
	}
	for n := range before {
		if left[n] > 0 {
			return back(n, before, left)
		}
	}
	return nil
}

// back goes from a node on a cycle, or behind one, to what comes before it and is
// not free either, until a node comes again.
func back(from int, before [][]int, left []int) []int {
	place := make(map[int]int)
	var trail []int
	for at := from; ; {
		if first, seen := place[at]; seen {
			loop := []int{at}
			for i := len(trail) - 1; i >= first; i-- {
				loop = append(loop, trail[i])
			}
			return loop
		}
		place[at] = len(trail)
		trail = append(trail, at)
		for _, b := range before[at] {
			if left[b] > 0 {
				at = b
				break
			}
		}
	}
}
