package trust

import "time"

// Wall is a moment by some node's wall clock: seconds since 1970, UTC. It is
// used where people set limits (certificates, invitations), never to compare
// two nodes' events.
type Wall int64

// WallOf is t to the second, rounded down.
func WallOf(t time.Time) Wall { return Wall(t.Unix()) }

// Time is w in UTC.
func (w Wall) Time() time.Time { return time.Unix(int64(w), 0).UTC() }

// String is w as RFC 3339.
func (w Wall) String() string { return w.Time().Format(time.RFC3339) }

// maxWall is the last moment of the year 9999.
const maxWall Wall = 253402300799

// Sayable reports whether w is in the years 1970 to 9999: others cannot be said in JSON.
func (w Wall) Sayable() bool { return w >= 0 && w <= maxWall }

// ClockSkew is how far a node's wall clock may be off before certificates
// that others find valid are refused here, and the other way round. A day
// covers every mistaken time zone; a clock that lost its battery is refused.
const ClockSkew = 24 * time.Hour
