package rules_test

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

const (
	dependencyTable = "docs/dependencies.md"
	dependencyWhy   = "who takes in a library answers for it: what for, who keeps it, what it costs to replace"
)

var (
	// required is a line of go.mod that asks for a module itself.
	required = regexp.MustCompile(`^(?:require\s+|\t)(\S+) v\S+$`)
	// tooled is a line of go.mod that asks for a program.
	tooled = regexp.MustCompile(`^tool (\S+)$`)
	// accounted is a row of the table of dependencies.
	accounted = regexp.MustCompile("^\\| `([^`]+)` \\|(.*)\\|$")
)

// dependencyComplaints finds direct dependencies without a complete row in the table of
// dependencies, and rows of what is none.
func dependencyComplaints(t *tree) []string {
	mod, err := fs.ReadFile(t.fsys, "go.mod")
	if err != nil {
		return []string{err.Error()}
	}
	table, err := fs.ReadFile(t.fsys, dependencyTable)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	rows := make(map[string]bool) // whether it is a dependency
	for i, line := range strings.Split(string(table), "\n") {
		m := accounted.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		rows[m[1]] = false
		cells := strings.Split(m[2], "|")
		for _, c := range cells {
			if len(cells) != 4 || strings.TrimSpace(c) == "" {
				out = append(out, fmt.Sprintf("%s:%d: the row of %s is not complete: %s; fill all of its five cells",
					dependencyTable, i+1, m[1], dependencyWhy))
				break
			}
		}
	}
	for i, line := range strings.Split(string(mod), "\n") {
		path := ""
		if m := required.FindStringSubmatch(line); m != nil {
			path = m[1]
		} else if m := tooled.FindStringSubmatch(line); m != nil {
			path = m[1]
		}
		if path != "" && !account(rows, path) {
			out = append(out, fmt.Sprintf("go.mod:%d: %s has no row in %s: %s; add one, or do without it",
				i+1, path, dependencyTable, dependencyWhy))
		}
	}
	for i, line := range strings.Split(string(table), "\n") {
		if m := accounted.FindStringSubmatch(line); m != nil && !rows[m[1]] {
			out = append(out, fmt.Sprintf("%s:%d: go.mod does not ask for %s: %s; take its row away",
				dependencyTable, i+1, m[1], dependencyWhy))
		}
	}
	return out
}

// account reports whether a module, or a program of one, has a row, and notes that the row is needed.
func account(rows map[string]bool, path string) bool {
	for row := range rows {
		if within(path, row) {
			rows[row] = true
			return true
		}
	}
	return false
}
