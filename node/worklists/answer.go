package worklists

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// maxRows bounds the items of an answer: those that the person has, and of the others those
// that have waited longest.
const maxRows = 1000

var (
	errTooOften = errors.New("asked too often: try again in a while")
	errCannot   = errors.New("cannot look at its items now")
)

// spend lets a partner ask, so often.
func (d *Desk) spend(from workflow.PartnerID) error {
	if !d.lists.Spend(from, 1, d.in.Clock.Now().Awake) {
		d.in.Peers.Refuse("items-too-fast", from)
		return errTooOften
	}
	return nil
}

// admit lets a partner ask for a person at its node, so often.
func (d *Desk) admit(from workflow.PartnerID, user string) error {
	if err := d.spend(from); err != nil {
		return err
	}
	if err := d.in.People.MayAsk(user, from); err != nil {
		d.in.Peers.Refuse("items-of-others", from)
		return err
	}
	return nil
}

// AnswerItems answers a partner which of this node's items a person at its node has, had, or
// may take.
func (d *Desk) AnswerItems(from workflow.PartnerID, req []byte) ([]byte, error) {
	return d.answerItems(from, req, d.in.Instances.Items, true)
}

// AnswerAhead answers a partner which of this node's items a person at its node may lock before they are ready.
func (d *Desk) AnswerAhead(from workflow.PartnerID, req []byte) ([]byte, error) {
	return d.answerItems(from, req, d.in.Instances.Ahead, false)
}

// listing lists items for a person at a partner's node, of one instance or of all.
type listing func(context.Context, worklist.User, workflow.PartnerID, workflow.InstanceID) ([]Row, error)

// answerItems answers with a list; follow: the partner is told when its answer would be another.
func (d *Desk) answerItems(from workflow.PartnerID, req []byte, list listing, follow bool) ([]byte, error) {
	r, err := wire.DecodeItems(req)
	if err != nil {
		return nil, err
	}
	if err := d.admit(from, r.User); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), listPatience)
	defer cancel()
	of := asker{from, r.User}
	rows, err := d.itemsHere(ctx, of, r.Only, list)
	if err != nil {
		d.in.Log.Warn("items could not be shown to a partner", "to", from, "error", err)
		return nil, errCannot
	}
	if follow && r.Only == everywhere {
		d.changes.follow(of, rows, d.in.Clock.Now().Awake)
	}
	return json.Marshal(rows)
}

// answer is what became of a person's word at the holder.
type answer struct {
	choreo.Claimed
	// Refusal is why it was not written down; nil: it was, or had been.
	Refusal *api.Error `json:"refusal,omitempty"`
	// Got is what the person has got by a grant, so that nobody asks for it; nil: it was another word, or has to be asked
	// for.
	Got *got `json:"got,omitempty"`
}

// got are the items of the instance of a grant, as its holder lists them then, and of what was locked what is needed to do
// it, by item. What is left out has to be asked for.
type got struct {
	Rows   []Row             `json:"rows"`
	Sheets map[string]*Sheet `json:"sheets,omitempty"`
}

// mostSheets bounds the sheets of an answer, as JSON, in bytes.
const mostSheets = 256 << 10

// AnswerClaim writes down what a person at a partner's node says of this node's items. It
// answers when that is durable.
func (d *Desk) AnswerClaim(from workflow.PartnerID, req []byte) ([]byte, error) {
	c, err := wire.DecodeSpoken(req)
	if err != nil {
		return nil, err
	}
	if !d.claims.Spend(from, 1, d.in.Clock.Now().Awake) {
		d.in.Peers.Refuse("words-too-fast", from)
		return nil, errTooOften
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimPatience)
	defer cancel()
	var out answer // whoever stops waiting leaves what was got to the shard
	var has *got
	done, err := d.takeSaid(from, c, func(said *fact.Claim) (choreo.Claimed, error) {
		return d.claim(ctx, from, c.Instance, said, d.watch(c, said, func(g *got) { has = g }))
	})
	if out.Claimed = done; err == nil {
		out.Got = has
	}
	return d.answered(from, c.Instance, out, err)
}

