package httpapi

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// instances answers with a page of the list of instances, and with where the next one is.
func (h *handler) instances(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	q := api.InstanceQuery{All: query.Get("all") == "true", After: query.Get("after")}
	if limit := query.Get("limit"); limit != "" {
		n, err := strconv.Atoi(limit)
		if err != nil || n < 1 || n > api.MaxPage {
			return api.Errorf(api.Invalid, "limit is %q: want a number from 1 to %d", limit, api.MaxPage)
		}
		q.Limit = n
	}
	page, err := h.svc.InstancePage(r.Context(), q)
	if err != nil {
		return err
	}
	if page.Next != "" {
		query.Set("after", page.Next)
		next := url.URL{Path: r.URL.Path, RawQuery: query.Encode()}
		w.Header().Set("Link", "<"+next.String()+`>; rel="next"`)
	}
	return writeJSON(w, http.StatusOK, complete(page.Instances))
}

// nextPage reads where the next page begins from the header of one; empty: it was the last.
func nextPage(header http.Header) string {
	target, found := strings.CutSuffix(header.Get("Link"), `>; rel="next"`)
	u, err := url.Parse(strings.TrimPrefix(target, "<"))
	if !found || err != nil {
		return ""
	}
	return u.Query().Get("after")
}
