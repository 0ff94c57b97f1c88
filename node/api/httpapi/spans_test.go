package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// A duration in a request is a text such as "3h" wherever there is one; a number of nanoseconds, as versions before
// 2026-11-29 wanted it, is read as well.
func TestDurationsAreTexts(t *testing.T) {
	var got time.Duration
	f := &apitest.Fake{}
	f.OnInvite = func(r api.InviteRequest) (*api.Invitation, error) {
		got = time.Duration(r.Expires)
		return &api.Invitation{}, nil
	}
	f.OnSetElectorate = func(r api.ElectorateRequest) (*api.Electorate, error) {
		got = time.Duration(r.Lease)
		return &api.Electorate{}, nil
	}
	f.OnSetProfile = func(r api.ProfileChange) (*api.Profile, error) {
		got = time.Duration(*r.ConnectionTime)
		return &api.Profile{}, nil
	}
	f.OnAddUser = func(r api.UserRequest) (*api.SignInToken, error) {
		got = time.Duration(r.Expires)
		return &api.SignInToken{}, nil
	}
	f.OnLinkUser = func(_ string, d time.Duration) (*api.SignInToken, error) {
		got = d
		return &api.SignInToken{}, nil
	}
	_, s := serve(t, "127.0.0.1:0", f, httpapi.Options{})
	for path, field := range map[string]string{
		"/v1/invitations": "expires", "/v1/electorate": "lease", "/v1/profile": "connection_time", "/v1/users": "expires",
		"/v1/users/bia/link": "expires",
	} {
		for _, value := range []string{`"3h"`, `"180m"`, `10800000000000`} {
			got = 0
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Access().URL+path,
				strings.NewReader(`{"`+field+`": `+value+`}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+s.Access().Token)
			req.Header.Set("Content-Type", "application/json")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != http.StatusOK || got != 3*time.Hour {
				t.Errorf("%s with %s %s: %s, as %s", path, field, value, res.Status, got)
			}
		}
	}
}
