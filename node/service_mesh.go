package node

import (
	"context"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/doctor"
	"github.com/mutirao-mesh/mutirao/node/elections"
	"github.com/mutirao-mesh/mutirao/node/evictions"
	"github.com/mutirao-mesh/mutirao/node/joining"
	"github.com/mutirao-mesh/mutirao/node/worklists"
)

// meshService is about who belongs to the mesh, who coordinates it, and this node's place in it.
type meshService struct {
	joining   *joining.Topic
	evictions *evictions.Topic
	elections *elections.Topic
	departure *departure
	worklists *worklists.Desk
	absence   *absence
	doctor    *doctor.Doctor
	explain   func(error) error
}

// Invite opens an invitation to the mesh.
func (s *meshService) Invite(_ context.Context, r api.InviteRequest) (*api.Invitation, error) {
	out, err := s.joining.Invite(r)
	return out, s.explain(err)
}

// CoordinatorStatus says who coordinates.
func (s *meshService) CoordinatorStatus(context.Context) (*api.Coordinator, error) {
	out, err := s.elections.Status()
	return out, s.explain(err)
}

// Elect has a node stand for election, this one if none is named, and waits
// for the outcome.
func (s *meshService) Elect(ctx context.Context, r api.ElectRequest) (*api.Coordinator, error) {
	out, err := s.elections.Elect(ctx, r)
	return out, s.explain(err)
}

// Resign gives this node's office up.
func (s *meshService) Resign(context.Context) error {
	return s.explain(s.elections.Resign())
}

// Electorate says who may vote.
func (s *meshService) Electorate(context.Context) (*api.Electorate, error) {
	out, err := s.elections.Electorate()
	return out, s.explain(err)
}

// SetElectorate changes who may vote.
func (s *meshService) SetElectorate(ctx context.Context, r api.ElectorateRequest) (*api.Electorate, error) {
	out, err := s.elections.SetElectorate(ctx, r)
	return out, s.explain(err)
}

// Evict removes a member for good.
func (s *meshService) Evict(_ context.Context, r api.EvictRequest) (*api.Evicted, error) {
	out, err := s.evictions.Evict(r)
	return out, s.explain(err)
}

// Doctor looks for what is wrong with this node and its links.
func (s *meshService) Doctor(ctx context.Context) (*api.Diagnosis, error) {
	out, err := s.doctor.Examine(ctx)
	return out, s.explain(err)
}

// Leave gives this node's work on, says what stays, and has the node go as soon as
// nothing stays.
func (s *meshService) Leave(ctx context.Context, r api.LeaveRequest) (*api.Leaving, error) {
	if _, away := s.absence.away(); away {
		return nil, s.explain(api.Errorf(api.Refused,
			"this node is disconnected on purpose: nobody would hear that it leaves").
			WithHint("mutirao worklist reconnect, and leave then"))
	}
	kept := s.worklists.KeptAlone()
	out, err := s.departure.leave(ctx, r)
	if err == nil {
		out.Kept = kept
	}
	return out, s.explain(err)
}

// Disconnect has this node end all contact with its partners, once what it needs is here.
func (s *meshService) Disconnect(ctx context.Context, r api.DisconnectRequest) (*api.Contact, error) {
	out, err := s.absence.disconnect(ctx, r)
	return out, s.explain(err)
}

// Reconnect has this node talk to its partners again.
func (s *meshService) Reconnect(ctx context.Context) (*api.Contact, error) {
	out, err := s.absence.reconnect(ctx)
	return out, s.explain(err)
}

// Contact says how this node stands to its partners.
func (s *meshService) Contact(ctx context.Context) (*api.Contact, error) {
	out, err := s.absence.contact(ctx)
	return out, s.explain(err)
}
