package lxpdl

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/internal/native"
)

// Limits of what is read.
const (
	MaxSize = 1 << 20   // of a file, in bytes
	MaxTime = 1_000_000 // of a task, in time units
)

// Parse reads an LXPDL document. name is the file's name, for messages. The
// error is [workflow.Errors]: all
// mistakes at once, or the one at which the text ceases to be XML.
func Parse(name string, src []byte) (*Process, error) {
	if len(src) > MaxSize {
		return nil, workflow.Errors{{File: name, Line: 1, Col: 1,
			Message: fmt.Sprintf("the file has more than %d bytes, which are the most that is read", MaxSize),
			Hint:    "split the process"}}
	}
	p := &parser{name: name, problems: native.Problems{File: name}, process: &Process{Name: processName(name)}}
	if err := p.read(native.Unmarked(src)); err != nil {
		return nil, err
	}
	p.resolve()
	if err := p.problems.Err(); err != nil {
		return nil, err
	}
	return p.process, nil
}

// processName is the file's name without folder and extension; empty: it comes from stdin, and has none.
func processName(file string) string {
	if file == "-" {
		return ""
	}
	base := path.Base(strings.ReplaceAll(file, `\`, "/"))
	return strings.TrimSuffix(base, path.Ext(base))
}

// position is a place in the file.
type position struct{ line, column int }

// named is a name and where it was written.
type named struct {
	name string
	at   position
}

// parser turns elements into a process. Names are resolved when all are known.
type parser struct {
	name     string
	process  *Process
	problems native.Problems

	around      position   // where <tasks> was written
	tasks       []position // where process.Tasks were written
	starts      []named
	ends        []named
	transitions []transition
}

type transition struct{ source, destination named }

// parents says below which elements an element may stand.
var parents = map[string]string{
	"lxpdl":       "",
	"tasks":       "lxpdl",
	"task":        "tasks",
	"role":        "task",
	"start":       "tasks lxpdl",
	"end":         "tasks lxpdl",
	"transitions": "lxpdl",
	"transition":  "transitions",
}

// read goes through the elements. Those that nobody knows are reported and
// passed over.
func (p *parser) read(src []byte) error {
	d := xml.NewDecoder(bytes.NewReader(src))
	d.CharsetReader = native.CharsetReader
	var open []string // the elements around the present place
	for {
		line, column := d.InputPos()
		at := position{line, column}
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return p.notXML(d, err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if !p.allowed(e.Name.Local, open, at) {
				if err := d.Skip(); err != nil {
					return p.notXML(d, err)
				}
				continue
			}
			p.element(attributes{p, e, at})
			open = append(open, e.Name.Local)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if text := strings.TrimSpace(string(e)); text != "" {
				p.fail(at, "", "text %q does not belong here", shorten(text))
			}
		}
	}
	if len(p.tasks) == 0 && p.problems.Number() == 0 {
		p.fail(position{1, 1}, "an LXPDL file has <lxpdl><tasks><task name=…>", "no task is defined")
	}
	return nil
}

// notXML tells where the text ceases to be XML.
func (p *parser) notXML(d *xml.Decoder, err error) error {
	line, column := d.InputPos()
	message := err.Error()
	var syntax *xml.SyntaxError
	hint := ""
	if errors.As(err, &syntax) {
		message = syntax.Msg
		if strings.HasPrefix(message, "invalid character entity") {
			hint = "entities that a DTD declares are not expanded: write the text itself"
		}
	}
	return workflow.Errors{{File: p.name, Line: line, Col: column, Message: "not well-formed XML: " + message,
		Hint: hint}}
}

func (p *parser) allowed(element string, open []string, at position) bool {
	parent := ""
	if len(open) > 0 {
		parent = open[len(open)-1]
	}
	may, known := parents[element]
	switch {
	case !known:
		p.fail(at, "LXPDL has lxpdl, tasks, task, role, start, end, transitions, transition", "unknown element <%s>",
			shorten(element))
	case parent == "" && may == "":
		return true
	case parent != "" && strings.Contains(" "+may+" ", " "+parent+" "):
		return true
	case parent == "":
		p.fail(at, "wrap everything in <lxpdl>", "the document begins with <%s>", element)
	default:
		p.fail(at, "", "<%s> does not belong in <%s>", element, parent)
	}
	return false
}

// element takes in one element.
func (p *parser) element(a attributes) {
	switch a.element.Name.Local {
	case "tasks":
		if p.around == (position{}) {
			p.around = a.at
		}
	case "task":
		p.task(a)
	case "role":
		task := &p.process.Tasks[len(p.process.Tasks)-1]
		if role := a.required("name"); role != "" {
			task.Roles = append(task.Roles, role)
		}
	case "start":
		p.starts = append(p.starts, named{a.required("name"), a.at})
	case "end":
		p.ends = append(p.ends, named{a.required("name"), a.at})
	case "transition":
		p.transitions = append(p.transitions, transition{
			named{a.required("source"), a.at}, named{a.required("destination"), a.at},
		})
	}
}

func (p *parser) task(a attributes) {
	p.tasks = append(p.tasks, a.at)
	p.process.Tasks = append(p.process.Tasks, Task{
		Name:     a.required("name"),
		Time:     a.time(),
		Precond:  a.condition("precond"),
		Postcond: a.condition("poscond"),
	})
}

func (p *parser) fail(at position, hint, format string, args ...any) {
	p.problems.Fail(at.line, at.column, hint, format, args...)
}

// attributes are those of one element.
type attributes struct {
	parser  *parser
	element xml.StartElement
	at      position
}

func (a attributes) get(name string) (string, bool) {
	for _, attr := range a.element.Attr {
		if attr.Name.Local == name && attr.Name.Space == "" {
			return strings.TrimSpace(attr.Value), true
		}
	}
	return "", false
}

// required is an attribute that must be there and say something.
func (a attributes) required(name string) string {
	v, _ := a.get(name)
	if v == "" {
		a.parser.fail(a.at, "", "<%s> has no %s", a.element.Name.Local, name)
	}
	return v
}

// condition is a precond or poscond; NULL is nothing.
func (a attributes) condition(name string) string {
	v, _ := a.get(name)
	if v == "NULL" {
		return ""
	}
	return v
}

// time is the task's time; 0 when it is not stated.
func (a attributes) time() float64 {
	v, ok := a.get("time")
	if !ok || v == "" {
		return 0
	}
	t, err := strconv.ParseFloat(v, 64)
	if err != nil || !(t >= 0 && t <= MaxTime) {
		a.parser.fail(a.at, "write a number of time units, such as 10", "time %q is not a number between 0 and %d",
			shorten(v), MaxTime)
		return 0
	}
	return t
}

// shorten keeps messages readable whatever the file holds.
func shorten(s string) string { return plain.Cut(s, 40) }
