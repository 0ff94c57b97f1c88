package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"slices"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// along are items of one instance that a user may lock together, all or none: what is ready, and what can be had before
// it is, together with what it waits for.
type along struct {
	Instance    string
	About       api.Item // one of them, for the instance in words
	Choices     []togetherChoice
	Form, Token string
}

// togetherChoice is an item that can be chosen.
type togetherChoice struct {
	item
	After  []string // what it waits for, as people call it
	Chosen bool
}

// Early reports whether it is not ready yet.
func (c togetherChoice) Early() bool { return c.State == api.ItemNotReady }

// lockable reports whether an item can be locked now, alone or with others: not while its holder is away as announced.
func lockable(x api.Item) bool {
	if x.Away != nil || x.Unreachable || x.TakenBy != "" || x.Over {
		return false
	}
	switch x.State {
	case api.ItemReady, api.ItemNotReady:
		return x.Offline && len(x.WaitsFor) == 0
	case api.ItemSelected:
		return x.Offline
	}
	return false
}

// takable are those items of a list that a user can lock together with others: of what is not ready only what waits for
// nothing but what the user has locked or done, or can lock with it.
func takable(list []api.Item) []api.Item {
	out := slices.DeleteFunc(slices.Clone(list), func(x api.Item) bool { return !lockable(x) })
	has := func(x api.Item, task string) bool {
		is := func(y api.Item) bool { return y.Instance == x.Instance && y.Task == task }
		return slices.ContainsFunc(out, is) || slices.ContainsFunc(list, func(y api.Item) bool {
			return is(y) && (y.State == api.ItemLocked || y.State == api.ItemDone)
		})
	}
	for n := -1; n != len(out); { // without one, what waits for it cannot be had either
		n = len(out)
		can := slices.DeleteFunc(slices.Clone(out), func(x api.Item) bool {
			return slices.ContainsFunc(x.Awaits, func(t string) bool { return !has(x, t) })
		})
		out = can // has looks at all of them until then
	}
	return out
}

// together are the items of a list by their instances, where several can be locked together or one ahead. At most
// so many are shown; more is how many are not.
func together(list []api.Item, chosen []string, most int, s httpapi.Session) (out []along, more int) {
	by := map[string][]api.Item{}
	var order []string
	for _, x := range takable(list) {
		if by[x.Instance] == nil {
			order = append(order, x.Instance)
		}
		by[x.Instance] = append(by[x.Instance], x)
	}
	called := titles(list)
	shown := 0
	for _, id := range order {
		of := by[id]
		if len(of) < 2 && of[0].State != api.ItemNotReady {
			continue
		}
		fit := max(min(len(of), most-shown), 0)
		more += len(of) - fit
		if of = inTurn(of[:fit]); fit == 0 {
			continue
		}
		shown += fit
		g := along{Instance: id, About: of[0], Form: rand.Text(), Token: s.FormToken}
		for _, x := range of {
			g.Choices = append(g.Choices, togetherChoice{
				item{Item: x}, afterwards(x, called), slices.Contains(chosen, x.ID),
			})
		}
		out = append(out, g)
	}
	return out, more
}

// titles is what people call the tasks of a list, by instance and name.
func titles(list []api.Item) map[[2]string]string {
	called := map[[2]string]string{}
	for _, x := range list {
		called[[2]string{x.Instance, x.Task}] = item{Item: x}.Title()
	}
	return called
}

// afterwards is what an item waits for, as people call it.
func afterwards(x api.Item, called map[[2]string]string) (out []string) {
	for _, t := range x.Awaits {
		out = append(out, cmp.Or(called[[2]string{x.Instance, t}], x.Called(t)))
	}
	return out
}

// inTurn puts first what others wait for: the order in which it is done. Items that are said to wait for each other stay
// where they are.
func inTurn(of []api.Item) (out []api.Item) {
	left := slices.Clone(of)
	for len(left) > 0 {
		next := slices.IndexFunc(left, func(x api.Item) bool {
			return !slices.ContainsFunc(left, func(y api.Item) bool { return slices.Contains(x.Awaits, y.Task) })
		})
		next = max(next, 0)
		out, left = append(out, left[next]), slices.Delete(left, next, next+1)
	}
	return out
}

// lockTogether locks what was chosen on the list, all or none.
func (p *Page) lockTogether(ctx context.Context, r *http.Request, s httpapi.Session) (*outcome, error) {
	chosen := r.PostForm["item"]
	if len(chosen) == 0 {
		return nil, &trouble{key: "wrong.none"}
	}
	taken, err := p.node.ClaimItems(ctx, api.ClaimRequest{User: s.User, Claim: api.ClaimLock, Items: chosen})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, x := range taken {
		names = append(names, item{Item: x}.Title())
	}
	return &outcome{to: "/", note: note{Key: "note.together", Args: []any{list(names)}}}, nil
}
