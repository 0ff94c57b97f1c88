package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mutirao-mesh/mutirao/internal/once"
	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// dataPrefix begins the names of the controls that set data: no data item is called like a button then.
const dataPrefix = "data."

// filePrefix begins the names of the controls that bring a file for data along.
const filePrefix = "file."

// withoutPrefix begins the names of the boxes by which a file that came before is taken away again; the value is the
// file.
const withoutPrefix = "without."

// lostPrefix begins the names of the fields that say why a file was not taken that the page's script sent.
const lostPrefix = "lost."

// control is a field of a form as people see it.
type control struct {
	ID, Name string
	Label    string
	Hint     string // what the definition says of it
	Kind     string // text, number, choice, list, yesno, moment, lines, pairs, file
	File     string // the name of the control that brings a file along
	Has      string // which file there is, in words: what came with this form, or is set now
	Without  string // the name of the box that takes it away again; empty: it is required
	Mode     string // the keyboard of a phone
	Required bool
	Text     string   // what is typed, or was
	Choices  []choice // of choice, list and yesno
	Range    string   // of a number, in words
	Error    string   // what is wrong with what was typed
}

// Described are the IDs of what is said about a control beside its label: what is wrong first.
func (c control) Described() string {
	var ids []string
	for _, x := range []struct {
		end string
		is  bool
	}{
		{"-error", c.Error != ""}, {"-has", c.Has != ""}, {"-hint", c.Hint != ""}, {"-range", c.Range != ""},
		{"-form", c.Kind == "lines" || c.Kind == "pairs"},
	} {
		if x.is {
			ids = append(ids, c.ID+x.end)
		}
	}
	return strings.Join(ids, " ")
}

// choice is one of the values that a control offers.
type choice struct {
	ID, Value, Name string
	Chosen          bool
}

// mostRadios is how many values are offered side by side; more of them are a list.
const mostRadios = 6

// control makes a field's control, with what was typed or else with its value.
func (l *language) control(f api.Field, typed url.Values) control {
	c := control{
		ID: "f-" + f.Name, Name: dataPrefix + f.Name, Label: f.Called(), Hint: f.Doc, Kind: "text", Required: f.Required,
	}
	if c.Label == f.Doc {
		c.Hint = ""
	}
	was, given := typed[c.Name]
	if given {
		c.Text = asTyped(was[0])
	} else {
		c.Text = l.written(f)
	}
	switch workflow.DataType(f.Type) {
	case workflow.TypeFile:
		l.fileControl(&c, f, was)
	case unknown:
		if _, err := workflow.ParseFile(c.Text); err == nil {
			l.fileControl(&c, f, was)
		}
	case workflow.TypeInteger:
		c.Kind, c.Mode = "number", "numeric"
	case workflow.TypeNumber:
		c.Kind, c.Mode = "number", "decimal"
	case workflow.TypeBoolean:
		c.Kind = "yesno"
		c.Choices = []choice{{Value: "true", Name: l.say("yes")}, {Value: "false", Name: l.say("no")}}
	case workflow.TypeTime:
		c.Kind = "moment"
	case workflow.TypeList:
		c.Kind = "lines"
	case workflow.TypeMap:
		c.Kind = "pairs"
	}
	if f.Min != nil && *f.Min < 0 || f.Min == nil {
		c.Mode = "" // a phone's keyboard of digits may have no minus
	}
	if c.Kind == "number" {
		c.Range = l.interval(f)
	}
	if len(f.Enum) > 0 {
		c.Kind = "choice"
		if len(f.Enum) > mostRadios {
			c.Kind = "list"
		}
		c.Choices = nil
		for _, v := range f.Enum {
			c.Choices = append(c.Choices, choice{Value: l.plainly(v), Name: l.plainly(v)})
		}
	}
	none := func(o choice) bool { return o.Value == "" }
	if (c.Kind == "choice" || c.Kind == "yesno") && !f.Required && f.Value == nil && !slices.ContainsFunc(c.Choices, none) {
		c.Choices = append(c.Choices, choice{Name: l.say("choice.none")}) // a browser does not take a choice back by itself
	}
	for i := range c.Choices {
		c.Choices[i].ID = c.ID + "-" + strconv.Itoa(i)
		c.Choices[i].Chosen = c.Choices[i].Value == c.Text
	}
	return c
}

