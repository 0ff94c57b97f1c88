package mesh

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
)

// hello is what a side says about itself: version (1 byte), boot counter (8
// bytes, big-endian), credentials (the rest).
type hello struct {
	boot        uint64
	credentials []byte
}

const helloHeader = 1 + 8

func (h hello) encode() []byte {
	b := make([]byte, 0, helloHeader+len(h.credentials))
	b = append(b, helloVersion)
	b = binary.BigEndian.AppendUint64(b, h.boot)
	return append(b, h.credentials...)
}

func decodeHello(b []byte) (hello, error) {
	if len(b) < helloHeader {
		return hello{}, fmt.Errorf("hello of %d bytes, at least %d needed", len(b), helloHeader)
	}
	if b[0] != helloVersion {
		return hello{}, fmt.Errorf("hello version %d, this node speaks version %d", b[0], helloVersion)
	}
	return hello{boot: binary.BigEndian.Uint64(b[1:]), credentials: b[helloHeader:]}, nil
}

// A verdict is one byte, verdictYes alone or verdictNo with the reason after it.
const (
	verdictYes = 0
	verdictNo  = 1
	// maxReason bounds the reason: a refusal must cost no more than its cause.
	maxReason  = 256
	maxVerdict = 1 + maxReason
)

func encodeVerdict(refusal error) []byte {
	if refusal == nil {
		return []byte{verdictYes}
	}
	return append([]byte{verdictNo}, truncate(refusal.Error())...)
}

// truncate cuts a reason to maxReason.
func truncate(reason string) string { return reason[:min(len(reason), maxReason)] }

// decodeVerdict returns the refusal that b holds, if any, or why b is none.
func decodeVerdict(b []byte) (refusal, err error) {
	switch {
	case len(b) == 1 && b[0] == verdictYes:
		return nil, nil
	case len(b) >= 1 && len(b) <= maxVerdict && b[0] == verdictNo:
		return &RefusedError{Reason: printable(b[1:])}, nil
	}
	return nil, errors.New("malformed verdict")
}

// RefusedError says that the other side did not admit us.
type RefusedError struct {
	// Reason is what it said, at most 256 bytes, printable.
	Reason string
}

func (e *RefusedError) Error() string { return "refused by the partner: " + e.Reason }

// printable makes a stranger's words fit for a log or a terminal.
func printable(b []byte) string {
	out := make([]rune, 0, len(b))
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			r = '?'
		}
		out = append(out, r)
		b = b[n:]
	}
	return string(out)
}
