package users

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/invitation"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// The requests by which a user signs in at a node (membership/users/token.go draws it): to
// the node that made the token, and to another that passes them on to it.
const (
	ProtocolSignIn = "/mutirao/user-sign-in/1.0.0"
	ProtocolPass   = "/mutirao/user-pass/1.0.0"
)

// signInPatience is how long to wait for one node's answer.
const signInPatience = 10 * time.Second

// maxAddresses is how many addresses a token names: members know of more, and the QR code
// must fit on a terminal.
const maxAddresses = 4

// maxTokenTime bounds for how long a sign-in token can be used.
const maxTokenTime = 366 * 24 * time.Hour

var errNoIssuer = errors.New("the node that made the token cannot be reached from here either")

func ticketKey(id users.TicketID) []byte { return append([]byte{PrefixTicket}, id[:]...) }

// writeTicket is how a ticket is stored.
func writeTicket(k users.Ticket) kv.Write {
	return kv.Write{Key: ticketKey(k.Secret.ID()), Value: users.EncodeTicket(k)}
}

// ticket draws a token for a user. The caller holds t.changing.
func (t *Topic) ticket(user users.ID, linked workflow.PartnerID, expires time.Duration) (users.Ticket, error) {
	if expires == 0 {
		expires = 24 * time.Hour
	}
	if expires < 0 || expires > maxTokenTime {
		return users.Ticket{}, api.Errorf(api.Invalid, "a token for %s: want more than 0 and at most 366d", expires)
	}
	if err := t.tickets.Room(); err != nil {
		return users.Ticket{}, api.Judge(api.Refused, err)
	}
	return users.Ticket{
		Secret: users.Secret(t.in.Random(len(users.Secret{}))), User: user, Linked: linked,
		Expires: trust.WallOf(t.in.Clock.Now().Wall.Add(expires)), Lifetime: t.in.Lifetime,
	}, nil
}

// token is what is shown of a ticket, once. The caller holds t.changing; the ticket is
// durable.
func (t *Topic) token(k users.Ticket, name string) (*api.SignInToken, error) {
	if err := t.tickets.Keep(k); err != nil {
		return nil, api.Judge(api.Refused, err)
	}
	at := t.in.Peers.Addrs()
	tok := users.Token{
		Mesh: t.in.Mesh.ID(), User: k.User, Name: name, Node: t.in.Self, Addresses: at[:min(len(at), maxAddresses)],
		Secret: k.Secret, Expires: k.Expires,
	}
	return &api.SignInToken{User: name, ID: k.User.String(), Token: tok.Text(), Expires: k.Expires.Time()}, nil
}

// forgetTickets forgets the tokens that ran out.
func (t *Topic) forgetTickets(at time.Time) {
	t.changing.Lock()
	defer t.changing.Unlock()
	for _, id := range t.tickets.Expired(at) {
		if t.store.CommitWait([]kv.Write{{Key: ticketKey(id), Delete: true}}) == nil {
			t.tickets.Forget(id)
		}
	}
}

// Link makes a token for another device of a user who is signed in here.
func (t *Topic) Link(ref string, expires time.Duration) (*api.SignInToken, error) {
	u, err := t.resolve(ref, t.in.Clock.Now().Wall)
	if err != nil {
		return nil, err
	}
	_, d, err := t.signedIn(u)
	if err != nil {
		return nil, err
	}
	if len(d.Chain) == users.MaxLinks {
		return nil, api.Errorf(api.Refused,
			"this device of user %s was linked by a device that was linked, %d in a row: it cannot link another",
			u.Name, users.MaxLinks).
			WithHint("link it on another device of the user")
	}
	t.changing.Lock()
	defer t.changing.Unlock()
	k, err := t.ticket(u.ID, d.Leaf().Key, expires)
	if err != nil {
		return nil, err
	}
	if err := t.make(nil, writeTicket(k)); err != nil {
		return nil, err
	}
	return t.token(k, u.Name)
}

