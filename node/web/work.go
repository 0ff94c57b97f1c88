package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const (
	// onHome is how many items home shows, and how many instances of each kind; onWholeHome, of items where all were
	// asked for.
	onHome      = 20
	onWholeHome = 1000
	// listWait is how long home waits for partners to say what they hold; what they said before is shown then.
	listWait = 500 * time.Millisecond
)

// home is what one page shows of a user's work.
type home struct {
	Session     httpapi.Session
	Note        *note
	Why         *problem
	Mine        []item // what the user has, or has done and not handed in
	Free        []item // what the user may take
	FreeMore    int
	Along       []along // what can be locked together
	AlongMore   int
	Unanswered  []string
	Waiting     int // what waits to be handed in
	Lost        []lostItem
	Presumed    []lostItem // what they have still, and may not count
	LostMore    int
	Refused     []api.Undelivered
	Trouble     []string
	Needs       []needy
	NeedsMore   int
	Running     []api.InstanceSummary
	RunMore     int
	Form        string // the name of the forms of this page
	HereFirst   bool   // first what is on this device already, else what is urgent
	Whole       bool   // all items were asked for
	WorkTrouble *api.Error
}

// most is how many items of each kind are shown.
func (h home) most() int {
	if h.Whole {
		return onWholeHome
	}
	return onHome
}

// Reading is a form of its own, by which the user says that what was lost was read: that another was sent does not
// count for it.
func (h home) Reading() struct{ Form, Token string } {
	return struct{ Form, Token string }{rand.Text(), h.Session.FormToken}
}

// rest is how much of something is not shown, and where it is; empty: it would be too much for a page.
type rest struct {
	N   int
	URL string
}

// Rest is what is not shown of something; nil: nothing.
func (h home) Rest(n int) *rest {
	switch {
	case n == 0:
		return nil
	case h.Whole:
		return &rest{N: n}
	case h.HereFirst:
		return &rest{n, "/?all=yes&order=" + api.OrderHere}
	}
	return &rest{n, "/?all=yes"}
}

// item is an item with what may be done about it.
type item struct {
	api.Item
	Form, Token string
	Acts        bool
	Alone       bool // the node is out of reach on purpose, and another gives it out: nobody can be asked for anything
	NoLock      bool // the device locks nothing now
}

// Free reports whether the user may take it now.
func (i item) Free() bool {
	return i.Acts && !i.Alone && i.Away == nil && !i.Unreachable && i.TakenBy == "" && !i.Over && len(i.WaitsFor) == 0 &&
		(i.State == api.ItemReady || i.State == api.ItemNotReady)
}

// Lockable reports whether the user may lock it now: it is free, or the user has taken it.
func (i item) Lockable() bool {
	return i.Offline && !i.NoLock && (i.Free() || i.State == api.ItemSelected && i.Movable())
}

// Doable reports whether the user may hand in a result of it now: what it waits for was done, and out of reach, or
// while who gives it out is away, only what is locked can be done.
func (i item) Doable() bool {
	return i.Acts && len(i.Awaits) == 0 && (i.State == api.ItemLocked || i.State == api.ItemSelected && !i.Alone && i.Away == nil)
}

// Movable reports whether the user may give it back, or pass it on, now.
func (i item) Movable() bool {
	return i.Acts && i.Mine() && !i.Alone && i.Away == nil && !i.Unreachable
}

// able says of an item what the node can do about it just now.
func (i item) able(st *api.Status) item {
	i.Alone, i.NoLock = st.Disconnected != nil && i.Partner != st.Name, st.LocksNothing != ""
	return i
}

// PassedTo is to whom an item that its user had has passed by this device's clock, while its holder cannot be asked
// whether it did; empty: to nobody. Of what is done api.Item.HasPassed says so.
func (i item) PassedTo() string {
	if asked := !i.Alone && !i.Unreachable && i.Away == nil; asked || !i.Mine() {
		return ""
	}
	return i.PassedByClock()
}

