package databases_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/databases"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// server runs a PostgreSQL server of the test's own, and returns the URL of its superuser. It
// skips the test where none is installed.
func server(t *testing.T) string {
	t.Helper()
	bin := ""
	for _, dir := range append([]string{os.Getenv("MUTIRAO_POSTGRES_BIN")},
		glob(t, "/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin")...) {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); dir != "" && err == nil {
			bin = dir
		}
	}
	if bin == "" {
		t.Skip("no PostgreSQL server is installed here: apt-get install postgresql, or MUTIRAO_POSTGRES_BIN=FOLDER")
	}
	dir, err := os.MkdirTemp("", "pg") // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	attr := &syscall.SysProcAttr{}
	if os.Getuid() == 0 { // the server does not run as root
		uid, gid := unprivileged(t)
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o644); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	setUp := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "boss", "-A", "scram-sha-256", "--pwfile", secret,
		"--no-sync", "--encoding", "UTF8", "--locale", "C")
	setUp.SysProcAttr, setUp.Dir = attr, dir
	if out, err := setUp.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	port := freePort(t)
	run := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=127.0.0.1",
		"-c", "port="+port, "-c", "fsync=off", "-c", "datestyle=german", "-c", "timezone=America/Sao_Paulo")
	run.SysProcAttr, run.Dir = attr, dir
	var said bytes.Buffer
	run.Stdout, run.Stderr = &said, &said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = run.Wait() // why it ended is in what it said
	}()
	t.Cleanup(func() {
		_ = run.Process.Signal(syscall.SIGINT) // it may have ended
		<-ended
	})
	url := "postgres://boss:s3cret@127.0.0.1:" + port + "/postgres"
	for deadline := time.After(time.Minute); ; {
		c, err := pgconn.Connect(t.Context(), url)
		if err == nil {
			_ = c.Close(t.Context())
			return url
		}
		select {
		case <-ended:
			t.Fatalf("the server ended at once: %s", said.String())
		case <-deadline:
			t.Fatalf("the server did not start within a minute: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// unprivileged is the user as which root has the server run: the one that the package makes, or else nobody.
func unprivileged(t *testing.T) (uid, gid int) {
	for _, name := range []string{"postgres", "nobody"} {
		if who, err := user.Lookup(name); err == nil {
			return number(t, who.Uid), number(t, who.Gid)
		}
	}
	t.Skip("PostgreSQL does not run as root, and there is no user postgres or nobody here")
	return 0, 0
}

func glob(t *testing.T, patterns ...string) (out []string) {
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, found...)
	}
	return out
}

func number(t *testing.T, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// command has the server do something as its superuser.
func command(t *testing.T, url, statements string) [][]byte {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	all, err := c.Exec(t.Context(), statements).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if last := all[len(all)-1]; len(last.Rows) > 0 {
		return last.Rows[0]
	}
	return nil
}

func TestPostgreSQL(t *testing.T) {
	boss := server(t)
	command(t, boss, `
		create table parts (name text, n int, big bigint, price numeric(10,2), made date, at timestamp, seen timestamptz, fits bool,
			photo bytea, tags text[], more jsonb, id uuid, pause interval);
		insert into parts values ('hose', 3, 9007199254740993, 2.50, '2026-07-01', '2026-07-01 08:00:00.5', '2026-07-01 08:00+02', true,
			'\x00ff', '{a,b}', '{"k": [1, 2.5, null], "n": 1e3}', '00000000-0000-0000-0000-000000000001', '90 minutes');
		insert into parts (name) values ('pump');
		create sequence counter;
		create function sneak() returns int language plpgsql as $$ begin delete from parts; return 1; end $$;
		create role reader login password 's3cret'; grant select on parts to reader; grant usage on sequence counter to reader`)
	url := strings.Replace(boss, "boss:", "reader:", 1)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	without := strings.Replace(url, ":s3cret", "", 1)
	t.Setenv("READER_PASSWORD", "s3cret")
	t.Setenv("WRONG_PASSWORD", "wr0ng")
	limited := func(c configs.Database) configs.Database {
		c.URL = url
		return c
	}
	d := databases.New(map[workflow.DatabaseName]configs.Database{
		"registry": {URL: url}, "by-file": {URL: without, PasswordFile: "secret"},
		"by-env": {URL: without, PasswordEnv: "READER_PASSWORD"}, "wrong": {URL: without, PasswordEnv: "WRONG_PASSWORD"},
		"none": {URL: strings.Replace(url, "/postgres", "/none", 2)}, "boss": {URL: boss},
		"rows": limited(configs.Database{Rows: new(1)}), "bytes": limited(configs.Database{Bytes: new(int64(20))}),
		"time": limited(configs.Database{Timeout: new(300 * time.Millisecond)}),
	}, dir, nil)

	tryAll(t, d, "registry", []answered{
		{"select name, n, big, price, made, at, seen, fits, tags, more, id, pause from parts where name = 'hose'", nil,
			`[{"at":"2026-07-01T08:00:00.5Z","big":9007199254740993,"fits":true,"id":"00000000-0000-0000-0000-000000000001",` +
				`"made":"2026-07-01T00:00:00Z","more":{"k":[1,2.5,null],"n":1000},"n":3,"name":"hose","pause":"01:30:00","price":2.5,` +
				`"seen":"2026-07-01T06:00:00Z","tags":"{a,b}"}]`, ""},
		{"select n, made, fits from parts where name = :part", []workflow.Value{"pump"},
			`[{"fits":null,"made":null,"n":null}]`, ""},
		{"select name from parts where name = :part", []workflow.Value{"' or true --"}, `[]`, ""},
		{"select name from parts where n >= :least and fits = :fits and price > :p and seen < :until::timestamptz",
			[]workflow.Value{int64(3), true, 0.5, "2026-07-02T00:00:00Z"}, `[{"name":"hose"}]`, ""},
		{"select name from parts where n = :n and n = :n", []workflow.Value{nil}, `[]`, ""},
		{"select to_jsonb(tags) as tags from parts where name = 'hose';", nil, `[{"tags":["a","b"]}]`, ""},
		{"select $tag$ :no $tag$ as a, ':no' as b /* :no */ -- :no", nil, `[{"a":" :no ","b":":no"}]`, ""},
		{"select photo from parts where name = 'hose'", nil, "", "column photo: it has bytes"},
		{"select 99999999999999999999 as n", nil, "", "column n: 99999999999999999999 is beyond the numbers of 64 bits"},
		{"select 'NaN'::float8 as n", nil, "", "column n: NaN is not a number"},
		{"select 'infinity'::timestamptz as n", nil, "", "column n: infinity is no time"},
		{"select nothing from parts", nil, "", `stock: database registry: column "nothing" does not exist`},
		{"select name from parts where n = :n", []workflow.Value{"three"}, "",
			`stock: database registry: invalid input syntax for type integer: "three"`},
		// What writes, by whatever way.
		{"with gone as (delete from parts returning *) select * from gone", nil, "",
			"it is only read: cannot execute SELECT in a read-only transaction"},
		{"select * into copy from parts", nil, "", "it is only read: cannot execute SELECT INTO in a read-only transaction"},
		{"select name from parts for update", nil, "", "it is only read: "},
		{"select nextval('counter')", nil, "", "it is only read: cannot execute nextval() in a read-only transaction"},
		{"select set_config('transaction_read_only', 'off', true), sneak()", nil, "", "transaction read-write mode must be set before any query"},
	})
	tryAll(t, d, "boss", []answered{{"select sneak()", nil, "", "it is only read: cannot execute DELETE in a read-only transaction"}})
	for _, name := range []workflow.DatabaseName{"by-file", "by-env"} {
		tryAll(t, d, name, []answered{{"select count(*) as n from parts", nil, `[{"n":2}]`, ""}})
	}
	for name, c := range map[workflow.DatabaseName]answered{
		"wrong": {"select 1 as n", nil, "", "stock: database wrong: it does not let the node that holds the task in: its user or password is wrong there"},
		"none":  {"select 1 as n", nil, "", "stock: database none: there is no such database on its server"},
		"rows":  {"select name from parts", nil, "", "stock: the answer of database rows has more than 1 rows"},
		"bytes": {"select name from parts", nil, "", "stock: the answer of database bytes has more than 20 bytes"},
		"time":  {"select pg_sleep(60)", nil, "", "stock: database time did not answer within 300ms: databases.time.timeout"},
	} {
		tryAll(t, d, name, []answered{c})
	}
	tryAll(t, d, "registry", []answered{{"select repeat('x', 3000000) as n", nil, "", "a row of the answer is too long"}})
	if unfit := d.Unfit(t.Context()); len(unfit) != 2 || strings.Contains(fmt.Sprint(unfit), "wr0ng") {
		t.Error(unfit)
	}

	// Nothing runs on there for whom nobody waits.
	for deadline := time.Now().Add(30 * time.Second); ; <-time.After(20 * time.Millisecond) {
		if string(command(t, boss, "select count(*) from pg_stat_activity where query like 'select pg_sleep%'")[0]) == "0" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a query that took too long is still running at the server")
		}
	}
}
