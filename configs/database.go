package configs

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Database is where a database name leads from this node, to which queries among the data of workflows are put: a file
// of SQLite, or a server of PostgreSQL; one of these. It is asked read-only.
type Database struct {
	// File is a database of SQLite, relative to the node's folder.
	File string `yaml:"file,omitempty"`

	// URL is a server of PostgreSQL and its database: postgres://user@host:5432/name?sslmode=verify-full.
	URL string `yaml:"url,omitempty"`
	// PasswordFile and PasswordEnv say where the password is, if it is not in the URL: in a file, relative to the node's
	// folder, which is read each time, or in a variable of the node's environment.
	PasswordFile string `yaml:"password-file,omitempty"`
	PasswordEnv  string `yaml:"password-env,omitempty"`

	// Timeout ends a query that takes longer, connecting included; nil: 30 s.
	Timeout *time.Duration `yaml:"timeout,omitempty"`
	// Rows and Bytes bound an answer: more of either is a failure. Bytes are those of the value as JSON; nil: 1,000
	// rows, and as many bytes as a value may have.
	Rows  *int   `yaml:"rows,omitempty"`
	Bytes *int64 `yaml:"bytes,omitempty"`

	// Allow names the workflows that may ask it; empty: those that this node, the founder or a delegate listed.
	Allow []Permit `yaml:"allow,omitempty"`
}

// The defaults of a database.
const (
	DefaultQueryTimeout = 30 * time.Second
	DefaultRows         = 1000
)

// Limits are those of one query, with the defaults for what the file leaves out.
func (d Database) Limits() (timeout time.Duration, rows int, bytes int64) {
	timeout, rows, bytes = DefaultQueryTimeout, DefaultRows, workflow.MaxValue
	if d.Timeout != nil {
		timeout = *d.Timeout
	}
	if d.Rows != nil {
		rows = *d.Rows
	}
	if d.Bytes != nil {
		bytes = *d.Bytes
	}
	return timeout, rows, bytes
}

// Allows reports whether tasks of a definition may ask the database. Any member may list a workflow, and so any
// statement: without a list only those count whom the node trusts anyway.
func (d Database) Allows(o Origin) bool {
	if len(d.Allow) == 0 {
		return o.Trusted
	}
	return allows(d.Allow, o)
}

func (d Database) validate(m *mistakes, name workflow.DatabaseName) {
	key := func(field string) string { return fmt.Sprintf("databases.%s%s", name, field) }
	if rule := workflow.NameRule(string(name)); rule != "" {
		m.add(key(""), fmt.Sprintf("%q", name), "want %s", rule)
	}
	switch {
	case d.File == "" && d.URL == "":
		m.add(key(""), "leads nowhere", "want a file of SQLite, or a url of PostgreSQL")
	case d.File != "" && d.URL != "":
		m.add(key(""), "has a file and a url", "want one of them")
	case d.File != "" && (d.PasswordFile != "" || d.PasswordEnv != ""):
		m.add(key(""), "password-file or password-env", "are for a url, not for a file")
	case d.PasswordFile != "" && d.PasswordEnv != "":
		m.add(key(""), "has a password-file and a password-env", "want one of them")
	case d.URL != "":
		d.validateURL(m, key(".url"))
	}
	if d.PasswordEnv != "" && !variableRE.MatchString(d.PasswordEnv) {
		m.add(key(".password-env"), "is no name of a variable", "want letters, digits and _")
	}
	if d.Timeout != nil {
		within(m, key(".timeout"), *d.Timeout, time.Millisecond, time.Hour)
	}
	if d.Rows != nil {
		within(m, key(".rows"), *d.Rows, 1, 100_000)
	}
	if d.Bytes != nil {
		within(m, key(".bytes"), *d.Bytes, 1, workflow.MaxValue)
	}
	if d.Allow != nil && len(d.Allow) == 0 {
		m.add(key(".allow"), "is empty", emptyAllow)
	}
	for i, w := range d.Allow {
		if wrong := w.validate(); wrong != "" {
			m.add(key(fmt.Sprintf(".allow[%d]", i)), fmt.Sprintf("%q", w), "%s", wrong)
		}
	}
}

// sslModes are what PostgreSQL's own programs know, the safest last.
var sslModes = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

// validateURL says nothing of what the URL contains that may be a password, or part of one.
func (d Database) validateURL(m *mistakes, key string) {
	u, err := url.Parse(d.URL)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Host == "" && u.Query().Get("host") == "" {
		m.add(key, "is no address of PostgreSQL", "want postgres://user@host:5432/name, with a port from 1 to 65535, "+
			"and each character of a user or password that is no letter, digit or one of -._~ as its percent code")
		return
	}
	if _, has := u.User.Password(); has && (d.PasswordFile != "" || d.PasswordEnv != "") {
		m.add(key, "has a password", "there is a password-file or password-env: leave one of them out")
	}
	for _, port := range ports(u) {
		if n, err := strconv.Atoi(port); err == nil && n >= 1 && n <= 65535 {
			continue
		}
		if u.User == nil && strings.Contains(d.URL, "@") { // it may be the beginning of a password
			port = "what stands after the host"
		}
		m.add(key, "has the port "+port, "want 1 to 65535")
	}
	q := u.Query()
	if mode := q.Get("sslmode"); q.Has("sslmode") && !slices.Contains(sslModes, mode) {
		m.add(key, fmt.Sprintf("has the sslmode %q", mode), "want one of %s", strings.Join(sslModes, ", "))
	}
}

// ports are those that the address of a PostgreSQL server, or of several, has.
func ports(u *url.URL) (out []string) {
	for host := range strings.SplitSeq(u.Host, ",") {
		if at := strings.LastIndexByte(host, ':'); at >= 0 && at > strings.LastIndexByte(host, ']') && at+1 < len(host) {
			out = append(out, host[at+1:])
		}
	}
	if q := u.Query(); q.Has("port") {
		out = append(out, strings.Split(q.Get("port"), ",")...)
	}
	return out
}
