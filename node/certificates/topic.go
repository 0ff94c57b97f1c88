package certificates

import (
	"errors"
	"log/slog"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// lookEvery is how often certificates are looked at, here and of connected partners.
const lookEvery = time.Minute

// Peers are the members that are connected.
type Peers interface {
	UpPeers() []workflow.PartnerID
	Transmit(p workflow.PartnerID, m *wire.Message)
	// Refuse counts what was refused of a peer, Count what people may want to know.
	Refuse(why string, p workflow.PartnerID)
	Count(what string, by uint64)
	// ClosePeer cuts the connections to a peer.
	ClosePeer(p workflow.PartnerID)
}

// Members is the partner list.
type Members interface {
	Get(p workflow.PartnerID) (membership.Partner, bool)
	// Say is an error in words for people, who call partners by their names.
	Say(err error) string
}

// Surroundings are what this topic needs of the rest of a node.
type Surroundings struct {
	Peers   Peers
	Members Members
	Log     *slog.Logger
	// Random gives so many random bytes.
	Random func(n int) []byte
	// Trouble notes that something is wrong with this node and lasts, in words for people;
	// if why is empty, that it is not any more. It returns what was noted before.
	Trouble func(what, why string) (was string)
	// Renewed is called when this node has another certificate.
	Renewed func() error
}

// Topic is what partners say to one another of certificates.
type Topic struct {
	*Wallet
	in   Surroundings
	next time.Duration // Awake: when certificates are looked at again
}

// New is the topic of what is in a wallet.
func New(w *Wallet, in Surroundings) *Topic { return &Topic{Wallet: w, in: in} }

// Greet says nothing: certificates are shown before there is a connection.
func (t *Topic) Greet(workflow.PartnerID, *wire.Message) {}

// Take takes in this node's own certificate, issued again.
func (t *Topic) Take(from workflow.PartnerID, m *wire.Message) {
	if len(m.Renewal) == 0 {
		return
	}
	chain, err := trust.DecodeChain(m.Renewal)
	if err == nil {
		err = t.adopt(chain)
	}
	switch {
	case errors.Is(err, errNoRenewal): // sent again before it heard from us
	case err != nil:
		t.in.Peers.Refuse("renewal", from)
		t.in.Log.Warn("renewal refused", "from", from, "error", err)
	default:
		t.announce()
	}
}

// Tick renews what is near its end, and cuts the connections of those that would not be
// admitted now.
func (t *Topic) Tick(now moment.Now) time.Duration {
	if now.Awake >= t.next {
		t.next = now.Awake + lookEvery
		t.renewOwn()
		t.CutUnwelcome()
		t.renewOthers()
		_ = t.CheckStanding() // noted
	}
	return t.next - now.Awake
}

// ErrNoMember tells that somebody showed no certificate.
var ErrNoMember = errors.New("shows no certificate: only members are admitted")

// Admit judges what a peer showed; nothing is shown by somebody who wants to join.
func (t *Topic) Admit(p workflow.PartnerID, hello []byte) error {
	if len(hello) == 0 {
		return ErrNoMember
	}
	err := t.admit(p, hello)
	if err != nil {
		t.in.Peers.Refuse("stranger."+whyNot(err), p)
	}
	return err
}

// whyNot names the reason for which a certificate was refused.
func whyNot(err error) string {
	for _, r := range []struct {
		err  error
		name string
	}{
		{trust.ErrWrongMesh, "wrong-mesh"}, {trust.ErrForged, "forged"}, {trust.ErrRevoked, "evicted"},
		{trust.ErrExpired, "expired"}, {trust.ErrNotYet, "not-yet-valid"},
		{trust.ErrNotAllowed, "not-allowed"},
	} {
		if errors.Is(err, r.err) {
			return r.name
		}
	}
	return "malformed"
}

// CheckStanding notes as trouble what keeps others from admitting this node, and returns
// it.
func (t *Topic) CheckStanding() error {
	err := t.Standing()
	why := ""
	if err != nil {
		why = "no member: " + t.in.Members.Say(err)
	}
	if was := t.in.Trouble("membership", why); was != why && err != nil {
		t.in.Log.Warn("this node is no member: partners do not admit it", "reason", t.in.Members.Say(err),
			"next", Mend(err, t.clock.Now().Wall))
	}
	return err
}

// Mend says what is to be done at a node that others do not admit.
func Mend(err error, now time.Time) string {
	const again = "no partner admits this node any more: ask a partner that may invite for an invitation, and join again with a fresh folder"
	clock := "this clock says " + now.UTC().Format(time.RFC3339)
	switch {
	case errors.Is(err, trust.ErrNotYet):
		return clock + ": set it, and nothing else is needed"
	case errors.Is(err, trust.ErrExpired):
		return clock + ". If that is wrong, set it, and nothing else is needed; else " + again
	}
	return again
}

// CutUnwelcome ends the connections of those who would not be admitted now.
func (t *Topic) CutUnwelcome() {
	up := t.in.Peers.UpPeers()
	bad := t.unwelcome(up)
	for _, p := range up {
		if err := bad[p]; err != nil {
			t.in.Peers.Refuse("connection-of-former-member", p)
			t.in.Log.Info("connection cut", "partner", p, "reason", err)
			t.in.Peers.ClosePeer(p)
		}
	}
}

// unwelcome are the connected peers whose certificates are no longer good. Those were
// found authentic when they were shown or listed, so no signature is checked again.
func (t *Topic) unwelcome(peers []workflow.PartnerID) map[workflow.PartnerID]error {
	out := map[workflow.PartnerID]error{}
	for _, id := range peers {
		chain := t.shown(id)
		if x, listed := t.in.Members.Get(id); listed &&
			(chain == nil || x.Record.Chain.Leaf().Supersedes(chain.Leaf())) {
			chain = x.Record.Chain
		}
		if chain == nil {
			continue
		}
		if err := t.Current(chain); err != nil {
			out[id] = err
		}
	}
	return out
}

// renewOthers issues new certificates to those of the connected whose present ones near
// their end, as far as this node may. A peer that did not take its renewal yet gets the
// same one again.
func (t *Topic) renewOthers() {
	if t.MayAdminister("renew") != nil {
		return
	}
	for _, id := range t.in.Peers.UpPeers() {
		x, ok := t.in.Members.Get(id)
		if !ok || x.State.Gone() {
			continue
		}
		if chain, err := t.renew(x.Record.Chain, t.in.Random); err == nil {
			t.in.Peers.Count("renewals", 1)
			t.in.Peers.Transmit(id, &wire.Message{Renewal: trust.EncodeChain(chain)})
		}
	}
}

// renewOwn has the founder certify itself again.
func (t *Topic) renewOwn() {
	if t.self != t.mesh.Founder {
		return
	}
	chain, err := t.renew(t.Chain(), t.in.Random)
	if err == nil {
		err = t.adopt(chain)
	}
	switch {
	case errors.Is(err, errNoRenewal):
	case err != nil:
		t.in.Log.Error("the founder's certificate cannot be renewed", "error", err)
	default:
		t.announce()
	}
}

// announce has everybody see a new certificate.
func (t *Topic) announce() {
	t.in.Log.Info("certificate renewed", "until", t.Chain().Leaf().NotAfter)
	_ = t.CheckStanding() // noted
	if err := t.in.Renewed(); err != nil {
		t.in.Log.Error("the new certificate could not be published", "error", err)
	}
}
