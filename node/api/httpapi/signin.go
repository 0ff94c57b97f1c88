package httpapi

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// A browser cannot keep the token secret the way a program does, so it never
// gets it. A user who has the token asks for a link that works once; it gives
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
}

var signInRoute = &route{
	name: "signIn", method: http.MethodPost, path: "/v1/sign-in", scope: mayAll,
	summary: "Make a link that opens the web page in one browser, once", reply: SignIn{}, raw: (*handler).signIn,
}

func (h *handler) signIn(w http.ResponseWriter, _ *http.Request) error {
	if h.o.Page == nil {
		return api.Errorf(api.NotFound, "this node has no web page")
	}
	code, expires := h.links.add()
	return writeJSON(w, http.StatusOK, SignIn{Path: linkPath + code, Expires: expires})
}

// SignIn makes a link that opens the node's web page in one browser, once.
func (c *Client) SignIn(ctx context.Context) (url string, expires time.Time, err error) {
	link, err := call[SignIn](ctx, c, signInRoute, nil, nil)
	if err != nil {
		return "", time.Time{}, err
	}
	base := c.Access().URL
	if base == "" {
		return "", time.Time{}, api.Errorf(api.Failed, "a browser cannot reach the node: its API is at %s", c.Access().Address).
			WithHint("serve it at a loopback address: mutirao up --api 127.0.0.1:0")
	}
	return base + link.Path, link.Expires, nil
}

// secrets are what somebody may come with for a while: the codes of links, or
// sessions. They are kept in memory, by their hashes, so that they end with the
// node and looking one up tells nothing by the time that it takes.
type secrets struct {
	life time.Duration
	most int

	mu    sync.Mutex // guards until
	until map[[sha256.Size]byte]time.Time
}

func newSecrets(life time.Duration, most int) *secrets {
	return &secrets{life: life, most: most, until: map[[sha256.Size]byte]time.Time{}}
}

// add makes a secret. When there are too many, the one that would end first
// ends now: a user who asks for another is more likely to be at the screen.
func (s *secrets) add() (secret string, expires time.Time) {
	secret, expires = rand.Text(), time.Now().Add(s.life)
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.until) >= s.most {
		var oldest [sha256.Size]byte
		for k, t := range s.until {
			if first, ok := s.until[oldest]; !ok || t.Before(first) {
				oldest = k
			}
		}
		delete(s.until, oldest)
	}
	s.until[sha256.Sum256([]byte(secret))] = expires
	return secret, expires
}

// valid tells until when a secret is good.
func (s *secrets) valid(secret string) (until time.Time, ok bool) {
	key := sha256.Sum256([]byte(secret))
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok = s.until[key]
	if ok && !time.Now().Before(until) {
		delete(s.until, key)
		ok = false
	}
	return until, ok
}

// use is valid for a secret that is good once.
func (s *secrets) use(secret string) bool {
	key := sha256.Sum256([]byte(secret))
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.until[key]
	delete(s.until, key)
	return ok && time.Now().Before(until)
}
