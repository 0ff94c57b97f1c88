package joining

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/invitation"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// passPatience is how long to wait for a connected issuer.
const passPatience = 10 * time.Second

var errNoIssuer = errors.New("the partner that made the invitation cannot be reached from here either")

// Pass passes a stranger's request to join on to the issuer of its invitation,
// which alone redeems it: a newcomer may not reach that one, or not at the addresses that it
// had.
func (j *Topic) Pass(stranger workflow.PartnerID, req []byte) ([]byte, error) {
	p, err := invitation.DecodePass(req)
	if err != nil {
		return nil, err
	}
	p.Joiner = stranger
	if !j.in.Peers.Up(p.Issuer) {
		return nil, errNoIssuer
	}
	ctx, msg := context.Background(), invitation.EncodePass(p)
	b, err := j.in.Peers.Request(ctx, p.Issuer, nil, ProtocolPassed, msg, passPatience)
	if passed, answered := invitation.PassBack(b, err); answered {
		return passed, nil
	}
	return nil, errNoIssuer
}

// Passed answers a request to join that a member passed on.
func (j *Topic) Passed(_ workflow.PartnerID, req []byte) ([]byte, error) {
	p, err := invitation.DecodePass(req)
	if err != nil {
		return nil, err
	}
	if p.Proof {
		return j.Redeem(p.Joiner, p.Message)
	}
	return j.Offer(p.Joiner, p.Message)
}

// inviteAt are the addresses of an invitation: this node's own and one of another
// member, for when this one has moved, or cannot be reached from where the newcomer
// is. One: the QR code must fit on a terminal of 80 columns.
func (j *Topic) inviteAt() []string {
	own := j.in.Peers.Addrs()
	var others []string
	for _, id := range j.in.Peers.UpPeers() {
		p, ok := j.in.Members.Get(id)
		if at := j.in.Best(p.Record.Addresses); ok && at != "" {
			others = append(others, invitation.PassAddress(at, id))
		}
	}
	if len(others) == 0 {
		return own
	}
	return append(slices.Clone(own[:min(len(own), trust.MaxAddresses-1)]), j.in.Best(others))
}
