package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// asks sends a request with a token and returns the status and the body.
func asks(t *testing.T, s *httpapi.Server, token, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, s.Access().URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func tokensOf(t *testing.T, c *httpapi.Client, scopes ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, scope := range scopes {
		made, err := c.AddToken(t.Context(), httpapi.TokenRequest{Name: "for-" + scope, Scope: scope})
		if err != nil {
			t.Fatal(err)
		}
		out[scope] = made.Token
	}
	return out
}

func trusting() *apitest.Fake {
	return &apitest.Fake{
		OnStatus:         func() (*api.Status, error) { return &api.Status{}, nil },
		OnStart:          func(api.StartRequest) (*api.Started, error) { return &api.Started{ID: "ab"}, nil },
		OnInvite:         func(api.InviteRequest) (*api.Invitation, error) { return &api.Invitation{}, nil },
		OnRemoveWorkflow: func(string) ([]api.Workflow, error) { return nil, nil },
		OnWatch: func(ctx context.Context, fn func(api.Event) error) error {
			_ = fn(api.Event{Kind: "partner"})
			<-ctx.Done()
			return ctx.Err()
		},
	}
}

// A token opens what its scope says, and a refusal names the scope that is
// needed. It is good in the next run of the node too, and is kept as a hash.
func TestTokensOpenWhatTheirScopeSays(t *testing.T) {
	dir, s := serve(t, "127.0.0.1:0", trusting(), httpapi.Options{})
	c := dial(t, dir)
	tokens := tokensOf(t, c, "read", "work", "admin")
	check := func(s *httpapi.Server) {
		t.Helper()
		for _, q := range []struct {
			method, path, body string
			opens              string // for which scopes
			needs              string
		}{
			{"GET", "/v1/status", "", "read work admin", "read"},
			{"POST", "/v1/instances", `{"workflow":"w"}`, "work admin", "work"},
			{"POST", "/v1/invitations", `{}`, "admin", "admin"},
			{"DELETE", "/v1/workflows/w", "", "admin", "admin"},
			{"GET", "/v1/tokens", "", "admin", "admin"},
			{"POST", "/v1/tokens", `{"name":"x y"}`, "", "admin"}, // admin comes as far as a wrong name
		} {
			for scope, token := range tokens {
				status, body := asks(t, s, token, q.method, q.path, q.body)
				switch opens := strings.Contains(q.opens, scope) || q.opens == "" && scope == "admin"; {
				case opens && status == http.StatusForbidden, opens && status == http.StatusUnauthorized,
					!opens && status != http.StatusForbidden:
					t.Errorf("%s %s with %s: status %d: %s", q.method, q.path, scope, status, body)
				case !opens && !strings.Contains(body,
					"needs a token with the scope "+q.needs+"; for-"+scope+" has "+scope):
					t.Errorf("%s %s with %s: the refusal does not say what is needed: %s", q.method, q.path, scope,
						body)
				}
			}
		}
	}
	check(s)
	if status, _ := asks(t, s, tokens["admin"]+"x", "GET", "/v1/status", ""); status != http.StatusUnauthorized {
		t.Errorf("a wrong token: status %d", status)
	}
	list, err := c.Tokens(t.Context())
	if err != nil || len(list) != 3 || list[0].Name != "for-admin" || list[1].Scope != "read" ||
		list[2].Added.IsZero() {
		t.Errorf("listed: %v, %v", list, err)
	}
	kept, err := os.ReadFile(filepath.Join(dir, api.TokensFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		if strings.Contains(string(kept), token) ||
			strings.Contains(string(kept), strings.TrimPrefix(token, "mutirao_")) {
			t.Errorf("%s holds a token: %s", api.TokensFile, kept)
		}
	}

	closeServer(t, s)
	again, err := httpapi.Serve(dir, "127.0.0.1:0", trusting(), httpapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeServer(t, again)
	check(again)
}

// A token that is removed opens nothing from then on, and event streams that it
// opened end; those of others go on.
func TestARemovedTokenEndsItsStreams(t *testing.T) {
	dir, s := serve(t, "127.0.0.1:0", trusting(), httpapi.Options{})
	c := dial(t, dir)
	tokens := tokensOf(t, c, "read", "work")
	streams := map[string]*bufio.Reader{}
	for scope, token := range tokens {
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.Access().URL+"/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		streams[scope] = bufio.NewReader(resp.Body)
		for line := ""; !strings.HasPrefix(line, "data: "); {
			if line, err = streams[scope].ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.RemoveToken(t.Context(), "for-read"); err != nil {
		t.Fatal(err)
	}
	if status, _ := asks(t, s, tokens["read"], "GET", "/v1/status", ""); status != http.StatusUnauthorized {
		t.Errorf("a removed token: status %d", status)
	}
	if status, body := asks(t, s, tokens["work"], "GET", "/v1/status", ""); status != http.StatusOK {
		t.Errorf("another token: status %d: %s", status, body)
	}
	ended := make(chan string, 1)
	go func() {
		rest, _ := io.ReadAll(streams["read"]) // it ends, however
		ended <- string(rest)
	}()
	select {
	case rest := <-ended:
		if strings.Contains(rest, "data:") {
			t.Errorf("after the removal came %q", rest)
		}
	case <-time.After(10 * time.Second): // signs of life come more seldom than that
		t.Error("the stream of the removed token goes on")
	}
	if err := c.RemoveToken(t.Context(), "for-read"); !isCode(err, api.NotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if list, err := c.Tokens(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("left: %v, %v", list, err)
	}
}

func isCode(err error, code api.Code) bool {
	var shown *api.Error
	return errors.As(err, &shown) && shown.Code == code
}

func TestTokensThatCannotBe(t *testing.T) {
	dir, _ := serve(t, "127.0.0.1:0", trusting(), httpapi.Options{})
	c := dial(t, dir)
	tokensOf(t, c, "read")
	for name, want := range map[httpapi.TokenRequest]api.Code{
		{Name: "for-read", Scope: "admin"}:  api.Refused,
		{Name: "a b", Scope: "read"}:        api.Invalid,
		{Name: "", Scope: "read"}:           api.Invalid,
		{Name: "a", Scope: "none"}:          api.Invalid,
		{Name: "a", Scope: ""}:              api.Invalid,
		{Name: "a", Scope: "worker:"}:       api.Invalid,
		{Name: "a", Scope: "worker:a\x1bb"}: api.Invalid,
	} {
		if _, err := c.AddToken(t.Context(), name); !isCode(err, want) {
			t.Errorf("%+v: %v, want %s", name, err, want)
		}
	}
}

// A damaged file of tokens stops no node: its own token works, no other does,
// and the file is left for a person to mend.
func TestDamagedTokens(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, api.TokensFile)
	for _, text := range []string{
		"", "{", `[{"name":"a","scope":"admin","hash":"00"}]`,
		`[{"name":"a","scope":"all","hash":"` + strings.Repeat("0", 64) + `"}]`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := httpapi.Serve(dir, "127.0.0.1:0", trusting(), httpapi.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := dial(t, dir)
		if _, err := c.Status(t.Context()); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := c.AddToken(t.Context(), httpapi.TokenRequest{Name: "b", Scope: "read"}); !isCode(err, api.Failed) || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("%q: added: %v", text, err)
		}
		if b, err := os.ReadFile(file); err != nil || string(b) != text {
			t.Errorf("%q became %q, %v", text, b, err)
		}
		closeServer(t, s)
	}
}
