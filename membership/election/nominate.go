package election

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// maxReason bounds what others give as a reason, in bytes.
const maxReason = 1024

// nominations are the requests to stand, by those who asked and those who were
// asked.
type nominations struct {
	ours   map[workflow.PartnerID]bool // those that this node asked and that have not answered
	theirs map[workflow.PartnerID]bool // those that asked this node and wait for the outcome
}

// Nominate asks another node to stand for election. Its claim tells that it was
// elected, a NotElected event about it that it was not, and why. One that never
// answers was not reached: the caller has to wait no longer than some leases.
func (e *Election) Nominate(who workflow.PartnerID, now moment.Now) (Ready, error) {
	e.lapse(now)
	var err error
	switch m, led := e.Coordinator(now); {
	case who == e.self:
		err = e.stand(now)
	case led && m.Holder != who:
		err = heldBy(m)
	default:
		if e.nominations.ours == nil {
			e.nominations.ours = map[workflow.PartnerID]bool{}
		}
		e.nominations.ours[who] = true
		e.send(who, Message{Nominate: &Nominate{}})
	}
	return e.flush(now), err
}

// heldBy says who holds the office that is sought.
func heldBy(m Mandate) error {
	return said.Errorf("%w: %s, in %s: it has to resign first", ErrHeld, m.Holder, m.Office)
}

// onNominate stands for election and remembers whom to tell how it ends.
func (e *Election) onNominate(from workflow.PartnerID, now moment.Now) error {
	if err := e.stand(now); err != nil {
		e.send(from, Message{Declined: &Declined{Reason: err.Error(), About: said.Partners(err)}})
		return err
	}
	if _, leads := e.Leads(now); leads {
		e.showClaim(from, now)
		return nil
	}
	if e.nominations.theirs == nil {
		e.nominations.theirs = map[workflow.PartnerID]bool{}
	}
	e.nominations.theirs[from] = true
	return nil
}

// decline tells those who nominated this node that it stood in vain.
func (e *Election) decline(reason error) {
	for _, p := range slices.Sorted(maps.Keys(e.nominations.theirs)) {
		e.send(p, Message{Declined: &Declined{Reason: reason.Error(), About: said.Partners(reason)}})
	}
	e.nominations.theirs = nil
}

// onDeclined hears from a nominee that it was not elected.
func (e *Election) onDeclined(from workflow.PartnerID, d Declined) {
	if e.nominations.ours[from] {
		delete(e.nominations.ours, from)
		e.tell(Event{Kind: NotElected, Partner: from, Reason: heard(d.Reason, d.About)})
	}
}

// heard is a reason of others', with the partners that it is about in the order in
// which it has their short IDs.
func heard(reason string, about []workflow.PartnerID) error {
	const most = 2 * shownVoter // each that refused may name another
	var texts []string
	var partners []workflow.PartnerID
	rest := printable(reason)
	for _, id := range about[:min(len(about), most)] {
		if before, after, found := strings.Cut(rest, id.Short()); found && id != "" {
			texts, partners, rest = append(texts, before), append(partners, id), after
		}
	}
	return said.Join(append(texts, rest), partners)
}

// printable is a reason of others' as it may be shown to people: on one line,
// and not longer than it should be.
func printable(reason string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, plain.CutBytes(reason, maxReason))
}
