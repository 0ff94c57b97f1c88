package testliar

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// wordsOf are what people, or holders of their tasks, may say about an item: claims, results and orders.
func wordsOf(i worklist.Item) (out [][]byte) {
	for _, b := range []worklist.Body{
		worklist.Grant{Items: []worklist.Item{i}, Mode: worklist.Lock, Lease: time.Hour}, worklist.Begin{Item: i},
		worklist.Result{Item: i, Outputs: map[workflow.DataName]workflow.Value{}}, worklist.Release{Item: i},
		worklist.Adopt{Item: i},
		worklist.Revoke{Item: i, Cause: worklist.ByOrder}, worklist.Close{Item: i},
		worklist.Order{Item: i, What: worklist.Stop, Reason: "a lie"},
		worklist.Order{What: worklist.Cancel, Reason: "a lie"},
		worklist.Notify{Policy: worklist.Policy{Name: workflow.NotifyAll}},
		worklist.Amend{Patch: `[{"kind":"task","name":"a","key":"timeout","value":"1s"}]`},
		worklist.Offer{Item: i, To: []worklist.User{"a lie"}},
	} {
		if says, err := worklist.Encode(b); err == nil {
			out = append(out, says)
		}
	}
	return out
}

// words are claims and orders about the tasks of an instance, in the names of people: forged, replayed, and without
// end; and requests for what people have to do.
func words(ctx context.Context, l *Liar, size int) {
	id, _ := l.instance(ctx)
	var all [][]byte
	for _, slot := range []workflow.TaskName{"a", "b", "c"} {
		all = append(all, wordsOf(worklist.Item{Slot: slot})...)
	}
	_, other, _ := ed25519.GenerateKey(rand.Reader) // it never fails
	var somebody users.ID
	_, _ = rand.Read(somebody[:]) // it never fails
	var before []byte             // a word that was said
	l.floods(ctx, share(20_000, size), func(i int) (string, []byte) {
		says := all[i%len(all)]
		c := wire.Spoken{
			Instance: id, Says: says, Nonce: [16]byte(binary.BigEndian.AppendUint64(make([]byte, 8),
				l.numbered.Add(1))),
		}
		signed := fact.SpokenOf(id, c.Says, c.Nonce)
		own := users.SpeakAsPartner(l.who.Key, l.who.Chain, signed)
		switch i % 8 {
		case 0: // in its own name
		case 1: // in a user's name, by its own key
			own.Signature = users.Sign(l.who.Key, somebody, signed)
		case 2: // by a key that nobody has
			own.Signature = users.Sign(other, users.ID{}, signed)
		case 3: // what was said of something else
			own = users.SpeakAsPartner(l.who.Key, l.who.Chain, fact.SpokenOf(workflow.InstanceID{9}, c.Says, c.Nonce))
		case 4: // nothing
			own = users.Spoken{}
		case 5: // once more, the same
			c.Nonce = [16]byte{1}
			own = users.SpeakAsPartner(l.who.Key, l.who.Chain, fact.SpokenOf(id, c.Says, c.Nonce))
		default:
			return l.asksForWork(id, somebody.String(), i)
		}
		c.Word = users.EncodeSpoken(own)
		if i%64 == 0 && before != nil {
			c.Word = before // of another word
		}
		before = c.Word
		return worklists.ProtocolClaim, must(wire.EncodeSpoken(c))
	})
}

// asksForWork is a request for what somebody has to do, or may order.
func (l *Liar) asksForWork(id workflow.InstanceID, user string, i int) (protocol string, req []byte) {
	if i%3 == 0 {
		user = string(l.who.ID())
	}
	switch i % 5 {
	case 0:
		return worklists.ProtocolItems, must(wire.EncodeItems(wire.Items{User: user}))
	case 1:
		return worklists.ProtocolItem, must(wire.EncodeItem(wire.Item{User: user, Instance: id, Item: "c"}))
	case 2:
		return worklists.ProtocolTarget,
			must(wire.EncodeTarget(wire.Target{User: user, Instance: id.String(), Task: "c"}))
	case 3:
		return worklists.ProtocolKept, must(wire.EncodeKept(wire.Kept{
			User: user, Instance: id.String()[:4], Result: "0",
		}))
	}
	return worklists.ProtocolClaim, []byte{wire.Version, 0xff, byte(i)}
}
