package databases_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/databases"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// trusted is a workflow that this node listed.
var trusted = configs.Origin{Workflow: "resupply", Trusted: true}

// asked is a query of data "stock" with values for its parameters, in their order.
func asked(t *testing.T, database workflow.DatabaseName, statement string, values ...workflow.Value) workflow.Question {
	t.Helper()
	s, hint, err := workflow.ParseStatement(statement)
	if err != nil {
		t.Fatalf("%s: %v (%s)", statement, err, hint)
	}
	return workflow.Question{Query: workflow.Query{Data: "stock", Database: database, Statement: s}, Values: values}
}

// case of a database: what a statement gives, as JSON, or the end of its error.
type answered struct {
	statement string
	values    []workflow.Value
	want      string
	fails     string
}

func tryAll(t *testing.T, d *databases.Databases, database workflow.DatabaseName, cases []answered) {
	t.Helper()
	for _, c := range cases {
		rows, err := d.Ask(t.Context(), trusted, asked(t, database, c.statement, c.values...))
		switch {
		case c.fails != "":
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v, %v: want the error %q", c.statement, rows, err, c.fails)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", c.statement, err)
			continue
		}
		got, err := json.Marshal(rows)
		if err != nil || string(got) != c.want {
			t.Errorf("%s gives %s (%v), want %s", c.statement, got, err, c.want)
		}
		decl := &workflow.DataDecl{Name: "stock", Type: workflow.TypeQuery}
		if _, err := workflow.CheckValue(decl, rows); err != nil {
			t.Errorf("%s gives what no workflow can have: %v", c.statement, err)
		}
	}
}

