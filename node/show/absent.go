package show

import (
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Absence says that a partner, as people call it, is away as it announced, since when and until about when; nil: it is
// not.
func Absence(p membership.Partner, called string) *api.Absence {
	if !p.Absent() {
		return nil
	}
	return &api.Absence{Partner: called, Since: p.Since.Time(), Until: p.Until.Time()}
}

// Absent is Absence of a partner by its ID.
func (vw *View) Absent(p workflow.PartnerID) *api.Absence {
	x, known := vw.People.Get(p)
	if !known || p == vw.Self {
		return nil
	}
	return Absence(x, vw.People.Name(p))
}

// AbsentOf are those of some partners that are away as they announced.
func (vw *View) AbsentOf(of []workflow.PartnerID) (out []api.Absence) {
	for _, p := range of {
		if a := vw.Absent(p); a != nil {
			out = append(out, *a)
		}
	}
	return out
}

// absentHolder says that who holds a task that is not done is away as announced; nil: it is not.
func (vw *View) absentHolder(t state.TaskView) *api.Absence {
	if t.State.Done() || t.Partner == "" {
		return nil
	}
	return vw.Absent(t.Partner)
}
