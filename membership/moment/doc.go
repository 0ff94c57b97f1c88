// Package moment says what the time is to a node: the clocks that are read together,
// and how long a node waits after a gap before it draws conclusions from silence.
//
// It reads no clock itself: whoever drives the pure packages reads them, and passes
// them in with each call.
//
// It imports no other package of ours; many packages import it.
package moment
