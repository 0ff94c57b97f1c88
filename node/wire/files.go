package wire

import "github.com/mutirao-mesh/mutirao/workflow"

// FileAsk asks a partner for something of a file that an instance has among its data:
// for the hashes of its chunks, or for a piece of its content.
type FileAsk struct {
	_        struct{} `cbor:",toarray"`
	Instance workflow.InstanceID
	Item     workflow.DataName `people:"the item"`
	File     string            `people:"the reference"` // workflow.File
	// User is for whom it is asked, by ID; empty: the partner itself.
	User string `people:"the user's ID"`
	// Sums: the hashes are wanted, and Offset says nothing.
	Sums bool
	// Offset is where the piece begins. The length of the file, after which none does: whoever asks has all of it on its
	// disk, and says so.
	Offset int64
}

// EncodeFileAsk writes a request for DecodeFileAsk. Its error is a *TooLong where a part is too long.
func EncodeFileAsk(a FileAsk) ([]byte, error) { return fileAsks.encode(a) }

// DecodeFileAsk reads a request. Its error wraps ErrVersion or ErrMalformed.
func DecodeFileAsk(b []byte) (FileAsk, error) { return fileAsks.decode(b) }

// FileReader asks the partner for which a file was given whether another may read it.
type FileReader struct {
	_        struct{} `cbor:",toarray"`
	Instance workflow.InstanceID
	Item     workflow.DataName  `people:"the item"`
	File     string             `people:"the reference"` // workflow.File
	Reader   workflow.PartnerID `people:"the partner's ID"`
	// User is for whom that one asked, by ID; empty: for itself.
	User string `people:"the user's ID"`
}

// EncodeFileReader writes a request for DecodeFileReader. Its error is a *TooLong where a part is too long.
func EncodeFileReader(a FileReader) ([]byte, error) { return fileReaders.encode(a) }

// DecodeFileReader reads a request. Its error wraps ErrVersion or ErrMalformed.
func DecodeFileReader(b []byte) (FileReader, error) { return fileReaders.decode(b) }
