package invitation

// What comes from outside is bounded by these; every one is an error with its name
// when reached.
const (
	// MaxToken is the greatest length of an invitation's text, in characters.
	MaxToken = 4096
	// MaxInvitations bounds the open invitations of one issuer.
	MaxInvitations = 1024
	// MaxUses bounds the uses of one invitation.
	MaxUses = 1024
	// MaxWelcome is the greatest encoded answer to a joiner, in bytes.
	MaxWelcome = 4 << 20
)
