package node

import (
	"github.com/mutirao-mesh/mutirao/node/doctor"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// newDoctor is who looks for what is wrong with this node.
func (n *Node) newDoctor(from *stock, work *worklistService) *doctor.Doctor {
	p := from.parts
	s := doctor.Surroundings{
		Self: n.member.ID(), Clock: n.clock, Config: n.config,
		Machine: doctor.Machine{
			Space: p.Space, Reserve: p.Reserve, Battery: p.Battery, MayLock: p.mayLock, Bare: p.Bare,
			Loose: p.Loose, Unfit: p.Unfit, Unasked: p.Unasked,
		},
		Links: patients{peers{n.contacts}, n.people.label}, Members: members{n.people}, Own: from.wallet,
		Announced: from.own.Announced, Runs: p.Runner.Has, Seen: n.jobs.Seen,
		Store: examined{from.losses}, Aside: from.index.Quarantined, Untaken: n.instances.faults.untaken,
		Evictions: n.evictions, Elections: n.elections, Clocks: n.clocks, Users: n.users,
		Late: n.retention.CheckLate, Away: n.absence.away, Back: n.absence.until,
		UsersFolder: usersFolder, Alone: work.filesAlone, Lost: work.items.filesLost,
		NotTaken: n.desk.notTaken,
	}
	if n.filing.Files != nil {
		s.Files = n.filing.Files
	}
	return &doctor.Doctor{Surroundings: s}
}

// patients are the connections for the doctor.
type patients struct {
	peers
	label func(workflow.PartnerID) string
}

func (p patients) Relayed() []workflow.PartnerID { return p.carrier.Relayed() }

func (p patients) Refused(members []workflow.PartnerID, d *doctor.Diagnosis) {
	p.refusals.Check(p.clock.Now().Wall, members, p.label, d)
}

// examined is the store for the doctor.
type examined struct{ *losses }

func (x examined) Read() error {
	_, err := x.store.Get(metaKey(metaIncarnation))
	return err
}

func (x examined) Trouble() string { return x.troubles.why("store") }

func (x examined) RolledBack() string { return x.troubles.why("rolled-back") }

func (x examined) Lost(unread, failed int, warn, wrong func(check, what, mend string)) {
	x.Check(unread, failed, warn, wrong)
}
