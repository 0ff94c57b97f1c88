package wedxml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/internal/native"
)

// MaxSize bounds a file, in bytes.
const MaxSize = 1 << 20

// Parse reads a document. name is the file's name, for messages. The error is
// [workflow.Errors]: all mistakes at once, or the one at which the text ceases to be XML.
func Parse(name string, src []byte) (*Document, error) {
	if len(src) > MaxSize {
		return nil, workflow.Errors{{File: name, Line: 1, Col: 1,
			Message: fmt.Sprintf("the file has more than %d bytes, which are the most that is read", MaxSize), Hint: "split it"}}
	}
	p := &parser{name: name, src: native.Unmarked(src), problems: native.Problems{File: name}, document: &Document{}}
	p.whole = wholeNames(p.src)
	if err := p.read(); err != nil {
		return nil, err
	}
	p.resolve()
	if err := p.problems.Err(); err != nil {
		return nil, err
	}
	return p.document, nil
}

// parser turns elements into a document. Names are resolved when all are known.
type parser struct {
	name     string
	src      []byte
	document *Document
	problems native.Problems

	open []string // the elements around the present place, in small letters
	text *text    // of the element that is open, if it has one

	whole map[string]string // names that stand on one line somewhere, by their keys
}

func (p *parser) fail(at position, hint, format string, args ...any) {
	p.problems.Fail(at.line, at.column, hint, format, args...)
}

// parents says below which elements an element may stand.
var parents = map[string]string{
	"wed-flow-initial-schema": "",
	"wed-attributes":          "wed-flow-initial-schema",
	"attribute":               "wed-attributes",
	"wed-conditions":          "wed-flow-initial-schema",
	"condition":               "wed-conditions",
	"predicate":               "condition",
	"expression":              "condition",
	"wed-transitions":         "wed-flow-initial-schema",
	"transition":              "wed-transitions",
	"updatedattribute":        "transition compensation",
	"wed-compensations":       "wed-flow-initial-schema",
	"compensation":            "wed-compensations",
	"wed-flows":               "wed-flow-initial-schema",
	"flow":                    "wed-flows",
	"trigger":                 "flow",
	"awics":                   "wed-flow-initial-schema",
	"constraint":              "awics",
}

// read goes through the elements. Those that nobody knows are reported and passed over.
func (p *parser) read() error {
	d := xml.NewDecoder(bytes.NewReader(p.src))
	d.CharsetReader = native.CharsetReader
	for {
		line, column := d.InputPos()
		at, from := position{line, column}, d.InputOffset()
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return p.notXML(d, err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if !p.allowed(e.Name.Local, at) {
				if err := d.Skip(); err != nil {
					return p.notXML(d, err)
				}
				continue
			}
			p.element(attributes{p, e, at})
			p.open = append(p.open, strings.ToLower(e.Name.Local))
		case xml.EndElement:
			p.open, p.text = p.open[:len(p.open)-1], nil
		case xml.CharData:
			p.characters(string(e), at, from, d.InputOffset())
		}
	}
	if len(p.document.Flows) == 0 && p.problems.Number() == 0 {
		p.fail(position{1, 1}, "a file of WED-tool has <WED-flow-initial-schema><WED-flows><Flow Name=…>",
			"no flow is defined")
	}
	return nil
}

// characters takes in the text of an element, with the places of its characters as far
// as the file shows them as they are.
func (p *parser) characters(decoded string, at position, from, to int64) {
	if p.text == nil {
		if strings.TrimSpace(decoded) != "" {
			p.fail(at, "", "text %q does not belong here", shorten(decoded))
		}
		return
	}
	var places []position
	if to <= int64(len(p.src)) {
		places = placed(string(p.src[from:to]), at)
	}
	exact := len(places) == utf8.RuneCountInString(decoded)
	for i, r := range []rune(decoded) {
		c := char{r, at}
		if exact {
			c.at = places[i]
		}
		p.text.chars = append(p.text.chars, c)
	}
}

