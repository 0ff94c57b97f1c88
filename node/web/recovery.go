package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// An instance that is interrupted is recovered in two steps. The first form says what is meant, and the node says
// what that would lead to; nothing is changed. The second, below that, orders it.

// The methods of recovery, as the node names them.
const (
	methodCompensate = "compensate"
	methodOffer      = "offer"
	methodRestart    = "restart"
	methodBack       = "jump-back"
	methodForward    = "jump-forward"
)

// mostStatesListed is up to how many states one is chosen from a list; of more its number is typed.
const mostStatesListed = 100

// repair is the page on which an instance is recovered.
type repair struct {
	Instance    *api.Instance
	Why         *problem
	Note        *note
	Deciding    *api.Deciding // nil: nobody says so now
	Deciders    string        // who decides about it, in words
	Acts        bool          // the browser may change something
	Methods     []method      // that are offered
	Steps       []step
	More        int
	Form, Token string
}

// May reports whether a step may be ordered from here.
func (x repair) May() bool { return x.Acts && x.Deciding != nil && x.Deciding.May }

// method is a way out of an interruption, with the form that asks for it.
type method struct {
	Name     string
	Instance string
	Keep     string // by which the browser keeps what is typed
	Open     bool
	Came     bool // what was typed is here
	// Of compensate: when it is to stop.
	Count, When string
	Until       string
	States      []choice // empty: the number is typed
	// Controls are those of the data that a jump sets.
	Controls []control
}

// Jump reports whether it sets data.
func (m method) Jump() bool { return jumps(m.Name) }

func jumps(name string) bool { return name == methodBack || name == methodForward }

// decides says whether the session's user decides about an instance; nil: that is not known here.
func (p *Page) decides(ctx context.Context, in *api.Instance, s httpapi.Session) *api.Deciding {
	if s.User == "" || in.Told != nil && in.Told.Summary {
		return nil
	}
	d, err := p.node.Deciding(ctx, api.DecidingQuery{User: s.User, ID: in.ID})
	if err != nil {
		return nil // then it is not offered; who decides is said all the same
	}
	return d
}

// repair answers: why does an instance not go on, what may be done about it, and what would that lead to?
func (p *Page) repair(ctx context.Context, r *http.Request) (view, error) {
	return p.repairWith(nil)(ctx, r)
}

// repairWith is that page, with the reason why a form was not carried out: of one that orders a step, with what that
// would lead to now.
func (p *Page) repairWith(why error) screen {
	return func(ctx context.Context, r *http.Request) (view, error) {
		in, err := p.node.Show(ctx, r.PathValue("id"))
		if err != nil {
			return view{}, err
		}
		if why != nil && r.PostForm.Has("step") && in.Recovery != nil {
			if x, err := stepFrom(r.PostForm); err == nil {
				if out, err := p.node.ForeseeRecovery(ctx, session(ctx).User, in.ID, x); err == nil {
					return p.outlook(ctx, in, x, out, p.problem(r, why)), nil
				}
			}
		}
		return p.menu(ctx, r, in, why)
	}
}

// menu is the page with what the rules allow.
func (p *Page) menu(ctx context.Context, r *http.Request, in *api.Instance, why error) (view, error) {
	s := session(ctx)
	x := repair{
		Instance: in, Why: p.problem(r, why), Note: p.notes.find(r), Deciding: p.decides(ctx, in, s), Acts: s.Acts,
		Form: rand.Text(), Token: s.FormToken,
	}
	x.Deciders = languageOf(ctx).deciders(in, x.Deciding, s)
	history, err := p.dataStates(ctx, in)
	if err != nil {
		return view{}, err
	}
	x.Steps, x.More = newest(in, history)
	if in.Recovery != nil && x.May() {
		for _, name := range in.Recovery.Methods {
			if m, known := p.method(ctx, r, in, history, name, why); known {
				x.Methods = append(x.Methods, m)
				x.Why.name(m.Controls)
			}
		}
	}
	return view{
		template: "repair", title: "repair.title", live: true, instance: in.ID, status: x.Why.status(), data: x,
	}, nil
}

// method is the form of a method, with what was typed. One that this page does not know is not offered.
func (p *Page) method(
	ctx context.Context, r *http.Request, in *api.Instance, history []api.DataState, name string, why error,
) (method, bool) {
	typed := url.Values{}
	came := r.PostForm.Get("method") == name
	if came {
		typed = r.PostForm
	}
	m := method{
		Name: name, Instance: in.ID, Keep: "repair-" + in.ID + "-" + strconv.Itoa(in.Recovery.State) + "-" + name,
		Came: came,
		Open: came || len(in.Recovery.Methods) == 1, Count: "1", When: typed.Get("when"), Until: typed.Get("until"),
	}
	switch {
	case name == methodOffer, name == methodRestart:
	case name == methodCompensate:
		if came {
			m.Count = typed.Get("steps")
		}
		m.States = before(in, history, in.Recovery.State, m.Until)
	case jumps(name):
		var bad invalid
		errors.As(why, &bad)
		for _, f := range p.settable(ctx, in) {
			c := languageOf(ctx).control(f, typed)
			c.ID, c.Error = name+"-"+c.ID, ""
			c.orNull(languageOf(ctx))
			if came {
				c.Error = bad[f.Name]
			}
			m.Controls = append(m.Controls, c)
		}
	default:
		return m, false
	}
	return m, true
}

