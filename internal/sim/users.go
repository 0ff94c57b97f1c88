package sim

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is what users do: they sign in, take people's tasks, give them back, and hand in what
// they made, also out of reach, twice, and too late.

// user is a person: one of the plan's, or a partner, who is a user of its own name.
type user struct {
	name string
	id   worklist.User
	// had are the items that it once had, by the machine at which it took them.
	had map[int][]api.Item
	// roles are those that it ever had; now, those that it has; changed is when they last did.
	roles, now []workflow.RoleName
	changed    time.Duration
	dismissed  bool
	// unsure: a crash came between, so it is not known whether it was dismissed, or its roles changed.
	unsure bool
	keys   map[int]time.Time // at which machines it is signed in, since when by the clock of who certified it
}

// ring are the keys of users at a machine. They are in files of their own, and outlast its store.
type ring struct {
	at         int
	keys, ever map[string]ed25519.PrivateKey
}

func newRing(at int) *ring {
	return &ring{at, map[string]ed25519.PrivateKey{}, map[string]ed25519.PrivateKey{}}
}

// All are the keys.
func (k *ring) All() (map[string]ed25519.PrivateKey, []error) { return maps.Clone(k.keys), nil }

// Make makes one: each time the same.
func (k *ring) Make(user string) (ed25519.PrivateKey, error) {
	seed := sha256.Sum256(fmt.Appendf(nil, "user %s at node %d", user, k.at))
	k.ever[user] = ed25519.NewKeyFromSeed(seed[:])
	k.keys[user] = k.ever[user]
	return k.keys[user], nil
}

// Remove removes one.
func (k *ring) Remove(user string) error {
	delete(k.keys, user)
	return nil
}

// claims reports whether users claim people's tasks.
func (w *world) claims() bool { return len(w.plan.Users) > 0 }

// welcome has the plan's users made and signed in, and all act.
func (w *world) welcome() {
	if !w.claims() {
		return
	}
	for i := range w.plan.Users {
		u := &user{name: fmt.Sprintf("u%d", i), had: map[int][]api.Item{}, keys: map[int]time.Time{}}
		w.users = append(w.users, u)
		w.at(3*time.Second, func() { w.make(u, w.plan.Users[i]) })
	}
	for _, m := range w.nodes {
		u := &user{
			name: w.name(m), id: worklist.User(m.id), had: map[int][]api.Item{}, roles: m.member.Chain.Leaf().Roles,
			keys: map[int]time.Time{m.i: base.Add(-24 * time.Hour)},
		}
		u.now = u.roles
		w.users = append(w.users, u)
		w.uses(u, m)
	}
	w.at(5*time.Minute, w.watchOffers)
}

// make has the founder's node make a user, who signs in.
func (w *world) make(u *user, p User) {
	var roles []string
	for _, r := range p.Roles {
		roles = append(roles, string(r))
	}
	w.serve(w.nodes[0], func(n api.Service) {
		tok, err := n.AddUser(context.Background(), api.UserRequest{Name: u.name, Roles: roles})
		if err != nil {
			w.note("%s is not made: %v", u.name, err)
			return
		}
		u.id, u.roles, u.now = worklist.User(tok.ID), slices.Clone(p.Roles), slices.Clone(p.Roles)
		w.signIn(u, p.At, 0, tok.Token)
	})
	if u.id == "" && w.now < w.plan.Length/2 {
		w.at(w.now+30*time.Second, func() { w.make(u, p) })
	}
}

// signIn has a user sign in at the next of its nodes, and link the others there.
func (w *world) signIn(u *user, at []int, next int, token string) {
	m := w.nodes[at[next]]
	w.at(w.now+2*time.Second, func() {
		var err error
		done := false
		w.serve(m, func(n api.Service) {
			_, err = n.SignInUser(context.Background(), token)
			done = err == nil
		})
		if !done {
			if w.now < w.plan.Length/2 && !u.dismissed && !m.gone {
				w.at(w.now+20*time.Second, func() { w.signIn(u, at, next, token) })
			} else {
				w.note("%s does not sign in at n%d: %v", u.name, m.i, err)
			}
			return
		}
		by := w.nodes[0]
		if next > 0 {
			by = w.nodes[at[0]]
		}
		u.keys[m.i], u.changed = base.Add(w.now+by.skew), w.now
		w.uses(u, m)
		if next+1 == len(at) {
			return
		}
		w.serve(m, func(n api.Service) {
			if tok, err := n.LinkUser(context.Background(), u.name, 0); err == nil {
				w.signIn(u, at, next+1, tok.Token)
			}
		})
	})
}

// uses has a user act at a machine now and then, until all is to be quiet.
func (w *world) uses(u *user, m *machine) {
	pause := time.Duration(10+w.people.IntN(200)) * w.plan.Scale * time.Second
	w.at(w.now+pause, func() {
		if m.gone || w.hushed {
			return
		}
		w.serve(m, func(n api.Service) { w.use(u, m, n) })
		w.serve(m, func(n api.Service) { w.decide(u, m, n) })
		w.uses(u, m)
	})
}

