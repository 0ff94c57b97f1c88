package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// The names of things. Each has its own type so that a signature tells what it
// takes. Workflow, task, partition and role names match [A-Za-z0-9][A-Za-z0-9_.-]*.
type (
	// Name names a workflow definition.
	Name string
	// TaskName names a task inside a definition.
	TaskName string
	// PartitionName names a partition inside a definition.
	PartitionName string
	// RoleName names a role that people and partners have.
	RoleName string
	// DataName names a data item of an instance: [A-Za-z_][A-Za-z0-9_]*.
	DataName string
	// ApplicationName names what an automatic task runs or a person opens.
	ApplicationName string
	// Capability is something a partner can do or has.
	Capability string
	// PartnerID identifies a partner: the text form of its libp2p peer ID.
	PartnerID string
	// UserName names a person.
	UserName string
)

var (
	nameRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	dataRE = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// MaxName is the greatest length of any name, in bytes.
const MaxName = 128

// ValidName reports whether s may name a workflow, task, partition or role.
func ValidName(s string) bool { return len(s) <= MaxName && nameRE.MatchString(s) }

// ValidDataName reports whether s may name a data item.
func ValidDataName(s string) bool { return len(s) <= MaxName && dataRE.MatchString(s) }

// Hash identifies a definition: SHA-256 of its canonical form.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero reports whether h is the zero hash, which identifies nothing.
func (h Hash) IsZero() bool { return h == Hash{} }

// InstanceID identifies an instance: the first half of the hash of the fact
// that created it, so that nobody can choose it or make two with one ID.
type InstanceID [16]byte

func (id InstanceID) String() string { return hex.EncodeToString(id[:]) }

// Short is the prefix of the ID that people see; any unique prefix works where
// an ID is asked for.
func (id InstanceID) Short() string { return hex.EncodeToString(id[:5]) }

// ParseInstanceID reads a complete instance ID.
func ParseInstanceID(s string) (InstanceID, error) {
	var id InstanceID
	b, err := hex.DecodeString(strings.TrimSpace(s))
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%q is not an instance ID: want %d hexadecimal digits", s, 2*len(id))
	}
	copy(id[:], b)
	return id, nil
}