// before are the states to which compensation can go back, the newest first; none: there are too many to choose from.
func before(in *api.Instance, history []api.DataState, current int, chosen string) (out []choice) {
	for _, s := range history {
		if s.State == nil || *s.State >= current {
			continue
		}
		c := choice{Value: strconv.Itoa(*s.State), Name: stateNumber(s.State)}
		if s.Transition != nil {
			c.Name += " · " + in.CalledTask(*s.Transition)
		}
		c.Chosen = c.Value == chosen
		out = append(out, c)
	}
	if len(out) > mostStatesListed {
		return nil
	}
	slices.Reverse(out)
	return out
}

// settable are the data that a jump may set, but for files, with the values that they have.
func (p *Page) settable(ctx context.Context, in *api.Instance) (out []api.Field) {
	known := map[string]api.Declared{}
	for _, d := range p.declared(ctx, in) {
		known[string(d.Name)] = d
	}
	for _, n := range slices.Sorted(maps.Keys(in.Data)) {
		f := api.Field{Name: n, Type: string(workflow.TypeString), Label: in.DataLabels[n], Value: in.Data[n]}
		if d, ok := known[n]; ok {
			f.Type, f.Doc, f.Enum, f.Min, f.Max = string(d.Type), d.Doc, d.Enum, d.Min, d.Max
		}
		if f.Type == string(workflow.TypeFile) || isFile(f.Value) {
			continue // a jump brings no content
		}
		out = append(out, f)
	}
	return out
}

// declared are the data of an instance, as it declares them by now. A node of before does not say that: then they are as
// its workflow did when it was started.
func (p *Page) declared(ctx context.Context, in *api.Instance) (out []api.Declared) {
	if in.Recovery != nil && len(in.Recovery.Data) > 0 {
		return in.Recovery.Data
	}
	if def := p.definitionOf(ctx, in); def != nil {
		for _, d := range def.Data {
			out = append(out, api.Declared{Name: d.Name, Type: d.Type, Doc: d.Doc, Enum: d.Enum, Min: d.Min, Max: d.Max})
		}
	}
	return out
}

// orNull lets a control that offers values also say that there is none: what a jump empties is null.
func (c *control) orNull(l *language) {
	if c.Kind != "yesno" && c.Kind != "choice" {
		return
	}
	c.Choices = slices.DeleteFunc(c.Choices, func(x choice) bool { return x.Value == "" }) // it would say the same
	chosen := slices.ContainsFunc(c.Choices, func(x choice) bool { return x.Chosen })
	for i := range c.Choices {
		c.Choices[i].ID = c.ID + "-" + strconv.Itoa(i)
	}
	c.Choices = append(c.Choices, choice{ID: c.ID + "-none", Name: l.say("value.none"), Chosen: !chosen})
}

// stepTyped is the step that a form asks for; the error says what is wrong with what was typed.
func (p *Page) stepTyped(ctx context.Context, in *api.Instance, form url.Values) (x api.RecoveryStep, err error) {
	x.Method = form.Get("method")
	switch {
	case x.Method == methodCompensate:
		if text := strings.TrimSpace(form.Get("steps")); text != "" {
			if x.Steps, err = strconv.Atoi(text); err != nil || x.Steps < 1 {
				return x, &trouble{key: "wrong.steps"}
			}
		}
		if text := strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(form.Get("until"))), "S"); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return x, &trouble{key: "wrong.until"}
			}
			x.Until = &n
		}
		x.When = strings.TrimSpace(form.Get("when"))
	case jumps(x.Method):
		x.Set, err = p.setTyped(ctx, in, form)
	case x.Method != methodOffer && x.Method != methodRestart:
		err = &trouble{key: "wrong.method"}
	}
	return x, err
}

