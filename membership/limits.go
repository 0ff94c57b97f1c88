package membership

import "time"

// What comes from outside is bounded by these. They are sized for a mesh of a
// few hundred partners; every one is an error with its name when reached.
const (
	// MaxPartners bounds the partner list.
	MaxPartners = 1024
	// MaxRecord is the greatest encoded partner record, in bytes.
	MaxRecord = 16 << 10
	// MaxAddresses bounds the addresses in a record or an invitation.
	MaxAddresses = 16
	// MaxAddress is the greatest length of one address, in bytes.
	MaxAddress = 256
	// MaxItems bounds each of the capabilities, applications and data sets of a record.
	MaxItems = 128
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
	// MaxToken is the greatest length of an invitation's text, in characters.
	MaxToken = 4096
	// MaxInvitations bounds the open invitations of one issuer.
	MaxInvitations = 1024
	// MaxUses bounds the uses of one invitation.
	MaxUses = 1024
	// MaxWelcome is the greatest encoded answer to a joiner, in bytes.
	MaxWelcome = 4 << 20
	// MaxVoters bounds an electorate.
	MaxVoters = 101
)

// ClockSkew is how far a node's wall clock may be off before certificates
// that others find valid are refused here, and the other way round. A day
// covers every mistaken time zone; a clock that lost its battery is refused.
const ClockSkew = 24 * time.Hour