// fileControl has a control bring a file along. One that came before with the form is named by a hidden text.
func (l *language) fileControl(c *control, f api.Field, came []string) {
	c.Kind, c.File, c.Text = "file", filePrefix+f.Name, ""
	if !f.Required {
		c.Without = withoutPrefix + f.Name
	}
	now, _ := f.Value.(string)
	if len(came) > 0 && came[0] != "" {
		c.Text, now = came[0], came[0]
	}
	if file, err := workflow.ParseFile(now); err == nil {
		c.Has = file.Name + " (" + l.size(file.Size) + ")"
	}
}

// withFiles takes over which files came with a form, and says which were not taken, by the names of the data.
func (l *language) withFiles(form url.Values, came map[string]httpapi.Upload) invalid {
	wrong := invalid{}
	for field, up := range came {
		name, ok := strings.CutPrefix(field, filePrefix)
		var no *api.Error
		switch {
		case !ok:
		case errors.As(up.Err, &no):
			wrong[name] = l.reason(no.Message)
		case up.Err != nil:
			wrong[name] = l.say("error.internal")
		default:
			form.Set(dataPrefix+name, up.File.Value)
		}
	}
	for field, file := range form { // one that was chosen beside that is another
		if name, ok := strings.CutPrefix(field, withoutPrefix); ok && form.Get(dataPrefix+name) == file[0] {
			form.Del(dataPrefix + name)
		}
	}
	for field, why := range form { // what the page's script could not send
		if name, ok := strings.CutPrefix(field, lostPrefix); ok && len(why[0]) < workflow.MaxValue {
			wrong[name] = l.reason(why[0])
		}
	}
	return wrong
}

// hasFiles reports whether a form has a control that brings a file along.
func hasFiles(lists ...[]control) bool {
	for _, list := range lists {
		if slices.ContainsFunc(list, func(c control) bool { return c.Kind == "file" }) {
			return true
		}
	}
	return false
}

// interval says which numbers a field takes; empty: any.
func (l *language) interval(f api.Field) string {
	switch {
	case f.Min != nil && f.Max != nil:
		return l.say("field.between", l.plainly(*f.Min), l.plainly(*f.Max))
	case f.Min != nil:
		return l.say("field.least", l.plainly(*f.Min))
	case f.Max != nil:
		return l.say("field.most", l.plainly(*f.Max))
	}
	return ""
}

// lowerFirst is a text as it stands in the middle of another.
func lowerFirst(text string) string {
	r, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToLower(r)) + text[n:]
}

// plainly is a value as people type it.
func (l *language) plainly(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strings.Replace(strconv.FormatFloat(v, 'f', -1, 64), ".", l.comma, 1)
	case bool:
		return strconv.FormatBool(v)
	}
	return value(v)
}

// localTime is how a browser writes a moment without a zone, the least exact last.
var localTimes = []string{"2006-01-02T15:04:05", "2006-01-02T15:04"}

// written is a field's value as its control holds it.
func (l *language) written(f api.Field) string {
	switch v := f.Value.(type) {
	case string:
		if t, err := time.Parse(time.RFC3339, v); err == nil && f.Type == string(workflow.TypeTime) {
			return t.Local().Format(localTimes[0])
		}
		return v
	case []any:
		var lines []string
		for _, one := range v {
			lines = append(lines, l.plainly(one))
		}
		return l.orJSON(f, v, lines)
	case map[string]any:
		var lines []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			lines = append(lines, k+" = "+l.plainly(v[k]))
		}
		return l.orJSON(f, v, lines)
	}
	return l.plainly(f.Value)
}

// orJSON is a list or map in lines where reading these gives the same again, else as JSON.
func (l *language) orJSON(f api.Field, v any, lines []string) string {
	text := strings.Join(lines, "\n")
	if back, key := l.read(f, text); key == "" && back == value(v) {
		return text
	}
	return value(v)
}

