package library

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A key's first byte says what it holds: a definition in its canonical form, or what is
// listed of it.
const (
	PrefixDefinition = 'd'
	PrefixListing    = 't'
)

func definitionKey(h workflow.Hash) []byte { return append([]byte{PrefixDefinition}, h[:]...) }

func listingKey(h workflow.Hash) []byte { return append([]byte{PrefixListing}, h[:]...) }

// storedListing is how a listing is kept, beside the canonical form.
type storedListing struct {
	_          struct{} `cbor:",toarray"`
	Name       workflow.Name
	Version    int
	Doc        string
	Tasks      int
	Partitions []string
	Added      int64 // ms
	Size       int
	Bare       bool
	Claims     []storedClaim
	Label      string
}

// storedBefore is a listing as versions before this one kept it.
type storedBefore struct {
	_          struct{} `cbor:",toarray"`
	Name       workflow.Name
	Version    int
	Doc        string
	Tasks      int
	Partitions []string
	Added      int64
	Size       int
	Bare       bool
	Claims     []storedClaim
}

func decodeListing(value []byte) (s storedListing, err error) {
	if err = codec.Decode(value, &s); err == nil {
		return s, nil
	}
	var b storedBefore
	if codec.Decode(value, &b) != nil {
		return s, err
	}
	return storedListing{
		Name: b.Name, Version: b.Version, Doc: b.Doc, Tasks: b.Tasks, Partitions: b.Partitions, Added: b.Added,
		Size: b.Size, Bare: b.Bare, Claims: b.Claims,
	}, nil
}

type storedClaim struct {
	_       struct{} `cbor:",toarray"`
	Notices [][]byte
	Edited  int64 // ms
}

func readListing(key, value []byte) (*listing, error) {
	s, err := decodeListing(value)
	if err != nil {
		return nil, err
	}
	l := &listing{size: s.Size, bare: s.Bare, claims: map[workflow.PartnerID]*claim{}}
	if copy(l.hash[:], key[1:]) != len(l.hash) {
		return nil, fmt.Errorf("its key has %d bytes", len(key))
	}
	l.about = api.Workflow{
		Name: s.Name, Version: s.Version, Hash: l.hash.String(), Label: s.Label, Doc: s.Doc, Tasks: s.Tasks, Partitions: s.Partitions,
		Added: wire.AtMilli(s.Added), Kind: kindOf(s.Name),
	}
	for _, sc := range s.Claims {
		if len(sc.Notices) == 0 {
			return nil, errors.New("a claim without notices")
		}
		first, err := trust.DecodeNotice(sc.Notices[0])
		if err != nil {
			return nil, err
		}
		l.claims[first.Author] = &claim{first.Author, first, sc.Notices, time.UnixMilli(sc.Edited)}
	}
	return l, nil
}

// write is how a listing is stored.
func (l *listing) write() kv.Write {
	s := storedListing{
		Name: l.about.Name, Version: l.about.Version, Doc: l.about.Doc, Tasks: l.about.Tasks,
		Partitions: l.about.Partitions,
		Added:      l.about.Added.UnixMilli(), Size: l.size, Bare: l.bare, Label: l.about.Label,
	}
	for _, author := range slices.Sorted(maps.Keys(l.claims)) {
		c := l.claims[author]
		s.Claims = append(s.Claims, storedClaim{Notices: c.notices, Edited: c.edited.UnixMilli()})
	}
	return kv.Write{Key: listingKey(l.hash), Value: codec.Encode(s)}
}

// kindOf is the kind of a piece that is listed under a name; empty: it is a workflow.
func kindOf(name workflow.Name) string {
	if kind, _, piece := strings.Cut(string(name), "/"); piece {
		return kind
	}
	return ""
}
