package show

import (
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// addClaims adds to an instance who has which task of people, and the results that do not count.
func (vw *View) addClaims(h *Held, views []state.TaskView, in *api.Instance) {
	if !h.M.Claims() {
		return
	}
	for _, v := range append(h.M.Items(), lockedAhead(h)...) {
		for i := range in.Tasks {
			t := &in.Tasks[i]
			if !shows(t, &v) {
				continue
			}
			t.Role = v.Role
			t.Said = vw.said(v.Remark)
			switch {
			case v.Holder == "":
				t.OfferedTo = vw.Partners.CalledAll(slices.DeleteFunc(slices.Clone(v.Offered), func(u worklist.User) bool {
					_, known := vw.Partners.Person(u)
					return !known // was removed since, or is signed in nowhere
				}))
			case v.Mode == worklist.Handed:
				t.KeptFor = vw.Partners.Called(v.Holder)
			default:
				t.ClaimedBy = vw.Partners.Called(v.Holder)
			}
		}
	}
	tasks, attempts := performers(h)
	for i := range in.Tasks {
		t := &in.Tasks[i]
		if t.Said == nil && t.State == workflow.Failed { // somebody else may stand in for it
			t.Said = vw.said(h.M.RemarkOnPresumed(views[i].ID))
		}
		done := attempts[views[i].ID]        // the attempt that counts
		if done.by == "" && !in.DataDriven { // what another state fired, somebody else may have done
			done = tasks[t.Name]
		}
		if h.M.LeftOut(views[i].ID) {
			done = performed{} // whoever ended it before is named by the reason
		}
		if t.State.Done() && done.by != "" {
			t.PerformedBy, t.Signed = vw.Partners.Called(done.by), vw.Signed(done.word)
		}
	}
	for _, r := range h.M.KeptResults() {
		what := fmt.Sprintf("a result of %s is kept and does not count, %s", vw.Partners.Called(r.User),
			worklists.Because(r.Why))
		if r.Failed {
			what = fmt.Sprintf("%s said that it failed, which does not count, %s", vw.Partners.Called(r.User),
				worklists.Because(r.Why))
			if r.Reason != "" {
				what += "; the reason given: " + r.Reason
			}
		}
		x := api.Incident{
			At: time.UnixMilli(r.At).UTC(), Task: r.Task, What: what + h.outputs(r.Outputs), Result: r.ID.String(),
		}
		if r.Adoptable {
			x.Commands = []string{fmt.Sprintf("mutirao task adopt %s %s", h.M.Instance(), r.ID)}
		}
		in.Incidents = append(in.Incidents, x)
	}
}

// said shows what somebody said of an item; nil: nothing.
func (vw *View) said(x *worklist.Remark) *api.Said {
	if x == nil {
		return nil
	}
	return &api.Said{By: vw.Partners.Called(x.User), Why: x.Reason, At: x.At.UTC(), Passed: x.Passed}
}

// shows reports whether an item is what an entry of an instance is about: a stand-in that is a task in
// the flow as well is shown with the task whose place it takes.
func shows(t *api.Task, v *choreo.ItemView) bool {
	switch {
	case v.Undoes != "":
		return t.Undoes == v.Undoes && t.Name == v.Task.Name && !t.State.Done()
	case t.StandIn != nil && v.Item.Slot == t.Name:
		return true
	case v.Item.Slot != t.Name && t.ContingencyOf == nil:
		return false
	}
	return t.Name == v.Task.Name && !t.State.Done()
}

// lockedAhead are the items that somebody has locked before they are ready.
func lockedAhead(h *Held) []choreo.ItemView {
	return slices.DeleteFunc(h.M.Ahead(), func(v choreo.ItemView) bool { return v.Holder == "" })
}

// performed is who brought a result, and the signed word that it was.
type performed struct {
	by   worklist.User
	word []byte
}

// performers are the people whose results ended tasks, as the holders say: of several attempts at one
// task, that of the last.
func performers(h *Held) (tasks map[workflow.TaskName]performed, attempts map[fact.AttemptID]performed) {
	tasks, attempts = map[workflow.TaskName]performed{}, map[fact.AttemptID]performed{}
	said := map[fact.ID]performed{}
	for _, f := range h.M.Facts() {
		if f.Fact.Body.Claim == nil || !f.Counted {
			continue
		}
		said[f.ID] = performed{f.Speaker, f.Fact.Body.Claim.Word}
		var took worklist.ID
		switch x := f.Fact.Body.Claim.Body().(type) {
		case worklist.Close:
			took = x.Result
		case worklist.Adopt:
			took = x.Result
		default:
			continue
		}
		for _, id := range f.Fact.Body.Claim.About() {
			name, _ := h.M.AttemptTask(id)
			tasks[name], attempts[id] = said[fact.ID(took)], said[fact.ID(took)]
		}
	}
	return tasks, attempts
}