// Mine reports whether the user has it.
func (i item) Mine() bool { return i.State == api.ItemSelected || i.State == api.ItemLocked }

// Title is what people call it: its task's label, or else the first sentence of what is to be done, or else the name.
func (i item) Title() string {
	if i.Label != "" {
		return i.Label
	}
	first, _, more := strings.Cut(i.Doc, ". ")
	if more && strings.ContainsAny(strings.TrimLeft(first, "0123456789"), " ") { // not "St. Mary", nor "1. Look"
		return first
	}
	return cmp.Or(strings.TrimSuffix(i.Doc, "."), i.Task)
}

// Names are what people call other tasks that an item names.
func (i item) Names(tasks []string) (out []string) {
	for _, t := range tasks {
		out = append(out, i.Called(t))
	}
	return out
}

// home answers: what must I do now, until when, and what needs a person?
func (p *Page) home(ctx context.Context, r *http.Request) (view, error) {
	return p.homeWith(nil)(ctx, r)
}

// homeWith is home, with the reason why a form was not carried out.
func (p *Page) homeWith(why error) screen {
	return func(ctx context.Context, r *http.Request) (view, error) {
		s := session(ctx)
		q := r.URL.Query()
		h := home{
			Session: s, Note: p.notes.find(r), Form: rand.Text(), HereFirst: q.Get("order") == api.OrderHere, Whole: q.Has("all"),
		}
		h.Why = p.problem(r, why)
		st, err := p.node.Status(ctx)
		if err != nil {
			return view{}, err
		}
		order := api.OrderPriority
		if h.HereFirst {
			order = api.OrderHere
		}
		list, err := p.worklist(ctx, s.User, order, s.Acts)
		var no *api.Error
		switch {
		case s.User == "":
		case errors.As(err, &no):
			h.WorkTrouble = no
		case err != nil:
			return view{}, err
		default:
			if h.Unanswered, err = p.node.WorklistUnanswered(ctx, s.User); err != nil {
				return view{}, err
			}
		}
		called := titles(list)
		for _, x := range list {
			i := item{Item: x, Form: h.Form, Token: s.FormToken, Acts: s.Acts}.able(st)
			i.Awaits = afterwards(x, called)
			if x.State == api.ItemNotReady {
				continue // it can be taken together with others only
			}
			if x.State != api.ItemReady {
				h.Mine = append(h.Mine, i)
			} else if len(h.Free) < h.most() {
				h.Free = append(h.Free, i)
			} else {
				h.FreeMore++
			}
		}
		if s.Acts && st.Disconnected == nil && st.LocksNothing == "" {
			h.Along, h.AlongMore = together(list, r.PostForm["item"], h.most(), s)
		}
		if err := p.addDone(ctx, &h); err != nil {
			return view{}, err
		}
		if err := p.addInstances(ctx, &h, st); err != nil {
			return view{}, err
		}
		return view{template: "home", title: "nav.work", live: true, status: h.Why.status(), data: h}, nil
	}
}

// ToDo is how many items are with the user that are not done.
func (h home) ToDo() (n int) {
	for _, i := range h.Mine {
		if i.State != api.ItemDone {
			n++
		}
	}
	return n
}

// lostItem is an item that the user had, and that others took from the user.
type lostItem struct {
	api.LostItem
	Boxed bool // what the user did of it is in the outbox
}

// Title is what people call the task.
func (x lostItem) Title() string { return cmp.Or(x.Label, x.Task) }

// addDone adds what the user did that nobody else has yet, or that was refused, and what the user has lost.
func (p *Page) addDone(ctx context.Context, h *home) error {
	outbox, err := p.node.Outbox(ctx, "")
	if err != nil {
		return err
	}
	for _, u := range outbox {
		if u.User != h.Session.Name || u.Alone {
			continue
		}
		if h.Waiting++; u.Refused != "" {
			h.Waiting--
			h.Refused = append(h.Refused, u)
		}
	}
	return p.addLost(ctx, h, outbox)
}

