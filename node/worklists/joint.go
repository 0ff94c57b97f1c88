package worklists

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about items of several partners that are locked together (worklist.Joint). What is asked for is on the
// disk before anybody is asked. It goes from there in the same write with which the device keeps all as locked; until
// then it is to be given back: by the steps themselves, or, after a crash or where somebody did not answer, as soon as
// that one does.

// PrefixJoint begins the keys of joint locks that are under way: the user's whole ID and a number follow.
const PrefixJoint = 'b'

const (
	// maxJoints bounds those of all users that are to be given back.
	maxJoints = 100
	// jointFor is for how long it is tried to give something back: by then each lease is over.
	jointFor = 8 * 24 * time.Hour
	// jointPatience is how long one holder is waited for at each step of a joint lock, at least: others' items are kept
	// meanwhile, and somebody waits. Whoever does not answer is not asked again before the next Tick.
	jointPatience = 3 * time.Second
	// jointShare is the share of a connection time that is waited where this is longer: 3 s of the 15 s by default.
	jointShare = 5
)

// patience is how long a holder is waited for at each step of a joint lock. A partner says by its connection time
// whether its links are slow: no longer than for one item that is taken alone.
func (d *Desk) patience(at workflow.PartnerID) time.Duration {
	return min(max(jointPatience, d.in.ConnectionTime(at)/jointShare), claimPatience)
}

// joint is a joint lock as it is stored: what its holders may have given.
type joint struct {
	_     struct{} `cbor:",toarray"`
	User  string   // whole ID
	Since int64    // ms
	Parts []jointPart
}

// jointPart is what one holder was asked for.
type jointPart struct {
	_        struct{} `cbor:",toarray"`
	At       string
	Instance workflow.InstanceID
	Items    []jointItem
	// Word was asked for last (wire.Spoken), of which it is not known what came; empty: nothing was asked.
	Word []byte
}

type jointItem struct {
	_        struct{} `cbor:",toarray"`
	Assigned [32]byte
	Slot     string
}

// DecodesJoint returns an error for what cannot be read of the store.
func DecodesJoint(b []byte) error {
	var j joint
	return codec.Decode(b, &j)
}

func (d *Desk) loadJoints() error {
	return d.in.Store.Scan([]byte{PrefixJoint}, func(key, value []byte) error {
		var j joint
		if err := codec.Decode(value, &j); err != nil {
			return err
		}
		d.joints[string(bytes.Clone(key))] = &j
		return nil
	})
}

func (p *jointPart) has(i worklist.Item) bool {
	return slices.ContainsFunc(p.Items, func(x jointItem) bool { return x.item() == i })
}

func (x jointItem) item() worklist.Item {
	return worklist.Item{Assigned: x.Assigned, Slot: workflow.TaskName(x.Slot)}
}

// alone is how many take or end items of a user while they are to be the only ones.
const alone = -1

// begin has a user take items or end them. Joint locks, and what is given back of them, are about items that the
// user may take or end just then: so nothing else is done for that user beside (only).
func (d *Desk) begin(user string, only bool) (done func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.takes[user]
	if n == alone || only && n > 0 {
		return nil, api.Errorf(api.Refused, "items of several partners are being locked together or given back just now").
			WithHint("try again in a moment")
	}
	by := 1
	if only {
		by = alone
	}
	d.takes[user] += by
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.takes[user] -= by; d.takes[user] == 0 {
			delete(d.takes, user)
		}
	}, nil
}

// lockJointly locks items of several partners, all or none. What the user has of them already is locked before, and
// stays.
func (d *Desk) lockJointly(ctx context.Context, who users.Who, of []*Row) error {
	var parts []worklist.Part
	for _, p := range holdersOf(of) {
		free := slices.DeleteFunc(slices.Clone(p), func(r *Row) bool { return r.Mine != "" || r.Handed != "" })
		if had := slices.DeleteFunc(slices.Clone(p),
			func(r *Row) bool { return slices.Contains(free, r) }); len(had) > 0 {
			if err := d.takeAt(ctx, ctx, who, had, of, worklist.Lock); err != nil {
				return err
			}
		}
		if len(free) > 0 {
			parts = append(parts, worklist.Part{
				Partition: free[0].Partition, Holder: free[0].At, Items: itemsOf(free),
			})
		}
	}
	if len(parts) < 2 { // nothing that several partners have to give
		rest := slices.DeleteFunc(slices.Clone(of), func(r *Row) bool { return r.Mine != "" || r.Handed != "" })
		if len(rest) == 0 {
			return nil
		}
		return d.takeAt(ctx, ctx, who, rest, of, worklist.Lock)
	}
	return d.takeSteps(ctx, who, of, parts)
}

