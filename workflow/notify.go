package workflow

import (
	"fmt"
	"strconv"
	"strings"
)

// The notification policies (docs/systems.md, Notification policies).
const (
	NotifyAll             = "all"
	NotifyFewestAssigned  = "fewest-assigned"
	NotifyFewestSelected  = "fewest-selected"
	NotifyLatestConnected = "latest-connected"
)

// MaxNotified is how many users of a role a policy notifies at most, but for all.
const MaxNotified = 64

// ParseNotify reads a notification policy: all, or one of the others with the
// number of users it notifies, as in "fewest-assigned 3".
func ParseNotify(s string) (policy string, n int, err error) {
	policy, count, counted := strings.Cut(strings.TrimSpace(s), " ")
	switch policy {
	case NotifyAll:
		if !counted {
			return policy, 0, nil
		}
	case NotifyFewestAssigned, NotifyFewestSelected, NotifyLatestConnected:
		if n, err = strconv.Atoi(strings.TrimSpace(count)); err == nil && n >= 1 && n <= MaxNotified {
			return policy, n, nil
		} else if err == nil {
			return "", 0, fmt.Errorf("%q notifies %d users: want 1 to %d, or write all", s, n, MaxNotified)
		}
	}
	return "", 0, fmt.Errorf(
		"%q is not a notification policy: write all, fewest-assigned N, fewest-selected N or latest-connected N", s)
}
