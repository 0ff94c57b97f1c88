package worklists

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about amendments. A node that takes part in the instance compares by itself. One that does not
// asks those that do: they have to agree on the definition by which the instance runs, and one of them says how
// far it has got. The node compares that with the person's file itself, and the person signs what comes of it. It
// is written down only where the instance still runs by that definition.

// Amended is an instance elsewhere that is to be amended, as a partner that takes part says.
type Amended struct {
	Target
	Basis []byte // with what the change is compared; it runs by the definition with the hash Target.Runs
}

// Elsewhere finds an instance in which this node takes no part, for a person who may amend it.
func (d *Desk) Elsewhere(ctx context.Context, user, id string) (*Amended, error) {
	who, err := d.in.People.Who(user)
	if err != nil {
		return nil, err
	}
	t, err := d.targetOf(ctx, id, "", who, true)
	switch {
	case err != nil:
		return nil, err
	case t.At == d.in.Self:
		return nil, api.Errorf(api.Refused, "instance %s came to this node just now", t.Instance).WithHint("try again")
	}
	req, err := wire.EncodeTarget(wire.Target{User: who.ID, Instance: t.Instance.String()})
	if err != nil {
		return nil, api.Judge(api.Invalid, err)
	}
	var a answeredBasis
	b, err := d.in.Peers.Request(ctx, t.At, nil, ProtocolBasis, req, listPatience)
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	switch {
	case err != nil:
		return nil, api.Errorf(api.Refused,
			"this node takes no part in instance %s, and %s does not say how far that has got: %w", t.Instance,
			d.in.Name(t.At), err).
			WithHint("amend it at a node that takes part, such as %s", d.in.Name(t.At))
	case a.Refusal != nil:
		return nil, api.Errorf(a.Refusal.Code, "%s", a.Refusal.Message).WithHint("%s", a.Refusal.Hint)
	}
	return &Amended{t, a.Basis}, nil
}

// Malformed notes that a partner said something of an instance that is to be amended which cannot be.
func (d *Desk) Malformed(of *Amended, err error) error {
	d.in.Peers.Refuse("items-malformed", of.At)
	return api.Errorf(api.Refused, "what %s says of instance %s cannot be: %w", d.in.Name(of.At), of.Instance, err).
		WithHint("amend it at another node that takes part")
}

// answeredBasis is what an amendment is compared with, as a partner says; or why it may not be amended.
type answeredBasis struct {
	Basis   []byte     `json:"basis"`
	Refusal *api.Error `json:"refusal,omitempty"`
}

// AnswerBasis answers a partner with what an amendment by a person at its node is compared.
func (d *Desk) AnswerBasis(from workflow.PartnerID, req []byte) ([]byte, error) {
	r, err := wire.DecodeTarget(req)
	if err != nil {
		return nil, err
	}
	if err := d.admit(from, r.User); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), listPatience)
	defer cancel()
	var out answeredBasis
	out.Basis, err = d.in.Instances.Basis(ctx, r.Instance, worklist.User(r.User))
	if err = d.in.Explain(err); err != nil && !errors.As(err, &out.Refusal) {
		d.in.Log.Warn("with what an amendment is compared could not be said to a partner", "to", from, "error", err)
		return nil, errCannot
	}
	if out.Refusal != nil {
		out.Basis = nil
	}
	b, err := json.Marshal(out)
	if err == nil && len(b) > maxBasis {
		return nil, errLargeBasis
	}
	return b, err
}

// maxBasis bounds an answer: a little less than a frame.
const maxBasis = 1<<20 - 1<<10

var errLargeBasis = errors.New("it is too large to be told")

// AnswerAmend writes down an amendment by a person at a partner's node.
func (d *Desk) AnswerAmend(from workflow.PartnerID, req []byte) ([]byte, error) {
	a, err := wire.DecodeAmending(req)
	if err != nil {
		return nil, err
	}
	c, err := wire.DecodeSpoken(a.Word)
	if err != nil {
		return nil, err
	}
	if !d.claims.Spend(from, 1, d.in.Clock.Now().Awake) {
		d.in.Peers.Refuse("words-too-fast", from)
		return nil, errTooOften
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimPatience)
	defer cancel()
	done, err := d.takeSaid(from, c, func(said *fact.Claim) (choreo.Claimed, error) {
		return d.in.Instances.Amend(ctx, from, c.Instance, said, a.Of)
	})
	return d.answered(from, c.Instance, answer{Claimed: done}, err)
}

// Amend has a person who decides about an instance change the definition by which it runs. of is the instance as a
// partner says; nil: it is here.
func (d *Desk) Amend(
	ctx context.Context, user, id string, x worklist.Amend, of *Amended,
) (*api.Amended, error) {
	who, err := d.in.People.Who(user)
	if err != nil {
		return nil, err
	}
	var t Target
	if of != nil {
		t = of.Target
	} else if t, err = d.target(ctx, id, "", who); err != nil {
		return nil, err
	}
	r := &Row{Instance: t.Instance, Workflow: t.Workflow, At: t.At}
	already, err := d.sendAmendment(ctx, who, r, x, of)
	if err != nil {
		return nil, err
	}
	return &api.Amended{
		ID: t.Instance.String(), User: who.Name, Partner: d.in.Name(t.At), Already: already,
	}, nil
}

// sendAmendment has a person's amendment written down where that is done.
func (d *Desk) sendAmendment(
	ctx context.Context, who users.Who, r *Row, x worklist.Amend, of *Amended,
) (already bool, err error) {
	if of == nil {
		done, err := d.send(ctx, who, r, x)
		return done.Already, err
	}
	c, err := d.say(who, r, x)
	if err != nil {
		return false, err
	}
	word, err := wire.EncodeSpoken(c)
	if err != nil {
		return false, api.Judge(api.Invalid, err)
	}
	req, err := wire.EncodeAmending(wire.Amending{Of: of.Runs, Word: word})
	switch {
	case err != nil:
		return false, api.Judge(api.Invalid, err)
	case !d.in.Peers.Up(r.At):
		return false, d.inWords(r, x, errAway)
	}
	done, err := d.hand(ctx, r.At, ProtocolAmend, req)
	return done.Already, d.inWords(r, x, err)
}
