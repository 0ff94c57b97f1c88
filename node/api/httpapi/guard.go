package httpapi

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
)

// checkOrigin refuses requests that a foreign web page makes a browser send: by
// a host name that the page's owner points at this machine (DNS rebinding), or
// across origins.
func (h *handler) checkOrigin(r *http.Request) error {
	if h.network != nil && !h.network.answersAs(r.Host) {
		return api.Errorf(api.NotAllowed, "the page is not open as %q", r.Host).
			WithHint("ask for another link: mutirao web --lan")
	}
	if h.network == nil && !h.isUs(r.Host) {
		return api.Errorf(api.NotAllowed, "the node does not answer as %q", r.Host).
			WithHint("use the address in %s", api.AccessFile)
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	if origins, ok := r.Header["Origin"]; ok && !slices.Equal(origins, []string{scheme + r.Host}) {
		return api.Errorf(api.NotAllowed, "pages of %q may not use the node", strings.Join(origins, " "))
	}
	return nil
}

func (h *handler) isUs(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	if configs.Loopback(host) {
		return true
	}
	return h.o.certificate != nil && h.o.certificate.VerifyHostname(host) == nil
}

// admit lets a request in whose token opens the route. Within the context it may
// be answered: that ends when the token is removed, or with done.
func (h *handler) admit(rt *route, r *http.Request) (within context.Context, done func(), err error) {
	given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	has, added := h.tokens.find(given)
	switch {
	case has == "":
		return nil, nil, withStatus(http.StatusUnauthorized,
			api.Errorf(api.NotAllowed, "the token is missing or wrong").
				WithHint("send \"Authorization: Bearer TOKEN\" with a token of \"mutirao token add\", or the one in %s, which is new whenever the node starts", api.AccessFile))
	case !has.allows(rt.scope):
		return nil, nil, api.Errorf(api.NotAllowed, "%s %s needs a token with the scope %s; %s has %s", rt.method,
			rt.path, rt.scope, added.Name, has).
			WithHint("mutirao token add NAME --scope %s", asked(rt.scope))
	case added == nil:
		return r.Context(), func() {}, nil
	}
	ctx := context.WithValue(context.WithValue(r.Context(), tokenLifeKey{}, added.life), scopeKey{}, has)
	ctx = context.WithValue(ctx, tokenKey{}, added)
	within, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(added.life, cancel)
	return within, func() { stop(); cancel() }, nil
}

// asked is a scope as a token is asked for with it.
func asked(s scope) string {
	if s == mayServe {
		return workerScope + "APPLICATION"
	}
	return string(s)
}

// checkQuery refuses parameters that the route does not have.
func checkQuery(rt *route, r *http.Request) error {
	for name, values := range r.URL.Query() {
		i := slices.IndexFunc(rt.query, func(p parameter) bool { return p.name == name })
		if i < 0 {
			return api.Errorf(api.Invalid, "%s has no parameter %q", rt.path, name)
		}
		allowed := rt.query[i].values
		if len(values) != 1 || (allowed != nil && !slices.Contains(allowed, values[0])) {
			return api.Errorf(api.Invalid, "%s=%s: want one value%s", name, strings.Join(values, ","), among(allowed))
		}
	}
	return nil
}

// among says which values may be given; empty: any.
func among(allowed []string) string {
	last := len(allowed) - 1
	switch {
	case last < 0:
		return ""
	case last == 0:
		return ": " + allowed[0]
	}
	return ": " + strings.Join(allowed[:last], ", ") + " or " + allowed[last]
}