// signedIn is the key of a user here, with what makes it good.
func (t *Topic) signedIn(u users.User) (key ed25519.PrivateKey, d users.Device, err error) {
	key = t.keyOf(u.ID)
	if key == nil {
		return nil, d, api.Errorf(api.Refused, "user %s is not signed in at this node", u.Name).
			WithHint("mutirao user list -o json shows the devices of a user")
	}
	t.ask(func(k *users.Set) { d, err = k.Key(u.ID, idOf(key), t.in.Clock.Now().Wall) })
	return key, d, judged(err)
}

// judged says what it is that a key of a user here does not count, where it is not known as something
// else: that its node was evicted, or its certificate ran out.
func judged(err error) error {
	if err == nil || errors.Is(err, users.ErrRemoved) || errors.Is(err, users.ErrNoUser) {
		return err
	}
	return api.Judge(api.NotAllowed, err)
}

func (t *Topic) keyOf(id users.ID) ed25519.PrivateKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.here[id]
}

func idOf(key ed25519.PrivateKey) workflow.PartnerID {
	return trust.IDOf(key.Public().(ed25519.PublicKey))
}

// Redeem answers a node at which a user signs in: it counts the use of the token and
// certifies the key, in one commit.
func (t *Topic) Redeem(from workflow.PartnerID, req []byte) ([]byte, error) {
	d, err := t.redeem(req)
	if err != nil {
		t.in.Peers.Refuse("sign-in", from)
		return nil, err
	}
	return users.EncodeRecord(users.Record{Device: &d}), nil
}

func (t *Topic) redeem(req []byte) (d users.Device, err error) {
	r, err := users.DecodeRequest(req)
	if err != nil {
		return d, err
	}
	now := t.in.Clock.Now().Wall
	t.changing.Lock()
	defer t.changing.Unlock()
	k, err := t.tickets.Redeem(r, now)
	switch {
	case err != nil:
		return d, err
	case k.Redeemed != nil:
		return *k.Redeemed, nil
	}
	if d, err = t.certify(k, r, now); err != nil {
		return d, err
	}
	k.Redeemed = &d
	record := users.Record{Device: &d}
	if err := t.make([]users.Record{record}, writeTicket(k)); err != nil {
		return d, err
	}
	t.exchange.Share([][]byte{users.EncodeRecord(record)}, r.Node) // which has it by the answer
	t.publish()
	return d, t.tickets.Keep(k)
}

// certify certifies the key that asks by a ticket, as this node's administrator or by the
// key of the same user that is here.
func (t *Topic) certify(k users.Ticket, r users.Request, now time.Time) (d users.Device, err error) {
	var a users.Account
	t.ask(func(s *users.Set) { a, err = s.Account(k.User) })
	if err != nil {
		return d, err
	}
	c := k.Certificate(r, trust.Serial(t.in.Random(16)), now)
	if k.Linked == "" {
		if err := t.in.Certificates.MayAdminister("sign users in"); err != nil {
			return d, err
		}
		by := t.in.Certificates.Issuer()
		t.ask(func(s *users.Set) { c.Number = s.NextNumber(k.User, r.Key, by.ID()) })
		return users.Certify(by, a, c)
	}
	key := t.keyOf(k.User)
	if key == nil || idOf(key) != k.Linked {
		return d, fmt.Errorf("user %s signed out at the node that made the token: ask for another", a.Name)
	}
	var by users.Device
	t.ask(func(s *users.Set) {
		by, err = s.Key(k.User, k.Linked, now)
		c.Number = s.NextNumber(k.User, r.Key, k.Linked)
	})
	if err != nil {
		return d, err
	}
	return users.Link(t.in.Mesh, key, by, c)
}

// Pass passes a request to sign in on to the node that made the token, for a member that
// does not reach it.
func (t *Topic) Pass(_ workflow.PartnerID, req []byte) ([]byte, error) {
	p, err := invitation.DecodePass(req)
	if err != nil {
		return nil, err
	}
	if p.Issuer == t.in.Self {
		return nil, errors.New("ask this node itself")
	}
	if !t.in.Peers.Up(p.Issuer) {
		return nil, errNoIssuer
	}
	b, err := t.in.Peers.Request(context.Background(), p.Issuer, nil, ProtocolSignIn, p.Message, signInPatience)
	if passed, answered := invitation.PassBack(b, err); answered {
		return passed, nil
	}
	return nil, errNoIssuer
}

// errRefusal is an answer of the node that made the token, which no other way changes.
type errRefusal struct{ error }

