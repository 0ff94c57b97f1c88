package web

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// onMessages is how many messages the page shows, the newest, where not all were asked for.
const onMessages = 100

// told is what the page shows of a user's messages.
type told struct {
	Session     httpapi.Session
	Note        *note
	Why         *problem
	List        []message
	More, New   int
	Form, Token string
	Trouble     *api.Error
}

// messages answers: what has happened that I should know of?
func (p *Page) messages(ctx context.Context, r *http.Request) (view, error) {
	return p.messagesWith(nil)(ctx, r)
}

// messagesWith are the messages, with the reason why a form was not carried out.
func (p *Page) messagesWith(why error) screen {
	return func(ctx context.Context, r *http.Request) (view, error) {
		s := session(ctx)
		v := told{Session: s, Note: p.notes.find(r), Why: p.problem(r, why), Form: rand.Text(), Token: s.FormToken}
		if s.User != "" {
			list, err := p.node.Messages(ctx, api.MessagesQuery{User: s.User})
			if err != nil && !errors.As(err, &v.Trouble) {
				return view{}, err
			}
			list = slices.Clone(list)
			slices.Reverse(list) // the newest first
			for _, m := range list {
				if !m.Read {
					v.New++
				}
			}
			most := onMessages
			if r.URL.Query().Has("all") {
				most = len(list)
			}
			v.List = p.asking(ctx, list[:min(len(list), most)], s)
			v.More = len(list) - len(v.List)
		}
		return view{template: "messages", title: "nav.messages", live: true, status: v.Why.status(), data: v}, nil
	}
}

// messageText is what a message says, with what people call its task in place of the name.
func messageText(m api.Message) string {
	if m.Label == "" || m.Task == "" {
		return m.Text
	}
	if rest, ok := strings.CutPrefix(m.Text, m.Task+" "); ok {
		return m.Label + " " + rest
	}
	const before = "the deadline of "
	if rest, ok := strings.CutPrefix(m.Text, before+m.Task+" "); ok {
		return before + m.Label + " " + rest
	}
	return m.Text
}

// unread is how many messages the user has not read.
func (p *Page) unread(ctx context.Context) int {
	s := session(ctx)
	if s.User == "" {
		return 0
	}
	n, err := p.node.UnreadMessages(ctx, s.User)
	if err != nil {
		return 0 // the page of messages says why
	}
	return n
}

// readMessages notes that the user has read all messages, or on home what was lost.
func (p *Page) readMessages(ctx context.Context, r *http.Request, s httpapi.Session) (*outcome, error) {
	in := api.MessagesRead{User: s.User, IDs: r.PostForm["message"]}
	if err := p.node.ReadMessages(ctx, in); err != nil {
		return nil, err
	}
	to := "/messages"
	if r.PostForm.Get("back") == fromHome {
		to = "/"
	}
	return &outcome{to: to, note: note{Key: "note.read"}}, nil
}