// depot makes a file of SQLite in a folder of its own.
func depot(t *testing.T, statements ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	made := filepath.Join(dir, "made.db")
	db, err := sql.Open("sqlite", made)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(s, err)
		}
	}
	if err := errors.Join(db.Close(), os.Rename(made, filepath.Join(dir, "de pot?.db"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func ofDepot(dir string, c configs.Database, log *slog.Logger) *databases.Databases {
	c.File = "de pot?.db"
	return databases.New(map[workflow.DatabaseName]configs.Database{"depot": c}, dir, log)
}

var parts = []string{
	`create table parts (name text, n integer, price real, made date, at timestamp, fits boolean, photo blob)`,
	`create index by_name on parts (name)`,
	`insert into parts values ('hose', 3, 2.5, '2026-07-01', '2026-07-01 08:00:00', 1, x'00ff')`,
	`insert into parts values ('pump', null, 10.0, null, null, 0, null)`,
}

// endless never comes to its end.
const endless = `with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n`

func TestSQLite(t *testing.T) {
	dir := depot(t, parts...)
	before, err := os.ReadFile(filepath.Join(dir, "de pot?.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "other.db"), before, 0o600); err != nil {
		t.Fatal(err)
	}
	d := ofDepot(dir, configs.Database{}, nil)
	tryAll(t, d, "depot", []answered{
		{"select name, n, price, made, at, fits from parts order by name", nil,
			`[{"at":"2026-07-01T08:00:00Z","fits":true,"made":"2026-07-01T00:00:00Z","n":3,"name":"hose","price":2.5},` +
				`{"at":null,"fits":false,"made":null,"n":null,"name":"pump","price":10}]`, ""},
		{"select name from parts where name = :part", []workflow.Value{"pump"}, `[{"name":"pump"}]`, ""},
		{"select name from parts where name = :part", []workflow.Value{"' or 1 = 1 --"}, `[]`, ""},
		{"select name from parts where n > :least and :least < n + :n or fits is :n",
			[]workflow.Value{int64(2), nil}, `[]`, ""},
		{"select :a as a, :b as b, :c as c, :d as d", []workflow.Value{"x", int64(1), 0.5, nil},
			`[{"a":"x","b":1,"c":0.5,"d":null}]`, ""},
		{"select 9007199254740993 as n", nil, `[{"n":9007199254740993}]`, ""},
		{"select name from parts where false;", nil, `[]`, ""},
		{"select photo from parts", nil, "", "stock: database depot: column photo: it has bytes"},
		{"select name as a, n as a from parts", nil, "", `the answer has two columns "a": name one of them with as`},
		{"select weight from parts", nil, "", "stock: database depot: SQL logic error: no such column: weight"},
		{"select 1e999 as n", nil, "", "column n: +Inf is not a number"},
		{"select cast(x'ff' as text) as n", nil, "", "column n: its text is not UTF-8"},
		// What writes, looks elsewhere, or changes how the database is asked.
		{"with x as (select 1) delete from parts", nil, "", "it is only read, and the statement does something else"},
		{"with x as (select 1) insert into parts(name) select 'x'", nil, "", "it is only read"},
		{"select * from pragma_table_info('parts')", nil, "", "it is only read"},
		{"select load_extension('x')", nil, "", "stock: database depot: "},
		{"select writefile('x', 'y')", nil, "", "no such function: writefile"},
		{"select zeroblob(100000000)", nil, "", "stock: database depot: a value of it is too long"},
	})
	after, err := os.ReadFile(filepath.Join(dir, "de pot?.db"))
	if err != nil || !bytes.Equal(before, after) {
		t.Error("the file was written to", err)
	}
	if unfit := d.Unfit(t.Context()); len(unfit) > 0 {
		t.Error(unfit)
	}
}

// Statements that a definition cannot have do not write either, should one get through.
func TestSQLiteOnlyReadsWhateverIsAsked(t *testing.T) {
	dir := depot(t, parts...)
	for _, s := range []string{
		"delete from parts", "drop table parts", "create table x (y)", "create temp table x (y)",
		"attach 'other.db' as other", "pragma query_only = 0", "pragma journal_mode = delete", "vacuum into 'x.db'",
		"begin immediate", "savepoint x", "reindex", "analyze",
	} {
		err := databases.AskSQLite(t.Context(), filepath.Join(dir, "de pot?.db"), s)
		if err == nil || !strings.Contains(err.Error(), "it is only read") {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestLimits(t *testing.T) {
	dir := depot(t, parts...)
	for _, c := range []struct {
		limits configs.Database
		answered
	}{
		{configs.Database{Rows: new(2)}, answered{"select name from parts", nil, `[{"name":"hose"},{"name":"pump"}]`, ""}},
		{configs.Database{Rows: new(1)}, answered{"select name from parts", nil, "",
			"stock: the answer of database depot has more than 1 rows: databases.depot.rows in config.yaml of the node that asks"}},
		{configs.Database{Bytes: new(int64(33))}, answered{"select name from parts", nil, `[{"name":"hose"},{"name":"pump"}]`, ""}},
		{configs.Database{Bytes: new(int64(32))}, answered{"select name from parts", nil, "",
			"stock: the answer of database depot has more than 32 bytes: databases.depot.bytes in config.yaml of the node that asks"}},
		{configs.Database{Timeout: new(100 * time.Millisecond)}, answered{endless, nil, "",
			"stock: database depot did not answer within 100ms: databases.depot.timeout in config.yaml of the node that asks"}},
	} {
		tryAll(t, ofDepot(dir, c.limits, nil), "depot", []answered{c.answered})
	}
}

// A query that is called off ends at once, and says nothing.
func TestACancelledQueryEnds(t *testing.T) {
	d := ofDepot(depot(t, parts...), configs.Database{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := d.Ask(ctx, trusted, asked(t, "depot", endless)); err != context.Canceled {
		t.Error(err)
	}
}

// Any member can list a workflow, and its statement is put to a database that belongs to
// somebody else: what nobody allowed is not asked.
func TestWhoMayAsk(t *testing.T) {
	dir := depot(t, parts...)
	stranger := configs.Origin{Workflow: "resupply", Authors: []string{"mal"}}
	for _, c := range []struct {
		allow []configs.Permit
		o     configs.Origin
		fails string
	}{
		{nil, trusted, ""},
		{nil, stranger, "stock: this node does not let workflow resupply, listed by mal, ask database depot: whoever runs the node that holds the task can name it there under allow in config.yaml (resupply by mal), or the founder or a delegate takes it off the list and adds it (mutirao workflow remove, mutirao workflow add); then mutirao task again has the task done once more"},
		{[]configs.Permit{"resupply by mal"}, stranger, ""},
		{[]configs.Permit{"resupply"}, stranger, "does not let"},
		{[]configs.Permit{"other"}, trusted, "ask database depot: see its allow list in config.yaml"},
	} {
		d := ofDepot(dir, configs.Database{Allow: c.allow}, nil)
		_, err := d.Ask(t.Context(), c.o, asked(t, "depot", "select 1 as n"))
		if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
			t.Errorf("%v of %v: %v", c.o, c.allow, err)
		}
	}
	_, err := ofDepot(dir, configs.Database{}, nil).Ask(t.Context(), trusted, asked(t, "registry", "select 1 as n"))
	if err == nil || err.Error() != "stock: this node has no database registry: add it under databases in config.yaml" {
		t.Error(err)
	}
}

// Errors become facts, which everybody in an instance can read. What only the operator is to
// know is in the log, and passwords are in neither.
func TestErrorsKeepSecrets(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"broken.db": strings.Repeat("this is no database ", 100), "secret": "s3cret\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("REGISTRY_SECRET", "s3cret")
	const shut = "127.0.0.1:1" // nobody listens there
	var logged bytes.Buffer
	all := map[workflow.DatabaseName]configs.Database{
		"missing":    {File: "hidden.db"},
		"folder":     {File: "."},
		"device":     {File: os.DevNull},
		"broken":     {File: "broken.db"},
		"shut":       {URL: "postgres://hidden:s3cret@" + shut + "/registry"},
		"by-file":    {URL: "postgres://hidden@" + shut + "/registry", PasswordFile: "secret"},
		"by-env":     {URL: "postgres://hidden@" + shut + "/registry?sslmode=disable", PasswordEnv: "REGISTRY_SECRET"},
		"no-secret":  {URL: "postgres://hidden@" + shut + "/registry", PasswordFile: "hidden"},
		"unset":      {URL: "postgres://hidden@" + shut + "/registry", PasswordEnv: "NOT_SET_ANYWHERE"},
		"misspelled": {URL: "postgres://hidden:s3cret@" + shut + "/registry?sslmode=s3cret"},
		"nowhere":    {URL: "postgres://hidden:s3cret@no-such-host.invalid/registry"},
	}
	d := databases.New(all, dir, slog.New(slog.NewTextHandler(&logged, nil)))
	const unreached = "it cannot be reached from the node that holds the task"
	for name, want := range map[workflow.DatabaseName]string{
		"missing": "the node that holds the task cannot open its file",
		"folder":  "the node that holds the task cannot open its file",
		"device":  "the node that holds the task cannot open its file",
		"broken":  "its file is no database of SQLite, or is damaged",
		"shut":    unreached + ": connection refused", "by-file": unreached + ": connection refused",
		"by-env": unreached + ": connection refused", "nowhere": unreached,
		"no-secret":  "the node that holds the task is not configured for it",
		"unset":      "the node that holds the task is not configured for it",
		"misspelled": "the node that holds the task is not configured for it",
	} {
		_, err := d.Ask(t.Context(), trusted, asked(t, name, "select 1 as n"))
		if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("stock: database %s: %s", name, want)) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, hidden := range []string{"hidden", "s3cret", "127.0.0.1", "invalid", dir} {
			if strings.Contains(err.Error(), hidden) {
				t.Errorf("%s: %v says %q", name, err, hidden)
			}
		}
	}
	unfit := d.Unfit(t.Context())
	if len(unfit) != len(all) {
		t.Error(unfit)
	}
	for where, text := range map[string]string{"the log": logged.String(), "doctor": strings.Join(unfit, "\n")} {
		if strings.Contains(text, "s3cret") {
			t.Errorf("%s has the password:\n%s", where, text)
		}
		for _, told := range []string{"hidden.db", shut, "NOT_SET_ANYWHERE"} {
			if !strings.Contains(text, told) {
				t.Errorf("%s does not tell the operator of %s:\n%s", where, told, text)
			}
		}
	}
}
