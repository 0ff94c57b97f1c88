package wire

import "github.com/mutirao-mesh/mutirao/workflow"

// FileAsk asks a partner for something of a file that an instance has among its data:
// for the hashes of its chunks, or for a piece of its content.
type FileAsk struct {
	_        struct{} `cbor:",toarray"`
	Instance workflow.InstanceID
	Item     workflow.DataName
	File     string // workflow.File
	// User is for whom it is asked, by ID; empty: the partner itself.
	User string
	// Sums: the hashes are wanted, and Offset says nothing.
	Sums   bool
	Offset int64
}

// EncodeFileAsk writes a request for DecodeFileAsk.
func EncodeFileAsk(a FileAsk) ([]byte, error) { return encodeRequest(a, unbounded) }

// DecodeFileAsk reads a request. Its error wraps ErrVersion or ErrMalformed.
func DecodeFileAsk(b []byte) (a FileAsk, err error) {
	err = decodeRequest(b, 8*maxName, &a)
	return a, err
}
