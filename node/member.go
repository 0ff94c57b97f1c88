package node

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/private"
	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/invitation"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/addresses"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/joining"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// The files of a node's folder that hold its identity: private ones. The store
// lies beside them in store/.
const (
	keyFile    = "key"          // the seed of the Ed25519 key, base64
	memberFile = api.MemberFile // the mesh and the certificate chain, CBOR
)

// PrivateFiles are the files of a node's folder that are its user's alone.
func PrivateFiles() []string {
	return []string{keyFile, memberFile, api.AccessFile, api.TokensFile, api.PageFile}
}

// Lifetime is how long a membership certificate is valid: longer than any
// mission, since a team that is offline cannot renew.
const Lifetime = 366 * 24 * time.Hour

// ErrNoMember is returned by LoadMember for a folder that belongs to no mesh yet.
var ErrNoMember = errors.New("there is no node")

// ErrMember is returned where a folder that belongs to a mesh already would be
// given to another.
var ErrMember = errors.New("this folder belongs to a mesh already")

// identityError says that a folder is a node's, and why it cannot be told whose.
type identityError struct{ error }

func (e *identityError) Unwrap() error { return e.error }

// InitOptions describe a new mesh and its founder.
type InitOptions struct {
	Mesh  string
	Name  string
	Roles []string
}

// Init founds a mesh: it makes the founder's key in dir and certifies it. Where that
// fails, the folder is as it was before.
func Init(dir string, o InitOptions) (m Member, err error) {
	key, undo, err := newKey(dir)
	if err != nil {
		return Member{}, err
	}
	defer func() {
		if err != nil {
			undo()
		}
	}()
	m = Member{Key: key}
	m.Mesh = trust.Mesh{Name: o.Mesh, Founder: m.ID()}
	if err := m.Mesh.Validate(); err != nil {
		return Member{}, err
	}
	roles := make([]workflow.RoleName, len(o.Roles))
	for i, r := range o.Roles {
		roles[i] = workflow.RoleName(r)
	}
	now := time.Now()
	m.Chain, err = trust.Issuer{Mesh: m.Mesh, Key: key}.Issue(trust.Certificate{
		Partner: m.ID(), Name: o.Name, Roles: roles, Delegate: true, Serial: trust.Serial(random(16)),
		NotBefore: trust.WallOf(now), NotAfter: trust.WallOf(now.Add(Lifetime)),
	})
	if err != nil {
		return Member{}, err
	}
	return m, m.save(dir)
}

// Join redeems an invitation and makes dir a member of its mesh. dial is given
// the new node's key and returns what sends its requests. Where nothing came of it, the
// folder is as it was before. Only if a certificate may have been issued, and its answer
// was lost, the key stays: by it the same invitation gives the same certificate again.
func Join(
	ctx context.Context, dir, token, name string, dial func(ed25519.PrivateKey) (Requester, func(), error),
) (Member, error) {
	inv, err := invitation.ParseInvitation(token)
	if err != nil {
		return Member{}, err
	}
	if err := inv.ExpiredAt(time.Now()); err != nil {
		return Member{}, err
	}
	key, undo, err := newKey(dir)
	if err != nil {
		return Member{}, err
	}
	net, done, err := dial(key)
	if err != nil {
		undo()
		return Member{}, err
	}
	defer done()
	m := Member{Key: key}
	if err := m.redeem(ctx, net, inv, name); err != nil {
		if !m.unanswered {
			undo()
		}
		return Member{}, err
	}
	return m, m.save(dir)
}

// The member that is asked to let a newcomer in may be busy with a crowd of
// strangers, or about to come back: it is asked so often, with that pause in
// between.
const (
	joinTimes = 20
	joinPause = 500 * time.Millisecond
)

// ErrUnanswered says that no partner that an invitation names could be reached.
var ErrUnanswered = errors.New("the partner who made the invitation could not be asked")

// errRefusal is an issuer's answer that no other way, and no later attempt, changes.
type errRefusal struct{ error }

