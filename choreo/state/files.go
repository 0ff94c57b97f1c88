package state

import (
	"cmp"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// noteGivers notes who gave the files that a success brought. A giver is noted once, in the order in
// which the successes were learned; that costs nothing where there are no files.
func (s *State) noteGivers(a *Attempt, ok *log.Entry) {
	for n, v := range ok.Gave() {
		text, is := v.(string)
		if !is || !IsFile(s.decls[n]) {
			continue
		}
		g := FileGiven{n, text}
		s.noteGiver(g, givenAt(a, ok))
		if f, err := workflow.ParseFile(text); err == nil {
			s.noteBrought(a, g, f)
		}
	}
}

func (s *State) noteGiver(g FileGiven, by workflow.PartnerID) {
	if slices.Contains(s.givers[g], by) {
		return
	}
	if s.givers == nil {
		s.givers = map[FileGiven][]workflow.PartnerID{}
	}
	s.givers[g] = append(s.givers[g], by)
}

// noteBrought notes that a file came with a person's result from the node at which the person's key is: its content
// is there, though that node need not take part. The word is signed, so its author says where it was given; it gives
// nobody a right.
func (s *State) noteBrought(a *Attempt, g FileGiven, f workflow.File) {
	r := s.broughtWith(a, g, func(at workflow.PartnerID) bool { return at != a.Partner })
	if r == nil {
		return
	}
	s.noteGiver(g, r.Speaker().At)
	if s.brought == nil {
		s.brought = map[workflow.PartnerID][]Reading{}
	}
	s.brought[a.Partner] = append(s.brought[a.Partner], Reading{g.Item, f})
}

// broughtWith is the first result by which a person at such a node brought a file; nil: there is none.
func (s *State) broughtWith(a *Attempt, g FileGiven, node func(workflow.PartnerID) bool) *log.Entry {
	for _, r := range s.peoples.Of[ClaimsOf{Attempt: a.ID, People: true}] {
		s.log.Steps++
		x, is := r.Fact.Body.Claim.Body().(worklist.Result)
		if at := r.Speaker().At; is && !x.Failed && x.Outputs[g.Item] == g.File && at != "" && node(at) {
			return r
		}
	}
	return nil
}

// Handed is a file that somebody gave with a person's task, and at which node: there its content is.
type Handed struct {
	FileGiven
	Task *workflow.Task
	User worklist.User // empty: the partner
	At   workflow.PartnerID
	Time int64 // ms
}

// Handed are the files that a success of a person's task brought.
func (s *State) Handed(a *Attempt, ok *log.Entry) (out []Handed) {
	for n, v := range ok.Gave() {
		text, is := v.(string)
		if !is || !IsFile(s.decls[n]) {
			continue
		}
		h := Handed{FileGiven: FileGiven{n, text}, Task: a.Task, At: givenAt(a, ok), Time: ok.Fact.At}
		r := s.broughtWith(a, h.FileGiven, func(workflow.PartnerID) bool { return true })
		if r != nil {
			h.User, h.At, h.Time = r.Speaker().User, r.Speaker().At, r.Fact.At
		}
		out = append(out, h)
	}
	slices.SortFunc(out, func(x, y Handed) int { return cmp.Compare(x.Item, y.Item) })
	return out
}

// Brought are the files that were brought to a partner so. They are not to be changed.
func (s *State) Brought(to workflow.PartnerID) []Reading { return s.brought[to] }

// Reading is a file that a task reads which can begin, or runs.
type Reading struct {
	Item workflow.DataName
	File workflow.File
}

// MayMiss reports whether a partner may say of an attempt that the content of a file is lost that its task
// reads, as it knew. Only its holder asks for that content; what others think of it is nobody's proof.
func (v *Evidence) MayMiss(a *Attempt, author workflow.PartnerID) bool {
	if began := v.began(a); began != nil && !a.Beside() && !a.Task.Whole {
		v = v.s.EvidenceOf(began)
	}
	return a.Partner == author &&
		slices.ContainsFunc(v.reading(a), func(n workflow.DataName) bool { return IsFile(v.decl(n)) })
}

// missing is the incident that the content of a file is lost for good which an attempt was to read.
func (a *Attempt) missing() (IncidentView, bool) {
	for _, r := range a.Rulings {
		if v := r.At.Fact.Body.Verdict; v.Cause == fact.CauseLost && !r.Void {
			what := string(a.Task.Name) + ": " + ReasonOf(v)
			return IncidentView{At: r.At.Fact.At, Task: a.Task.Name, Who: a.Partner, What: what}, true
		}
	}
	return IncidentView{}, false
}

func IsFile(d *workflow.DataDecl) bool { return d != nil && d.Type == workflow.TypeFile }

// TakeRefiled reports whether a file among the data became another, or none, since it was last called.
func (s *State) TakeRefiled() bool {
	refiled := s.refiled
	s.refiled = false
	return refiled
}

// givenAt is with which partner the content is that a success brought.
func givenAt(a *Attempt, ok *log.Entry) workflow.PartnerID {
	if ok.Fact.Body.Success == nil {
		return a.Partner // who took the result
	}
	return ok.Strand.Chain.ID.Author
}
