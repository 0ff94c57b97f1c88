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
		if n, err = strconv.Atoi(strings.TrimSpace(count)); err == nil && n >= 1 && n <= 1_000_000 {
			return policy, n, nil
		}
	}
	return "", 0, fmt.Errorf("%q is not a notification policy: write all, fewest-assigned N, fewest-selected N or latest-connected N", s)
}
