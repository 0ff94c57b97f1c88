//go:build sqlite

package sqlite_test

import (
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	_ "modernc.org/sqlite"
)

var (
	pairs = flag.Int("pairs", 5000, "how many pairs of a predicate and a row to compare")
	seed  = flag.Uint64("seed", 1, "of the random predicates and rows")
)

func TestVerdictsAreThoseOfSQLite(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection has a memory of its own
	var columns []string
	for _, a := range attributes {
		columns = append(columns, a.name+" "+a.column)
	}
	for _, statement := range []string{
		"PRAGMA case_sensitive_like = ON",
		"CREATE TABLE states (" + strings.Join(columns, ", ") + ") STRICT",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	g := &generator{rand.New(rand.NewPCG(*seed, 0))}
	counted := map[string]int{}
	var states []map[string]any
	for n := 0; n < *pairs/rows; n++ {
		if n%20 == 0 {
			states = g.fill(t, db)
		}
		p := g.predicate(4)
		compare(t, db, p, states, counted)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d pairs: %v", *pairs/rows*rows, counted)
	for _, verdict := range []string{"true", "false", "null"} {
		if counted[verdict] < *pairs/50 {
			t.Errorf("only %d verdicts are %s: the predicates say too little", counted[verdict], verdict)
		}
	}
}

// fill makes new rows, in the database and as data states.
func (g *generator) fill(t *testing.T, db *sql.DB) []map[string]any {
	t.Helper()
	if _, err := db.Exec("DELETE FROM states"); err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for range rows {
		state := g.state()
		var values []any
		for _, a := range attributes {
			v := state[a.name]
			if b, is := v.(bool); is {
				v = map[bool]int{true: 1}[b]
			}
			values = append(values, v)
		}
		if _, err := db.Exec("INSERT INTO states VALUES (?, ?, ?, ?, ?, ?, ?)", values...); err != nil {
			t.Fatal(err)
		}
		out = append(out, state)
	}
	return out
}

// compare asks both for their verdict on each row.
func compare(t *testing.T, db *sql.DB, p predicate, states []map[string]any, counted map[string]int) {
	t.Helper()
	def, err := translated(p.ours)
	if err != nil {
		t.Fatalf("%s\n%v", p.ours, err)
	}
	found, err := db.Query("SELECT (" + p.theirs + ") FROM states ORDER BY rowid")
	if err != nil {
		t.Fatalf("%s\n%v", p.theirs, err)
	}
	defer found.Close()
	for i := 0; found.Next(); i++ {
		var v sql.NullBool
		if err := found.Scan(&v); err != nil {
			t.Fatal(err)
		}
		want := "null"
		if v.Valid {
			want = fmt.Sprint(v.Bool)
		}
		counted[want]++
		got, spelled := verdict(t, def, states[i])
		if got != want && (got != "never" || want == "true") {
			t.Errorf("seed %d\n%s\nfor SQLite\n%s\nhere\n%s\nrow %v\nours: %s, of SQLite: %s", *seed, p.ours, p.theirs,
				spelled, states[i], got, want)
			return
		}
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
}