// placed are the places of the characters that a piece of the file stands for: an
// entity is one.
func placed(raw string, at position) (out []position) {
	raw = strings.TrimSuffix(raw, "]]>")
	if rest, is := strings.CutPrefix(raw, "<![CDATA["); is {
		raw = rest
		at.column += len("<![CDATA[")
	}
	raw = strings.ReplaceAll(raw, "\r\n", "\n")
	inEntity := false
	for _, r := range raw {
		if !inEntity {
			out = append(out, at)
		}
		inEntity = (inEntity || r == '&') && r != ';'
		if at.column++; r == '\n' {
			at = position{at.line + 1, 1}
		}
	}
	return out
}

// notXML tells where the text ceases to be XML.
func (p *parser) notXML(d *xml.Decoder, err error) error {
	line, column := d.InputPos()
	message, hint := err.Error(), ""
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		message = syntax.Msg
		if strings.HasPrefix(message, "invalid character entity") {
			hint = "entities that a DTD declares are not expanded: write the text itself"
		}
	}
	return workflow.Errors{{File: p.name, Line: line, Col: column, Message: "not well-formed XML: " + message,
		Hint: hint}}
}

func (p *parser) allowed(element string, at position) bool {
	parent := ""
	if len(p.open) > 0 {
		parent = p.open[len(p.open)-1]
	}
	may, known := parents[strings.ToLower(element)]
	switch {
	case !known:
		p.fail(at, "", "unknown element <%s>", shorten(element))
	case parent == "" && may == "":
		return true
	case parent != "" && strings.Contains(" "+may+" ", " "+parent+" "):
		return true
	case parent == "":
		p.fail(at, "wrap everything in <WED-flow-initial-schema>", "the document begins with <%s>", element)
	default:
		p.fail(at, "", "<%s> does not belong in <%s>", element, parent)
	}
	return false
}

// element takes in one element.
func (p *parser) element(a attributes) {
	d := p.document
	switch strings.ToLower(a.element.Name.Local) {
	case "attribute":
		d.Attributes = append(d.Attributes, Attribute{Name: a.required("Name"), Type: a.dataType(), at: a.at})
	case "condition":
		d.Conditions = append(d.Conditions, Condition{Name: a.required("Name"), at: a.at})
	case "predicate":
		c := &d.Conditions[len(d.Conditions)-1]
		c.predicates = append(c.predicates, text{id: a.required("Id"), at: a.at})
		p.text = &c.predicates[len(c.predicates)-1]
	case "expression":
		c := &d.Conditions[len(d.Conditions)-1]
		if c.expression != nil {
			p.fail(a.at, "", "the condition has two expressions")
		}
		c.expression = &text{at: a.at}
		p.text = c.expression
	case "transition":
		d.Transitions = append(d.Transitions, Transition{Name: a.required("Name"), at: a.at})
	case "compensation":
		d.Compensations = append(d.Compensations,
			Transition{Name: a.required("Name"), For: a.required("ForWedTransition"), at: a.at})
	case "updatedattribute":
		list := d.Transitions
		if p.open[len(p.open)-1] == "compensation" {
			list = d.Compensations
		}
		t := &list[len(list)-1]
		t.Updates = append(t.Updates, a.required("AttrName"))
	case "flow":
		final, _ := a.get("FinalStateCondName")
		d.Flows = append(d.Flows, Flow{Name: a.required("Name"), Final: final, at: a.at})
	case "trigger":
		f := &d.Flows[len(d.Flows)-1]
		f.Triggers = append(f.Triggers, Trigger{
			Condition: a.required("CondName"), Transition: a.required("TransName"), Period: a.period(), at: a.at,
		})
	case "constraint":
		strict, _ := a.get("Strict")
		d.Constraints = append(d.Constraints,
			Constraint{Condition: a.required("CondName"), Strict: strings.EqualFold(strict, "true"), at: a.at})
	}
}

// attributes are those of one element of XML.
type attributes struct {
	parser  *parser
	element xml.StartElement
	at      position
}

// get is an attribute's value, on one line.
func (a attributes) get(name string) (string, bool) {
	for _, attr := range a.element.Attr {
		if strings.EqualFold(attr.Name.Local, name) && attr.Name.Space == "" {
			return a.parser.oneLine(attr.Value), true
		}
	}
	return "", false
}