// holdersOf are items by the partner that holds them, those of one partner in the order of their partitions.
func holdersOf(of []*Row) (out [][]*Row) {
	of = slices.Clone(of)
	slices.SortStableFunc(of, func(a, b *Row) int { return bytes.Compare([]byte(a.Partition), []byte(b.Partition)) })
	for _, r := range of {
		at := slices.IndexFunc(out, func(p []*Row) bool { return p[0].At == r.At })
		if at < 0 {
			out = append(out, []*Row{r})
			continue
		}
		out[at] = append(out[at], r)
	}
	return out
}

func itemsOf(of []*Row) (out []worklist.Item) {
	for _, r := range of {
		if !slices.Contains(out, r.Item) {
			out = append(out, r.Item)
		}
	}
	return out
}

// takeSteps goes through the steps of a joint lock.
func (d *Desk) takeSteps(ctx context.Context, who users.Who, of []*Row, parts []worklist.Part) error {
	x := &joint{User: who.ID, Since: d.in.Clock.Now().Wall.UnixMilli()}
	for _, p := range parts {
		part := jointPart{At: string(p.Holder), Instance: of[0].Instance}
		for _, i := range p.Items {
			part.Items = append(part.Items, jointItem{Assigned: i.Assigned, Slot: string(i.Slot)})
		}
		x.Parts = append(x.Parts, part)
	}
	key := string(fmt.Appendf([]byte{PrefixJoint}, "%s %x", who.ID, d.in.Random(8)))
	if err := d.roomFor(of); err != nil {
		return err
	}
	if err := d.keepJoint(key, x); err != nil {
		return err
	}
	j := worklist.NewJoint(parts)
	var where *Row // of whom the first refusal is
	mute := map[string]bool{}
	for step, more := j.Next(); more; step, more = j.Next() {
		at := slices.IndexFunc(x.Parts, func(p jointPart) bool { return p.At == string(step.Part.Holder) })
		if step.Mode == "" {
			j.Answered(d.giveBackUnless(ctx, mute, who, key, x, at))
			continue
		}
		err := d.askPart(ctx, who, key, x, at, step)
		if err != nil && where == nil {
			where = of[slices.IndexFunc(of, func(r *Row) bool { return r.At == step.Part.Holder })]
		}
		if unheard(err) {
			mute[x.Parts[at].At] = true
			j.Unanswered(err)
		} else {
			j.Answered(err)
		}
	}
	_, err := j.Done()
	if err == nil {
		if err = d.keepAll(ctx, who, of); err == nil {
			return nil
		}
		where = of[0]
	}
	d.settle(ctx, mute, who, key, x)
	if errors.Is(err, errNoAnswer) {
		return api.Errorf(api.Refused, "%s, who holds %s, did not answer within %s: nothing is locked, and what it may have "+
			"given is given back once it answers", d.in.Name(where.At), where.called(), d.patience(where.At)).
			WithHint("lock them once more when mutirao partners shows it; what others hold can be locked without it")
	}
	return d.inWords(where, nil, err)
}

// giveBackUnless is giveBackPart, but for holders that did not answer just now: they are asked again later.
func (d *Desk) giveBackUnless(
	ctx context.Context, mute map[string]bool, who users.Who, key string, x *joint, at int,
) error {
	if mute[x.Parts[at].At] {
		return errNoAnswer
	}
	err := d.giveBackPart(ctx, who, key, x, at)
	if unheard(err) {
		mute[x.Parts[at].At] = true
	}
	return err
}

// unheard reports whether a holder may have done what it was asked for, though it did not say so.
func unheard(err error) bool {
	var no refusal
	return err != nil && !errors.Is(err, errAway) && !errors.As(err, &no)
}

// keepJoint makes durable what is to be given back.
func (d *Desk) keepJoint(key string, x *joint) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.joints[key] == nil && len(d.joints) >= maxJoints {
		return api.Errorf(api.Refused,
			"%d times items were asked for together and somebody did not answer; that is to be given back first", maxJoints).
			WithHint("mutirao partners shows who cannot be asked")
	}
	if err := d.in.Store.CommitWait([]kv.Write{{Key: []byte(key), Value: codec.Encode(*x)}}); err != nil {
		return err
	}
	d.joints[key] = x
	return nil
}

// roomFor returns an error where the device has no room to keep items as locked.
func (d *Desk) roomFor(of []*Row) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fullLocked(len(of)) {
		return api.Judge(api.Refused, errKeepsEnough)
	}
	return nil
}

