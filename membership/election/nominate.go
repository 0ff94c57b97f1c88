package election

import (
	"maps"
	"slices"
	"strings"
	"time"
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
	ours   map[workflow.PartnerID]nominee // those that this node asked and that did not say how it ended
	theirs map[workflow.PartnerID]bool    // those that asked this node and wait for the outcome
	tellAt time.Duration                  // when they are told what this node lacks (boot clock); 0: nothing is new
}

// tellPause gathers what voters answer, so that those who wait for the outcome are told once.
const tellPause = time.Second

// nominee is what a node that was asked to stand lacked, as it said at a moment; nil: it did not say.
type nominee struct {
	lacks error
	left  time.Duration
	at    time.Duration // boot clock
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
			e.nominations.ours = map[workflow.PartnerID]nominee{}
		}
		e.nominations.ours[who] = nominee{}
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
	e.tellSoon(now)
	return nil
}

// tellSoon has those who nominated this node told what it lacks.
func (e *Election) tellSoon(now moment.Now) {
	n := &e.nominations
	if len(n.theirs) > 0 && n.tellAt == 0 && e.candidacy.role == candidate {
		n.tellAt = now.Boot + tellPause
	}
}

// tickNominations tells those who nominated this node what it lacks, if that is due.
func (e *Election) tickNominations(now moment.Now) {
	n := &e.nominations
	if n.tellAt == 0 || now.Boot < n.tellAt {
		return
	}
	n.tellAt = 0
	left, lacks := e.Standing(now)
	if lacks == nil {
		return
	}
	for _, p := range slices.Sorted(maps.Keys(n.theirs)) {
		e.send(p, Message{Stands: &Stands{Left: left, Reason: lacks.Error(), About: said.Partners(lacks)}})
	}
}

// onStands hears from a nominee what it lacks.
func (e *Election) onStands(from workflow.PartnerID, s Stands, now moment.Now) {
	if _, asked := e.nominations.ours[from]; asked {
		left := min(max(s.Left, 0), patiently*MaxLease)
		e.nominations.ours[from] = nominee{lacks: heard(s.Reason, s.About), left: left, at: now.Boot}
	}
}

// Nominee says what a node lacked that this one asked to stand, how long ago it said so, and for how long it goes on
// asking; nil: it has not said, or it ended.
func (e *Election) Nominee(who workflow.PartnerID, now moment.Now) (ago, left time.Duration, lacks error) {
	n := e.nominations.ours[who]
	if n.lacks == nil {
		return 0, 0, nil
	}
	ago = max(now.Boot-n.at, 0)
	return ago, max(n.left-ago, 0), n.lacks
}

// Nominees are those that this node asked to stand, that said what they lack, and that go on asking.
func (e *Election) Nominees(now moment.Now) (who []workflow.PartnerID) {
	for _, p := range slices.Sorted(maps.Keys(e.nominations.ours)) {
		if _, left, lacks := e.Nominee(p, now); lacks != nil && left > 0 {
			who = append(who, p)
		}
	}
	return who
}

// decline tells those who nominated this node that it stood in vain.
func (e *Election) decline(reason error) {
	for _, p := range slices.Sorted(maps.Keys(e.nominations.theirs)) {
		e.send(p, Message{Declined: &Declined{Reason: reason.Error(), About: said.Partners(reason)}})
	}
	e.nominations.theirs, e.nominations.tellAt = nil, 0
}

// onDeclined hears from a nominee that it was not elected.
func (e *Election) onDeclined(from workflow.PartnerID, d Declined) {
	if _, asked := e.nominations.ours[from]; asked {
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
