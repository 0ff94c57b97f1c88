package workflow_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// What stands in a statement as a parameter, by the syntax of PostgreSQL and of SQLite, and what only looks like one.
func TestParameters(t *testing.T) {
	for sql, want := range map[string][]string{
		"select 1 where a = :s":                         {"s"},
		"select :b, :a, :b":                             {"b", "a"},
		"select ':s' || :a":                             {"a"},
		"select 'it''s :s'":                             nil,
		`select ":s", :a`:                               {"a"},
		"select `:s`, `a``:s` from t":                   nil, // names in SQLite
		"select [:s], [it's :s], t.[a :s], :a from t":   {"a"},
		"select tags[:s] from t":                        nil, // a slice in PostgreSQL
		"select tags[1:s], tags[lo:hi], tags[:] from t": nil,
		"select tags[(:n)], tags[(:lo):(:hi)] from t":   {"n", "lo", "hi"},
		"select (tags)[:s], :a":                         {"a"},
		`select "tags"[:s][2:s], :a`:                    {"a"},
		"select m[f(:a, ':s')][:s] from t":              {"a"},
		"select array[:a, :b] && tags":                  {"a", "b"},
		"select ARRAY [[:a, 2], [:b, tags[:s]]]":        {"a", "b"},
		"select '{1}'::int[], :a::text":                 {"a"},
		"select a::s, b :: s":                           nil,
		"select 1 -- :s\n, :a":                          {"a"},
		"select 1 /* :s */, :a":                         {"a"},
		"select $x$:s$x$, $$ :s $$, :a":                 {"a"},
		`select E'\':s', e'\\', :a`:                     {"a"},
		`select 1 where a like'50\' and b = :a`:         {"a"}, // a backslash is nothing there
	} {
		s, hint, err := workflow.ParseStatement(sql)
		if err != nil {
			t.Errorf("%s: %v (%s)", sql, err, hint)
			continue
		}
		var got []string
		for _, p := range s.Parameters() {
			got = append(got, string(p))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has the parameters %q, want %q", sql, got, want)
		}
		if same := s.Text(func(_ int, n workflow.DataName) string { return ":" + string(n) }); same != sql {
			t.Errorf("%s is put together as %s", sql, same)
		}
	}
}

// What has no end says which.
func TestStatementsWithoutEnd(t *testing.T) {
	for sql, want := range map[string]string{
		"select [a from t":   "what begins with \"[a from t\" does not end",
		"select `a from t":   "what begins with \"`a from t\" does not end",
		"select 'a":          "what begins with \"'a\" does not end",
		"select tags[?]":     "? stands for a parameter without a name",
		"[a] select 1":       "a query only reads, and this one begins with \"[\"",
		"select 1; select 2": "there is more than one statement",
	} {
		if _, _, err := workflow.ParseStatement(sql); fmt.Sprint(err) != want {
			t.Errorf("%s: the error is %v, want %s", sql, err, want)
		}
	}
}
