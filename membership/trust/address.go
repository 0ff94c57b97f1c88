package trust

import (
	"fmt"
	"slices"
)

// What is told of where a partner is is bounded by these.
const (
	// MaxAddresses bounds the addresses in a record or an invitation.
	MaxAddresses = 16
	// MaxAddress is the greatest length of one address, in bytes.
	MaxAddress = 256
)

// CheckAddresses checks number and length; what they mean is the carrier's affair.
func CheckAddresses(addresses []string) error {
	if len(addresses) > MaxAddresses {
		return fmt.Errorf("%d addresses: at most %d", len(addresses), MaxAddresses)
	}
	bad := func(a string) bool { return len(a) == 0 || len(a) > MaxAddress }
	if i := slices.IndexFunc(addresses, bad); i >= 0 {
		return fmt.Errorf("address %q of %d bytes: want 1 to %d", clip(addresses[i]), len(addresses[i]), MaxAddress)
	}
	return nil
}
