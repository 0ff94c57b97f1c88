package users

// What comes from outside is bounded by these; every one is an error with its value when
// reached.
const (
	// MaxLinks is the greatest number of keys of one user that certify one another in a
	// row: the last of them cannot link another device until it is renewed.
	MaxLinks = 4
	// MaxRecord is the greatest encoded record, in bytes.
	MaxRecord = 32 << 10
	// MaxOfUser bounds the records that the keys of one user have signed.
	MaxOfUser = 64
	// MaxOfDelegate and MaxBytesOfDelegate bound what one delegate is answerable for: the
	// records that it signed, and those of the users whom it made.
	MaxOfDelegate      = 1024
	MaxBytesOfDelegate = 2 << 20
	// MaxRecords and MaxBytes bound what the founder is answerable for, and, apart from
	// that, all delegates together.
	MaxRecords = 4096
	MaxBytes   = 8 << 20
	// MaxNumber bounds the number of a role change.
	MaxNumber = 1 << 20
	// MaxToken is the greatest length of a sign-in token's text, in characters.
	MaxToken = 2048
	// MaxTickets bounds the sign-in tokens of one node that may still be used.
	MaxTickets = 256
	// maxRequest bounds what a device sends to sign a user in.
	maxRequest = 4 << 10
)
