package configs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// ParseDuration reads a duration as people type it: what time.ParseDuration
// reads, and days before it ("3d", "1d12h"). It is never negative.
func ParseDuration(s string) (time.Duration, error) {
	bad := fmt.Errorf("%q is not a duration: want e.g. 90s, 15m, 1h30m or 3d", s)
	var days time.Duration
	rest := s
	if n, after, ok := strings.Cut(s, "d"); ok {
		d, err := strconv.ParseUint(n, 10, 16)
		if err != nil {
			return 0, bad
		}
		if days, rest = time.Duration(d)*day, after; rest == "" {
			return days, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || strings.HasPrefix(rest, "+") || d > math.MaxInt64-days {
		return 0, bad
	}
	return days + d, nil
}