// watch looks at what a person gets by a word, if it is one by which items are taken; nil: it is another.
func (d *Desk) watch(c wire.Spoken, said *fact.Claim, tell func(*got)) *Watch {
	body, err := said.Read()
	g, is := body.(worklist.Grant)
	if err != nil || !is {
		return nil
	}
	who := worklist.User(d.in.People.Speaker(c.Word, fact.SpokenOf(c.Instance, c.Says, c.Nonce)))
	return &Watch{who, func(rows []Row, sheet func(*Row) *Sheet) { tell(gotBy(g, d.ours(rows), sheet)) }}
}

// gotBy is what a person has got by a grant.
func gotBy(g worklist.Grant, rows []Row, sheet func(*Row) *Sheet) *got {
	out, room := &got{Rows: rows}, mostSheets
	for i := range rows {
		r := &rows[i]
		if g.Mode == worklist.Lock && r.Mine == worklist.Lock && slices.Contains(g.Items, r.Item) {
			room -= out.add(r.ID(), sheet(r), room)
		}
	}
	return out
}

// add adds the sheet of an item, if there is room for it, and says how much that took.
func (g *got) add(item string, s *Sheet, room int) (took int) {
	if s != nil {
		s.Asked = nil // it was brought just now
	}
	b, err := json.Marshal(s)
	if s == nil || err != nil || len(b) > room {
		return 0
	}
	if g.Sheets == nil {
		g.Sheets = map[string]*Sheet{}
	}
	g.Sheets[item] = s
	return len(b)
}

// answered answers whoever brought a person's word what became of it.
func (d *Desk) answered(
	from workflow.PartnerID, id workflow.InstanceID, out answer, err error,
) ([]byte, error) {
	if err != nil {
		err = d.in.Explain(err)
		if !errors.As(err, &out.Refusal) {
			d.in.Log.Warn("a person's word could not be written down", "from", from, "instance", id, "error", err)
			return nil, errors.New("cannot write that down now")
		}
	}
	return json.Marshal(out)
}

// takeWord checks who speaks, and has what is said written down.
func (d *Desk) takeWord(ctx context.Context, from workflow.PartnerID, c wire.Spoken) (choreo.Claimed, error) {
	return d.takeSaid(from, c, func(said *fact.Claim) (choreo.Claimed, error) {
		return d.claim(ctx, from, c.Instance, said, nil)
	})
}

// keyExpired is why what was brought does not count whose user has no good key any more, in place of that the user is no
// longer entitled: so that one knows what to do.
const keyExpired = "the key of its user had expired by then: sign in again with a new token"

// takeSaid is takeWord; write writes it down.
func (d *Desk) takeSaid(
	from workflow.PartnerID, c wire.Spoken, write func(*fact.Claim) (choreo.Claimed, error),
) (choreo.Claimed, error) {
	claim := &fact.Claim{Says: c.Says, Nonce: c.Nonce, Word: c.Word}
	body, err := claim.Read()
	_, result := body.(worklist.Result)
	signed := fact.SpokenOf(c.Instance, c.Says, c.Nonce)
	expired := false
	if err == nil && result { // what was done before its user was removed, or had no good key any more, is kept
		expired, err = d.in.People.MayStillBring(c.Word, signed, from)
	} else { // write says what cannot be read
		err = d.in.People.MaySpeak(c.Word, signed, from)
	}
	if err != nil {
		d.in.Peers.Refuse("words-of-others", from)
		return choreo.Claimed{}, api.Judge(api.NotAllowed, err)
	}
	out, err := write(claim)
	if out.Kept == string(worklist.ByRemoval) && expired {
		out.Kept = keyExpired
	}
	return out, err
}
