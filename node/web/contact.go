package web

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

const (
	// usualWithin and mostWithin are the longest wait for files in minutes: what is proposed, and what is taken.
	usualWithin = 5
	mostWithin  = 24 * 60
	// mostHours is for how many hours at most a node says that it is away.
	mostHours = 8 * 24
	// lookAgain is after how many seconds the page of a node that is on its way out is asked for again.
	lookAgain = 2
)

// away is what the page shows of how the node stands to its partners.
type away struct {
	Session  httpapi.Session
	Note     *note
	Why      *problem
	Contact  *api.Contact
	Locked   []api.Item // of the user: what can be done out of reach
	Lockable []api.Item // what can if the user locks it
	Selected []api.Item // and what cannot
	Outbox   []undelivered
	Prefetch *api.Prefetch // nil: the user may have no list
	Within   string        // as typed
	Hours    string        // likewise: for how long it is to be away
	status   *api.Status
}

// May reports whether what the node asks can be accepted.
func (a away) May() bool { return slices.Contains(api.Acceptable, a.Contact.Asks) }

// command is a form with one button by which the node goes, stays or comes back.
type command struct {
	Act, Says, Class, Accept string
	Within, Hours            string
	Form, Token              string
	Manages                  bool
}

// Order is such a form; says is the key of a string.
func (a away) Order(act, says, class, accept string) command {
	return command{act, says, class, accept, a.Within, a.Hours, rand.Text(), a.Session.FormToken, a.Session.Manages}
}

// titled are items under a title, which is the key of a string.
type titled struct {
	Title string
	List  []item
}

// Listed are such items, with what may be done about them.
func (a away) Listed(title string, list []api.Item) titled {
	out := titled{Title: title}
	for _, x := range list {
		i := item{Item: x, Form: rand.Text(), Token: a.Session.FormToken, Acts: a.Session.Acts}
		out.List = append(out.List, i.able(a.status))
	}
	return out
}

// contact answers: can partners reach this node, and what of my work can I take along?
func (p *Page) contact(ctx context.Context, r *http.Request) (view, error) {
	return p.contactWith(nil)(ctx, r)
}

// contactWith is that page, with the reason why a form was not carried out.
func (p *Page) contactWith(why error) screen {
	return func(ctx context.Context, r *http.Request) (view, error) {
		s := session(ctx)
		a := away{Session: s, Note: p.notes.find(r), Why: p.problem(r, why), Within: r.URL.Query().Get("within")}
		if r.PostForm.Has("within") {
			a.Within = r.PostForm.Get("within")
		} else if _, err := minutes(a.Within); err != nil {
			a.Within = ""
		}
		if a.Hours = r.URL.Query().Get("hours"); r.PostForm.Has("hours") {
			a.Hours = r.PostForm.Get("hours")
		} else if _, err := hours(a.Hours); err != nil {
			a.Hours = ""
		}
		var err error
		if a.Contact, err = p.node.Contact(ctx); err != nil {
			return view{}, err
		}
		if a.status, err = p.node.Status(ctx); err != nil {
			return view{}, err
		}
		if away := time.Duration(a.Contact.For); a.Hours == "" && away > 0 && !r.PostForm.Has("hours") { // asked for on another page
			a.Hours = strconv.Itoa(int((away + time.Hour - 1) / time.Hour))
		}
		if !r.PostForm.Has("within") && a.Within == "" { // likewise
			a.Within = strconv.Itoa(usualWithin)
			if was := time.Duration(a.Contact.Within); was > 0 {
				a.Within = strconv.Itoa(min(int((was+time.Minute-1)/time.Minute), mostWithin))
			}
		}
		waits, err := p.node.Outbox(ctx, "")
		if err != nil {
			return view{}, err
		}
		a.Outbox = outboxFor(waits, s)
		if a.Contact.Asks == "not-locked" { // what was locked since it asked is answered
			list, err := p.worklist(ctx, s.User, api.OrderPriority, false)
			if err != nil {
				return view{}, err
			}
			a.Contact.Items = slices.DeleteFunc(slices.Clone(a.Contact.Items), func(x api.Item) bool {
				return slices.ContainsFunc(list, func(now api.Item) bool { return now.ID == x.ID && now.State == api.ItemLocked })
			})
		}
		if a.Contact.State == api.IsConnected {
			list, err := p.worklist(ctx, s.User, api.OrderPriority, false)
			var no *api.Error
			if err == nil {
				a.Prefetch, err = p.node.Prefetch(ctx, s.User)
			}
			if err != nil && !errors.As(err, &no) { // who may have no list may go all the same
				return view{}, err
			}
			for _, x := range list {
				switch {
				case x.State == api.ItemLocked:
					a.Locked = append(a.Locked, x)
				case x.State == api.ItemSelected && x.Offline:
					a.Lockable = append(a.Lockable, x)
				case x.State == api.ItemSelected:
					a.Selected = append(a.Selected, x)
				}
			}
		}
		v := view{template: "contact", title: "contact.title", live: true, status: a.Why.status(), data: a}
		if a.Contact.State == api.IsLeaving && a.Contact.Asks == "" && r.Method == http.MethodGet {
			v.refresh = lookAgain
		}
		return v, nil
	}
}

