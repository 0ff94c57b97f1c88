package httpapi

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A browser cannot keep the token secret the way a program does, so it never
// gets it. A user who has a token asks for a link that works once; it gives
// the browser a cookie that opens the page, and nothing below /v1/.

const (
	linkLife    = 5 * time.Minute
	sessionLife = 12 * time.Hour
	maxLinks    = 16 // not used yet
	maxSessions = 32
	linkPath    = "/sign-in/"
)

// SignIn is a link that signs one browser in, once.
type SignIn struct {
	Path    string    `json:"path"` // below the node's address
	Expires time.Time `json:"expires"`
	// User is for whom the browser acts; empty: nobody, since several users are signed in at this
	// node and none was named.
	User string `json:"user"`
	// Acts: the browser may change something, not only look.
	Acts bool `json:"acts"`
}

// SignInLink says what a link is to be for.
type SignInLink struct {
	// User is a name or a whole ID; empty: the one user who is signed in at this node, else the partner.
	User string
	// Look: the browser may only look.
	Look bool
}

var signInRoute = &route{
	name: "signIn", method: http.MethodPost, path: "/v1/sign-in", scope: mayWork,
	query:   signInQuery,
	summary: "Make a link that opens the web page in one browser, once", reply: SignIn{}, raw: (*handler).signIn,
}

// signInQuery says what a link is to be for.
var signInQuery = []parameter{
	{name: "user", doc: "For whom the browser acts: a name or a whole ID; none: the one user who is signed in at this node, else the partner"},
	{name: "look", doc: "The browser may only look, and change nothing", values: []string{"true", "false"}},
}

func (h *handler) signIn(w http.ResponseWriter, r *http.Request) error {
	who, err := h.visitor(r)
	if err != nil {
		return err
	}
	code, expires := h.links.add(who)
	return writeJSON(w, http.StatusOK, SignIn{Path: linkPath + code, Expires: expires, User: who.name, Acts: who.acts})
}

// visitor is for whom a link is asked for.
func (h *handler) visitor(r *http.Request) (visitor, error) {
	if h.o.Page == nil {
		return visitor{}, api.Errorf(api.NotFound, "this node has no web page")
	}
	q := r.URL.Query()
	id, name, err := h.whose(r.Context(), q.Get("user"))
	if err != nil {
		return visitor{}, err
	}
	acts := q.Get("look") != "true" && id != ""
	return visitor{
		user: id, name: name, acts: acts, manages: acts && maySayAll(r.Context()), life: tokenLife(r.Context()),
	}, nil
}

// whose finds the user for whom a browser is to act. It is settled once, so that nobody else gets
// the browser by signing in at the node.
func (h *handler) whose(ctx context.Context, ref string) (id, name string, err error) {
	all, err := h.svc.Users(ctx)
	if err != nil {
		return "", "", err
	}
	ref = workflow.UsualForm(ref)
	var partner, signedIn []api.User
	known := false
	for _, u := range all {
		switch {
		case !u.Here:
			known = known || u.Name == ref || u.ID == ref
		case ref != "" && (u.Name == ref || u.ID == ref):
			return u.ID, u.Name, nil
		case u.Partner:
			partner = append(partner, u)
		default:
			signedIn = append(signedIn, u)
		}
	}
	switch {
	case ref != "" && !known:
		return "", "", api.Errorf(api.NotFound, "there is no user %q", ref).WithHint("mutirao user list shows who there is")
	case ref != "":
		return "", "", api.Errorf(api.Refused, "user %s is not signed in at this node", ref).
			WithHint("mutirao user sign-in TOKEN signs a user in; mutirao user list shows who is")
	case len(signedIn) == 1:
		return signedIn[0].ID, signedIn[0].Name, nil
	case len(signedIn) == 0 && len(partner) == 1:
		return partner[0].ID, partner[0].Name, nil
	}
	return "", "", nil
}

func (l SignInLink) query() url.Values {
	q := url.Values{}
	if l.User != "" {
		q.Set("user", l.User)
	}
	if l.Look {
		q.Set("look", "true")
	}
	return q
}

