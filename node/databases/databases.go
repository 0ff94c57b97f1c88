// Package databases puts queries to the databases that a node's configuration names:
// files of SQLite, and servers of PostgreSQL.
//
// Promises: a database is only read, whatever a statement says; a query ends within
// the database's limits of time, rows and bytes, or with its context; values are bound
// to a statement and never become a part of its text; no error has an address, a user,
// a password or a path, since errors become facts that all who take part in an instance
// can read. What they leave out is in the log of the node.
//
// It imports configs, internal/plain and workflow; node/assemble imports it.
package databases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Databases are those of a node. Its methods may be called from any goroutine.
type Databases struct {
	config  map[workflow.DatabaseName]configs.Database
	sources map[workflow.DatabaseName]source
	log     *slog.Logger
}

// source is one database. Nothing of it is open between two queries, so it may move,
// and be replaced, while the node runs.
type source interface {
	// mark is what stands before the number of a parameter.
	mark() string
	// put puts a statement with the values of its parameters, and gives the rows of the answer,
	// by the names of their columns, until take returns an error, which is then its own.
	// maxBytes bounds one row, as far as that has to be known beforehand.
	put(ctx context.Context, statement string, values []workflow.Value, maxBytes int64, take taker) error
}

// taker takes a row. What it is given is its caller's.
type taker func(columns []string, row []any) error

// New returns the databases of a configuration, which configs.Config.Validate has accepted.
// dir is the node's folder. log receives what concerns the operator; nil: nothing is logged.
func New(config map[workflow.DatabaseName]configs.Database, dir string, log *slog.Logger) *Databases {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d := &Databases{config: config, sources: map[workflow.DatabaseName]source{}, log: log}
	for name, c := range config {
		if c.File != "" {
			d.sources[name] = sqliteFile{configs.In(dir, c.File)}
		} else {
			d.sources[name] = postgres{Database: c, dir: dir}
		}
	}
	return d
}

// Ask puts a query for a task of a definition that comes from o. The answer is a list with
// a map for each row: column name to string, int64, float64, bool, nil, a time as its text
// (workflow.Value), or, from JSON, lists and maps. Its errors are for people who may not
// know this node, but for that of ctx.
func (d *Databases) Ask(ctx context.Context, o configs.Origin, q workflow.Question) ([]any, error) {
	c, has := d.config[q.Database]
	switch {
	case !has:
		return nil, fmt.Errorf("%s: this node has no database %s: add it under databases in %s", q.Data, q.Database,
			configs.File)
	case !c.Allows(o):
		return nil, fmt.Errorf(
			"%s: this node does not let workflow %s, listed by %s, ask database %s: %s", q.Data,
			o.Workflow, orNobody(o.Authors), q.Database, o.Remedy(c.Allows))
	}
	timeout, maxRows, maxBytes := c.Limits()
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a := answer{rows: []any{}, maxRows: maxRows, maxBytes: maxBytes}
	of := d.sources[q.Database]
	statement := q.Statement.Text(func(n int, _ workflow.DataName) string { return of.mark() + strconv.Itoa(n) })
	err := of.put(within, statement, q.Values, maxBytes, a.take)
	switch {
	case err == nil:
		return a.rows, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	d.log.Warn("a query failed", "database", q.Database, "workflow", o.Workflow, "data", q.Data, "reason", inFull(err))
	var beyond *beyondError
	var said *saidError
	what := "it cannot be asked now: the log of the node that holds the task says why"
	switch {
	case errors.As(err, &beyond):
		return nil, fmt.Errorf("%s: the answer of database %s %w: databases.%s.%s in %s of the node that asks",
			q.Data, q.Database, err, q.Database, beyond.key, configs.File)
	case within.Err() != nil, errors.Is(err, context.DeadlineExceeded): // here, or at the server
		return nil, fmt.Errorf(
			"%s: database %s did not answer within %s: databases.%s.timeout in %s of the node that asks", q.Data,
			q.Database, workflow.FormatDuration(timeout), q.Database, configs.File)
	case errors.As(err, &said):
		what = said.Error()
	}
	return nil, fmt.Errorf("%s: database %s: %s", q.Data, q.Database, what)
}

func orNobody(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ", ")
}

