package trust

import "encoding/hex"

// Incarnation tells the lives of a node's store apart: it is drawn again when
// a store is created or restored.
type Incarnation [8]byte

// String is i in hexadecimal.
func (i Incarnation) String() string { return hex.EncodeToString(i[:]) }