// askPart asks a holder for its part. That it is asked is durable before: what it gives is given back after a crash.
func (d *Desk) askPart(
	ctx context.Context, who users.Who, key string, x *joint, at int, step worklist.JointStep,
) error {
	p := &x.Parts[at]
	g := worklist.Grant{
		Items: step.Part.Items, Mode: step.Mode, Lease: worklist.DefaultLease(step.Mode), With: step.With,
	}
	if step.Mode == worklist.Lock { // what is kept by our word, and not by another that came meanwhile
		if _, _, kept, err := p.asked(); err == nil {
			g.Anew = []worklist.ID{kept}
		}
	}
	c, err := d.say(who, &Row{Instance: p.Instance}, g)
	if err != nil {
		return refusal{api.Judge(api.Invalid, err)}
	}
	word, err := wire.EncodeSpoken(c)
	if err != nil {
		return refusal{api.Judge(api.Invalid, err)}
	}
	was := p.Word
	p.Word = word
	if err := d.keepJoint(key, x); err != nil {
		p.Word = was // nobody was asked
		return refusal{api.Judge(api.Failed, err)}
	}
	return d.refused(p.At, d.bringSoon(ctx, workflow.PartnerID(p.At), c))
}

// bringSoon brings a word of a joint lock to a holder, who is to answer soon.
func (d *Desk) bringSoon(ctx context.Context, at workflow.PartnerID, c wire.Spoken) error {
	ctx, cancel := context.WithTimeout(ctx, d.patience(at))
	defer cancel()
	_, err := d.bring(ctx, at, c)
	return err
}

// asked is what a holder was asked for last, and by which word.
func (p *jointPart) asked() (c wire.Spoken, g worklist.Grant, word worklist.ID, err error) {
	if c, err = wire.DecodeSpoken(p.Word); err != nil {
		return c, g, word, err
	}
	body, err := worklist.Decode(c.Says)
	if err != nil {
		return c, g, word, err
	}
	g, is := body.(worklist.Grant)
	if !is {
		return c, g, word, errors.New("what was asked for of a joint lock is no grant")
	}
	return c, g, fact.WordOf(c.Instance, c.Says, c.Nonce), nil
}

// refused is the answer of a holder; what this node says itself, as one, is an answer of it, unless somebody stopped
// waiting for it, or it could not write it down.
func (d *Desk) refused(at string, err error) error {
	if workflow.PartnerID(at) != d.in.Self {
		return err
	}
	if said := d.isRefusal(err); said != nil {
		return refusal{said}
	}
	return err
}

// isRefusal is what this node says as a holder that does not write something down; nil: it says nothing of that.
func (d *Desk) isRefusal(err error) *api.Error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	var said *api.Error
	if errors.As(d.in.Explain(err), &said) && !hinders(said.Code) {
		return said
	}
	return nil
}

// giveBackPart gives back what a holder gave, or may have given. An error: it is not known that it has it back.
func (d *Desk) giveBackPart(ctx context.Context, who users.Who, key string, x *joint, at int) error {
	p := &x.Parts[at]
	if len(p.Word) > 0 {
		// What comes late would be given later: the same word, answered now, is not (denied.go).
		c, g, word, err := p.asked()
		if err == nil {
			err = d.bringSoon(ctx, workflow.PartnerID(p.At), c)
			if err = d.refused(p.At, err); errors.Is(err, errAway) || unheard(err) {
				return err
			}
		}
		rows, err := d.rowsAt(ctx, who, workflow.PartnerID(p.At), p.Instance)
		if err != nil {
			return err
		}
		for i := range rows {
			r := &rows[i]
			if !p.has(r.Item) || !r.returnable(worklist.User(who.ID)) || !g.Gave(word, r.Word) {
				continue // the user has it not, or asked for it again since, perhaps at another device
			}
			if err := d.release(ctx, who, r); errors.Is(err, errAway) || unheard(err) {
				return err
			}
			d.forgetTaken(who, r)
		}
	}
	p.Items, p.Word = nil, nil
	return d.keepJoint(key, x)
}

// release gives an item back under the grant by which the user has it.
func (d *Desk) release(ctx context.Context, who users.Who, r *Row) error {
	c, err := d.say(who, r, worklist.Release{Item: r.Item, Grant: r.Grant})
	if err != nil {
		return refusal{api.Judge(api.Invalid, err)}
	}
	return d.refused(string(r.At), d.bringSoon(ctx, r.At, c))
}

// rowsAt are the items of an instance for a person as their holder says now.
func (d *Desk) rowsAt(
	ctx context.Context, who users.Who, at workflow.PartnerID, of workflow.InstanceID,
) ([]Row, error) {
	switch {
	case at == d.in.Self:
		return d.own(ctx, who, of)
	case !d.in.Peers.Up(at):
		return nil, errAway
	}
	return d.askOne(ctx, who, at, of)
}

