package workflow

import (
	"fmt"
	"slices"
	"strings"
)

// DatabaseName is a database, as definitions call it; where it is, each node's own configuration says.
type DatabaseName string

// Query is what a task asks a database, as its data declare it (docs/language.md, Queries).
type Query struct {
	Data      DataName // takes the answer: a list of maps, one for each row
	Database  DatabaseName
	Statement Statement
}

// Question is a query as it is asked.
type Question struct {
	Query
	Values []Value // of the statement's parameters, in their order; what has no value is nil
}

// Statement is the SQL of a query, read: one statement that reads, whose parameters are data of the instance. The zero
// Statement is empty.
type Statement struct {
	pieces []string   // the text before the first parameter, between them, and after the last
	params []DataName // for each gap between two pieces
}

// Parameters are the data that the statement mentions, each once, in the order of their first mention.
func (s Statement) Parameters() (out []DataName) {
	for _, p := range s.params {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// Text is the statement with what mark gives where a parameter stands: for the n-th of Parameters, counted from 1, and
// its name. No value ever becomes a part of the text.
func (s Statement) Text(mark func(n int, name DataName) string) string {
	if len(s.pieces) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(s.pieces[0])
	numbered := s.Parameters()
	for i, p := range s.params {
		b.WriteString(mark(slices.Index(numbered, p)+1, p))
		b.WriteString(s.pieces[i+1])
	}
	return b.String()
}

// readers are the words with which a statement begins that only reads. A database is asked read-only besides.
var readers = []string{"select", "with", "values"}

// ParseStatement reads SQL as far as it has to be understood here: where its parameters are, and where it ends. hint
// says what to do about err.
func ParseStatement(sql string) (s Statement, hint string, err error) {
	x := &sqlScanner{text: sql}
	for x.at < len(sql) {
		start := x.at
		switch c := sql[x.at]; {
		case x.skip():
			if !x.closed {
				return s, "", fmt.Errorf("what begins with %s does not end", excerpt(sql[start:min(start+12, len(sql))]))
			}
		case c == ':' && strings.HasPrefix(sql[x.at:], "::"):
			x.at += 2 // a cast
		case c == ':' && x.within() == inSubscript:
			x.at++ // of a slice
		case c == ':' && x.word(x.at+1) != "":
			name := x.word(x.at + 1)
			s.pieces = append(s.pieces, sql[x.from:x.at])
			s.params = append(s.params, DataName(name))
			x.at += 1 + len(name)
			x.from = x.at
		case c == '?', c == '$' && x.at+1 < len(sql) && sql[x.at+1] >= '0' && sql[x.at+1] <= '9':
			return s, "name data: :level", fmt.Errorf("%c stands for a parameter without a name", c)
		case c == ';':
			if rest := (&sqlScanner{text: sql, at: x.at + 1}); !rest.blank() {
				return s, "write another query for it", fmt.Errorf("there is more than one statement")
			}
			return x.end(s, x.at)
		case x.brackets():
		default:
			x.token()
		}
	}
	return x.end(s, len(sql))
}

// sqlScanner goes through a statement.
type sqlScanner struct {
	text   string
	at     int
	from   int    // where the present piece begins
	first  string // the first word
	closed bool   // what was skipped last had an end
	open   []bracket
}

// bracket is what an open bracket is for.
type bracket byte

const (
	inGroup     bracket = '('
	inList      bracket = '[' // ARRAY[…] of PostgreSQL
	inSubscript bracket = 's' // tags[1] or tags[:n] of PostgreSQL: a colon there is that of a slice
	inName      bracket = 'q' // [a name] of SQLite
)

// within is the innermost open bracket; 0: none is open.
func (x *sqlScanner) within() bracket {
	if len(x.open) == 0 {
		return 0
	}
	return x.open[len(x.open)-1]
}

// bracket is what the bracket [ is for that begins here: after ARRAY it is a list, as are those in such a list, right after
// a value a subscript, and otherwise a name in SQLite.
func (x *sqlScanner) bracket() bracket {
	before := strings.TrimRight(x.text[:x.at], " \t\r\n")
	word := len(before)
	for word > 0 && isName(before[word-1]) {
		word--
	}
	last := byte(' ')
	if before != "" {
		last = before[len(before)-1]
	}
	switch {
	case x.first == "", strings.EqualFold(before[word:], "array"), x.within() == inList && (last == '[' || last == ','):
		return inList
	case len(before) == x.at && (isName(last) || strings.IndexByte(`)]"`, last) >= 0):
		return inSubscript
	}
	return inName
}

// brackets passes a bracket, and notes what is open. False: none is here.
func (x *sqlScanner) brackets() bool {
	switch c := x.text[x.at]; {
	case c == '(':
		x.open = append(x.open, inGroup)
	case c == '[':
		x.open = append(x.open, x.bracket())
	case c != ')' && c != ']':
		return false
	case len(x.open) > 0: // whether they match says the database
		x.open = x.open[:len(x.open)-1]
	}
	x.token()
	return true
}

// end is the statement whose text ends at to.
func (x *sqlScanner) end(s Statement, to int) (Statement, string, error) {
	if first := strings.ToLower(x.first); !slices.Contains(readers, first) {
		return s, "begin with select, with or values", fmt.Errorf("a query only reads, and this one begins with %s",
			excerpt(x.first))
	}
	s.pieces = append(s.pieces, x.text[x.from:to])
	return s, "", nil
}

// word is the identifier at a place; empty: none begins there.
func (x *sqlScanner) word(at int) string {
	end := at
	for end < len(x.text) && (isIdent(x.text[end]) || end > at && isName(x.text[end])) {
		end++
	}
	return x.text[at:end]
}

// isName reports whether a character may be in a name, though perhaps not begin it.
func isName(c byte) bool { return isIdent(c) || c >= '0' && c <= '9' }

func isIdent(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// token passes an identifier, or one other character.
func (x *sqlScanner) token() {
	word := x.word(x.at)
	if x.first == "" && word != "" {
		x.first = word
	} else if c := x.text[x.at]; x.first == "" && c != '(' && c > ' ' {
		x.first = string(c)
	}
	x.at += max(1, len(word))
}

// skip passes a text in quotes, a name in quotes, a comment, or a text between two $tags$, in all of which nothing is a
// parameter. False: none begins here.
func (x *sqlScanner) skip() bool {
	rest := x.text[x.at:]
	switch {
	case strings.HasPrefix(rest, "--"):
		x.until(2, "\n")
		x.closed = true // the end of the text ends it too
	case strings.HasPrefix(rest, "/*"):
		x.until(2, "*/")
	case rest[0] == '\'' && x.afterE():
		x.escaped()
	case rest[0] == '[' && x.bracket() == inName:
		x.until(1, "]")
	case rest[0] == '\'' || rest[0] == '"' || rest[0] == '`':
		x.until(1, rest[:1])
	case rest[0] == '$' && x.tag() != "":
		x.until(len(x.tag()), x.tag())
	default:
		return false
	}
	return true
}

// afterE reports whether an E of its own stands right before, as before texts of PostgreSQL with escapes.
func (x *sqlScanner) afterE() bool {
	return x.at > 0 && (x.text[x.at-1] == 'E' || x.text[x.at-1] == 'e') && (x.at == 1 || !isName(x.text[x.at-2]))
}

// until passes what ends with end, whose beginning is n bytes long. A quote that is written twice ends one text and
// begins another, which comes to the same.
func (x *sqlScanner) until(n int, end string) {
	i := strings.Index(x.text[x.at+n:], end)
	if x.closed = i >= 0; !x.closed {
		x.at = len(x.text)
		return
	}
	x.at += n + i + len(end)
}

// escaped passes a text in quotes in which a backslash takes the next character as it is.
func (x *sqlScanner) escaped() {
	for x.at++; x.at < len(x.text); x.at++ {
		switch x.text[x.at] {
		case '\\':
			x.at++
		case '\'':
			x.at, x.closed = x.at+1, true
			return
		}
	}
	x.at, x.closed = len(x.text), false
}

// tag is the $tag$ that begins here; empty: none does.
func (x *sqlScanner) tag() string {
	tag := "$" + x.word(x.at+1) + "$"
	if !strings.HasPrefix(x.text[x.at:], tag) {
		return ""
	}
	return tag
}

// blank reports whether nothing but comments and the ends of empty statements is left.
func (x *sqlScanner) blank() bool {
	for x.at < len(x.text) {
		rest := x.text[x.at:]
		switch comment := strings.HasPrefix(rest, "--") || strings.HasPrefix(rest, "/*"); {
		case comment:
			x.skip()
		case rest[0] <= ' ' || rest[0] == ';':
			x.at++
		default:
			return false
		}
	}
	return true
}

// queries reads what the tasks ask of databases, and reports what cannot be asked.
func (r *reader) queries() {
	asked := map[DataName]*Query{}
	for i := range r.def.Data {
		if d := &r.def.Data[i]; d.Type == TypeQuery && r.scope.data[d.Name].Expression != "" {
			asked[d.Name] = r.query(r.scope.data[d.Name])
		}
	}
	if len(asked) == 0 {
		return
	}
	for _, t := range r.def.Tasks {
		for _, name := range t.Out {
			q := asked[name]
			if q == nil {
				continue
			}
			if t.Type != Automatic {
				r.on(r.where(t, "out"),
					fmt.Sprintf("have an automatic task before it ask (out: [%s]), and read it under in here", name),
					"%s is what database %s answers: only an automatic task asks", name, q.Database)
			}
			if t.With.Set[name] != nil {
				r.on(r.where(t, "with"), "leave it out of with", "%s is what database %s answers: it is not set", name,
					q.Database)
			}
			t.Queries = append(t.Queries, *q)
		}
	}
}

// query reads the statement of a query, and checks what it mentions.
func (r *reader) query(d *DataDecl) *Query {
	at := r.written(d, "expression")
	s, hint, err := ParseStatement(d.Expression)
	if err != nil {
		r.on(at, hint, "the expression of %s: %v", d.Name, err)
	}
	for _, name := range s.Parameters() {
		switch p := r.scope.data[name]; {
		case p == nil:
			r.on(at, r.nearData(string(name)), "the expression of %s: there is no data :%s", d.Name, name)
		case !parametric(p.Type):
			r.on(at, "a text, a number, a boolean or a time can be one", "the expression of %s: :%s is %s", d.Name,
				name, p.Type.a())
		}
	}
	return &Query{d.Name, DatabaseName(d.Database), s}
}

// parametric reports whether data of a type can be a parameter of a query.
func parametric(t DataType) bool {
	switch t {
	case TypeString, TypeInteger, TypeNumber, TypeBoolean, TypeTime:
		return true
	}
	return false
}
