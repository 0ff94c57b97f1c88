package wire

import "github.com/mutirao-mesh/mutirao/workflow"

// Spoken asks the holder of people's tasks to write down a person's word about them
// (fact.Claim).
type Spoken struct {
	_        struct{} `cbor:",toarray"`
	Instance workflow.InstanceID
	Says     []byte `people:"what is said"`
	Nonce    [16]byte
	Word     []byte `people:"the signature with its certificates"`
}

// EncodeSpoken writes a request for DecodeSpoken. Its error is a *TooLong where a part is too long.
func EncodeSpoken(c Spoken) ([]byte, error) { return claims.encode(c) }

// DecodeSpoken reads a request. Its error wraps ErrVersion or ErrMalformed.
func DecodeSpoken(b []byte) (Spoken, error) { return claims.decode(b) }

// Amending asks a partner to write down a person's word that amends an instance, if that still runs by a definition:
// with which the person's node, which takes no part in the instance, compared it.
type Amending struct {
	_    struct{} `cbor:",toarray"`
	Of   workflow.Hash
	Word []byte `people:"what is said"` // a Spoken, as it is encoded
}

// EncodeAmending writes a request for DecodeAmending. Its error is a *TooLong where a part is too long.
func EncodeAmending(a Amending) ([]byte, error) { return amendings.encode(a) }

// DecodeAmending reads a request. Its error wraps ErrVersion or ErrMalformed.
func DecodeAmending(b []byte) (Amending, error) { return amendings.decode(b) }

// Items asks a partner which of the tasks that it holds a person has, or may take.
type Items struct {
	_    struct{} `cbor:",toarray"`
	User string   `people:"the user's ID"`
	// Only is the one instance that is asked about; zero: all.
	Only workflow.InstanceID
}

// EncodeItems writes a request for DecodeItems. Its error is a *TooLong where a part is too long.
func EncodeItems(i Items) ([]byte, error) { return itemLists.encode(i) }

// DecodeItems reads a request. Its error wraps ErrVersion or ErrMalformed.
func DecodeItems(b []byte) (Items, error) { return itemLists.decode(b) }

// Item asks a partner for one of the tasks that it holds, with all that a person needs to do it.
type Item struct {
	_        struct{} `cbor:",toarray"`
	User     string   `people:"the user's ID"`
	Instance workflow.InstanceID
	Item     string `people:"the item"` // as people name it
}

// EncodeItem writes a request for DecodeItem. Its error is a *TooLong where a part is too long.
func EncodeItem(i Item) ([]byte, error) { return items.encode(i) }

// DecodeItem reads a request. Its error wraps ErrVersion or ErrMalformed.
func DecodeItem(b []byte) (Item, error) { return items.decode(b) }

// Target asks a partner what an order of a person would be about, in an instance in which it takes part.
type Target struct {
	_        struct{}          `cbor:",toarray"`
	User     string            `people:"the user's ID"`
	Instance string            `people:"the instance"` // its ID, or a beginning of it
	Task     workflow.TaskName `people:"the task"`     // empty: the instance
}

// Kept asks a partner for a result that is kept in an instance in which it takes part, for a person who may
// adopt it.
type Kept struct {
	_        struct{} `cbor:",toarray"`
	User     string   `people:"the user's ID"`
	Instance string   `people:"the instance"` // its ID, or a beginning of it
	Result   string   `people:"the result"`   // likewise
}

// EncodeKept writes a request for DecodeKept. Its error is a *TooLong where a part is too long.
func EncodeKept(k Kept) ([]byte, error) { return keptOnes.encode(k) }

// DecodeKept reads a request. Its error wraps ErrVersion or ErrMalformed.
func DecodeKept(b []byte) (Kept, error) { return keptOnes.decode(b) }

// EncodeTarget writes a request for DecodeTarget. Its error is a *TooLong where a part is too long.
func EncodeTarget(t Target) ([]byte, error) { return targets.encode(t) }

// DecodeTarget reads a request. Its error wraps ErrVersion or ErrMalformed.
func DecodeTarget(b []byte) (Target, error) { return targets.decode(b) }

// Follow is what a user set and read, as one node of that user tells another.
type Follow struct {
	_    struct{} `cbor:",toarray"`
	Says []byte   `people:"what is said"`
	Word []byte   `people:"the signature with its certificates"`
}

// EncodeFollow writes a request for DecodeFollow. Its error is a *TooLong where a part is too long.
func EncodeFollow(f Follow) ([]byte, error) { return follows.encode(f) }

// DecodeFollow reads a request. Its error wraps ErrVersion or ErrMalformed.
func DecodeFollow(b []byte) (Follow, error) { return follows.decode(b) }