// addLost adds what the user has lost lately, with what is kept of it.
func (p *Page) addLost(ctx context.Context, h *home, outbox []api.Undelivered) error {
	if h.Session.User == "" || h.WorkTrouble != nil {
		return nil
	}
	list, err := p.node.WorklistLost(ctx, h.Session.User)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(slices.Clone(list), func(x api.LostItem) bool { return x.Read && !x.Presumed })
	for _, x := range list[:min(len(list), h.most())] {
		if x.Presumed {
			h.Presumed = append(h.Presumed, lostItem{LostItem: x})
			continue
		}
		lost := lostItem{LostItem: x}
		for _, u := range outbox {
			if u.User == h.Session.Name && u.Instance == x.Instance && u.Task == x.Task && u.Refused != "" {
				lost.Boxed, lost.Adoptable = true, lost.Adoptable || u.Result != ""
			}
		}
		h.Lost = append(h.Lost, lost)
	}
	h.LostMore = len(list) - len(h.Lost) - len(h.Presumed)
	return nil
}

// worklist are the items of a user: what the user has first, and by priority the most urgent first; ahead: with what is
// not ready and can be locked together with what it waits for.
func (p *Page) worklist(ctx context.Context, user, order string, ahead bool) ([]api.Item, error) {
	if user == "" {
		return nil, nil
	}
	soon, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	q := api.WorklistQuery{User: user, Order: order, Ahead: ahead}
	list, err := p.node.Worklist(soon, q)
	if err != nil && soon.Err() != nil && ctx.Err() == nil { // the node itself had no time
		list, err = p.node.Worklist(ctx, q)
	}
	if err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b api.Item) int {
		if order != api.OrderPriority || rank(a) != rank(b) {
			return rank(a) - rank(b)
		}
		return until(a).Compare(until(b))
	})
	return list, nil
}

// rank puts first what the user has, and last what the user has done.
func rank(x api.Item) int {
	switch x.State {
	case api.ItemSelected, api.ItemLocked:
		return 0
	case api.ItemDone:
		return 1
	}
	return 2
}

// until is when the time of an item is up: far away, where no clock runs.
func until(x api.Item) time.Time {
	if x.Due == nil {
		return time.Unix(1<<40, 0)
	}
	return x.Due.At
}

// addInstances adds what needs a person, and what is under way.
func (p *Page) addInstances(ctx context.Context, h *home, st *api.Status) error {
	h.Trouble = st.Trouble
	list, err := p.node.Instances(ctx, false)
	if err != nil {
		return err
	}
	var needs []*api.InstanceSummary
	for i, in := range list {
		switch {
		case needsPerson(in):
			needs = append(needs, &list[i])
		case len(h.Running) < onHome:
			h.Running = append(h.Running, in)
		default:
			h.RunMore++
		}
	}
	slices.SortStableFunc(needs, mostUrgent)
	for _, in := range needs[:min(len(needs), onHome)] {
		h.Needs = append(h.Needs, needy{InstanceSummary: *in})
	}
	h.NeedsMore = len(needs) - len(h.Needs)
	p.addOverdue(ctx, h.Needs, h.Session, st)
	return nil
}

// claim takes an item for the user, or gives it back.
func (p *Page) claim(claim string) action {
	return func(ctx context.Context, r *http.Request, s httpapi.Session) (*outcome, error) {
		id, why := r.PathValue("item"), ""
		if claim == api.ClaimRelease {
			why = strings.TrimSpace(asTyped(r.PostForm.Get("reason")))
		}
		list, err := p.node.ClaimItems(ctx, api.ClaimRequest{User: s.User, Claim: claim, Items: []string{id}, Reason: why})
		if err != nil {
			return nil, err
		}
		title := id
		if len(list) > 0 {
			title = item{Item: list[0]}.Title()
		}
		if claim == api.ClaimRelease {
			return &outcome{to: "/", note: note{Key: "note.released", Args: []any{title}}}, nil
		}
		key := "note.taken"
		if claim == api.ClaimLock {
			key = "note.locked"
		}
		if r.PostForm.Has("leaving") {
			return &outcome{to: "/contact", note: note{Key: key, Args: []any{title}}}, nil
		}
		return &outcome{to: "/items/" + url.PathEscape(id), note: note{Key: key, Args: []any{title}}}, nil
	}
}

