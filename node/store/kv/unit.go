package kv

// The most that is committed as one unit, below what a store takes.
const (
	UnitWrites = 4096
	unitSize   = 1 << 20 // bytes of keys and values
	writeCost  = 64      // bytes counted for a write beside key and value
)

// Unit is how many of the writes, from the first, fit into one unit: at least one.
func Unit(writes []Write) int {
	size := 0
	for i, w := range writes {
		if size += len(w.Key) + len(w.Value) + writeCost; i > 0 && (size > unitSize || i == UnitWrites) {
			return i
		}
	}
	return len(writes)
}

// Fits reports whether writes fit into one unit, with one more beside them.
func Fits(writes []Write) bool { return len(writes) < UnitWrites && Unit(writes) == len(writes) }

// CommitAll makes writes durable in their order, in units of bounded size.
func CommitAll(store interface{ CommitWait(writes []Write) error }, writes []Write) error {
	for len(writes) > 0 {
		u := Unit(writes)
		if err := store.CommitWait(writes[:u]); err != nil {
			return err
		}
		writes = writes[u:]
	}
	return nil
}
