package httpapi

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/private"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// scope is what a token lets a program do. Each route names the one that it
// needs; a greater one contains the lesser.
type scope string

const (
	everybody scope = "none" // needs no token
	mayRead   scope = "read" // look at everything, change nothing
	mayWork   scope = "work" // start and cancel instances, finish and reject tasks, register data
	mayAll    scope = "admin"
	// mayServe is what routes need that serve workers; a worker's token has workerScope and
	// its application, and opens nothing else.
	mayServe scope = "worker"
)

// scopes are those of tokens, the least first.
var scopes = []scope{mayRead, mayWork, mayAll}

// workerScope begins the scope of a worker's token.
const workerScope = "worker:"

// allows reports whether a token with this scope opens a route that needs another.
func (s scope) allows(needed scope) bool {
	if _, worker := s.serves(); worker || needed == mayServe {
		return needed == mayServe && (worker || s.allows(mayWork))
	}
	return slices.Index(scopes, s) >= slices.Index(scopes, needed)
}

// maxTokens is how many tokens can be added.
const maxTokens = 256

// Token is a token of the interface, without the secret.
type Token struct {
	Name  string    `json:"name"`
	Scope string    `json:"scope"` // read, work, admin or worker:APPLICATION
	Added time.Time `json:"added"`
}

// TokenRequest asks for a token.
type TokenRequest struct {
	Name  string `json:"name"`  // letters, digits, and after the first one of _ . -
	Scope string `json:"scope"` // read, work, admin or worker:APPLICATION
}

// NewToken is a token that was just added: nobody can ask for it again.
type NewToken struct {
	Token string `json:"token"`
	Name  string `json:"name"`
	Scope string `json:"scope"`
}

// tokens are all that open the interface: the folder's own, which may do
// everything and ends with the node, and those that were added.
type tokens struct {
	own    [sha256.Size]byte
	file   string // empty: they end with the node
	broken error  // the file could not be read: no token in it is valid

	mu    sync.Mutex // guards added
	added map[[sha256.Size]byte]*keptToken
}

// keptToken is an added token. Its life ends when it is removed.
type keptToken struct {
	Token
	Hash string `json:"hash"` // SHA-256 of the token, in hexadecimal
	life context.Context
	end  context.CancelFunc
}

func newTokens(own string) *tokens {
	return &tokens{own: sha256.Sum256([]byte(own)), added: map[[sha256.Size]byte]*keptToken{}}
}

// load reads the tokens that were added before. A file that cannot be read
// leaves the node running, with no token but its own.
func (t *tokens) load(file string, log *slog.Logger) {
	t.file = file
	b, err := private.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var list []*keptToken
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	added := map[[sha256.Size]byte]*keptToken{}
	for _, k := range list {
		h, wrong := hex.DecodeString(k.Hash)
		if err == nil && (wrong != nil || len(h) != sha256.Size || !scope(k.Scope).known()) {
			err = fmt.Errorf("token %q is none", k.Name)
		}
		if err == nil {
			k.begin()
			added[[sha256.Size]byte(h)] = k
		}
	}
	if err != nil {
		t.broken = api.Errorf(api.Failed, "%s cannot be read, so the tokens in it are not valid: %v", file, err).
			WithHint("mend it or remove it, restart the node, and add the tokens again")
		log.Error("tokens cannot be read", "file", file, "error", err)
		return
	}
	t.added = added
}

// id names a token among all that there ever were: another may have its name once it is removed. A secret is not
// found by the start of its hash. Empty: the node's own.
func (k *keptToken) id() string {
	if k == nil {
		return ""
	}
	return k.Name + " " + k.Hash[:16]
}

func (k *keptToken) begin() { k.life, k.end = context.WithCancel(context.Background()) }

