package users

// What comes from outside is bounded by these; every one is an error with its value when
// reached.
const (
	// MaxLinks is the greatest number of keys of one user that certify one another in a
	// row: the last of them cannot link another device until it is renewed.
	MaxLinks = 4
	// MaxRecord is the greatest encoded record, in bytes.
	MaxRecord = 32 << 10
	// MaxOfUser bounds the records that the keys of one user have signed, as far as they hang
	// on keys that one administrator has certified; and, apart from that, by how many of
	// them the keys removed themselves.
	MaxOfUser = 64
	// MaxOfDelegate and MaxBytesOfDelegate bound what one delegate is answerable for: the
	// records that it signed, and what was signed by keys that it certified, and by keys
	// that hang on those. Removals have room of their own beside that: half as many by
	// administrators, a quarter as many by users who sign out.
	MaxOfDelegate      = 1024
	MaxBytesOfDelegate = 2 << 20
	// MaxRecords and MaxBytes bound what the founder is answerable for, and, apart from
	// that, all delegates together.
	MaxRecords = 4096
	MaxBytes   = 8 << 20
	// MaxAll is the greatest number of records that a set holds.
	MaxAll = 2 * (MaxRecords + MaxRecords/2 + MaxRecords/4)
	// MaxNumber bounds the number of a role change, and of a certificate.
	MaxNumber = 1 << 20
	// MaxToken is the greatest length of a sign-in token's text, in characters.
	MaxToken = 2048
	// MaxTickets bounds the sign-in tokens of one node that may still be used.
	MaxTickets = 256
	// maxRequest bounds what a device sends to sign a user in.
	maxRequest = 4 << 10
)
