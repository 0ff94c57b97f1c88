package databases

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// sqliteFile is a database of SQLite, by its path.
type sqliteFile struct{ path string }

func (f sqliteFile) mark() string { return "?" }

// put implements source. The file is opened read-only, the connection may not write, and an
// authorizer lets nothing through but reading: no other file is attached, no setting changed.
func (f sqliteFile) put(
	ctx context.Context, statement string, values []workflow.Value, maxBytes int64, take taker,
) error {
	if info, err := os.Stat(f.path); err != nil || !info.Mode().IsRegular() { // a pipe would never be open
		return &saidError{unopened, fmt.Errorf("open %s: %w", f.path, cmp.Or(err, errors.New("it is no regular file")))}
	}
	db, err := sql.Open("sqlite", f.dsn())
	if err != nil {
		return err
	}
	defer db.Close() // it was only read
	conn, err := db.Conn(ctx)
	if err != nil {
		return sqliteError(err)
	}
	defer conn.Close() // it was only read
	if err := onlyReads(conn, maxBytes); err != nil {
		return err
	}
	rows, err := conn.QueryContext(ctx, statement, values...)
	if err != nil {
		return sqliteError(err)
	}
	defer rows.Close() // its error is that of rows.Err
	return takeRows(rows, take)
}

const unopened = "the node that holds the task cannot open its file"

// dsn opens the file read-only. What is written to it meanwhile is waited for as long as the
// context lets it.
func (f sqliteFile) dsn() string {
	u := url.URL{Scheme: "file", OmitHost: true, Path: f.path, RawQuery: url.Values{
		"mode": {"ro"}, "_pragma": {"query_only(1)", "busy_timeout(3600000)"},
	}.Encode()}
	if !strings.HasPrefix(f.path, "/") {
		u.Path, u.Opaque = "", (&url.URL{Path: f.path}).EscapedPath()
	}
	return u.String()
}

// onlyReads bounds what a statement may do on a connection.
func onlyReads(conn *sql.Conn, maxBytes int64) error {
	for _, limit := range []struct{ id, to int }{
		{sqlite3.SQLITE_LIMIT_ATTACHED, 0},
		{sqlite3.SQLITE_LIMIT_LENGTH, int(maxBytes) + 1<<20}, // of one text, also where a longer one would be cut
	} {
		if _, err := sqlite.Limit(conn, limit.id, limit.to); err != nil {
			return err
		}
	}
	return conn.Raw(func(c any) error {
		r, ok := c.(sqlite.AuthorizerRegisterer)
		if !ok {
			return errors.New("this version of SQLite cannot be kept from writing")
		}
		return r.RegisterAuthorizer(
			func(do sqlite.AuthorizerActionCode, _, _, _, _ string) sqlite.AuthorizerReturnCode {
				switch do {
				case sqlite.AuthSelect, sqlite.AuthRead, sqlite.AuthFunction, sqlite.AuthRecursive:
					return sqlite.AuthorizerOK
				}
				return sqlite.AuthorizerDeny
			})
	})
}

// takeRows gives the rows of an answer.
func takeRows(rows *sql.Rows, take taker) error {
	columns, err := rows.Columns()
	if err != nil {
		return sqliteError(err)
	}
	types, err := rows.ColumnTypes()
	if err != nil {
		return sqliteError(err)
	}
	row, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range row {
		into[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return sqliteError(err)
		}
		for i, v := range row {
			if n, isInt := v.(int64); isInt && boolean(types[i].DatabaseTypeName()) {
				row[i] = n != 0
			}
		}
		if err := take(columns, row); err != nil {
			return err
		}
	}
	return sqliteError(rows.Err())
}

// boolean reports whether a column is declared as one of booleans, which SQLite keeps as 0 and 1.
func boolean(declared string) bool {
	return strings.EqualFold(declared, "BOOLEAN") || strings.EqualFold(declared, "BOOL")
}

// sqliteError is an error of SQLite as it may be told.
func sqliteError(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return &saidError{unopened, err}
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return &saidError{"its file is no database of SQLite, or is damaged", err}
	case sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY:
		return &saidError{"it is only read, and the statement does something else", err}
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return &saidError{"another program has locked it", err}
	case sqlite3.SQLITE_TOOBIG:
		return &saidError{"a value of it is too long", err}
	}
	return said("%s", e.Error())
}
