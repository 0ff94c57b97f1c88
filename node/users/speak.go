package users

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Who is a person at this node: a user who is signed in, or the partner, who is a user of its
// own name.
type Who struct {
	ID   string // whole: a user's, or the partner's
	Name string

	user users.ID // zero: the partner
}

// Who is the person that is meant by a name or an ID; empty: the one user who is signed
// in here, or else the partner.
func (t *Topic) Who(ref string) (Who, error) {
	now := t.in.Clock.Now().Wall
	partner := Who{ID: string(t.in.Self), Name: t.in.Members.Name(t.in.Self)}
	if ref == "" {
		var here []users.User
		for _, u := range t.users(now) {
			if _, _, err := t.signedIn(u); err == nil {
				here = append(here, u)
			}
		}
		switch len(here) {
		case 0:
			return partner, nil
		case 1:
			return Who{here[0].ID.String(), here[0].Name, here[0].ID}, nil
		}
		return Who{}, api.Errorf(api.Invalid, "%s are signed in here: say who with --user",
			strings.Join(users.Labels(here), ", "))
	}
	if err := t.oneOnly(ref); err != nil {
		return Who{}, err
	}
	if ref == partner.Name || ref == partner.ID {
		return partner, nil
	}
	u, other, err := t.find(ref)
	switch {
	case other == t.in.Self:
		return partner, nil
	case other != "":
		return Who{}, api.Errorf(api.Refused, "%s is another partner: what is its own is done on its node", ref)
	case err != nil:
		return Who{}, err
	}
	if _, _, err := t.signedIn(u); err != nil {
		return Who{}, err
	}
	return Who{u.ID.String(), u.Name, u.ID}, nil
}

// Here are all persons at this node: the users who are signed in, and the partner.
func (t *Topic) Here() []Who {
	out := []Who{{ID: string(t.in.Self), Name: t.in.Members.Name(t.in.Self)}}
	for _, u := range t.users(t.in.Clock.Now().Wall) {
		if _, _, err := t.signedIn(u); err == nil {
			out = append(out, Who{u.ID.String(), u.Name, u.ID})
		}
	}
	return out
}

// Elsewhere is a user who is signed in at this node, and another node at which that user is signed in, too.
type Elsewhere struct {
	Who
	At workflow.PartnerID
}

// Elsewhere are all such, in one order.
func (t *Topic) Elsewhere() (out []Elsewhere) {
	now := t.in.Clock.Now().Wall
	t.mu.Lock()
	here := slices.Collect(maps.Keys(t.here))
	t.mu.Unlock()
	for _, id := range here {
		u, err := t.User(id, now)
		if err != nil {
			continue
		}
		if _, _, err := t.signedIn(u); err != nil {
			continue
		}
		for _, d := range u.Devices {
			if p := d.Leaf().Node; p != t.in.Self {
				out = append(out, Elsewhere{Who{u.ID.String(), u.Name, u.ID}, p})
			}
		}
	}
	compare := func(a, b Elsewhere) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.At, b.At)) }
	slices.SortFunc(out, compare)
	return slices.CompactFunc(out, func(a, b Elsewhere) bool { return compare(a, b) == 0 })
}

// Removed reports whether a person is a user who was removed for good.
func (t *Topic) Removed(person string) bool {
	id, err := users.ParseID(person)
	if err != nil {
		return false
	}
	_, err = t.User(id, t.in.Clock.Now().Wall)
	return errors.Is(err, users.ErrRemoved)
}

// Anybody is the person of a name or an ID, at whichever node.
func (t *Topic) Anybody(ref string) (Who, error) {
	u, partner, err := t.find(ref)
	switch {
	case partner != "":
		x, _ := t.in.Members.Get(partner)
		return Who{ID: string(partner), Name: x.Record.Name()}, nil
	case err != nil:
		return Who{}, err
	}
	return Who{u.ID.String(), u.Name, u.ID}, nil
}

// Speak has a person at this node say something, with all that proves it.
func (t *Topic) Speak(w Who, signed [sha256.Size]byte) ([]byte, error) {
	if w.user == (users.ID{}) {
		own := t.in.Certificates.Issuer()
		return users.EncodeSpoken(users.SpeakAsPartner(own.Key, own.Chain, signed)), nil
	}
	key := t.keyOf(w.user)
	if key == nil {
		return nil, api.Errorf(api.Refused, "user %s is not signed in at this node any more", w.Name)
	}
	var s users.Spoken
	var err error
	t.ask(func(k *users.Set) { s, err = k.Speak(key, w.user, signed, t.in.Clock.Now().Wall) })
	if err != nil {
		return nil, judged(err)
	}
	return users.EncodeSpoken(s), nil
}