// SignIn makes a user's key here, and obtains its certificate. A user who is signed in here
// already stays so.
func (t *Topic) SignIn(ctx context.Context, word string) (*api.SignedIn, error) {
	now := t.in.Clock.Now().Wall
	tok, err := users.ParseToken(word)
	if err != nil {
		return nil, api.Judge(api.Invalid, err)
	}
	if err := tok.Fits(t.in.Mesh, now); err != nil {
		return nil, api.Judge(api.Refused, err)
	}
	t.signing.Lock()
	defer t.signing.Unlock()
	if err := t.dropRemoved(tok.User); err != nil {
		return nil, err
	}
	key, err := t.in.Keys.Make(tok.User.String())
	if err != nil {
		return nil, err
	}
	d, err := t.obtain(ctx, tok, key)
	var final errRefusal
	if errors.As(err, &final) {
		// The key stays: it may have been certified all the same, and then no other is.
		return nil, api.Judge(api.Refused, final.error)
	}
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.here[tok.User] = key
	t.mu.Unlock()
	var u users.User
	t.ask(func(s *users.Set) { u, err = s.User(tok.User, now) })
	return &api.SignedIn{Name: u.Name, ID: u.ID.String(), Roles: texts(u.Roles), Until: d.Leaf().NotAfter.Time()}, err
}

// obtain has a key certified, and keeps what certifies it.
func (t *Topic) obtain(ctx context.Context, tok users.Token, key ed25519.PrivateKey) (d users.Device, err error) {
	t.ask(func(s *users.Set) { d, err = s.Key(tok.User, idOf(key), t.in.Clock.Now().Wall) })
	if err == nil { // a crash came between, or it is a second time; it may not be stored yet
		return d, t.store.CommitWait([]kv.Write{write(users.Record{Device: &d})})
	}
	node := t.in.Certificates.Issuer().Key
	req := users.EncodeRequest(users.NewRequest(tok, key, node))
	b, err := t.askFor(ctx, tok, req)
	if err != nil {
		return d, err
	}
	r, err := users.DecodeRecord(b)
	if err != nil {
		return d, errRefusal{err}
	}
	if r.Device == nil || r.Device.Leaf().Key != idOf(key) || r.Device.Leaf().User != tok.User ||
		r.Device.Leaf().Node != t.in.Self {
		return d, errRefusal{said.Errorf("%s answered with something else than a certificate of this key", tok.Node)}
	}
	fresh, replaced, err := t.add(r)
	if err != nil {
		return d, errRefusal{err}
	}
	if err := t.store.CommitWait(append([]kv.Write{write(r)}, replaced...)); err != nil {
		return d, err
	}
	if fresh { // else others know it: by this node's own word, or by whose it came
		t.exchange.Share([][]byte{b}, tok.Node)
		t.publish()
	}
	t.ask(func(s *users.Set) { d, err = s.Key(tok.User, idOf(key), t.in.Clock.Now().Wall) })
	if err != nil {
		return d, errRefusal{err}
	}
	return d, nil
}

// askFor asks the node that made a token: itself, or by way of others.
func (t *Topic) askFor(ctx context.Context, tok users.Token, req []byte) ([]byte, error) {
	if tok.Node == t.in.Self {
		b, err := t.Redeem(t.in.Self, req)
		if err != nil {
			return nil, errRefusal{err}
		}
		return b, nil
	}
	addrs := slices.Clone(tok.Addresses)
	if p, ok := t.in.Members.Get(tok.Node); ok {
		addrs = append(addrs, p.Record.Addresses...)
	}
	b, err := t.in.Peers.Request(ctx, tok.Node, addrs, ProtocolSignIn, req, signInPatience)
	if no, answered := invitation.Refusal(err); answered {
		return nil, errRefusal{errors.New(no)}
	}
	if err == nil {
		return b, nil
	}
	var refusal error
	pass := invitation.EncodePass(invitation.Pass{Issuer: tok.Node, Message: req})
	for _, p := range t.in.Peers.UpPeers() {
		if p == tok.Node {
			continue
		}
		b, err := t.in.Peers.Request(ctx, p, nil, ProtocolPass, pass, signInPatience)
		if err != nil {
			continue
		}
		passed, err := invitation.DecodePassed(b)
		switch {
		case err != nil:
		case passed.Refusal != "": // another may say something else: nothing proves it
			refusal = errRefusal{errors.New(passed.Refusal)}
		default:
			return passed.Message, nil
		}
	}
	if refusal != nil {
		return nil, refusal
	}
	return nil, api.Errorf(api.Failed, "%s, which made the token, cannot be reached", t.in.Members.Name(tok.Node)).
		WithHint("try again when it can be: with the same token at this node that takes no second use")
}