func (w *world) use(u *user, m *machine, n api.Service) {
	list, err := n.Worklist(context.Background(), api.WorklistQuery{User: u.name, Ahead: w.asksAhead()})
	if err != nil {
		return
	}
	if had := u.had[m.i]; len(had) > 0 && w.people.IntN(12) == 0 { // whether or not it still has it
		w.finish(u, m, n, had[w.people.IntN(len(had))])
		return
	}
	if len(list) == 0 {
		return
	}
	x := list[w.people.IntN(len(list))]
	if w.plan.links() {
		x = w.looksAhead(list, x)
	}
	switch k := w.people.IntN(10); {
	case x.State == api.ItemNotReady:
		w.takeAhead(u, m, n, list, x)
	case x.State == api.ItemReady && k == 0: // it does not have it
		w.finish(u, m, n, x)
	case x.State == api.ItemReady && k == 1: // who decides may
		w.passOn(u, m, n, x)
	case x.State == api.ItemReady: // also what waits for a resource: it is refused
		w.take(u, m, n, list, x)
	case x.State == api.ItemDone && k > 2, k == 9: // it rests
	case k < 5 || x.State == api.ItemDone:
		w.finish(u, m, n, x)
		if k == 0 {
			w.finish(u, m, n, x) // twice
		}
	case k == 5:
		w.giveBack(u, m, n, x)
	case k < 8:
		w.passOn(u, m, n, x)
	default:
		w.take(u, m, n, list[:0], x)
	}
}

// take has a user take an item, and now and then others of the list with it.
func (w *world) take(u *user, m *machine, n api.Service, list []api.Item, x api.Item) {
	of := []api.Item{x}
	for _, o := range list {
		if o.ID != x.ID && o.State == api.ItemReady && o.Instance == x.Instance && o.Partner == x.Partner &&
			w.people.IntN(3) == 0 {
			of = append(of, o)
		}
	}
	claim := api.ClaimSelect
	if k := w.people.IntN(10); x.Offline && k < 6 || k == 9 { // or it may not be done out of reach
		claim = api.ClaimLock
	}
	r := api.ClaimRequest{User: u.name, Claim: claim}
	for _, o := range of {
		r.Items = append(r.Items, o.ID)
		w.checks.intends(u, o.ID, claim)
	}
	for range 1 + w.people.IntN(6)/5 {
		if _, err := n.ClaimItems(context.Background(), r); err != nil {
			return
		}
		for _, o := range of {
			w.out.Taken++
			w.checks.toldTaken(u, m, o)
			if !slices.ContainsFunc(u.had[m.i], func(h api.Item) bool { return h.ID == o.ID }) {
				u.had[m.i] = append(u.had[m.i], o)
			}
		}
	}
}

// takeAhead has a user lock an item that is not ready, with what it waits for, and now and then without or with more.
func (w *world) takeAhead(u *user, m *machine, n api.Service, list []api.Item, x api.Item) {
	of := []api.Item{x}
	for _, o := range list {
		free := o.State == api.ItemReady || o.State == api.ItemNotReady
		awaited := slices.Contains(x.Awaits, o.Task)
		if o.ID != x.ID && o.Instance == x.Instance && free && (awaited && w.people.IntN(8) > 0 ||
			o.Offline && w.people.IntN(w.seldom()) == 0) {
			of = append(of, o)
		}
	}
	if w.plan.links() {
		of = withAwaited(list, of)
		x = of[len(of)-1]
	}
	r := api.ClaimRequest{User: u.name, Claim: api.ClaimLock}
	for _, o := range of {
		r.Items = append(r.Items, o.ID)
	}
	if w.plan.links() {
		defer w.mayBeLost(u, m, of)()
		defer w.mayBeBeaten(u, m, of)()
	}
	before := w.checks.hasNow(u, of)
	if why := w.lockAll(u, m, n, r, of); why != nil {
		if m.node != nil && m.node.Service() == n {
			w.checks.toldNone(u, m, of, before, why.Error())
		}
		return
	}
	if w.plan.links() && holders(of) > 1 && w.people.IntN(3) == 0 {
		w.leavesBehind(u, m, of[0])
		if m.node == nil {
			return
		}
	}
	if w.people.IntN(2) == 0 { // and does all of it at once: the later may come before its holder hears of the earlier
		if !w.plan.links() {
			of = append(of[1:], x)
		}
		for _, o := range of {
			w.finish(u, m, n, o)
		}
	}
}

func (w *world) giveBack(u *user, m *machine, n api.Service, x api.Item) {
	w.checks.intends(u, x.ID, api.ClaimRelease)
	if _, err := n.ClaimItems(context.Background(),
		api.ClaimRequest{
			User: u.name, Claim: api.ClaimRelease, Items: []string{x.ID}, Reason: []string{"", "no time"}[x.ID[0]%2],
		}); err == nil {
		w.checks.toldGivenBack(u, m, x)
	}
}