// tryFor is how long a database has to answer that is only tried.
const tryFor = 5 * time.Second

// Unfit says of each database that cannot be asked why, for the node's operator. All are
// tried at once.
func (d *Databases) Unfit(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	names := slices.Sorted(maps.Keys(d.sources))
	found := make(chan string)
	for _, name := range names {
		go func() {
			var why string
			if err := d.sources[name].put(ctx, "select 1", nil, workflow.MaxValue, nobody); err != nil {
				why = fmt.Sprintf("%s: %s", name, reason(err))
			}
			found <- why
		}()
	}
	var out []string
	for range names {
		if why := <-found; why != "" {
			out = append(out, why)
		}
	}
	slices.Sort(out)
	return out
}

func nobody([]string, []any) error { return nil }

// reason is why a database cannot be asked, for the operator.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer within " + workflow.FormatDuration(tryFor)
	}
	return inFull(err)
}

// inFull is an error with what only the operator is told.
func inFull(err error) string {
	var said *saidError
	if errors.As(err, &said) && said.err != nil {
		err = said.err
	}
	return cut(err.Error())
}

// saidError is an error that may be told to everybody.
type saidError struct {
	text string
	err  error // what the operator is told instead; nil: the same
}

func (e *saidError) Error() string { return e.text }
func (e *saidError) Unwrap() error { return e.err }

// said is what a database says of a statement. That may be told: who takes part in an
// instance knows the statement and its answer.
func said(format string, args ...any) error {
	return &saidError{text: cut(fmt.Sprintf(format, args...))}
}

// maxSaid is how much of what a database says is told, in columns.
const maxSaid = 300

func cut(text string) string { return plain.Cut(strings.Join(strings.Fields(text), " "), maxSaid) }

// beyondError is an answer that is beyond a limit.
type beyondError struct {
	key  string // of the limit
	text string
}

func (e *beyondError) Error() string { return e.text }

// answer takes rows, as far as they are within its limits.
type answer struct {
	rows     []any
	bytes    int64
	maxRows  int
	maxBytes int64
}

func (a *answer) take(columns []string, row []any) error {
	if len(a.rows) == a.maxRows {
		return &beyondError{"rows", fmt.Sprintf("has more than %d rows", a.maxRows)}
	}
	out := make(map[string]any, len(row))
	for i, v := range row {
		if _, twice := out[columns[i]]; twice {
			return said("the answer has two columns %q: name one of them with as", columns[i])
		}
		v, err := valueOf(v)
		if err != nil {
			return said("column %s: %v", columns[i], err)
		}
		out[columns[i]] = v
	}
	b, err := json.Marshal(out)
	if err != nil {
		return err
	}
	a.bytes += int64(len(b)) + 1 // a comma, or one of the brackets
	if a.bytes+1 > a.maxBytes {
		return &beyondError{"bytes", fmt.Sprintf("has more than %d bytes", a.maxBytes)}
	}
	a.rows = append(a.rows, out)
	return nil
}

// valueOf is a value of a database as one of a workflow.
func valueOf(v any) (workflow.Value, error) {
	switch v := v.(type) {
	case []byte:
		return nil, errors.New(
			"it has bytes, which are no value of a workflow: make text of them in the statement, or leave it out")
	case string:
		if !utf8.ValidString(v) {
			return nil, errors.New("its text is not UTF-8")
		}
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%v is not a number that can be counted with", v)
		}
	}
	return workflow.CheckValue(&workflow.DataDecl{Type: typeOf(v)}, v)
}

// typeOf is the type of data that takes a value of a database.
func typeOf(v any) workflow.DataType {
	switch v.(type) {
	case int64:
		return workflow.TypeInteger
	case float64:
		return workflow.TypeNumber
	case bool:
		return workflow.TypeBoolean
	case time.Time:
		return workflow.TypeTime
	case []any:
		return workflow.TypeList
	case map[string]any:
		return workflow.TypeMap
	}
	return workflow.TypeString
}
