package amendments

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// This file is about loops in two changes of one definition. A definition has the rounds of its loops written out as
// tasks, and does not know what was written (workflow/rounds.go). So two changes of one loop would be merged task by
// task, into rounds that nobody wrote: a loop that has ended while a round of it is still to come.

// besideRounds are the last words in the names of what stands beside the rounds of a task.
var besideRounds = []string{"again", "end", "if", "else"}

// roundsIn are, of all tasks, those that belong to rounds of a task, with that one, by its name.
func roundsIn(all map[string]bool) map[string][]string {
	out := map[string][]string{}
	for name := range all {
		head, rest, found := name, "", false
		for i := strings.IndexByte(name, '.'); i >= 0 && !found; {
			if head, rest = name[:i], name[i+1:]; all[head] && isRound(rest) {
				found = true
			} else if next := strings.IndexByte(rest, '.'); next >= 0 {
				i += 1 + next
			} else {
				i = -1
			}
		}
		if found {
			out[head] = append(out[head], name)
		}
	}
	for head := range out {
		out[head] = append(out[head], head)
		slices.Sort(out[head])
	}
	return out
}

// isRound reports whether a name ends so because its task belongs to a round, or stands beside one.
func isRound(rest string) bool {
	return !slices.ContainsFunc(strings.Split(rest, "."), func(word string) bool {
		return !slices.Contains(besideRounds, word) && (word == "" || strings.Trim(word, "0123456789") != "")
	})
}

// rounds finds loops that both sides change unlike: which tasks they have, or what a task of them waits for; and those to
// which one gives other rounds while the other changes something of them.
func (m *merger) rounds() {
	all := map[string]bool{}
	for _, d := range []parts{m.base, m.one, m.other} {
		for p := range d {
			if p.Kind == OfTask {
				all[p.Name] = true
			}
		}
	}
	families := roundsIn(all)
	for _, head := range slices.Sorted(maps.Keys(families)) {
		of := families[head]
		unlike := func(a, b parts, some []string) bool {
			return slices.ContainsFunc(of, func(n string) bool { return differ(a, b, Part{OfTask, n}, some) })
		}
		none := []string{}
		grows := unlike(m.base, m.one, none) || unlike(m.base, m.other, none)
		for _, some := range [][]string{nil, rule} {
			if (some != nil || grows) && unlike(m.base, m.one, some) && unlike(m.base, m.other, some) &&
				unlike(m.one, m.other, some) {
				m.conflicts = append(m.conflicts, Conflict{
					Part: Part{OfTask, head},
					Why:  fmt.Sprintf("both change a loop in which %s is, each in its own way: its rounds do not go together", head),
				})
				break
			}
		}
	}
}

// differ reports whether a part is there in one of two alone, or some keys of it differ: nil are all keys.
func differ(a, b parts, p Part, some []string) bool {
	was, before := a[p]
	is, after := b[p]
	if before != after {
		return true
	}
	if some == nil {
		some = keys(was, is)
	}
	return slices.ContainsFunc(some, func(k string) bool { return !bytes.Equal(was[k], is[k]) })
}
