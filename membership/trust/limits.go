package trust

// What comes from outside is bounded by these; every one is an error with its name
// when reached.
const (
	// MaxRoles bounds the roles of a certificate.
	MaxRoles = 32
	// MaxChain is the greatest number of certificates below the founder: a
	// member's and its delegate's.
	MaxChain = 2
	// MaxCertificate is the greatest encoded certificate, in bytes.
	MaxCertificate = 6 << 10
	// MaxEviction is the greatest encoded eviction, in bytes: an evicted
	// delegate may have listed certificates and evictions to keep.
	MaxEviction = 128 << 10
	// MaxEvictions bounds the evictions that a node holds.
	MaxEvictions = 4096
	// MaxEvictionsPerDelegate keeps one delegate from filling that bound.
	MaxEvictionsPerDelegate = 512
	// MaxReason is the greatest length of an eviction's reason, in bytes.
	MaxReason = 256
)