// oneLine is a value on one line: as it stands elsewhere in the file if it does, else with one space for each white
// space, and none where a line ends beside a sign that joins words.
func (p *parser) oneLine(value string) string {
	var b strings.Builder
	for part := range strings.Lines(value) {
		part = strings.Join(strings.Fields(part), " ")
		if before := b.String(); before != "" && part != "" &&
			!strings.ContainsRune(joiners, rune(before[len(before)-1])) && !strings.ContainsRune(joiners, rune(part[0])) {
			b.WriteByte(' ')
		}
		b.WriteString(part)
	}
	joined := b.String()
	if whole, is := p.whole[key(joined)]; is && strings.Contains(strings.TrimSpace(value), "\n") {
		return whole
	}
	return joined
}

// joiners are signs after which, or before which, a printed file ends a line in the midst of a name.
const joiners = "_-./"

// wholeNames are the names, and whatever else is an attribute, that stand on one line, by their keys; the first
// spelling of each.
func wholeNames(src []byte) map[string]string {
	out := map[string]string{}
	d := xml.NewDecoder(bytes.NewReader(src))
	d.CharsetReader = native.CharsetReader
	for {
		token, err := d.Token()
		if err != nil { // the end, or a mistake, which read reports
			return out
		}
		e, is := token.(xml.StartElement)
		if !is {
			continue
		}
		for _, a := range e.Attr {
			name := strings.TrimSpace(a.Value)
			if _, there := out[key(name)]; !there && !strings.Contains(name, "\n") {
				out[key(name)] = strings.Join(strings.Fields(name), " ")
			}
		}
	}
}

// required is an attribute that must be there and say something.
func (a attributes) required(name string) string {
	v, _ := a.get(name)
	if v == "" {
		a.parser.fail(a.at, "", "<%s> has no %s", a.element.Name.Local, name)
	}
	return v
}

// dataTypes are the native types of those that files name.
var dataTypes = map[string]workflow.DataType{
	"": workflow.TypeString, "string": workflow.TypeString, "text": workflow.TypeString, "varchar": workflow.TypeString,
	"char": workflow.TypeString,
	"int":  workflow.TypeInteger, "integer": workflow.TypeInteger, "long": workflow.TypeInteger,
	"short":    workflow.TypeInteger,
	"smallint": workflow.TypeInteger, "bigint": workflow.TypeInteger,
	"number": workflow.TypeNumber, "float": workflow.TypeNumber, "double": workflow.TypeNumber,
	"real":    workflow.TypeNumber,
	"decimal": workflow.TypeNumber, "numeric": workflow.TypeNumber,
	"boolean": workflow.TypeBoolean, "bool": workflow.TypeBoolean,
	"date": workflow.TypeTime, "time": workflow.TypeTime, "datetime": workflow.TypeTime, "timestamp": workflow.TypeTime,
}

func (a attributes) dataType() workflow.DataType {
	v, _ := a.get("Type")
	name, _, _ := strings.Cut(strings.ToLower(v), "(") // varchar(20)
	t, known := dataTypes[strings.TrimSpace(name)]
	if !known {
		a.parser.fail(a.at, "write string, integer, float, boolean or date", "the type %q is not known", shorten(v))
		return workflow.TypeString
	}
	return t
}

func (a attributes) period() time.Duration {
	v, _ := a.get("Period")
	if v == "" || v == "0" {
		return 0
	}
	d, good := native.Interval(v)
	switch {
	case !good:
		a.parser.fail(a.at, "write HH:MM:SS, for example 3d18h, or a number of seconds",
			"the Period %q is no time limit", shorten(v))
	case d <= 0 || d > workflow.MaxDuration:
		a.parser.fail(a.at, "leave it out for none", "the Period %q must be more than zero, and at most %s", shorten(v),
			workflow.FormatDuration(workflow.MaxDuration))
	}
	return d
}

// shorten keeps messages readable whatever the file holds.
func shorten(s string) string { return plain.Cut(plain.Line(s), 40) }