// setTyped are the data that have another value than now; emptied they are null.
func (p *Page) setTyped(ctx context.Context, in *api.Instance, form url.Values) (map[workflow.DataName]*string, error) {
	lang := languageOf(ctx)
	fields := p.settable(ctx, in)
	values, wrong := lang.typed(fields, form, false)
	set := map[workflow.DataName]*string{}
	for _, f := range fields {
		typed, came := form[dataPrefix+f.Name]
		if !came || sameText(typed[0], lang.written(f)) {
			delete(wrong, f.Name) // as it is
			continue
		}
		set[workflow.DataName(f.Name)] = nil
		if v, is := values[f.Name]; is {
			set[workflow.DataName(f.Name)] = &v
		}
	}
	switch {
	case len(wrong) > 0:
		return nil, invalid(wrong)
	case len(set) == 0:
		return nil, &trouble{key: "wrong.jump"}
	}
	return set, nil
}

// sameText reports whether what was typed is what stood there.
func sameText(typed, stood string) bool {
	plainly := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
	return plainly(typed) == plainly(stood)
}

// foreseen is the page that says what a step would lead to, with the form that orders it.
type foreseen struct {
	Instance    *api.Instance
	Why         *problem
	May         bool
	User        string // in whose name it is ordered
	Responsible string
	Step        api.RecoveryStep
	Outlook     *api.Outlook
	Differ      []change
	Same        []string
	Text, Seen  string // the step, and what was shown of it
	Form, Token string
}

// New reports whether another state comes of it.
func (f foreseen) New() bool { return f.Outlook.State != f.Outlook.From }

// Fires are the transitions that it would fire, as people call them.
func (f foreseen) Fires() (out []string) {
	for _, t := range f.Outlook.Fires {
		out = append(out, f.Instance.CalledTask(t))
	}
	return out
}

// Like is the state of the history that it is like; empty: none.
func (f foreseen) Like() string { return stateNumber(f.Outlook.Like) }

// foresee answers: what would that lead to? It changes nothing.
func (p *Page) foresee(ctx context.Context, r *http.Request) (view, error) {
	in, err := p.node.Show(ctx, r.PathValue("id"))
	if err != nil {
		return view{}, err
	}
	if in.Recovery == nil {
		return p.menu(ctx, r, in, &trouble{key: "form.gone"})
	}
	x, err := p.stepTyped(ctx, in, r.PostForm)
	if err != nil {
		return p.menu(ctx, r, in, err)
	}
	out, err := p.node.ForeseeRecovery(ctx, session(ctx).User, in.ID, x)
	if err != nil {
		return p.menu(ctx, r, in, err)
	}
	return p.outlook(ctx, in, x, out, nil), nil
}

// outlook shows what a step would lead to. It does not change by itself: who reads it decides by what stands there.
func (p *Page) outlook(ctx context.Context, in *api.Instance, x api.RecoveryStep, out *api.Outlook, why *problem) view {
	s := session(ctx)
	d := p.decides(ctx, in, s)
	f := foreseen{
		Instance: in, Why: why, May: s.Acts && d != nil && d.May, User: s.Name, Responsible: string(in.Responsible),
		Step: x, Outlook: out,
		Text: string(encoded(x)), Seen: seen(x, out), Form: rand.Text(), Token: s.FormToken,
	}
	f.Differ, f.Same = compared(in, in.Data, out.Attributes, out.Changed)
	return view{template: "foreseen", title: "foreseen.title", status: why.status(), data: f}
}

// seen names what somebody was shown, so that nothing else is ordered.
func seen(x api.RecoveryStep, out *api.Outlook) string {
	sum := sha256.Sum256(append(encoded(x), encoded(out)...))
	return hex.EncodeToString(sum[:8])
}

func encoded(v any) []byte {
	b, _ := json.Marshal(v) // it was read from JSON, or has nothing else in it
	return b
}

// stepFrom reads the step that a form orders.
func stepFrom(form url.Values) (x api.RecoveryStep, err error) {
	in := json.NewDecoder(strings.NewReader(form.Get("step")))
	in.DisallowUnknownFields()
	if in.Decode(&x) != nil {
		return x, &trouble{key: "wrong.step"}
	}
	return x, nil
}

// recover orders the step that was shown, unless it would lead to something else by now.
func (p *Page) recover(ctx context.Context, r *http.Request, s httpapi.Session) (*outcome, error) {
	x, err := stepFrom(r.PostForm)
	if err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	out, err := p.node.ForeseeRecovery(ctx, s.User, id, x)
	switch {
	case err != nil:
		return nil, err
	case seen(x, out) != r.PostForm.Get("seen"):
		return nil, &trouble{key: "form.changed"}
	}
	x.From, x.Interruption = &out.From, out.Interruption // it may change still
	done, err := p.node.OrderTask(ctx, api.TaskOrder{User: s.User, ID: id, Order: api.TaskRecover, Recover: &x})
	if err != nil {
		return nil, err
	}
	to := "/instances/" + url.PathEscape(done.ID)
	if out.Then == api.ThenInterrupted { // there is more to do
		to += "/recover"
	}
	return &outcome{to: to, note: note{Key: "note.recover", Args: []any{done.At}}}, nil
}
