package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// An invitation is redeemed at its issuer only. A newcomer that cannot reach that
// one, or not at the addresses that it had, has another member pass the requests
// on.
const (
	protocolPass   = "/mutirao/join-pass/1.0.0"   // a stranger's, to any member
	protocolPassed = "/mutirao/join-passed/1.0.0" // that member's, to the issuer
)

// passPatience is how long to wait for a connected issuer.
const passPatience = 10 * time.Second

var errNoIssuer = errors.New("the partner that made the invitation cannot be reached from here either")

// pass passes a stranger's request to join on to the issuer of its invitation.
func (j *joining) pass(stranger workflow.PartnerID, req []byte) ([]byte, error) {
	p, err := membership.DecodePass(req)
	if err != nil {
		return nil, err
	}
	p.Joiner = stranger
	if !j.up(p.Issuer) {
		return nil, errNoIssuer
	}
	b, err := j.request(context.Background(), p.Issuer, nil, protocolPassed, membership.EncodePass(p), passPatience)
	var no Answer
	switch {
	case errors.As(err, &no):
		return membership.EncodePassed(membership.Passed{Refusal: no.Answer()}), nil
	case err != nil:
		return nil, errNoIssuer
	}
	return membership.EncodePassed(membership.Passed{Message: b}), nil
}

// passed answers a request to join that a member passed on.
func (j *joining) passed(_ workflow.PartnerID, req []byte) ([]byte, error) {
	p, err := membership.DecodePass(req)
	if err != nil {
		return nil, err
	}
	if p.Proof {
		return j.redeem(p.Joiner, p.Message)
	}
	return j.offer(p.Joiner, p.Message)
}

// inviteAt are the addresses of an invitation: this node's own and one of another
// member, for when this one has moved, or cannot be reached from where the newcomer
// is. One: the QR code must fit on a terminal of 80 columns.
func (j *joining) inviteAt() []string {
	own := j.carrier.Addrs()
	var others []string
	for _, id := range j.upPeers() {
		p, ok := j.members.Get(id)
		if at := bestAddress(p.Record.Addresses); ok && at != "" {
			others = append(others, membership.PassAddress(at, id))
		}
	}
	if len(others) == 0 {
		return own
	}
	return append(slices.Clone(own[:min(len(own), membership.MaxAddresses-1)]), bestAddress(others))
}
