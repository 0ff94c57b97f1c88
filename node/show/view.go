package show

import (
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// View is how people see instances.
type View struct{ Surroundings }

// Surroundings are what a view needs of its node.
type Surroundings struct {
	Self     workflow.PartnerID
	Clock    Clock
	People   People
	Partners Partners
	Files    Files
	// Contact is how long a partner has been connected, and when it was last heard.
	Contact func(workflow.PartnerID) Contact
	// TellsWithin is within what time a partner in contact tells all that take part what
	// it has, so what it had not told by then had not happened.
	TellsWithin time.Duration
	// Ahead is how far this node's clock is ahead of a partner's, as far as that is known.
	Ahead func(workflow.PartnerID) time.Duration
	// Works adds to a job's worker how far it is; waits: the job, which is here, has none yet.
	Works func(of workflow.InstanceID, a fact.AttemptID, w *api.JobWorker) (waits bool)
	// ChildsFile says which file an attempt here waits for that another instance does; empty: none.
	ChildsFile func(of workflow.InstanceID, a fact.AttemptID) string
	// Signed is how a person signed a word.
	Signed func(word []byte) *api.PersonSignature
}

// New makes a view.
func New(s Surroundings) *View { return &View{s} }

// Clock tells the time.
type Clock interface{ Now() moment.Now }

// People are the partners as people call them, and how they stand.
type People interface {
	Get(workflow.PartnerID) (membership.Partner, bool)
	Name(workflow.PartnerID) string
	Label(workflow.PartnerID) string
	GoneForGood(workflow.PartnerID) bool
	ConnectionTime(workflow.PartnerID) time.Duration
}

// Partners are who can take work, and who the people are that do it.
type Partners interface {
	choreo.Partners
	Candidates(*workflow.Definition, aptitude.Mechanism, *choreo.Holding) (
		[]partition.Partner, map[partition.Kind]partition.InHand)
	Closed(aptitude.Mechanism) []partition.Closed
	Roles() []workflow.RoleName
	OwnRoles() []workflow.RoleName // of partners alone
	UserRoles() []workflow.RoleName
	Called(worklist.User) string
	CalledAll([]worklist.User) []string
	AnswersFor(*choreo.Machine) workflow.UserName
}

// Files are those of instances, as far as this node keeps files.
type Files interface {
	// Concerns reports whether this node keeps files and a definition has some among its data.
	Concerns(*workflow.Definition) bool
	// OnlyHere reports whether a file among an instance's data was given here and is with no other that may read it.
	OnlyHere(h *Held, item workflow.DataName, f workflow.File) bool
	// Waits says what a file waits for that a task of an instance reads; empty: it is here.
	Waits(h *Held, item workflow.DataName, f workflow.File) string
	// OnlyFor are those who alone may read a file, where a partner is not among them; nil: it may.
	OnlyFor(h *Held, at workflow.PartnerID, item workflow.DataName, f workflow.File) []string
	// Lost says of a file that a task of an instance is about to read, or reads, that nobody has it any more.
	Lost(workflow.InstanceID, workflow.File) (why string, at time.Time, lost bool)
	// LostData are the files among an instance's data that nobody has any more, and that no task here reads.
	LostData(*Held) []LostFile
}

// LostFile is a file that nobody has any more: what is to be said of it, and since when this node knows.
type LostFile struct {
	What string
	At   time.Time
}

// Contact is what connects this node with a partner.
type Contact struct {
	Ever         bool          // it was connected since the node started
	Up           bool          // it is
	Since, Heard time.Duration // Boot
}

// Held is what a node holds of an instance.
type Held struct {
	M              *choreo.Machine
	Def            *workflow.Definition // as it was when the instance began
	Started, Ended int64                // ms, by the clocks of those who began it and ended it; 0: not yet
	Words          Words
	Refused        []Refusal
	// Only are the data whose values are shown; nil: all.
	Only map[workflow.DataName]bool
}

// tells reports whether the values of data are shown.
func (h *Held) tells(d workflow.DataName) bool { return h.Only == nil || h.Only[d] }

// Refusal is that a partner did not take an instance in, and why.
type Refusal struct {
	By  workflow.PartnerID
	Why string
	At  time.Time
	// OfBeginner: the user who began it may not begin it any more, as far as is known there. Unfit: by the version of the
	// program there it has not begun as an instance may. Either needs a person. Since is when it was first said so.
	OfBeginner, Unfit bool
	Since             time.Time
}

// refused reports whether a partner has not taken an instance in.
func (h *Held) refused(p workflow.PartnerID) bool {
	for _, r := range h.Refused {
		if r.By == p {
			return true
		}
	}
	return false
}

// Untaken says of each partner that did not take an instance in that it did not, and why, in the order of h.Refused.
func (vw *View) Untaken(h *Held) (out []string) {
	for _, r := range h.Refused {
		if by := h.M.BegunBy(); r.OfBeginner && by != nil {
			out = append(out, vw.refusedBeginner(h, r.By, by.User))
			continue
		}
		out = append(out, fmt.Sprintf("%s has not taken the instance in: %s. It is sent again every few minutes",
			vw.People.Label(r.By), r.Why))
	}
	return out
}

// refusedBeginner says that a partner does not take an instance in as the user who began it may not any more, and what
// can be done.
func (vw *View) refusedBeginner(h *Held, at workflow.PartnerID, by worklist.User) string {
	there, name, role, id := vw.People.Label(at), vw.Partners.Called(by), h.Def.CreatorRole, h.M.Instance()
	person, known := vw.Partners.Person(by)
	switch {
	case !known:
		return fmt.Sprintf("%s has not taken the instance in, as %s, who began it, is no user any more: "+
			"cancel it (mutirao cancel %s), and have somebody with role %s start it", there, name, id, role)
	case !slices.Contains(person.Roles, role):
		return fmt.Sprintf("%s has not taken the instance in, as role %s was taken from %s, who began it. It goes on once an "+
			"administrator gives the role back (mutirao role grant %s %s). Else cancel it (mutirao cancel %s), and have "+
			"somebody with that role start it", there, role, name, name, role, id)
	}
	return fmt.Sprintf("%s has not taken the instance in, as %s, who began it, lacks role %s, or the key, as far as is known "+
		"there. It is sent again every few minutes. Else cancel it (mutirao cancel %s), and have somebody with that role "+
		"start it", there, name, role, id)
}

// names are what people call partners, one after the other.
func (vw *View) names(ids []workflow.PartnerID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = vw.People.Name(id)
	}
	return out
}

// listed are names one after the other, as texts have them.
func listed[T ~string](of []T) string {
	out := ""
	for i, x := range of {
		if i > 0 {
			out += ", "
		}
		out += string(x)
	}
	return out
}