// Signed is how a person signed a word; nil: it is none.
func Signed(word []byte) *api.PersonSignature {
	s, err := users.DecodeSpoken(word)
	if err != nil {
		return nil
	}
	return &api.PersonSignature{Key: string(s.Signature.Key), Signature: hex.EncodeToString(s.Signature.Signature)}
}

// MaySpeak checks a person's word that a partner brings: it is true, the person's key is good
// now, and it is at that partner's node.
func (t *Topic) MaySpeak(word []byte, signed [sha256.Size]byte, from workflow.PartnerID) error {
	s, err := users.DecodeSpoken(word)
	if err != nil {
		return err
	}
	p, err := t.in.Person(word, signed)
	switch {
	case err != nil:
		return err
	case p.At != from:
		return elsewhere(from, p.Name)
	case p.ID == string(from):
		return nil
	}
	t.ask(func(k *users.Set) { _, err = k.Judge(s.Signature, signed, from, t.in.Clock.Now().Wall) })
	return err
}

// Speaker is whose word something is, a user's or a partner's; empty: it is nobody's, or cannot be read.
func (t *Topic) Speaker(word []byte, signed [sha256.Size]byte) string {
	p, err := t.in.Person(word, signed)
	if err != nil {
		return ""
	}
	return p.ID
}

// MayBegin checks the word by which a user began an instance at a partner's node, which that partner itself sends:
// the user's key is good now, and the user has the role as far as is known here. Who is not known here, or by
// another key, is taken at the word, which proves it: what is known of users is on its way.
func (t *Topic) MayBegin(
	word []byte, signed [sha256.Size]byte, from workflow.PartnerID, role workflow.RoleName,
) error {
	if err := t.MaySpeak(word, signed, from); err != nil && !unheardOf(err) {
		return err
	}
	s, err := users.DecodeSpoken(word)
	if err != nil || s.Signature.User == (users.ID{}) {
		return err
	}
	u, err := t.User(s.Signature.User, t.in.Clock.Now().Wall)
	switch {
	case err != nil && !unheardOf(err):
		return err
	case err == nil && role != "" && !u.HasRole(role):
		return fmt.Errorf("user %s does not have role %s any more: %w", u.Name, role, trust.ErrNotAllowed)
	}
	return nil
}

// unheardOf reports whether a user, or a key, is refused only as nothing is known of it.
func unheardOf(err error) bool {
	return errors.Is(err, users.ErrNoUser) && !errors.Is(err, users.ErrRemoved)
}

// MayStillBring is MaySpeak for the result of an item, which a user may have made before hearing of being removed, or
// before the certificate of the user's key ended: it is kept, and ends nothing (choreo). expired: the user may say nothing
// else for that.
func (t *Topic) MayStillBring(word []byte, signed [sha256.Size]byte, from workflow.PartnerID) (expired bool, err error) {
	refused := t.MaySpeak(word, signed, from)
	if !errors.Is(refused, users.ErrRemoved) && !errors.Is(refused, trust.ErrExpired) {
		return false, refused
	}
	s, err := users.DecodeSpoken(word)
	if err != nil {
		return false, err
	}
	t.ask(func(k *users.Set) { err = k.JudgeLate(s.Signature, signed, from, t.in.Clock.Now().Wall) })
	if err != nil {
		return false, refused
	}
	return errors.Is(refused, trust.ErrExpired), nil
}

// MayAsk checks that a person is at a partner's node now.
func (t *Topic) MayAsk(person string, from workflow.PartnerID) error {
	if person == string(from) {
		return nil
	}
	id, err := users.ParseID(person)
	if err != nil {
		return err
	}
	u, err := t.User(id, t.in.Clock.Now().Wall)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(u.Devices, func(d users.Device) bool { return d.Leaf().Node == from }) {
		return elsewhere(from, u.Name)
	}
	return nil
}

func elsewhere(from workflow.PartnerID, name string) error {
	return said.Errorf("%s asks for %s, who is not at its node: %w", from, name, trust.ErrNotAllowed)
}
