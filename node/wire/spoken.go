package wire

import (
	"fmt"
	"math"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Spoken asks the holder of people's tasks to write down a person's word about them
// (choreo.Claim).
type Spoken struct {
	_        struct{} `cbor:",toarray"`
	Instance workflow.InstanceID
	Says     []byte
	Nonce    [16]byte
	Word     []byte
}

// maxClaim bounds an encoded request, in bytes.
const maxClaim = 160 << 10

// EncodeSpoken writes a request for DecodeSpoken.
func EncodeSpoken(c Spoken) ([]byte, error) { return encodeRequest(c, unbounded) }

// DecodeSpoken reads a request. Its error wraps ErrVersion or ErrMalformed.
func DecodeSpoken(b []byte) (c Spoken, err error) {
	err = decodeRequest(b, maxClaim, &c)
	return c, err
}

// Items asks a partner which of the tasks that it holds a person has, or may take.
type Items struct {
	_    struct{} `cbor:",toarray"`
	User string
	// Only is the one instance that is asked about; zero: all.
	Only workflow.InstanceID
}

// EncodeItems writes a request for DecodeItems.
func EncodeItems(i Items) ([]byte, error) { return encodeRequest(i, unbounded) }

// DecodeItems reads a request. Its error wraps ErrVersion or ErrMalformed.
func DecodeItems(b []byte) (i Items, err error) {
	err = decodeRequest(b, 2*maxName, &i)
	return i, err
}

// Item asks a partner for one of the tasks that it holds, with all that a person needs to do it.
type Item struct {
	_        struct{} `cbor:",toarray"`
	User     string
	Instance workflow.InstanceID
	Item     string // as people name it
}

// EncodeItem writes a request for DecodeItem.
func EncodeItem(i Item) ([]byte, error) { return encodeRequest(i, unbounded) }

// DecodeItem reads a request. Its error wraps ErrVersion or ErrMalformed.
func DecodeItem(b []byte) (i Item, err error) {
	err = decodeRequest(b, 4*maxName, &i)
	return i, err
}

// Target asks a partner what an order of a person would be about, in an instance in which it takes part.
type Target struct {
	_        struct{} `cbor:",toarray"`
	User     string
	Instance string            // its ID, or a beginning of it
	Task     workflow.TaskName // empty: the instance
}

// Kept asks a partner for a result that is kept in an instance in which it takes part, for a person who may
// adopt it.
type Kept struct {
	_        struct{} `cbor:",toarray"`
	User     string
	Instance string // its ID, or a beginning of it
	Result   string // likewise
}

// EncodeKept writes a request for DecodeKept.
func EncodeKept(k Kept) ([]byte, error) { return encodeRequest(k, 4*maxName) }

// DecodeKept reads a request. Its error wraps ErrVersion or ErrMalformed.
func DecodeKept(b []byte) (k Kept, err error) {
	err = decodeRequest(b, 4*maxName, &k)
	return k, err
}

// EncodeTarget writes a request for DecodeTarget.
func EncodeTarget(t Target) ([]byte, error) { return encodeRequest(t, 4*maxName) }

// DecodeTarget reads a request. Its error wraps ErrVersion or ErrMalformed.
func DecodeTarget(b []byte) (t Target, err error) {
	err = decodeRequest(b, 4*maxName, &t)
	return t, err
}

// unbounded is for requests whose writer bounds what is in them.
const unbounded = math.MaxInt

// encodeRequest writes a request for decodeRequest. most bounds its bytes.
func encodeRequest(v any, most int) ([]byte, error) {
	b, err := encMode.Marshal(v)
	if err == nil && len(b) >= most {
		err = fmt.Errorf("names of %d bytes, at most %d", len(b), most)
	}
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return append([]byte{Version}, b...), nil
}

func decodeRequest(b []byte, most int, into any) error {
	switch {
	case len(b) == 0:
		return fmt.Errorf("%w: it is empty", ErrMalformed)
	case len(b) > most:
		return fmt.Errorf("%w: a request of %d bytes, at most %d", ErrMalformed, len(b), most)
	case b[0] != Version:
		return fmt.Errorf("%w: %d, this node reads %d", ErrVersion, b[0], Version)
	}
	if err := decMode.Unmarshal(b[1:], into); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}
