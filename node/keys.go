package node

import (
	"bytes"
	"encoding/binary"

	"github.com/mutirao-mesh/mutirao/node/assignment"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/evictions"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/joining"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/roster"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// The layout of the store. A key's first byte says what it holds; letters are
// never reused for something else.
//
//	f instance(16) place(4)   facts in consecutive places, from this one on (storedFact)
//	i instance(16)            summary of an instance
//	w instance(16)            its waits (storedWaits)
//	d hash(32)                a definition in its canonical form
//	t hash(32)                what is listed of it, by whom (storedListing)
//	p partner                 a partner's record (membership.Stored)
//	e eviction                an eviction
//	v invitation(…)           an open invitation
//	a partner                 the certificate of one who joined and was not seen yet (joining)
//	l shard partner task      what was learned of a partner (assignment)
//	s name                    a data set that a user registered (storedData)
//	s name 0 author           one that a task made, for the author of its workflow
//	q instance(16)            why an instance is set aside (setAside)
//	k instance(16) number(4)  a fact that was saved from a damaged instance, as a list of one
//	x instance(16)            the summary of an ended instance whose facts were deleted (closings.Closing)
//	u record                  a record about a user (users.Record)
//	y token                   a sign-in token that may still be used (users.Ticket)
//	o user item               an item that a user has locked here, and what the user did of it (worklists)
//	n instance(16)            what people are told of an ended instance (news)
//	g instance(16) user       which messages about it a user has read (worklists)
//	h user item               where a user put an item in a list that is ordered by hand (worklists)
//	j user                    what a user set for the worklist (worklists)
//	b user number             what a user asked several partners for together, to be given back (worklists)
//	z instance holder file    a file that a user gave here with a result (worklists)
//	c user item               an item that a user took of a partner in whose instance this node takes no part (worklists)
//	m name                    single values: boot, incarnation, certificate, profile, ballot …
const (
	prefixFact       = 'f'
	prefixInstance   = index.Prefix
	prefixWaits      = 'w'
	prefixDefinition = library.PrefixDefinition
	prefixListing    = library.PrefixListing
	prefixPartner    = roster.Prefix
	prefixEviction   = evictions.Prefix
	prefixInvitation = joining.Prefix
	prefixNewcomer   = joining.NewcomerPrefix
	prefixLesson     = assignment.Prefix
	prefixData       = datasets.Prefix
	prefixMeta       = 'm'
	prefixQuarantine = 'q'
	prefixKept       = 'k'
	prefixClosing    = closings.Prefix
	prefixUser       = users.Prefix
	prefixTicket     = users.PrefixTicket
	prefixItem       = worklists.Prefix
	prefixNews       = index.PrefixNews
	prefixRead       = worklists.PrefixRead
	prefixSpot       = worklists.PrefixSpot
	prefixSetting    = worklists.PrefixSetting
	prefixJoint      = worklists.PrefixJoint
	prefixGave       = worklists.PrefixGave
	prefixTaken      = worklists.PrefixTaken
)

func factPrefix(id workflow.InstanceID) []byte {
	return append([]byte{prefixFact}, id[:]...)
}

func factKey(id workflow.InstanceID, place int) []byte {
	return binary.BigEndian.AppendUint32(factPrefix(id), uint32(place))
}

// instanceOfKey is the instance that an entry is of which lies with its facts (ofInstances).
func instanceOfKey(key []byte) (id workflow.InstanceID, ok bool) {
	if len(key) < instanceRange || bytes.IndexByte(ofInstances, key[0]) < 0 {
		return id, false
	}
	return workflow.InstanceID(key[1:instanceRange]), true
}

func waitsKey(id workflow.InstanceID) []byte {
	return append([]byte{prefixWaits}, id[:]...)
}

func metaKey(name string) []byte {
	return append([]byte{prefixMeta}, name...)
}

// encode and decode are those of what is stored.
func encode(v any) []byte { return codec.Encode(v) }

func decode(b []byte, v any) error { return codec.Decode(b, v) }

// ofInstances are the kinds of entries of which a key begins with an instance.
var ofInstances = []byte{prefixFact, prefixInstance, prefixWaits, prefixKept, prefixQuarantine}

const instanceRange = 1 + len(workflow.InstanceID{})

// Facts that were saved from a damaged instance lie beside it until their past, and what
// vouches for them, is there again.
func keptPrefix(id workflow.InstanceID) []byte { return append([]byte{prefixKept}, id[:]...) }

func keptKey(id workflow.InstanceID, i int) []byte {
	return binary.BigEndian.AppendUint32(keptPrefix(id), uint32(i))
}

// metaAway is the key of since when the node is disconnected, in ms, and until when it said
// that it is, if it did.
const metaAway = "away"
