package users

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Add makes a user, and a token by which it signs in. A user who is signed in nowhere, since
// its token ran out or it signed out, gets another token.
func (t *Topic) Add(r api.UserRequest) (*api.SignInToken, error) {
	r.Name = workflow.UsualForm(r.Name) // by which it is found again
	if err := checkNames(r); err != nil {
		return nil, err
	}
	if err := t.in.Certificates.MayAdminister("add users"); err != nil {
		return nil, err
	}
	now := t.in.Clock.Now().Wall
	t.changing.Lock()
	defer t.changing.Unlock()
	var records []users.Record
	u, err := t.resolve(r.Name, now)
	switch {
	case err == nil && u.Name == r.Name && len(u.Devices) == 0 && len(r.Roles) == 0: // another token
	case err == nil && u.Name == r.Name && len(u.Devices) == 0:
		return nil, api.Errorf(api.Refused, "there is a user %s already, who is signed in nowhere", r.Name).
			WithHint("for another token leave --role out; roles: mutirao role grant %s ROLE", r.Name)
	default:
		if err := t.nameFree(r.Name); err != nil {
			return nil, err
		}
		serial := trust.Serial(t.in.Random(16))
		a, err := users.NewAccount(t.in.Certificates.Issuer(), r.Name, roles(r.Roles), serial, trust.WallOf(now))
		if err != nil {
			return nil, api.Judge(api.Invalid, err)
		}
		u.ID, records = a.ID(), []users.Record{{Account: &a}}
	}
	k, err := t.ticket(u.ID, "", time.Duration(r.Expires))
	if err != nil {
		return nil, err
	}
	if err := t.make(records, writeTicket(k)); err != nil {
		return nil, err
	}
	for _, r := range records {
		t.tell(r)
	}
	return t.token(k, r.Name)
}

func checkNames(r api.UserRequest) error {
	if why := workflow.NameRule(r.Name); why != "" {
		return api.Judge(api.Invalid, trust.BadName("user", r.Name))
	}
	for _, role := range r.Roles {
		if !workflow.ValidName(role) {
			return api.Judge(api.Invalid, trust.BadName("role", role))
		}
	}
	return nil
}

func roles(texts []string) (out []workflow.RoleName) {
	for _, r := range texts {
		out = append(out, workflow.RoleName(r))
	}
	return out
}

// nameFree keeps people from taking one user or partner for another, as far as is known
// here: they tell them apart by their names.
func (t *Topic) nameFree(name string) error {
	taken, what := t.Namesake(name, t.in.Clock.Now().Wall), "user"
	sounds := membership.Sounds(name)
	for _, p := range t.in.Members.All() { // also one that is gone: it may be back
		if p.State != membership.Evicted && !p.ForGood() && membership.Sounds(p.Record.Name()) == sounds && taken != name {
			taken, what = p.Record.Name(), "partner"
		}
	}
	switch {
	case taken == "":
		return nil
	case taken == name:
		return api.Errorf(api.Refused, "there is a %s %s already", what, name).WithHint("use another name")
	}
	return api.Errorf(api.Refused, "the name %s looks like that of the %s %s", name, what, taken).
		WithHint("use another name")
}

// find finds whom a person names: a user, or a partner, who is a user by being one. Both are named as lists show
// them, by name or ID.
func (t *Topic) find(ref string) (u users.User, partner workflow.PartnerID, err error) {
	ref = workflow.UsualForm(ref)
	if err := t.oneOnly(ref); err != nil {
		return u, "", err
	}
	u, err = t.resolve(ref, t.in.Clock.Now().Wall)
	if err == nil || errors.Is(err, membership.ErrAmbiguous) {
		return u, "", err
	}
	p, other := t.in.Members.Resolve(ref)
	if errors.Is(other, membership.ErrAmbiguous) {
		return u, "", other
	}
	if x, known := t.in.Members.Get(p); other == nil && known && x.State != membership.Evicted &&
		(len(ref) >= len(p.Short()) || ref == x.Record.Name()) {
		return u, p, nil
	}
	return u, "", t.unknown(ref, err)
}

// twin is a user who has the name of a partner: two sides of a split gave it, as each is refused where the other is
// known.
type twin struct {
	name    string
	user    users.ID
	partner workflow.PartnerID
}

// twins are they, by name.
func (t *Topic) twins() (out []twin) {
	named := map[string]workflow.PartnerID{}
	for _, p := range t.in.Members.All() {
		if p.State != membership.Evicted && !p.ForGood() {
			named[p.Record.Name()] = p.Record.Partner
		}
	}
	for _, u := range t.users(t.in.Clock.Now().Wall) {
		if p, is := named[u.Name]; is {
			out = append(out, twin{u.Name, u.ID, p})
		}
	}
	slices.SortFunc(out, func(a, b twin) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.user.String(), b.user.String()))
	})
	return out
}

