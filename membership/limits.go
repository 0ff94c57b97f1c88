package membership

// What comes from outside is bounded by these. They are sized for a mesh of a
// few hundred partners; every one is an error with its name when reached.
const (
	// MaxPartners bounds the partner list.
	MaxPartners = 1024
	// MaxRecalled bounds how many that are members no more are listed when others show them:
	// whoever has the key of an evicted delegate can make as many as it likes.
	MaxRecalled = 256
	// MaxRecord is the greatest encoded partner record, in bytes.
	MaxRecord = 16 << 10
	// MaxItems bounds each of the capabilities, applications and data sets of a record.
	MaxItems = 128
)
