package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// problem is why a form was not carried out, as its page shows it once more.
type problem struct {
	Text, Hint string
	Controls   []control // those with something wrong
	Typed      []string  // what was typed and has no control on the page
	code       int
	bad        invalid
}

// problem says why a form was not carried out; nil: none came, or it was.
func (p *Page) problem(r *http.Request, why error) *problem {
	x := p.because(r, why)
	refusalOf(r.Context()).why = x
	return x
}

func (p *Page) because(r *http.Request, why error) *problem {
	lang := languageOf(r.Context())
	var own *trouble
	var bad invalid
	var no *api.Error
	switch {
	case why == nil:
		return nil
	case errors.As(why, &own):
		return &problem{Text: lang.say(own.key), code: http.StatusConflict}
	case errors.As(why, &bad):
		return &problem{Text: lang.say("wrong.title"), code: http.StatusBadRequest, bad: bad}
	case errors.As(why, &no):
		return &problem{Text: lang.reason(no.Message), Hint: lang.reason(no.Hint), code: no.Code.HTTP()}
	case !errors.Is(why, context.Canceled):
		p.log.Error("a form's request failed inside the node", "path", r.URL.Path, "error", why)
	}
	return &problem{
		Text: lang.say("error.internal"), Hint: lang.say("error.internal.hint"), code: http.StatusInternalServerError,
	}
}

// name lists the controls with something wrong, at the top of the page.
func (x *problem) name(controls []control) {
	if x == nil {
		return
	}
	for _, c := range controls {
		if c.Error != "" {
			x.Controls = append(x.Controls, c)
		}
	}
}

// status is that of the page; 0: all is well.
func (x *problem) status() int {
	if x == nil {
		return 0
	}
	return x.code
}
