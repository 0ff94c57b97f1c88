package users

import (
	"fmt"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Namesake is a user whose name people could take for that name: it is the same but for capitals and accents, or looks
// the same in another alphabet.
func (s *Set) Namesake(name string, at time.Time) (User, bool) {
	sounds := membership.Sounds(name)
	for _, u := range s.Users(at) {
		if membership.Sounds(u.Name) == sounds {
			return u, true
		}
	}
	return User{}, false
}

// called is what people call a user in what is said of it, removed or not: by name, with the beginning of its ID where
// another is or was called so, too.
func (s *Set) called(id ID) string {
	name := s.named(id)
	for other := range s.of {
		if other != id && s.Named(other) == name {
			return fmt.Sprintf("%s (%s)", name, id.Short())
		}
	}
	return name
}

// removed says that whom a text names was removed, by name or ID as in [Set.Resolve]; nil: it names nobody.
func (s *Set) removed(text string) error {
	var gone []ID
	for id := range s.of {
		name, whole := s.Named(id), id.String()
		if name != "" && len(s.removals(id, "")) > 0 && (name == text || whole == text ||
			len(text) >= len(id.Short()) && strings.HasPrefix(whole, text)) {
			gone = append(gone, id)
		}
	}
	switch len(gone) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%w: user %s was %w", ErrNoUser, s.called(gone[0]), ErrRemoved)
	}
	return fmt.Errorf("%w: all who were called %s were %w", ErrNoUser, s.Named(gone[0]), ErrRemoved)
}

// Labels are what people are shown for users beside one another: the name of each, with the
// beginning of its ID where another has a name that looks the same.
func Labels(all []User) []string {
	out, looks, alike := make([]string, len(all)), make([]string, len(all)), map[string]int{}
	for i, u := range all {
		looks[i] = membership.Looks(u.Name)
		alike[looks[i]]++
	}
	for i, u := range all {
		if out[i] = u.Name; alike[looks[i]] > 1 {
			out[i] = fmt.Sprintf("%s (%s)", u.Name, u.ID.Short())
		}
	}
	return out
}

// Resolve finds the user that a person means: by name, by ID, by the label that people are
// shown, or by the beginning of an ID, as much of it as they are shown. The error wraps
// [ErrNoUser], and [ErrRemoved] where that one was removed, or [membership.ErrAmbiguous].
func (s *Set) Resolve(text string, at time.Time) (User, error) {
	const maxShown = 40
	text = workflow.UsualForm(text)
	var named, begun []User
	all := s.Users(at)
	labels := Labels(all)
	for i, u := range all {
		if u.ID.String() == text || labels[i] == text && text != u.Name {
			return u, nil
		}
		if u.Name == text {
			named = append(named, u)
		}
		if len(text) >= len(u.ID.Short()) && strings.HasPrefix(u.ID.String(), text) {
			begun = append(begun, u)
		}
	}
	if len(named) == 0 && len(begun) == 1 {
		return begun[0], nil
	}
	switch len(named) {
	case 0:
		if err := s.removed(text); err != nil {
			return User{}, err
		}
		return User{}, fmt.Errorf("%w: %q", ErrNoUser, plain.CutBytes(text, maxShown))
	case 1:
		return named[0], nil
	}
	var ids []string
	for _, u := range named {
		ids = append(ids, u.ID.String())
	}
	return User{}, fmt.Errorf("%w is called %s: use an ID: %s", membership.ErrAmbiguous, named[0].Name,
		strings.Join(ids, " or "))
}
