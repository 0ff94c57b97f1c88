package store

import (
	"errors"
	"fmt"

	"github.com/mutirao-mesh/mutirao/node/store/kv"
)

// Write is one change of a unit; see kv.Write.
type Write = kv.Write

// The errors that callers tell apart; see kv.
var (
	ErrNotFound  = kv.ErrNotFound
	ErrFull      = kv.ErrFull
	ErrTooBig    = kv.ErrTooBig
	ErrInvalid   = kv.ErrInvalid
	ErrQueueFull = kv.ErrQueueFull
	ErrClosed    = kv.ErrClosed
	ErrDamaged   = kv.ErrDamaged
)

// ErrReopening is returned by reads in the moment after a failed write in which
// the database is closed and opened again. Reading again helps.
var ErrReopening = errors.New("store is being reopened after a failed write: read again")

// LockedError says that another process has the folder open.
type LockedError struct {
	Dir string
	// PID is the holder's process ID, 0 if it could not be read.
	PID int
}

func (e *LockedError) Error() string {
	holder := "another process"
	if e.PID != 0 {
		holder = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("store %s is in use by %s: stop it, or use another folder", e.Dir, holder)
}
