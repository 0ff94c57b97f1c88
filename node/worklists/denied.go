package worklists

import (
	"context"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about words that were refused here and come again. Whoever said such a word was told that nothing came
// of it. But a request can reach its holder twice, the second time minutes later, when what stood in its way is over:
// then an item would be given to somebody who does not know of it, for a day or a week. So a word that was refused
// stays refused for as long as a request may be on its way. Only memory holds it: no request outlives the connection
// on which it was sent, and no connection a restart. Results are not among these words: they are brought again on
// purpose (refused.go).

const (
	// deniedFor is for how long a refused word stays refused.
	deniedFor = 15 * time.Minute
	// maxDenied bounds the words that are remembered, of all partners and of one.
	maxDenied, maxDeniedOf = 10_000, 500
)

// denials are the words that were refused lately.
type denials struct {
	mu     sync.Mutex // guards what follows
	of     map[worklist.ID]denial
	inTurn map[workflow.PartnerID][]worklist.ID // as they came
}

// denial is why a word was refused, and when (Awake).
type denial struct {
	why error
	at  time.Duration
}

// claim has a word written down, unless it was refused here lately.
func (d *Desk) claim(
	ctx context.Context, from workflow.PartnerID, id workflow.InstanceID, said *fact.Claim, watch *Watch,
) (choreo.Claimed, error) {
	word, stays := wordOf(id, said)
	if stays {
		if why := d.denials.before(word, d.in.Clock.Now().Awake); why != nil {
			return choreo.Claimed{}, why
		}
	}
	if err := d.in.Instances.InVain(ctx, id, said); err != nil { // where it was given that may not have been known
		return choreo.Claimed{}, err
	}
	done, err := d.in.Instances.Claim(ctx, from, id, said, watch)
	if stays && d.isRefusal(err) != nil {
		d.denials.note(from, word, err, d.in.Clock.Now().Awake)
	}
	return done, err
}

// wordOf names a word that stays refused; false: it is a result, or cannot be read.
func wordOf(id workflow.InstanceID, c *fact.Claim) (worklist.ID, bool) {
	body, err := c.Read()
	if _, result := body.(worklist.Result); err != nil || result {
		return worklist.ID{}, false
	}
	return fact.WordOf(id, c.Says, c.Nonce), true
}

// before is why a word was refused here lately; nil: it was not.
func (x *denials) before(word worklist.ID, now time.Duration) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if d, is := x.of[word]; is && now-d.at < deniedFor {
		return d.why
	}
	return nil
}

// note has a word stay refused. What a partner brings beyond its share makes this node forget that partner's own.
func (x *denials) note(from workflow.PartnerID, word worklist.ID, why error, now time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of == nil {
		x.of, x.inTurn = map[worklist.ID]denial{}, map[workflow.PartnerID][]worklist.ID{}
	}
	_, again := x.of[word]
	if x.of[word] = (denial{why, now}); again {
		return
	}
	x.inTurn[from] = append(x.inTurn[from], word)
	if len(x.inTurn[from]) > maxDeniedOf {
		x.drop(from)
	}
	if len(x.of) > maxDenied {
		x.tidy(now)
	}
}

// drop forgets the oldest word of a partner.
func (x *denials) drop(from workflow.PartnerID) {
	delete(x.of, x.inTurn[from][0])
	if x.inTurn[from] = x.inTurn[from][1:]; len(x.inTurn[from]) == 0 {
		delete(x.inTurn, from)
	}
}

// tidy forgets what need not be remembered any more, and as much of whoever has most as is still too much.
func (x *denials) tidy(now time.Duration) {
	most := workflow.PartnerID("")
	for from := range x.inTurn {
		for len(x.inTurn[from]) > 0 && now-x.of[x.inTurn[from][0]].at >= deniedFor {
			x.drop(from)
		}
		if len(x.inTurn[from]) > len(x.inTurn[most]) || len(x.inTurn[from]) == len(x.inTurn[most]) && from < most {
			most = from
		}
	}
	for len(x.of) > maxDenied {
		x.drop(most)
	}
}
