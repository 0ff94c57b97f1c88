package node

import (
	"context"
	"errors"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/assignment"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/lineup"
	"github.com/mutirao-mesh/mutirao/node/overview"
	"github.com/mutirao-mesh/mutirao/node/show"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// instances are those in which this node takes part: their facts go to the shards that
// own them, and what the shards need of the node they find here.
type instances struct {
	*contacts
	*crew
	view        *show.View
	runner      Runner
	instant     bool // Parts.Instant
	life        *life
	people      *people
	wallet      rightful
	own         patient
	partners    *assignment.Partners
	definitions *library.Definitions
	library     reading
	roster      introducing
	retention   *retention
	index       *index.List
	usage       *usage
	lineup      *lineup.Lines
	ledger      *assignment.Ledger
	learned     *assignment.Learned
	losses      *losses
	data        materials
	restoration *restoration
	chief       func() overview.Chief // who holds the office
	credentials credentials
	trust       state.Trust // what machines ask of the credentials
	verifier    verifier
	faults      *faults
	filing      *filing
	nested      *nested
	followed    func() // people's work changed: lists at other nodes follow it
	bootID      string // of the machine's present boot
}

// reading is what instances need of definitions that they do not have, and of where those
// come from that they have.
type reading interface {
	ReadAhead(workflow.PartnerID, *wire.Facts)
	OriginOf(*library.Definition) configs.Origin
}

// introducing makes known who was a member, to a node that joined later.
type introducing interface {
	Miss(author workflow.PartnerID)
	Introduce(to, who workflow.PartnerID)
}

// rightful is what this node may do by its certificate, and why nobody would admit it.
type rightful interface {
	proof
	HasRole(workflow.RoleName) bool
}

// proof is this node's certificate, and why nobody would admit it.
type proof interface {
	Chain() trust.Chain
	Standing() error
}

// patient says how long others may go without hearing of this node.
type patient interface{ ConnectionTime() time.Duration }

// materials are the data sets that are there, and those that tasks make.
type materials interface {
	Materialised(
		ctx context.Context, def *workflow.Definition, input map[workflow.DataName]workflow.Value,
	) (found []datasets.Materialised, missed []string)
	Register(made choreo.Made, of workflow.Hash) (writes []kv.Write, registered func(error))
}

// Greet: of instances both sides begin to speak after the greeting (met).
func (x *instances) Greet(workflow.PartnerID, *wire.Message) {}

// met has the shards say to a partner that was just connected what is here.
func (x *instances) met(p workflow.PartnerID) {
	for _, s := range x.shards {
		x.post(s, event{apply: func(s *shard) error { s.greet(p); return nil }})
	}
}

// Take hands on what a partner says of instances.
func (x *instances) Take(p workflow.PartnerID, m *wire.Message) {
	for i := range m.Facts {
		if !x.faults.has(m.Facts[i].Instance) { // else it would be verified for nothing
			x.routeFacts(p, &m.Facts[i])
		}
	}
	for _, r := range m.Refusals {
		if r.Why == wire.RefusedStranger {
			x.roster.Introduce(p, r.Author)
			continue
		}
		if x.faults.has(r.Instance) {
			continue
		}
		x.post(x.shardOf(r.Instance), event{
			of: r.Instance, from: p, apply: func(s *shard) error { return s.takeRefusal(p, r) },
		})
	}
	for i := range m.Heads {
		w := &m.Heads[i]
		if x.faults.has(w.Instance) {
			continue
		}
		x.post(x.shardOf(w.Instance), event{
			of: w.Instance, from: p, apply: func(s *shard) error { return s.takeHeads(p, w) },
			after: x.logRefusal(p, w.Instance),
		})
	}
}

// Tick: what is due of instances their shards know.
func (x *instances) Tick(moment.Now) time.Duration { return moment.Never }

// self says for which partner machines act.
func (x *instances) self() choreo.Self {
	return choreo.Self{
		Partner: x.member.ID(), Incarnation: x.life.incarnation(), Trust: x.trust, Instant: x.instant,
	}
}

// routeFacts verifies facts, on the peer's own goroutine, and hands them on.
func (x *instances) routeFacts(p workflow.PartnerID, f *wire.Facts) {
	l, _ := x.link(p)
	if l == nil {
		return
	}
	facts, err := l.read(f, &x.verifier)
	if err == nil {
		err = x.checkRights(p, facts)
	}
	if err != nil {
		why := "facts-malformed"
		if errors.Is(err, fact.ErrForged) {
			why = "facts-forged"
		}
		x.refuse(why, p)
		x.log.Warn("facts refused", "from", p, "instance", f.Instance, "error", err)
		return
	}
	if author := x.stranger(p, facts); author != "" {
		x.refuse("facts-of-strangers", p)
		x.log.Info("facts put off", "from", p, "instance", f.Instance, "of", author,
			"because", "it is not on the partner list")
		x.roster.Miss(author)
		x.transmit(p, &wire.Message{Refusals: []wire.Refusal{{Instance: f.Instance, Why: wire.RefusedStranger,
			Author: author}}})
		return
	}
	x.library.ReadAhead(p, f)
	size := 0
	for _, w := range f.Facts {
		size += len(w.Raw)
	}
	if !l.queue(size, x.crew) {
		return
	}
	posted := x.post(x.shardOf(f.Instance), event{
		of: f.Instance, from: p, taken: func() { l.done(size) },
		apply: func(s *shard) error { return s.takeFacts(p, f, facts) }, after: x.logRefusal(p, f.Instance),
	})
	if !posted {
		l.done(size)
	}
}

// logRefusal counts that something was not taken in of what a partner says of an instance.
// Where this program failed at the instance, that is not the partner's doing.
func (x *instances) logRefusal(p workflow.PartnerID, id workflow.InstanceID) func(error) {
	return func(err error) {
		if err == nil || x.faults.has(id) {
			return
		}
		x.refuse("facts-not-taken", p)
		x.log.Warn("message not taken", "from", p, "instance", id, "error", err)
	}
}

// reconsider has the instances that a change of p concerns decide again.
func (x *instances) reconsider(p workflow.PartnerID) {
	x.have(func(s *shard) error {
		s.touchConcerned(p)
		return nil
	})
}

// peopleChanged has those instances look at people's work again in which somebody has some.
func (x *instances) peopleChanged() {
	x.have(func(s *shard) error {
		s.only(func(h *held) bool { return h.m.Claims() }, func(_ workflow.InstanceID, h *held) {
			h.m.PeopleChanged()
			s.touch(h)
		})
		return nil
	})
}

// touchAll has all instances worked out again.
func (x *instances) touchAll() {
	x.have(func(s *shard) error {
		s.each(func(_ workflow.InstanceID, h *held) { s.touch(h) })
		return nil
	})
}