// find returns the scope of a token and, of one that was added, the token. Only
// hashes are compared, so the time that it takes tells nothing.
func (t *tokens) find(text string) (s scope, added *keptToken) {
	h := sha256.Sum256([]byte(text))
	if h == t.own {
		return mayAll, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.added[h]; k != nil {
		return scope(k.Scope), k
	}
	return "", nil
}

func (t *tokens) list() ([]Token, error) {
	if t.broken != nil {
		return nil, t.broken
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []Token{}
	for _, k := range t.added {
		out = append(out, k.Token)
	}
	slices.SortFunc(out, func(a, b Token) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (t *tokens) add(r TokenRequest) (*NewToken, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if t.broken != nil {
		return nil, t.broken
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.added {
		if k.Name == r.Name {
			return nil, api.Errorf(api.Refused, "there is a token %s already, with the scope %s", k.Name, k.Scope).
				WithHint("choose another name, or remove it first: mutirao token remove %s", k.Name)
		}
	}
	if len(t.added) >= maxTokens {
		return nil, api.Errorf(api.Refused, "there are %d tokens, the most that can be", maxTokens).
			WithHint("remove those that nobody uses: mutirao token list")
	}
	secret := "mutirao_" + rand.Text()
	h := sha256.Sum256([]byte(secret))
	k := &keptToken{
		Token: Token{Name: r.Name, Scope: r.Scope, Added: time.Now().UTC().Truncate(time.Second)},
		Hash:  hex.EncodeToString(h[:]),
	}
	k.begin()
	then := maps.Clone(t.added)
	then[h] = k
	if err := t.save(then); err != nil {
		return nil, err
	}
	t.added = then
	return &NewToken{Token: secret, Name: k.Name, Scope: k.Scope}, nil
}

func (r TokenRequest) check() error {
	if rule := workflow.NameRule(r.Name); rule != "" {
		return api.Errorf(api.Invalid, "token name %q: want %s", r.Name, rule)
	}
	if !scope(r.Scope).known() {
		return api.Errorf(api.Invalid, "scope %q: want read, work, admin or worker:APPLICATION", r.Scope)
	}
	return nil
}

// known reports whether a token can have this scope.
func (s scope) known() bool {
	if app, worker := s.serves(); worker {
		return workflow.ValidName(string(app))
	}
	return slices.Contains(scopes, s)
}

// remove ends a token: once it returns, nobody is let in with it, and what was
// under way with it, event streams too, has been told to end.
func (t *tokens) remove(name string) error {
	if t.broken != nil {
		return t.broken
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for h, k := range t.added {
		if k.Name == name {
			then := maps.Clone(t.added)
			delete(then, h)
			if err := t.save(then); err != nil {
				return err
			}
			t.added = then
			k.end()
			return nil
		}
	}
	return api.Errorf(api.NotFound, "there is no token %q", name).WithHint("mutirao token list")
}

func (t *tokens) save(all map[[sha256.Size]byte]*keptToken) error {
	if t.file == "" {
		return nil
	}
	list := slices.SortedFunc(maps.Values(all), func(a, b *keptToken) int { return strings.Compare(a.Name, b.Name) })
	b, err := json.MarshalIndent(list, "", "  ")
	if err == nil {
		err = private.Write(t.file, append(b, '\n'))
	}
	if err != nil {
		return api.Errorf(api.Failed, "the tokens cannot be kept, so nothing was changed: %v", err).
			WithHint("look at the disk of the node's folder")
	}
	return nil
}

var (
	tokensRoute = &route{
		name: "tokens", method: http.MethodGet, path: "/v1/tokens", scope: mayAll,
		summary: "The tokens that were added, without the secrets", reply: []Token{},
		raw: func(h *handler, w http.ResponseWriter, _ *http.Request) error {
			list, err := h.tokens.list()
			if err != nil {
				return err
			}
			return writeJSON(w, http.StatusOK, list)
		},
	}
	addTokenRoute = &route{
		name: "addToken", method: http.MethodPost, path: "/v1/tokens", scope: mayAll,
		summary: "Add a token; the reply has the secret, which nobody can ask for again", body: TokenRequest{},
		reply: NewToken{},
		raw: func(h *handler, w http.ResponseWriter, r *http.Request) error {
			reply, err := withBody(r, func(in TokenRequest) (any, error) { return h.tokens.add(in) })
			if err != nil {
				return err
			}
			return writeJSON(w, http.StatusOK, reply)
		},
	}
	removeTokenRoute = &route{
		name: "removeToken", method: http.MethodDelete, path: "/v1/tokens/{name}", scope: mayAll,
		summary: "Remove a token, at once, also for what is under way with it",
		raw: func(h *handler, w http.ResponseWriter, r *http.Request) error {
			if err := h.tokens.remove(r.PathValue("name")); err != nil {
				return err
			}
			h.lan.lookNow()
			w.WriteHeader(http.StatusNoContent)
			return nil
		},
	}
)

// Tokens lists the tokens that were added.
func (c *Client) Tokens(ctx context.Context) ([]Token, error) {
	return call[[]Token](ctx, c, tokensRoute, nil, nil)
}

// AddToken adds a token.
func (c *Client) AddToken(ctx context.Context, r TokenRequest) (*NewToken, error) {
	return call[*NewToken](ctx, c, addTokenRoute, nil, r)
}

// RemoveToken removes a token.
func (c *Client) RemoveToken(ctx context.Context, name string) error {
	_, err := call[nothing](ctx, c, removeTokenRoute, nil, nil, name)
	return err
}

// tokensFile is where a node keeps the tokens that were added.
func tokensFile(dir string) string { return filepath.Join(dir, api.TokensFile) }