// SignOut ends a user's being signed in here: the key removes itself, in the whole mesh, and
// is deleted. The user's other devices stay. What waits to be handed in is signed by that key: no partner would take it.
func (t *Topic) SignOut(r api.SignOutRequest) (*api.SignedOut, error) {
	t.signing.Lock()
	defer t.signing.Unlock()
	id, name, err := t.whoIsHere(r.User)
	if err != nil {
		return nil, err
	}
	if waits := t.in.Waits(id.String()); len(waits) > 0 && !r.Discard {
		return nil, api.Errorf(api.Refused, "what %s did here waits to be handed in, and would be lost: %s", name,
			strings.Join(waits, ", ")).
			WithHint("mutirao outbox shows it, and who it waits for; when that one can be reached it goes by itself "+
				"(mutirao worklist reconnect). To sign out all the same: mutirao user sign-out %s --discard", name)
	}
	t.changing.Lock() // nothing is linked meanwhile, which the removal would not keep
	defer t.changing.Unlock()
	now, key := t.in.Clock.Now().Wall, t.keyOf(id)
	var d users.Device
	t.ask(func(s *users.Set) { d, err = s.Key(id, idOf(key), now) })
	if err == nil { // else the key is no good, and there is nothing to take back
		var r users.Record
		t.ask(func(s *users.Set) { r, err = s.SignOut(key, d, trust.Serial(t.in.Random(16)), trust.WallOf(now)) })
		if err == nil {
			err = t.say(r)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := t.drop(id); err != nil {
		return nil, err
	}
	var u users.User
	t.ask(func(s *users.Set) { u, err = s.User(id, now) }) // without devices, if it was removed
	return &api.SignedOut{Name: name, ID: id.String(), Devices: t.nodes(u), Removed: err != nil}, nil
}

// drop deletes the key of a user.
func (t *Topic) drop(id users.ID) error {
	if err := t.in.Keys.Remove(id.String()); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.here, id)
	return nil
}

// dropRemoved deletes the key of a user that was removed: by an administrator, or by itself,
// just before a crash. It would be certified in vain.
func (t *Topic) dropRemoved(id users.ID) (err error) {
	key := t.keyOf(id)
	if key == nil {
		return nil
	}
	t.ask(func(s *users.Set) { _, err = s.Key(id, idOf(key), t.in.Clock.Now().Wall) })
	if errors.Is(err, users.ErrRemoved) {
		return t.drop(id)
	}
	return nil
}

// whoIsHere finds the user that a person names, by a name or a whole ID, among those whose
// keys are here: also one that was removed, where no other is meant.
func (t *Topic) whoIsHere(ref string) (id users.ID, name string, err error) {
	ref = workflow.UsualForm(ref)
	t.mu.Lock()
	here := slices.Collect(maps.Keys(t.here))
	t.mu.Unlock()
	var named, gone []users.ID
	t.ask(func(s *users.Set) {
		for _, x := range here {
			_, err := s.Account(x)
			switch {
			case x.String() != ref && s.Named(x) != ref:
			case err == nil:
				named = append(named, x)
			default:
				gone = append(gone, x)
			}
		}
		if len(named) == 0 {
			named = gone
		}
		if len(named) == 1 {
			id, name = named[0], s.Named(named[0])
		}
	})
	switch len(named) {
	case 1:
		return id, name, nil
	case 0:
		return id, "", api.Errorf(api.NotFound, "no user %q is signed in at this node", ref).
			WithHint("mutirao user list shows who is: HERE")
	}
	return id, "", api.Errorf(api.Invalid, "several users who are signed in here are called %s: use an ID", ref).
		WithHint("mutirao user list -v shows the IDs")
}