// SignIn makes a link that opens the node's web page in one browser, once.
func (c *Client) SignIn(ctx context.Context, l SignInLink) (link string, of *SignIn, err error) {
	made, err := call[SignIn](ctx, c, signInRoute, l.query(), nil)
	if err != nil {
		return "", nil, err
	}
	base := c.Access().URL
	if base == "" {
		return "", nil, api.Errorf(api.Failed, "a browser cannot reach the node: its API is at %s", c.Access().Address).
			WithHint("serve it at a loopback address: mutirao up --api 127.0.0.1:0")
	}
	return base + made.Path, &made, nil
}

// visitor is for whom a link was made, and what may be done with it.
type visitor struct {
	user, name string
	acts       bool
	manages    bool            // what concerns the whole node, as by a token of scope admin
	life       context.Context // of the token by which the link was asked for; nil: the node's
}

// gone reports whether the token was removed by which the link was asked for.
func (v visitor) gone() bool { return v.life != nil && v.life.Err() != nil }

// secrets are what somebody may come with for a while: the codes of links, or
// sessions. They are kept in memory, by their hashes, so that they end with the
// node and looking one up tells nothing by the time that it takes.
type secrets struct {
	life time.Duration
	most int

	mu sync.Mutex // guards of
	of map[[sha256.Size]byte]pass
}

// pass is for whom a secret is good, and until when.
type pass struct {
	visitor
	until time.Time
}

func newSecrets(life time.Duration, most int) *secrets {
	return &secrets{life: life, most: most, of: map[[sha256.Size]byte]pass{}}
}

// add makes a secret. When there are too many, the one that would end first
// ends now: a user who asks for another is more likely to be at the screen.
func (s *secrets) add(v visitor) (secret string, expires time.Time) {
	secret, expires = rand.Text(), time.Now().Add(s.life)
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.of) >= s.most {
		var oldest [sha256.Size]byte
		for k, p := range s.of {
			if first, ok := s.of[oldest]; !ok || p.until.Before(first.until) {
				oldest = k
			}
		}
		delete(s.of, oldest)
	}
	s.of[sha256.Sum256([]byte(secret))] = pass{v, expires}
	return secret, expires
}

// valid tells for whom a secret is good, and until when.
func (s *secrets) valid(secret string) (p pass, ok bool) { return s.look(secret, false) }

// use is valid for a secret that is good once.
func (s *secrets) use(secret string) (p pass, ok bool) { return s.look(secret, true) }

func (s *secrets) look(secret string, end bool) (p pass, ok bool) {
	key := sha256.Sum256([]byte(secret))
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok = s.of[key]
	if ok = ok && time.Now().Before(p.until) && !p.gone(); !ok || end {
		delete(s.of, key)
	}
	return p, ok
}

// last is when the last of those that are good ends; zero: none is.
func (s *secrets) last() (end time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.of {
		if !p.gone() && p.until.After(end) {
			end = p.until
		}
	}
	return end
}

// count is how many are good.
func (s *secrets) count() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.of {
		if time.Now().Before(p.until) && !p.gone() {
			n++
		}
	}
	return n
}

// clear ends all.
func (s *secrets) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.of)
}

// scopeKey is the key of the scope of the token by which a request was let in.
type scopeKey struct{}

// maySayAll reports whether a request was let in by a token that may do everything. The node's own leaves no word
// of its scope.
func maySayAll(ctx context.Context) bool {
	has, added := ctx.Value(scopeKey{}).(scope)
	return !added || has.allows(mayAll)
}

type tokenLifeKey struct{}

// tokenKey is the key of the token, one that was added, by which a request was let in.
type tokenKey struct{}

// over is why nothing more is to be said to whoever made a request; nil: it goes on. The end of a token ends its requests a
// moment later, and nothing is said in it.
func over(ctx context.Context) error {
	if life := tokenLife(ctx); life != nil && life.Err() != nil {
		return life.Err()
	}
	return ctx.Err()
}

// tokenLife is the life of the token by which a request was let in; nil: it is the node's.
func tokenLife(ctx context.Context) context.Context {
	life, _ := ctx.Value(tokenLifeKey{}).(context.Context)
	return life
}