// sheet is a page with all that is needed to do an item.
type sheet struct {
	Item     item
	Sheet    *api.ItemSheet
	Doc      string // what the definition says of the task beyond the title
	Controls []control
	Note     *note
	Why      *problem
	Reason   string               // why it cannot be done, as typed
	Failing  bool                 // that was about to be said
	Came     bool                 // what was typed for the result is here
	Pass     *pass                // by which it goes to somebody else; nil: it cannot
	Gone     bool                 // the item is not on the list any more
	Ended    *api.Task            // how its task ended, of an item that nobody can take any more; nil: that is not known here
	Signed   *api.PersonSignature // of what the user made of it, or whoever ended it; nil: that is not known here
}

// HasForm reports whether the form of its result is shown: where that can be handed in now, or came just now and could
// not be. What is in it, and which files the node keeps for it, goes along later: the node may be out of reach, or whoever
// gives the item out is away.
func (v sheet) HasForm() bool {
	return v.Item.Doable() || v.Why != nil && v.Came && v.Item.Acts && v.Item.Mine()
}

// item answers: what is to be done, with what, until when?
func (p *Page) item(ctx context.Context, r *http.Request) (view, error) {
	return p.itemWith(nil)(ctx, r)
}

// itemWith is the page of an item, with what was typed and the reason why that was not carried out.
func (p *Page) itemWith(why error) screen {
	return func(ctx context.Context, r *http.Request) (view, error) {
		s, lang := session(ctx), languageOf(ctx)
		v := sheet{
			Note: p.notes.find(r), Why: p.problem(r, why), Reason: asTyped(r.PostForm.Get("reason")),
			Failing: r.PostForm.Get("act") == "fail", Came: r.PostForm.Has("act"),
		}
		got, err := p.node.ItemSheet(ctx, api.ItemQuery{User: s.User, Item: r.PathValue("item")})
		var no *api.Error
		switch {
		case why != nil && errors.As(err, &no): // the item is gone: what was typed is not
			v.Gone, v.Sheet = true, &api.ItemSheet{}
			return view{template: "item", title: "item.gone", status: v.Why.status(), data: v}, nil
		case err != nil:
			return view{}, err
		}
		st, err := p.node.Status(ctx)
		if err != nil {
			return view{}, err
		}
		v.Sheet, v.Item = got, item{Item: got.Item, Form: rand.Text(), Token: s.FormToken, Acts: s.Acts}.able(st)
		v.Doc, v.Pass = beyond(got.Doc, v.Item.Title()), p.passing(ctx, r, v.Item)
		v.Signed = got.Item.Signed
		if v.Item.Over {
			v.Ended = p.ended(ctx, got.Item)
		}
		if v.Ended != nil {
			v.Signed = v.Ended.Signed
		}
		refusalOf(ctx).fields = got.Fields
		var bad invalid
		errors.As(why, &bad)
		for _, f := range fieldsOf(got, r.PostForm) {
			c := lang.control(f, r.PostForm)
			c.Error = bad[f.Name]
			v.Controls = append(v.Controls, c)
		}
		v.Why.name(v.Controls)
		return view{
			template: "item", title: "item.title", name: v.Item.Title(), live: true, instance: got.Item.Instance,
			status: v.Why.status(), data: v,
		}, nil
	}
}

// ended is the task of an item, if it has ended as far as this node knows; nil: it has not, or takes no part.
func (p *Page) ended(ctx context.Context, x api.Item) *api.Task {
	in, err := p.node.Show(ctx, x.Instance)
	if err != nil {
		return nil
	}
	for i := range in.Tasks {
		if t := &in.Tasks[i]; string(t.Name) == x.Task && t.Ended != nil {
			return t
		}
	}
	return nil
}

