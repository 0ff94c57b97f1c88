package workflow

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxDuration bounds every duration of a definition, so that adding them up
// along a path cannot overflow before anybody notices: ten years.
const MaxDuration = 3650 * 24 * time.Hour

// units of a duration, greatest first: FormatDuration prints them in this order.
var units = []struct {
	name string
	span time.Duration
}{
	{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second},
	{"ms", time.Millisecond}, {"us", time.Microsecond}, {"ns", time.Nanosecond},
}

// ParseDuration reads a duration such as 90s, 15m, 1h30m, 3d or 1.5h. Units are
// d (24 h), h, m, s, ms, us and ns. It is never negative and at most
// MaxDuration.
func ParseDuration(s string) (time.Duration, error) {
	switch {
	case s == "0":
		return 0, nil
	case negative(s):
		return 0, fmt.Errorf("%q is negative: write for example 90s, 15m, 1h30m or 3d", s)
	}
	var sum time.Duration
	for rest := s; rest != "" || s == ""; {
		number, unit, tail := splitDuration(rest)
		span, ok := unitSpan(unit)
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || !ok {
			return 0, fmt.Errorf("%q is not a duration: write for example 90s, 15m, 1h30m or 3d", s)
		}
		if n*float64(span) > float64(MaxDuration) {
			return 0, tooLong(s)
		}
		if sum += exactSpan(number, n, span); sum > MaxDuration {
			return 0, tooLong(s)
		}
		rest = tail
	}
	return sum, nil
}

// negative reports whether a text is a duration but for the minus before it.
func negative(s string) bool {
	rest, minus := strings.CutPrefix(s, "-")
	if !minus || strings.HasPrefix(rest, "-") {
		return false
	}
	_, err := ParseDuration(rest)
	return err == nil
}

func tooLong(s string) error {
	return fmt.Errorf("%q is too long: at most %s", s, FormatDuration(MaxDuration))
}

// exactSpan avoids the rounding of floating point for whole numbers.
func exactSpan(number string, n float64, span time.Duration) time.Duration {
	if whole, err := strconv.ParseInt(number, 10, 64); err == nil {
		return time.Duration(whole) * span
	}
	return time.Duration(math.Round(n * float64(span)))
}

// splitDuration cuts the first number and its unit off s.
func splitDuration(s string) (number, unit, rest string) {
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.') {
		i++
	}
	j := i
	for j < len(s) && s[j] >= 'a' && s[j] <= 'z' {
		j++
	}
	return s[:i], s[i:j], s[j:]
}

func unitSpan(name string) (time.Duration, bool) {
	for _, u := range units {
		if u.name == name {
			return u.span, true
		}
	}
	return 0, false
}

// FormatDuration prints a duration so that ParseDuration reads it back:
// 1d12h, 1m30s. Zero is 0s; a negative one gets a minus sign.
func FormatDuration(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	var b strings.Builder
	rest := uint64(d)
	if d < 0 {
		b.WriteByte('-')
		rest = -rest
	}
	for _, u := range units {
		if n := rest / uint64(u.span); n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			rest %= uint64(u.span)
		}
	}
	return b.String()
}