// typed are the values of a form that came, as the node reads them, and what is wrong with them, by name.
func (l *language) typed(fields []api.Field, form url.Values, starting bool) (values, wrong map[string]string) {
	values, wrong = map[string]string{}, map[string]string{}
	for _, f := range fields {
		if len(form[dataPrefix+f.Name]) > 1 { // no page of ours sends that
			wrong[f.Name] = l.say("wrong.many")
			continue
		}
		text := asTyped(form.Get(dataPrefix + f.Name))
		if f.Type != string(workflow.TypeString) && f.Type != unknown {
			text = strings.TrimSpace(text)
		}
		if was := l.written(f); unkept(was) >= 0 && text == withMarks(was) {
			continue // it came back as it was shown
		}
		if strings.TrimSpace(text) == "" {
			if starting && f.Required {
				wrong[f.Name] = l.say("wrong.missing")
			}
			continue // it stays as it is
		}
		v, why := l.read(f, text)
		if r := unkept(text); r >= 0 {
			why = l.say("wrong.unkept", fmt.Sprintf("U+%04X", r))
		}
		if why == "" {
			why = l.fits(f, v)
		}
		if why != "" {
			wrong[f.Name] = why
			continue
		}
		values[f.Name] = v
	}
	return values, wrong
}

// asTyped is a text of a form with the line breaks that were typed: browsers send others.
func asTyped(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// unkept is the first character of a text that no page can bring back: a browser reads its reference as another one.
// -1: there is none.
func unkept(text string) rune {
	for _, r := range text {
		if r == 0 || r >= 0x80 && r <= 0x9f {
			return r
		}
	}
	return -1
}

// withMarks is a text as a form shows it: in place of each character that no page can bring back stands one that is seen.
func withMarks(text string) string {
	return strings.Map(func(r rune) rune {
		if unkept(string(r)) >= 0 {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// exact is a text that a form brings back, or that somebody may copy: as a browser reads it, it is the same again, but
// for what a form is refused for (unkept), which is seen. What cannot be seen is a reference there, which plain.Text
// leaves as it is. In a control it steers nothing but what is in it.
func exact(text string) template.HTML {
	var b strings.Builder
	for _, r := range withMarks(text) {
		if s := string(r); plain.IsPlain(s) {
			b.WriteString(template.HTMLEscapeString(s))
		} else {
			fmt.Fprintf(&b, "&#%d;", r)
		}
	}
	return template.HTML(b.String()) //nolint:gosec // it was escaped
}

// read is what was typed in the spelling of the interface, or what is wrong with it.
func (l *language) read(f api.Field, text string) (v, wrong string) {
	switch workflow.DataType(f.Type) {
	case workflow.TypeInteger:
		switch _, err := strconv.ParseInt(text, 10, 64); {
		case errors.Is(err, strconv.ErrRange):
			return "", l.say("wrong.large", brief(text))
		case err != nil:
			return "", l.say("wrong.integer", brief(text))
		}
	case workflow.TypeNumber:
		return l.typedNumber(text)
	case workflow.TypeBoolean:
		if text != "true" && text != "false" {
			return "", l.say("wrong.yesno")
		}
	case workflow.TypeTime:
		for _, layout := range localTimes {
			if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
				return t.UTC().Format(time.RFC3339), ""
			}
		}
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			return "", l.say("wrong.time")
		}
	case workflow.TypeFile:
		if _, err := workflow.ParseFile(text); err != nil {
			return "", l.say("wrong.file")
		}
	case workflow.TypeList:
		return l.readLines(text, "[")
	case workflow.TypeMap:
		return l.readLines(text, "{")
	}
	return text, ""
}

// typedNumber is a number in the spelling of the interface, which has no zeros at its beginning.
func (l *language) typedNumber(text string) (n, wrong string) {
	plainly := bare.ReplaceAllString(zeros.ReplaceAllString(text, "${1}${2}"), "${1}0${2}")
	if wrong := l.ambiguous(plainly); wrong != "" {
		return "", wrong
	}
	n, ok := l.decimal(plainly)
	if !ok {
		return "", l.say("wrong.number", brief(text))
	}
	if _, err := strconv.ParseFloat(n, 64); err != nil {
		return "", l.say("wrong.large", brief(text))
	}
	return n, ""
}

// readLines reads a list, or a map, that has an entry on each line, or is JSON.
func (l *language) readLines(text, opens string) (v, wrong string) {
	if strings.HasPrefix(text, opens) {
		var any any
		if err := json.Unmarshal([]byte(text), &any); err != nil {
			return "", l.say("wrong.json")
		}
		var twice *once.Twice
		if errors.As(once.Check([]byte(text)), &twice) {
			return "", l.say("wrong.twice", brief(twice.Key))
		}
		return text, ""
	}
	list, pairs := []any{}, map[string]any{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if opens == "[" {
			if wrong := l.ambiguous(line); wrong != "" {
				return "", wrong
			}
			list = append(list, l.entry(line))
			continue
		}
		k, of, ok := strings.Cut(line, "=")
		k = strings.TrimSpace(k)
		switch _, twice := pairs[k]; {
		case !ok:
			return "", l.say("wrong.nopair", brief(line))
		case k == "":
			return "", l.say("wrong.pair", brief(line))
		case twice:
			return "", l.say("wrong.twice", brief(k))
		}
		if wrong := l.ambiguous(strings.TrimSpace(of)); wrong != "" {
			return "", wrong
		}
		pairs[k] = l.entry(strings.TrimSpace(of))
	}
	if opens == "[" {
		return value(list), ""
	}
	return value(pairs), ""
}

// entry is an entry of a list: a number where it looks like one, else a text.
func (l *language) entry(text string) any {
	if n, ok := l.decimal(text); ok {
		return json.Number(n)
	}
	return text
}

var (
	grouped = regexp.MustCompile(`^[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+(,[0-9]+)?$`)
	oneOf   = regexp.MustCompile(`^[+-]?[1-9][0-9]{0,2}\.[0-9]{3}$`)
	zeros   = regexp.MustCompile(`^([+-]?)0+([0-9])`)   // 05
	bare    = regexp.MustCompile(`^([+-]?)([.,][0-9])`) // .5
)

// ambiguous says what is wrong with a number that may be read in two ways: by the language, whose thousands are parted by
// points, and by programs. Empty: nothing.
func (l *language) ambiguous(text string) string {
	if l.comma == "." || !oneOf.MatchString(text) {
		return ""
	}
	return l.say("wrong.thousands", text, strings.Replace(text, ".", "", 1), strings.Replace(text, ".", l.comma, 1))
}

// decimal reads a number as the language writes it, or as programs do.
func (l *language) decimal(text string) (n string, ok bool) {
	if l.comma != "." && grouped.MatchString(text) && !oneOf.MatchString(text) {
		text = strings.ReplaceAll(text, ".", "")
	}
	if l.comma != "." && strings.Count(text, l.comma) == 1 && !strings.Contains(text, ".") {
		text = strings.Replace(text, l.comma, ".", 1)
	}
	text = strings.TrimPrefix(text, "+")
	var parsed json.Number
	if strings.HasPrefix(text, `"`) || json.Unmarshal([]byte(text), &parsed) != nil || parsed == "" {
		return "", false
	}
	return parsed.String(), true
}

// fits says what is wrong with a value of the right type; empty: nothing.
func (l *language) fits(f api.Field, v string) string {
	if f.Type == unknown && len(v) <= workflow.MaxValue {
		return ""
	}
	if n, err := strconv.ParseFloat(v, 64); err == nil && (f.Min != nil && n < *f.Min || f.Max != nil && n > *f.Max) {
		return l.say("wrong.range", lowerFirst(l.interval(f)))
	}
	if len(f.Enum) > 0 && !slices.ContainsFunc(f.Enum, func(e any) bool { return l.sameValue(f, e, v) }) {
		return l.say("wrong.choice")
	}
	if len(v) > workflow.MaxValue {
		return l.say("wrong.long", workflow.MaxValue>>10)
	}
	decl := workflow.DataDecl{Name: workflow.DataName(f.Name), Type: workflow.DataType(f.Type)}
	if _, err := workflow.ReadGiven(&decl, v); err != nil {
		return l.reason(strings.TrimPrefix(err.Error(), f.Name+": ")) // its label stands beside it
	}
	return ""
}

// sameValue reports whether a value that a field offers is the one that was typed.
func (l *language) sameValue(f api.Field, offered any, v string) bool {
	typed, wrong := l.read(f, l.plainly(offered))
	return wrong == "" && typed == v
}

// brief is enough of what somebody typed to know it again.
func brief(text string) string {
	const enough = 40
	letters := []rune(strings.Join(strings.Fields(text), " "))
	if len(letters) > enough {
		return string(letters[:enough]) + "…"
	}
	return string(letters)
}
