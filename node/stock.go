package node

import (
	"time"

	"github.com/mutirao-mesh/mutirao/node/assignment"
	"github.com/mutirao-mesh/mutirao/node/certificates"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/evictions"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/profile"
	"github.com/mutirao-mesh/mutirao/node/roster"
	"github.com/mutirao-mesh/mutirao/node/users"
)

// stock is what a node is made of and does not ask for itself: its parts, what was read from
// the store, and what several of its topics share.
type stock struct {
	parts       Parts
	started     time.Time
	losses      *losses
	index       *index.List
	own         *profile.Own
	definitions *library.Definitions
	partners    *assignment.Partners
	evicted     *evictions.Set
	wallet      *certificates.Wallet
	list        *roster.List
	users       *users.Set
	sets        *datasets.Sets
	book        *closings.Book
	ledger      *assignment.Ledger
	learned     *assignment.Learned
}
