package web

import (
	"cmp"
	"context"
	"html"
	"net/url"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// A form that is not carried out is shown once more with what was typed. Its page may have no such form any more, as
// somebody else has the item, the node went out of reach, or a role is gone: then what was typed stands below the
// reason, so that it can be copied.

// refusal is what a request knows of the form that came with it and was not carried out.
type refusal struct {
	why    *problem
	fields []api.Field // those that the form had, as far as that is known
}

type refusalKey struct{}

// refusalOf is that of a request.
func refusalOf(ctx context.Context) *refusal {
	if x, ok := ctx.Value(refusalKey{}).(*refusal); ok {
		return x
	}
	return &refusal{}
}

// typedTexts are the names of the controls, but those of data, in which people type.
var typedTexts = []string{"reason", "why", "count", "till", "until", "steps", "responsible", "hours"}

// unshown is what was typed in a form and is not in a page, each in a line: it has no control of that name, or one that
// does not have the text.
func (x *refusal) unshown(lang *language, form url.Values, page string) (out []string) {
	page = html.UnescapeString(page)
	var names []string
	for name := range form {
		if strings.HasPrefix(name, dataPrefix) || slices.Contains(typedTexts, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, text := range form[name] {
			text = asTyped(text)
			if strings.TrimSpace(text) == "" || strings.Contains(page, `name="`+name+`"`) &&
				strings.Contains(page, html.UnescapeString(string(exact(text)))) {
				continue
			}
			out = append(out, x.line(lang, name, text))
		}
	}
	return out
}

// line is what was typed in a control, with what people call that. What is no data needs no name.
func (x *refusal) line(lang *language, name, text string) string {
	data, ok := strings.CutPrefix(name, dataPrefix)
	if !ok {
		return text
	}
	text = lang.calledFile(text)
	i := slices.IndexFunc(x.fields, func(f api.Field) bool { return f.Name == data })
	if i < 0 {
		return data + ": " + text
	}
	c := lang.control(x.fields[i], nil)
	for _, o := range c.Choices {
		if o.Value == text {
			text = cmp.Or(o.Name, text)
		}
	}
	return c.Label + ": " + text
}