// minutes reads the longest wait.
func minutes(text string) (time.Duration, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 1 || n > mostWithin {
		return 0, &trouble{key: "wrong.within"}
	}
	return time.Duration(n) * time.Minute, nil
}

// hours reads for how long the node is to be away; empty: it does not say.
func hours(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > mostHours {
		return 0, &trouble{key: "wrong.hours"}
	}
	return time.Duration(n) * time.Hour, nil
}

// setPrefetch switches on or off that files of the user's items come before they are needed, at the pace that was set.
func (p *Page) setPrefetch(ctx context.Context, s httpapi.Session, on bool) (*outcome, error) {
	was, err := p.node.Prefetch(ctx, s.User)
	if err != nil {
		return nil, err
	}
	r := api.PrefetchRequest{User: s.User, On: on, AtMost: was.AtMost}
	if _, err := p.node.SetPrefetch(ctx, r); err != nil {
		return nil, err
	}
	key := map[bool]string{true: "note.prefetch.on", false: "note.prefetch.off"}[on]
	return &outcome{to: "/contact", note: note{Key: key}}, nil
}

// setContact has the node go out of reach, stay, or come back.
func (p *Page) setContact(ctx context.Context, r *http.Request, s httpapi.Session) (*outcome, error) {
	act := r.PostForm.Get("act")
	if act == "prefetch" || act == "no-prefetch" {
		return p.setPrefetch(ctx, s, act == "prefetch")
	}
	if !s.Manages {
		return nil, &trouble{key: "form.manage"}
	}
	if act == "stay" || act == "back" {
		if _, err := p.node.Reconnect(ctx); err != nil {
			return nil, err
		}
		key := map[string]string{"stay": "note.stays", "back": "note.back"}[act]
		return &outcome{to: "/contact", note: note{Key: key}}, nil
	}
	if act != "go" {
		return nil, &trouble{key: "wrong.contact"}
	}
	within, err := minutes(r.PostForm.Get("within"))
	if err != nil {
		return nil, err
	}
	away, err := hours(r.PostForm.Get("hours"))
	if err != nil {
		return nil, err
	}
	c, err := p.node.Disconnect(ctx, api.DisconnectRequest{
		Within: api.Span(within), Accept: r.PostForm["accept"], For: api.Span(away),
	})
	if err != nil {
		return nil, err
	}
	key := "note.leaving"
	switch {
	case c.State == api.IsDisconnected:
		key = "note.gone"
	case c.Asks != "":
		key = "note.asks"
	}
	with := url.Values{"within": {strconv.Itoa(int(within / time.Minute))}}
	if away > 0 {
		with.Set("hours", strconv.Itoa(int(away/time.Hour)))
	}
	return &outcome{to: "/contact", with: with, note: note{Key: key}}, nil
}
