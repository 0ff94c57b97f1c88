package native

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

var (
	clock = regexp.MustCompile(`^(?:(\d{1,6})\s+days?\s+)?(\d{1,6}):(\d{1,2})(?::(\d{1,2}(?:\.\d{1,9})?))?$`)
	alone = regexp.MustCompile(`^\d{1,9}(?:\.\d{1,9})?$`)
	part  = regexp.MustCompile(`^\s*(\d{1,9}(?:\.\d{1,9})?)\s*([a-z]+)`)
)

// spans are the units of an interval. Months and years have no fixed length, as there.
var spans = map[string]time.Duration{
	"w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour, "weeks": 7 * 24 * time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
	"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"ms": time.Millisecond, "msec": time.Millisecond, "millisecond": time.Millisecond, "milliseconds": time.Millisecond,
}

// Interval reads a span of time as PostgreSQL does: 02:30:00, 3d18h, 3 days 02:30:00,
// 90 minutes; a number alone is seconds.
func Interval(s string) (d time.Duration, good bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	if m := clock.FindStringSubmatch(s); m != nil {
		days, hours, minutes, seconds := atof(m[1]), atof(m[2]), atof(m[3]), atof(m[4])
		total := days*24*3600 + hours*3600 + minutes*60 + seconds
		return ofSeconds(total), minutes < 60 && seconds < 60
	}
	if alone.MatchString(s) {
		return ofSeconds(atof(s)), true
	}
	var total float64 // seconds
	for rest := s; strings.TrimSpace(rest) != ""; {
		m := part.FindStringSubmatch(rest)
		if m == nil || spans[m[2]] == 0 {
			return 0, false
		}
		total += atof(m[1]) * spans[m[2]].Seconds()
		rest = rest[len(m[0]):]
	}
	return ofSeconds(total), s != ""
}

// ofSeconds keeps what is too long for a duration beyond what is allowed.
func ofSeconds(seconds float64) time.Duration {
	if seconds > 2*workflow.MaxDuration.Seconds() {
		return 2 * workflow.MaxDuration
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
}

// atof reads digits, with a point or without; nothing is 0.
func atof(digits string) float64 {
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0
	}
	return f
}
