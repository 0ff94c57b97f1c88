package trust

// What the tests forge they sign in the name of another.
const (
	CertificateDomain = certificateDomain
	EvictionDomain    = evictionDomain
)

// PeerIDPrefix is what the bytes of every ID begin with.
var PeerIDPrefix = peerIDPrefix

// Body is what is signed of a certificate.
func (c Certificate) Body() []byte { return c.body() }

// Body is what is signed of an eviction.
func (e Eviction) Body() []byte { return e.body() }
