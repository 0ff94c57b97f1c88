package membership

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/workflow"
)

var (
	// ErrNoPartner tells that nobody in the list is called so.
	ErrNoPartner = errors.New("no such partner")
	// ErrAmbiguous tells that several partners are called so.
	ErrAmbiguous = errors.New("more than one partner")
)

// maxShown is how much of what somebody typed an error repeats, in bytes.
const maxShown = 40

// Label is what people are shown for a partner: its name, with the beginning
// of its ID if another listed partner has the same name, or one that looks the
// same, else the ID.
func (l *List) Label(id workflow.PartnerID) string {
	it := l.partners[id]
	if it == nil {
		return id.Short()
	}
	if l.alike[it.look()] > 1 {
		return it.label()
	}
	return it.Record.Name()
}

// label is a partner's name with the beginning of its ID.
func (it *item) label() string {
	return fmt.Sprintf("%s (%s)", it.Record.Name(), it.Record.Partner.Short())
}

// Resolve finds the partner that a person means: by name, by ID, or by a
// unique beginning of the ID, with or without what all IDs begin with, or by the
// label that people are shown. Names
// are unique only by good habit: two delegates that cannot see each other may
// give one twice, and a member that was evicted may join again under the same.
// Then the one that is not gone is meant, else the one that was not evicted; if
// that leaves several, the ID decides.
func (l *List) Resolve(text string) (workflow.PartnerID, error) {
	text = workflow.UsualForm(text)
	if id := workflow.PartnerID(text); l.partners[id] != nil {
		return id, nil
	}
	var named, namedMembers, namedHere []workflow.PartnerID
	for id, it := range l.partners {
		if it.Record.Name() != text {
			continue
		}
		named = append(named, id)
		if it.State != Evicted {
			namedMembers = append(namedMembers, id)
		}
		if !it.State.Gone() {
			namedHere = append(namedHere, id)
		}
	}
	for _, found := range [][]workflow.PartnerID{namedHere, namedMembers, named} {
		if len(found) > 0 {
			return l.theOne(text, found)
		}
	}
	return l.theOne(text, l.beginning(text))
}

// beginning are the partners whose ID begins so, or whose label that is.
func (l *List) beginning(text string) (found []workflow.PartnerID) {
	for id, it := range l.partners {
		if rest := strings.TrimPrefix(string(id), workflow.CommonID); text != "" &&
			(strings.HasPrefix(string(id), text) || strings.HasPrefix(rest, text) || text == it.label()) {
			found = append(found, id)
		}
	}
	return found
}

// theOne is the partner that was found for a text, or the error that there is none, or more than one.
func (l *List) theOne(text string, found []workflow.PartnerID) (workflow.PartnerID, error) {
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%w: %q%s", ErrNoPartner, plain.CutBytes(text, maxShown), l.nearest(text))
	case 1:
		return found[0], nil
	}
	gone := ""
	if !slices.ContainsFunc(found, func(id workflow.PartnerID) bool { return l.partners[id].State != Evicted }) {
		gone = ", which were all evicted"
	}
	slices.Sort(found)
	return "", fmt.Errorf("%w: %q may be %s%s: use the ID", ErrAmbiguous, plain.CutBytes(text, maxShown),
		l.describe(found), gone)
}

// nearest asks whether another partner was meant, whose name is nearly the same.
func (l *List) nearest(text string) string {
	var names []string
	for _, id := range l.ids() {
		if it := l.partners[id]; it.State != Evicted {
			names = append(names, it.Record.Name())
		}
	}
	if near := workflow.Nearest(text, names); near != "" {
		return ": did you mean " + near + "?"
	}
	return ""
}

// describe lists candidates for an error, not too many.
func (l *List) describe(ids []workflow.PartnerID) string {
	const most = 5
	var out []string
	for i, id := range ids {
		if i == most {
			out = append(out, "…")
			break
		}
		out = append(out, l.partners[id].label())
	}
	return strings.Join(out, " or ")
}