// passOn has a user pass an item on: to somebody, to a role, or back.
func (w *world) passOn(u *user, m *machine, n api.Service, x api.Item) {
	r := api.TransferRequest{User: u.name, Item: x.ID}
	var to worklist.User
	switch k := w.people.IntN(6); {
	case k < 3:
		o := w.users[w.people.IntN(len(w.users))]
		r.To, to = o.name, o.id
	case k < 5:
		r.Role = string(Roles[w.people.IntN(len(Roles))])
	default:
		r.Back = true
	}
	w.checks.intends(u, x.ID, passingOf(to, workflow.RoleName(r.Role)))
	for range 1 + w.people.IntN(6)/5 { // or twice
		done, err := n.TransferItem(context.Background(), r)
		if err != nil {
			return
		}
		if !done.Already {
			w.out.PassedOn++
			w.checks.toldPassed(u, m, x, to)
		}
	}
}

// passingOf is where a word has an item pass on to, in short.
func passingOf(to worklist.User, role workflow.RoleName) string {
	return fmt.Sprintf("passed to %s %s", to, role)
}

// finish has a user hand in what it made of an item.
func (w *world) finish(u *user, m *machine, n api.Service, x api.Item) {
	r := api.ItemResult{User: u.name, Item: x.ID, Failed: !w.plan.Calm && w.people.IntN(8) == 0}
	if r.Failed {
		r.Reason = "simulated"
	} else {
		r.Outputs = w.filledIn(workflow.TaskName(x.Task))
	}
	w.checks.intends(u, x.ID, saidOf(r.Failed, r.Outputs))
	out, err := n.FinishItem(context.Background(), r)
	switch {
	case err == nil && out.Delivered:
		w.out.Recorded++
		if len(out.Awaits) > 0 {
			w.out.PutOff++
			w.checks.keepsPutOff(u, m, x, r)
		}
		w.checks.toldRecorded(u, m, x, r, len(out.Awaits) > 0) // what waits does not count yet
	case err == nil:
		w.out.Away++
		w.checks.toldKept(u, m, x, r)
	case strings.Contains(err.Error(), "; it is kept"):
		w.out.TooLate++
		w.checks.toldRecorded(u, m, x, r, true)
	case strings.Contains(err.Error(), "was not given to you"), strings.Contains(err.Error(), "has no record that"):
		w.checks.toldNever(u, m, x)
	}
}

// saidOf is what a result says, in short.
func saidOf(failed bool, outputs map[string]string) string {
	if failed {
		return "failed"
	}
	return "done " + fmt.Sprint(outputs)
}

// saidBy is saidOf of a result that somebody said.
func saidBy(r *worklist.Result) string {
	outputs := map[string]string{}
	for n, v := range r.Outputs {
		outputs[string(n)] = fmt.Sprint(v)
	}
	return saidOf(r.Failed, outputs)
}

// itemID is by what people name an item (docs/api.md).
func itemID(instance workflow.InstanceID, i worklist.Item) string {
	h := sha256.New()
	h.Write([]byte("mutirao/item/1\x00"))
	h.Write(instance[:])
	h.Write(i.Assigned[:])
	h.Write([]byte(i.Slot))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// dismiss removes a user, at the founder's node.
func (w *world) dismiss(u *user) {
	w.serve(w.nodes[0], func(n api.Service) {
		was := u.unsure
		u.unsure = true
		if _, err := n.RemoveUser(context.Background(), u.name); err == nil {
			u.dismissed, u.changed, u.unsure = true, w.now, was
		}
	})
}

// changeRole takes a role away from a user, or gives it.
func (w *world) changeRole(u *user) {
	role := Roles[w.people.IntN(len(Roles))]
	w.serve(w.nodes[0], func(n api.Service) {
		r := api.RoleRequest{User: u.name, Role: string(role)}
		had, err, was := slices.Contains(u.now, role), error(nil), u.unsure
		u.unsure = true
		if had {
			_, err = n.RevokeRole(context.Background(), r)
		} else {
			u.roles = append(u.roles, role) // as soon as that is durable
			_, err = n.GrantRole(context.Background(), r)
		}
		if err != nil {
			return
		}
		u.changed, u.unsure = w.now, was
		if had {
			u.now = slices.DeleteFunc(u.now, func(x workflow.RoleName) bool { return x == role })
			return
		}
		u.now = append(u.now, role)
	})
}

// userOf is the user of an ID; nil: nobody.
func (w *world) userOf(id worklist.User) *user {
	for _, u := range w.users {
		if u.id != "" && u.id == id {
			return u
		}
	}
	return nil
}

// keyAt is at which machine a user has that key; false: it has none.
func (w *world) keyAt(u *user, key workflow.PartnerID) (int, bool) {
	for i, m := range w.nodes {
		if workflow.PartnerID(u.id) == m.id && key == m.id {
			return i, true
		}
		if k := m.ring.ever[string(u.id)]; k != nil && trust.IDOf(k.Public().(ed25519.PublicKey)) == key {
			return i, true
		}
	}
	return 0, false
}
