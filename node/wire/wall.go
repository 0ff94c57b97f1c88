package wire

import "time"

// AtMilli is a moment in ms since 1970 for people, in the years that JSON can say. What
// comes from elsewhere is held against them at the door (MaxWall); this is for what a
// clock or a damaged disk may have said here.
func AtMilli(ms int64) time.Time { return time.UnixMilli(min(max(ms, 0), MaxWall)) }

// Instant is AtMilli of what may not have happened yet: nil for 0.
func Instant(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := AtMilli(ms)
	return &t
}