// oneOnly returns an error if a name is that of a user and of a partner: nobody is to be taken for another.
func (t *Topic) oneOnly(name string) error {
	for _, x := range t.twins() {
		if x.name == name {
			return api.Errorf(api.Invalid, "a user and a partner are called %s: say which by ID, %s (the user) or %s (the partner)",
				name, x.user.String(), string(x.partner)).
				WithHint("two sides of a split gave that name; mutirao doctor says what to do")
		}
	}
	return nil
}

// Twins says which users have the name of a partner.
func (t *Topic) Twins() (out []string) {
	for _, x := range t.twins() {
		out = append(out, fmt.Sprintf("%s is the name of user %s and of partner %s", x.name, x.user, x.partner))
	}
	return out
}

// unknown says that nobody is called so, and who is called nearly so.
func (t *Topic) unknown(ref string, err error) error {
	if errors.Is(err, users.ErrRemoved) {
		return api.Judge(api.NotFound, err).
			WithHint("mutirao user list shows the users; mutirao user add makes another of that name")
	}
	var names []string
	for _, u := range t.users(t.in.Clock.Now().Wall) {
		names = append(names, u.Name)
	}
	for _, p := range t.in.Members.All() {
		if p.State != membership.Evicted {
			names = append(names, p.Record.Name())
		}
	}
	if near := workflow.Nearest(ref, names); near != "" {
		return api.Judge(api.NotFound, err).WithHint("did you mean %s?", near)
	}
	return err
}

// Remove removes a user for good or, by a key's ID, one of its keys.
func (t *Topic) Remove(ref string) (*api.RemovedUser, error) {
	if err := t.in.Certificates.MayAdminister("remove users"); err != nil {
		return nil, err
	}
	now := t.in.Clock.Now().Wall
	t.changing.Lock()
	defer t.changing.Unlock()
	var key workflow.PartnerID
	ref = workflow.UsualForm(ref)
	u, partner, err := t.find(ref)
	if err == nil && partner == "" && ref != u.Name && ref != u.ID.String() {
		return nil, api.Errorf(api.Invalid, "%q has only the beginning of an ID: want a name or a whole ID", ref).
			WithHint("if you mean %s, type %s", u.Name, u.ID)
	}
	if owner, ok := t.ownerOf(ref); ok {
		u, key, err = owner, workflow.PartnerID(ref), nil
	}
	switch {
	case partner != "":
		return nil, api.Errorf(api.Refused, "%s is a partner, and a user by being one", ref).
			WithHint("to remove it from the mesh: mutirao evict %s", ref)
	case err != nil:
		return nil, err
	}
	r, err := users.Remove(t.in.Certificates.Issuer(), u.ID, key, trust.Serial(t.in.Random(16)), trust.WallOf(now))
	if err == nil {
		err = t.say(r)
	}
	return &api.RemovedUser{Name: u.Name, ID: u.ID.String(), Key: string(key)}, err
}

// ownerOf is the user with a key that is good, by the key's whole ID.
func (t *Topic) ownerOf(key string) (users.User, bool) {
	for _, u := range t.users(t.in.Clock.Now().Wall) {
		for _, d := range u.Devices {
			if string(d.Leaf().Key) == key {
				return u, true
			}
		}
	}
	return users.User{}, false
}

// ChangeRole gives a user a role, or takes it away. What is so already is left.
func (t *Topic) ChangeRole(r api.RoleRequest, given bool) (*api.UserRoles, error) {
	if !workflow.ValidName(r.Role) {
		return nil, api.Judge(api.Invalid, trust.BadName("role", r.Role))
	}
	what := "grant roles"
	if !given {
		what = "revoke roles"
	}
	if err := t.in.Certificates.MayAdminister(what); err != nil {
		return nil, err
	}
	now := t.in.Clock.Now().Wall
	t.changing.Lock()
	defer t.changing.Unlock()
	u, partner, err := t.find(r.User)
	switch {
	case partner != "":
		return nil, api.Errorf(api.Refused, "%s is a partner: its roles are those of its certificate", r.User).
			WithHint("it gets others by joining again with an invitation that gives them; or add a user who signs in there: mutirao user add NAME --role %s", r.Role)
	case err != nil:
		return nil, err
	}
	role := workflow.RoleName(r.Role)
	if given && !u.HasRole(role) && len(u.Roles) >= trust.MaxRoles {
		return nil, api.Errorf(api.Refused, "user %s has %d roles: at most %d", u.Name, len(u.Roles), trust.MaxRoles)
	}
	if u.HasRole(role) != given {
		var c users.Record
		by := t.in.Certificates.Issuer()
		t.ask(func(s *users.Set) {
			c, err = s.ChangeRole(by, u.ID, role, given, trust.Serial(t.in.Random(16)), trust.WallOf(now))
		})
		if err == nil {
			err = t.say(c)
		}
		if err != nil {
			return nil, err
		}
		t.ask(func(s *users.Set) { u, err = s.User(u.ID, now) })
	}
	return &api.UserRoles{Name: u.Name, ID: u.ID.String(), Roles: texts(u.Roles)}, err
}

