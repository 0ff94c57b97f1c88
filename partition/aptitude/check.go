package aptitude

import (
	"fmt"
	"slices"
	"strings"
)

// NobodyError says that an item cannot be taken by anyone, whatever their
// load, and what would have to change. Absent resources count as able, since
// they may come back.
type NobodyError struct {
	Item ItemID
	Task TaskID
	// Forbidden are the suited resources that a hard constraint bars,
	// Constraints those constraints.
	Forbidden   []ResourceID
	Constraints []string
	// Rejected are the suited resources that turned the item down.
	Rejected []ResourceID
}

func (e *NobodyError) Error() string {
	if len(e.Forbidden)+len(e.Rejected) == 0 {
		return fmt.Sprintf("no resource is suited for task %q: give one a suitability above 0 for it", e.Task)
	}
	var why, cure []string
	if len(e.Forbidden) > 0 {
		names := strings.Join(e.Constraints, ", ")
		why = append(why, fmt.Sprintf("hard constraint %s bars %s", names, join(e.Forbidden)))
		cure = append(cure, "lower its penalty below 1")
	}
	if len(e.Rejected) > 0 {
		why = append(why, join(e.Rejected)+" rejected it")
		cure = append(cure, "ask again")
	}
	return fmt.Sprintf("nobody may take task %q: %s; %s, or add a suited resource",
		e.Task, strings.Join(why, " and "), strings.Join(cure, ", "))
}

func join(ids []ResourceID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = string(id)
	}
	return strings.Join(names, ", ")
}

// nobody reports that every candidate is barred or has rejected the item.
func nobody(it *Item, cs []Candidate) error {
	e := &NobodyError{Item: it.ID, Task: it.Task}
	for i := range cs {
		switch c := &cs[i]; c.Verdict {
		case Forbidden:
			e.Forbidden = append(e.Forbidden, c.Resource)
			for _, name := range c.Broken {
				if !slices.Contains(e.Constraints, name) {
					e.Constraints = append(e.Constraints, name)
				}
			}
		case Rejecting:
			e.Rejected = append(e.Rejected, c.Resource)
		default:
			return nil
		}
	}
	return e
}
