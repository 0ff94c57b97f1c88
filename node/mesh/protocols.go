package mesh

import "github.com/libp2p/go-libp2p/core/protocol"

// The protocols of this package. The bytes under one ID never change; a new
// version gets a new ID. IDs of request protocols belong to those that register
// them.
const (
	// helloProtocol: see handshake.go and control.go.
	helloProtocol protocol.ID = "/mutirao/hello/1.0.0"
	// framesProtocol: one stream per connection and direction, on which the
	// opener writes frames (uvarint length, bytes) in blocks (pack.go) and the other side
	// nothing.
	framesProtocol protocol.ID = "/mutirao/frames/2.0.0"

	// helloVersion is the first byte of a hello.
	helloVersion = 1
	userAgent    = "mutirao"
)