func texts(roles []workflow.RoleName) []string {
	out := make([]string, len(roles))
	for i, r := range roles {
		out[i] = string(r)
	}
	return out
}

// nodes are the names of the partners at whose nodes a user's keys are.
func (t *Topic) nodes(u users.User) []string {
	out := []string{}
	for _, d := range u.Devices {
		out = append(out, t.in.Members.Name(d.Leaf().Node))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// List lists the partners that are users by being partners, and all other users.
func (t *Topic) List(ctx context.Context) ([]api.User, error) {
	work, err := t.in.Work(ctx)
	if err != nil {
		return nil, err
	}
	out, active := []api.User{}, map[workflow.PartnerID]bool{}
	namesakes := map[string]string{}
	for _, x := range t.twins() {
		namesakes[string(x.partner)], namesakes[x.user.String()] = x.user.String(), string(x.partner)
	}
	for _, p := range t.in.Members.All() {
		if p.State == membership.Evicted || p.ForGood() {
			continue
		}
		id, w := p.Record.Partner, work[string(p.Record.Partner)]
		active[id] = id == t.in.Self || p.State == membership.Active
		out = append(out, api.User{
			Name: t.in.Members.Name(id), ID: string(id), Roles: texts(p.Record.Roles()),
			Devices: []string{t.in.Members.Name(id)},
			Active:  active[id], Done: w.Done, Assigned: w.Assigned, Selected: w.Selected, Partner: true,
			Here: id == t.in.Self,
			Keys: []api.UserKey{}, Namesake: namesakes[string(id)],
		})
	}
	all := t.users(t.in.Clock.Now().Wall)
	labels := users.Labels(all)
	for i, u := range all {
		w := work[u.ID.String()]
		row := api.User{
			Name: labels[i], ID: u.ID.String(), Roles: texts(u.Roles), Devices: t.nodes(u), Keys: []api.UserKey{},
			Done: w.Done, Assigned: w.Assigned, Selected: w.Selected, Namesake: namesakes[u.ID.String()],
		}
		for _, d := range u.Devices {
			c := d.Leaf()
			row.Active = row.Active || active[c.Node]
			row.Here = row.Here || c.Node == t.in.Self && t.keyOf(u.ID) != nil
			row.Keys = append(row.Keys, api.UserKey{
				ID: string(c.Key), Device: t.in.Members.Name(c.Node), Until: c.NotAfter.Time(),
			})
		}
		out = append(out, row)
	}
	slices.SortStableFunc(out, func(a, b api.User) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// Roles lists the roles that users have, and who has each.
func (t *Topic) Roles(ctx context.Context) ([]api.Role, error) {
	all, err := t.List(ctx)
	if err != nil {
		return nil, err
	}
	who := map[string][]string{}
	for _, u := range all {
		for _, r := range u.Roles {
			who[r] = append(who[r], u.Name)
		}
	}
	out := []api.Role{}
	for r, names := range who {
		out = append(out, api.Role{Role: r, Users: names})
	}
	slices.SortFunc(out, func(a, b api.Role) int { return cmp.Compare(a.Role, b.Role) })
	return out, nil
}

// Unfit says what lay among the keys of users when the node started and is not used, and why.
func (t *Topic) Unfit() (out []string) {
	for _, err := range t.unfit {
		out = append(out, err.Error())
	}
	slices.Sort(out)
	return out
}

// Filling says, in words for people, whose share of the room for records about users is
// nearly full.
func (t *Topic) Filling() (out []string) {
	for _, p := range t.in.Members.All() {
		id := p.Record.Partner
		var loads []users.Load
		t.ask(func(s *users.Set) { loads = s.Loads(id) })
		for _, l := range loads {
			if l.Count > l.Most*3/4 {
				out = append(out, fmt.Sprintf("%s is answerable for %d %s, of %d that are taken in",
					t.in.Members.Name(id), l.Count, l.What, l.Most))
			}
		}
	}
	return out
}