// settle gives back what is left of a joint lock, and forgets it when all is back. What still waits for a holder is
// tried again (Tick).
func (d *Desk) settle(ctx context.Context, mute map[string]bool, who users.Who, key string, x *joint) {
	left := false
	for i := range slices.Backward(x.Parts) {
		if len(x.Parts[i].Items) > 0 && d.giveBackUnless(ctx, mute, who, key, x, i) != nil {
			left = true
		}
	}
	if !left {
		d.forgetJoint(key)
	}
}

func (d *Desk) forgetJoint(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.in.Store.CommitWait([]kv.Write{{Key: []byte(key), Delete: true}}); err != nil {
		d.in.Log.Warn("a joint lock that was given back cannot be forgotten", "error", err)
		return
	}
	delete(d.joints, key)
}

// settleAll gives back what joint locks left, unless their user takes or ends something just now.
func (d *Desk) settleAll() {
	now := d.in.Clock.Now().Wall
	d.mu.Lock()
	keys := []string{}
	for key := range d.joints {
		keys = append(keys, key)
	}
	d.mu.Unlock()
	slices.Sort(keys)
	for _, key := range keys {
		user, _, _ := strings.Cut(key[1:], " ")
		done, err := d.begin(user, true)
		if err != nil {
			continue
		}
		d.mu.Lock()
		x := d.joints[key]
		d.mu.Unlock()
		who, err := d.in.People.Who(user)
		switch {
		case x == nil:
		case err != nil || now.Sub(time.UnixMilli(x.Since)) > jointFor:
			d.forgetJoint(key) // nobody can say so any more, or the leases have ended it
		default:
			d.settle(context.Background(), map[string]bool{}, who, key, x)
		}
		done()
	}
}

// withoutJoint is what is written so that items are not given back any more which their user has now; the caller
// holds d.mu, and calls did once it is durable.
func (d *Desk) withoutJoint(who users.Who, of []*Row) (writes []kv.Write, did func()) {
	next := map[string]*joint{}
	for key, x := range d.joints {
		if x.User != who.ID {
			continue
		}
		is := &joint{User: x.User, Since: x.Since}
		left, struck := 0, false
		for _, p := range x.Parts {
			n := len(p.Items)
			p.Items = slices.DeleteFunc(slices.Clone(p.Items), func(i jointItem) bool {
				return slices.ContainsFunc(of, func(r *Row) bool {
					return r.Instance == p.Instance &&
						r.Item == i.item()
				})
			})
			left, struck = left+len(p.Items), struck || len(p.Items) < n
			is.Parts = append(is.Parts, p)
		}
		switch {
		case !struck:
		case left == 0:
			next[key] = nil
			writes = append(writes, kv.Write{Key: []byte(key), Delete: true})
		default:
			next[key] = is
			writes = append(writes, kv.Write{Key: []byte(key), Value: codec.Encode(*is)})
		}
	}
	return writes, func() {
		for key, x := range next {
			if x == nil {
				delete(d.joints, key)
			} else {
				d.joints[key] = x
			}
		}
	}
}

// has makes durable that a user has items now, which are not given back any more.
func (d *Desk) has(who users.Who, of []*Row) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	writes, did := d.withoutJoint(who, of)
	if len(writes) == 0 {
		return nil
	}
	if err := d.in.Store.CommitWait(writes); err != nil {
		return err
	}
	did()
	return nil
}

// keepAll keeps on the device what was locked together, in one write with which it is not given back any more.
func (d *Desk) keepAll(ctx context.Context, who users.Who, of []*Row) error {
	type keeping struct{ was, is *kept }
	var all []keeping
	for _, r := range of {
		fresh, err := d.again(ctx, who, r)
		if err != nil {
			return err
		}
		if fresh.Mine != worklist.Lock {
			return refusal{api.Errorf(api.Failed, "%s did not say that %s is locked; all is given back",
				d.in.Name(r.At), r.called()).
				WithHint("lock them once more")}
		}
		*r = *fresh
		if r.At != d.in.Self {
			was := d.keptFor(who.ID, r.ID())
			all = append(all, keeping{was, keptOf(who, r, r.AsOf, d.askSheet(ctx, who, r)).carry(was)})
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	writes, did := d.withoutJoint(who, of)
	var keeps []*kept
	for _, k := range all {
		if now := d.kept[string(k.is.key())]; k.was.still(now) &&
			(now == nil || len(now.Word) == 0) {
			keeps = append(keeps, k.is)
			writes = append(writes, k.is.write())
		}
	}
	if err := d.in.Store.CommitWait(writes); err != nil {
		return refusal{api.Errorf(api.Failed, "this device cannot keep them for when it is out of reach: %w", err)}
	}
	did()
	for _, k := range keeps {
		d.nowKept(k)
	}
	return nil
}