// beyond is what a text says after its first line, if that is the title; else all of it.
func beyond(doc, title string) string {
	doc = strings.TrimSpace(doc)
	rest, ok := strings.CutPrefix(doc, strings.TrimRight(title, ".… "))
	if rest = strings.TrimLeft(rest, ". "); ok &&
		(rest == "" || strings.HasPrefix(doc, title+". ") || rest[0] == '\n') {
		return strings.TrimSpace(rest)
	}
	return doc
}

// fieldsOf are what a result may set. Where that is not known any more since the holder cannot be asked, they are those
// that were typed, of no type that is known here (unknown): nothing is said of them but what the node says.
func fieldsOf(s *api.ItemSheet, form url.Values) []api.Field {
	if s.Whole {
		return s.Fields
	}
	var out []api.Field
	for k := range form {
		if name, ok := strings.CutPrefix(k, dataPrefix); ok {
			out = append(out, api.Field{Name: name, Type: unknown})
		}
	}
	slices.SortFunc(out, func(a, b api.Field) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// unknown is the type of a field of which this node does not know it now.
const unknown = ""

// strange reports whether a form has something for which there is no field: it was made before the definition changed, and
// what was typed there is not to be lost without a word.
func strange(fields []api.Field, form url.Values) bool {
	for name := range form {
		data, ok := strings.CutPrefix(name, dataPrefix)
		if ok && form.Get(name) != "" && !slices.ContainsFunc(fields, func(f api.Field) bool { return f.Name == data }) {
			return true
		}
	}
	return false
}

// finish hands in what the user made of an item.
func (p *Page) finish(ctx context.Context, r *http.Request, s httpapi.Session) (*outcome, error) {
	lang := languageOf(ctx)
	lost := lang.withFiles(r.PostForm, s.Files)
	act := r.PostForm.Get("act")
	in := api.ItemResult{User: s.User, Item: r.PathValue("item"), Failed: act == "fail"}
	got, err := p.node.ItemSheet(ctx, api.ItemQuery{User: s.User, Item: in.Item})
	switch {
	case act != "done" && act != "fail" && act != "": // a script may send a form without a button
		return nil, &trouble{key: "wrong.act"}
	case err == nil && got.Item.State == api.ItemDone: // its page has no form: this one is from before
		refusalOf(ctx).fields = got.Fields
		return nil, &trouble{key: "wrong.done"}
	case in.Failed:
		if in.Reason = strings.TrimSpace(asTyped(r.PostForm.Get("reason"))); in.Reason == "" {
			return nil, &trouble{key: "wrong.reason"}
		}
	case err != nil:
		return nil, err
	default:
		var wrong map[string]string
		fields := fieldsOf(got, r.PostForm)
		refusalOf(ctx).fields = got.Fields
		if strange(fields, r.PostForm) {
			return nil, &trouble{key: "wrong.fields"}
		}
		in.Outputs, wrong = lang.typed(fields, r.PostForm, false)
		if maps.Copy(wrong, lost); len(wrong) > 0 {
			return nil, invalid(wrong)
		}
	}
	done, err := p.node.FinishItem(ctx, in)
	if err != nil {
		return nil, err
	}
	key := map[[2]bool]string{
		{false, true}: "note.done", {false, false}: "note.done.kept", {true, true}: "note.failed",
		{true, false}: "note.failed.kept",
	}[[2]bool{in.Failed, done.Delivered}]
	if key == "note.done" && len(done.OnlyHere) > 0 {
		key = "note.done.file"
	}
	n := note{Key: key, Args: []any{item{Item: *done}.Title(), done.Partner}}
	if to := done.HasPassed(); to != "" && !in.Failed {
		n = note{Key: "note.done.passed", Args: append(n.Args, to)}
	}
	if !done.Elsewhere {
		n.Link = "/instances/" + done.Instance
	}
	return &outcome{to: "/", note: n}, nil
}

// file gives the content of a file that an item needs.
func (p *Page) file(w http.ResponseWriter, r *http.Request) {
	p.send(w, r, func(ctx context.Context) (*api.File, io.ReadCloser, error) {
		return p.node.ItemFile(ctx, api.ItemQuery{User: session(r.Context()).User, Item: r.PathValue("item")},
			r.PathValue("name"))
	})
}

// dataFile gives the content of a file among an instance's data.
func (p *Page) dataFile(w http.ResponseWriter, r *http.Request) {
	p.send(w, r, func(ctx context.Context) (*api.File, io.ReadCloser, error) {
		return p.node.File(ctx, r.PathValue("id"), workflow.DataName(r.PathValue("name")))
	})
}

// send gives the content of a file, to be kept by the browser: it is never shown as a page.
func (p *Page) send(
	w http.ResponseWriter, r *http.Request, get func(context.Context) (*api.File, io.ReadCloser, error),
) {
	w.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
	err := httpapi.SendFile(w, r, get)
	if err != nil {
		guard(w)
		p.show(w, r, func(context.Context, *http.Request) (view, error) { return view{}, err })
	}
}

// outbox is what the page shows of what was done at its node and nobody else has, or was refused.
type outbox struct {
	Note *note
	Why  *problem
	List []undelivered
}

// undelivered is one of that, with the form by which its user drops it, if it was refused; Drops: so it is.
type undelivered struct {
	api.Undelivered
	Drops       bool
	Form, Token string
}

// Title is what people call the task.
func (u undelivered) Title() string { return cmp.Or(u.Label, u.Task) }

// After are the tasks that are to count first, as people call them.
func (u undelivered) After() (out []string) { return u.called(u.Awaits) }

// Again are those of them that are to be done once more.
func (u undelivered) Again() (out []string) { return u.called(u.Redo) }

func (u undelivered) called(tasks []string) (out []string) {
	for _, t := range tasks {
		out = append(out, cmp.Or(u.TaskLabels[t], t))
	}
	return out
}

// Output is what people call data that were handed in.
func (u undelivered) Output(name string) string { return cmp.Or(u.DataLabels[name], name) }

// outboxFor is an outbox as a user sees it.
func outboxFor(list []api.Undelivered, s httpapi.Session) (out []undelivered) {
	for _, x := range list {
		u := undelivered{Undelivered: x, Drops: s.Acts && x.ID != "" && x.User == s.Name, Form: rand.Text(), Token: s.FormToken}
		if x.User != s.Name { // several people may share a device
			u.Outputs = nil
		}
		out = append(out, u)
	}
	return out
}

// outbox answers: what was done here that nobody else has yet, and what was refused?
func (p *Page) outbox(ctx context.Context, r *http.Request) (view, error) {
	return p.outboxWith(nil)(ctx, r)
}

// outboxWith is the outbox, with the reason why a form was not carried out.
func (p *Page) outboxWith(why error) screen {
	return func(ctx context.Context, r *http.Request) (view, error) {
		list, err := p.node.Outbox(ctx, "")
		v := outbox{Note: p.notes.find(r), Why: p.problem(r, why), List: outboxFor(list, session(ctx))}
		return view{template: "outbox", title: "outbox.title", live: true, status: v.Why.status(), data: v}, err
	}
}

// drop drops from the outbox what was refused of what the user did.
func (p *Page) drop(ctx context.Context, r *http.Request, s httpapi.Session) (*outcome, error) {
	x, err := p.node.DropRefused(ctx, api.DropRequest{User: s.User, ID: r.PostForm.Get("result")})
	if err != nil {
		return nil, err
	}
	title := undelivered{Undelivered: *x}.Title()
	return &outcome{to: "/outbox", note: note{Key: "note.dropped", Args: []any{title}}}, nil
}