// redeem asks by all ways until the issuer answers.
func (m *Member) redeem(ctx context.Context, net Requester, inv invitation.Invitation, name string) error {
	var errs []error
	for n := 0; n < joinTimes && ctx.Err() == nil; n++ {
		errs = nil
		for _, w := range inv.Ways() {
			err := m.redeemBy(ctx, net, w, inv, name)
			var final errRefusal
			if err == nil || errors.As(err, &final) {
				return err
			}
			errs = append(errs, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(joinPause):
		}
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	if len(errs) == 0 {
		return fmt.Errorf("%w in time", ErrUnanswered)
	}
	return fmt.Errorf("%w: %s", ErrUnanswered, strings.ReplaceAll(errors.Join(errs...).Error(), "\n", "; "))
}

// redeemBy asks by one way. An error that is no errRefusal may be otherwise by another.
func (m *Member) redeemBy(
	ctx context.Context, net Requester, w invitation.Way, inv invitation.Invitation, name string,
) error {
	ask := func(protocol string, msg []byte) ([]byte, error) { return askBy(ctx, net, w, inv, protocol, msg) }
	h := invitation.NewHello(inv, m.ID(), invitation.Nonce(random(16)))
	b, err := ask(joining.ProtocolHello, invitation.EncodeHello(h))
	if err != nil {
		return err
	}
	offer, err := invitation.DecodeOffer(b)
	if err != nil {
		return errRefusal{err}
	}
	proof, err := invitation.Prove(inv, h, offer, m.Key, name, time.Now())
	if err != nil {
		return errRefusal{err}
	}
	b, err = ask(joining.ProtocolProof, invitation.EncodeProof(proof))
	var refused errRefusal
	switch {
	case !errors.As(err, &refused):
		m.unanswered = true
	case w.To == inv.Issuer: // it says itself that this key has no certificate, also where an answer was lost before
		m.unanswered = false
	}
	if err != nil {
		return err
	}
	welcome, err := invitation.DecodeWelcome(b)
	if err != nil {
		return errRefusal{err}
	}
	if err := invitation.Accept(offer, m.Key, welcome, time.Now()); err != nil {
		return errRefusal{err}
	}
	m.Mesh, m.Chain, m.welcome = offer.Mesh, welcome.Chain, welcome
	return nil
}

// askBy sends a message to the issuer by a way.
func askBy(
	ctx context.Context, net Requester, w invitation.Way, inv invitation.Invitation, protocol string, msg []byte,
) ([]byte, error) {
	straight := w.To == inv.Issuer
	if !straight {
		msg = invitation.EncodePass(invitation.Pass{
			Issuer: inv.Issuer, Proof: protocol == joining.ProtocolProof, Message: msg,
		})
		protocol = joining.ProtocolPass
	}
	b, err := net.Request(ctx, w.To, w.Addresses, protocol, msg)
	at := addresses.InWords(w.Addresses)
	no, answered := invitation.Refusal(err)
	switch {
	case answered && straight:
		return nil, errRefusal{errors.New(no)}
	case answered:
		return nil, fmt.Errorf("the member at %s: %s", at, no)
	case err != nil:
		return nil, fmt.Errorf("no answer at %s", at)
	case straight:
		return b, nil
	}
	p, err := invitation.DecodePassed(b)
	if err == nil && p.Refusal != "" {
		err = errRefusal{errors.New(p.Refusal)}
	}
	return p.Message, err
}

// newKey returns the folder's key, making it where there is none. A folder
// that is a member's is refused. undo takes back what newKey has made, and nothing that
// was there before, unless the folder has become a member's meanwhile.
func newKey(dir string) (key ed25519.PrivateKey, undo func(), err error) {
	if _, err := os.Stat(filepath.Join(dir, memberFile)); err == nil {
		return nil, nil, fmt.Errorf("%w: %s; use another --dir", ErrMember, dir)
	}
	made := missing(dir)
	undo = func() {
		if _, err := os.Stat(filepath.Join(dir, memberFile)); err == nil {
			return
		}
		for _, path := range made {
			if os.Remove(path) != nil { // a folder with something else in it stays
				return
			}
		}
	}
	if err := private.Folder(dir); err != nil {
		undo()
		return nil, nil, err
	}
	key, err = loadKey(dir)
	if !errors.Is(err, os.ErrNotExist) {
		return key, undo, err
	}
	_, key, err = ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	made = append([]string{filepath.Join(dir, keyFile)}, made...)
	return key, undo, writeKey(made[0], key)
}

// missing are the folders that are to be made so that there is a folder, the innermost first.
func missing(dir string) (out []string) {
	for {
		if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
			return out
		}
		out = append(out, dir)
		up := filepath.Dir(dir)
		if up == dir {
			return out
		}
		dir = up
	}
}

func loadKey(dir string) (ed25519.PrivateKey, error) { return readKey(filepath.Join(dir, keyFile)) }

// memberDoc is the member file.
type memberDoc struct {
	Format  int        `cbor:"1,keyasint"` // 1
	Mesh    trust.Mesh `cbor:"2,keyasint"`
	Chain   []byte     `cbor:"3,keyasint"`
	Welcome [][]byte   `cbor:"4,keyasint,omitempty"` // records to begin with
	Evicted [][]byte   `cbor:"5,keyasint,omitempty"` // evictions to begin with
}

func (m *Member) save(dir string) error {
	doc := memberDoc{Format: 1, Mesh: m.Mesh, Chain: trust.EncodeChain(m.Chain)}
	for _, r := range m.welcome.Records {
		doc.Welcome = append(doc.Welcome, membership.EncodeRecord(r))
	}
	for _, e := range m.welcome.Evictions {
		doc.Evicted = append(doc.Evicted, trust.EncodeEviction(e))
	}
	return private.Write(filepath.Join(dir, memberFile), encode(doc))
}

// LoadMember reads who the node of a folder is.
func LoadMember(dir string) (Member, error) {
	b, err := private.Read(filepath.Join(dir, memberFile))
	if errors.Is(err, os.ErrNotExist) {
		return Member{}, fmt.Errorf("%w in %s", ErrNoMember, dir)
	}
	if err != nil {
		return Member{}, err
	}
	m, err := decodeMember(dir, b)
	if errors.Is(err, os.ErrNotExist) {
		return Member{}, &identityError{fmt.Errorf("%s is missing: restore it from a backup, or join again from an empty folder", filepath.Join(dir, keyFile))}
	}
	if err != nil {
		return Member{}, &identityError{fmt.Errorf("%s or %s is damaged: %w: restore both from a backup, or join again from an empty folder",
			filepath.Join(dir, memberFile), keyFile, err)}
	}
	return m, nil
}

// decodeMember reads the member file, and checks that all in it that matters is signed
// and that the key is the one that was certified. What the welcome brought is for
// beginners: of it, what cannot be read is passed over.
func decodeMember(dir string, b []byte) (m Member, err error) {
	var doc memberDoc
	if err := decode(b, &doc); err != nil {
		return m, fmt.Errorf("%s cannot be read (%d bytes)", memberFile, len(b)) // why is for programmers
	}
	if doc.Format != 1 {
		return m, fmt.Errorf("format %d, want 1", doc.Format)
	}
	if m.Key, err = loadKey(dir); err != nil {
		return m, err
	}
	m.Mesh = doc.Mesh
	if m.Chain, err = trust.DecodeChain(doc.Chain); err != nil {
		return m, err
	}
	if err := m.Chain.Authentic(m.Mesh); err != nil {
		return m, err
	}
	if who := m.Chain.Leaf().Partner; who != m.ID() {
		return m, said.Errorf("the certificate is of %s, the key of %s", who, m.ID())
	}
	for _, raw := range doc.Welcome {
		if r, err := membership.DecodeRecord(raw); err == nil {
			m.welcome.Records = append(m.welcome.Records, r)
		}
	}
	for _, raw := range doc.Evicted {
		if e, err := trust.DecodeEviction(raw); err == nil {
			m.welcome.Evictions = append(m.welcome.Evictions, e)
		}
	}
	return m, nil
}
