package databases

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// postgres is a database of a PostgreSQL server. Each query has a connection of its own: it
// needs none in between, and a password that was changed counts at once.
type postgres struct {
	configs.Database
	dir string // the node's folder
}

func (p postgres) mark() string { return "$" }

// put implements source. The statement is the only one of a read-only transaction, and
// the protocol takes no second one with it.
func (p postgres) put(
	ctx context.Context, statement string, values []workflow.Value, maxBytes int64, take taker,
) error {
	conn, err := p.connect(ctx, maxBytes)
	if err != nil {
		return err
	}
	defer func() {
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(soon) //nolint:errcheck // it was only read
	}()
	if err := p.begin(ctx, conn); err != nil {
		return postgresError(err)
	}
	answer := conn.ExecParams(ctx, statement, texts(values), nil, nil, nil)
	err = takeAnswer(answer, take)
	if _, closing := answer.Close(); err == nil {
		err = closing
	}
	return postgresError(err)
}

// connect opens a connection. What it says of a server and a user is for the operator alone.
func (p postgres) connect(ctx context.Context, maxBytes int64) (*pgconn.PgConn, error) {
	c, err := pgconn.ParseConfig(p.URL)
	if err != nil {
		return nil, &saidError{"the node that holds the task is not configured for it",
			errors.New("its url cannot be used")} // the error may have the password
	}
	if c.Password, err = p.password(c.Password); err != nil {
		return nil, &saidError{"the node that holds the task is not configured for it", err}
	}
	c.MaxProtocolMessageBodyLen = int(maxBytes) + 1<<20
	conn, err := pgconn.ConnectConfig(ctx, c)
	if err != nil {
		return nil, &saidError{unreached(err), err}
	}
	return conn, nil
}

// password is that of the configuration, or what the URL, or else the environment of
// PostgreSQL's own programs, says.
func (p postgres) password(otherwise string) (string, error) {
	switch {
	case p.PasswordFile != "":
		b, err := os.ReadFile(configs.In(p.dir, p.PasswordFile))
		return strings.TrimRight(string(b), "\r\n"), err
	case p.PasswordEnv != "":
		secret, set := os.LookupEnv(p.PasswordEnv)
		if !set {
			return "", fmt.Errorf("password-env: the node's environment has no %s", p.PasswordEnv)
		}
		return secret, nil
	}
	return otherwise, nil
}

// begin begins the transaction. The server ends what takes too long as well, since it does not
// notice that nobody waits for it any more; times come in one form, whatever is set there.
func (p postgres) begin(ctx context.Context, conn *pgconn.PgConn) error {
	timeout, _, _ := p.Limits()
	_, err := conn.Exec(ctx, fmt.Sprintf(
		"set statement_timeout = %d; set datestyle = iso; set timezone = utc; set bytea_output = hex; begin read only",
		timeout.Milliseconds())).ReadAll()
	return err
}

// texts are values as PostgreSQL reads them; the server knows their types by the statement.
func texts(values []workflow.Value) [][]byte {
	out := make([][]byte, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case nil:
		case float64:
			out[i] = strconv.AppendFloat(nil, v, 'g', -1, 64)
		default:
			out[i] = fmt.Append(nil, v)
		}
	}
	return out
}

// takeAnswer gives the rows of an answer.
func takeAnswer(answer *pgconn.ResultReader, take taker) error {
	var columns []string
	for answer.NextRow() {
		fields := answer.FieldDescriptions()
		if columns == nil {
			for _, f := range fields {
				columns = append(columns, f.Name)
			}
		}
		row := make([]any, len(fields))
		for i, text := range answer.Values() {
			v, err := read(fields[i].DataTypeOID, text)
			if err != nil {
				return said("column %s: %v", fields[i].Name, err)
			}
			row[i] = v
		}
		if err := take(columns, row); err != nil {
			return err
		}
	}
	return nil
}

// The types that are not shown as text, by their numbers in PostgreSQL (pg_type.dat).
const (
	oidBool        = 16
	oidBytea       = 17
	oidInt8        = 20
	oidInt2        = 21
	oidInt4        = 23
	oidOID         = 26
	oidJSON        = 114
	oidFloat4      = 700
	oidFloat8      = 701
	oidDate        = 1082
	oidTimestamp   = 1114
	oidTimestampTZ = 1184
	oidNumeric     = 1700
	oidJSONB       = 3802
)

// read reads a value from the text in which the server sends it; nil is null.
func read(oid uint32, text []byte) (any, error) {
	if text == nil {
		return nil, nil
	}
	s := string(text)
	switch oid {
	case oidBool:
		return s == "t", nil
	case oidBytea:
		return []byte(s), nil
	case oidInt2, oidInt4, oidInt8, oidOID:
		return strconv.ParseInt(s, 10, 64)
	case oidFloat4, oidFloat8:
		return strconv.ParseFloat(s, 64)
	case oidNumeric:
		return readNumeric(s)
	case oidDate:
		return readTime(s, time.DateOnly)
	case oidTimestamp:
		return readTime(s, "2006-01-02 15:04:05.999999")
	case oidTimestampTZ:
		return readTime(s, "2006-01-02 15:04:05.999999-07")
	case oidJSON, oidJSONB:
		var v any
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber()
		err := d.Decode(&v)
		if n, isNumber := v.(json.Number); isNumber {
			return readNumeric(n.String())
		}
		return v, err
	}
	return s, nil
}

// readNumeric reads a number with as many digits as it has. One with a fraction becomes the
// nearest of 64 bits; a whole one that has none that is equal is not taken.
func readNumeric(s string) (any, error) {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !strings.ContainsAny(s, ".eENI") {
		return nil, fmt.Errorf("%s is beyond the numbers of 64 bits: make text of it in the statement", s)
	}
	return f, nil
}

func readTime(s, layout string) (any, error) {
	t, err := time.Parse(layout, s)
	if err != nil {
		return nil, fmt.Errorf("%s is no time that a workflow can have: make text of it in the statement", s)
	}
	return t, nil
}

// unreached is why a server was not reached, as it may be told.
func unreached(err error) string {
	var refused *pgconn.PgError
	var unknown *net.DNSError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &refused) && strings.HasPrefix(refused.Code, "28"):
		return "it does not let the node that holds the task in: its user or password is wrong there"
	case errors.As(err, &refused) && refused.Code == "3D000":
		return "there is no such database on its server"
	case errors.As(err, &refused):
		return "its server takes nobody in now"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it cannot be reached from the node that holds the task: connection refused"
	case errors.As(err, &unknown):
		return "it cannot be reached from the node that holds the task: its host is not known there"
	case errors.As(err, &cert):
		return "it cannot be reached from the node that holds the task: its certificate is not trusted there"
	}
	return "it cannot be reached from the node that holds the task"
}

// postgresError is an error of a server that was reached, as it may be told.
func postgresError(err error) error {
	var told *saidError
	var beyond *beyondError
	var e *pgconn.PgError
	var long *pgproto3.ExceededMaxBodyLenErr
	switch {
	case err == nil, errors.As(err, &told), errors.As(err, &beyond):
		return err
	case errors.As(err, &long):
		return &saidError{"a row of the answer is too long", err}
	case !errors.As(err, &e):
		return &saidError{"the connection to it was lost", err}
	case e.Code == "57014": // the server's own limit of time came first
		return context.DeadlineExceeded
	case e.Code == "25006":
		return said("it is only read: %s", e.Message)
	}
	return said("%s", e.Message)
}
