package roster

import (
	"bytes"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What is heard of a partner through others: a node that does not hear it asks
// one that does, and is passed its signed beats as they come. They count from
// when it told them, so their age goes with them.

// compareEvery is how often a node asks somebody for what it may have missed,
// if nothing makes it doubt.
const compareEvery = 2 * time.Minute

// Others are asked for a partner's signs of life after that share of its
// connectionTime of silence, sooner where it is out of reach and nobody has told of
// it yet, and again each askEvery-th part of it: a partner that hears them passes
// them on as they come, for wantedFor connectionTimes.
const (
	askShare      = 0.65
	askShareFirst = 0.4
	askEvery      = 16
	wantedFor     = 4
)

// catchUp asks connected partners for what is not known here: when one has been
// silent for a good part of its connectionTime the partner that told of it last,
// else one after the other, and somebody when nobody was asked for a while. It
// returns after what time to call it again.
func (ro *Topic) catchUp(now time.Duration) time.Duration {
	silent, next := ro.list.silent()
	up := ro.in.Peers.UpPeers()
	due := now >= ro.nextPull
	if len(up) == 0 || (len(silent) == 0 && !due) {
		return next
	}
	if due {
		ro.nextPull = now + max(compareEvery, ro.in.Own.ConnectionTime())
	}
	anybody := up[ro.turn%len(up)]
	ro.turn++
	wanted := map[workflow.PartnerID][]workflow.PartnerID{}
	for _, id := range silent {
		by := ro.list.teller(id)
		if !slices.Contains(up, by) {
			by = anybody
		}
		wanted[by] = append(wanted[by], id)
	}
	for _, p := range up {
		if len(wanted[p]) > 0 || (due && p == anybody) {
			m := &wire.Message{Digest: ro.list.digest(), Wanted: wanted[p]}
			ro.in.Compare(p, m)
			ro.in.Peers.Transmit(p, m)
		}
	}
	return next
}

// keepUnreachable has a partner stay unreachable of which another told and which is not
// connected here: what is told validates it, and says nothing of the way to it.
func (ro *Topic) keepUnreachable(from, about workflow.PartnerID, fresh bool) {
	if from == about || about == ro.in.Self || ro.in.Peers.Up(about) {
		return
	}
	if fresh {
		ro.list.told(from, about)
	}
	ro.list.Reach(about, false)
}

// passBeat passes a fresh beat on to those that do not hear its author themselves.
func (ro *Topic) passBeat(from workflow.PartnerID, b membership.Beat) {
	for _, p := range ro.list.wantedBy(b.Partner) {
		if p != from && ro.in.Peers.Up(p) {
			beats, ages := [][]byte{membership.EncodeBeat(b)}, []uint64{ro.list.age(b.Partner)}
			ro.in.Peers.Transmit(p, &wire.Message{Beats: beats, Ages: ages})
		}
	}
}

// hearsay is, of a partner, which others told of its signs of life, and which
// want to be told.
type hearsay struct {
	some   bool                                 // somebody told
	teller workflow.PartnerID                   // the last
	wanted map[workflow.PartnerID]time.Duration // until when (Awake)
}

// told notes that a partner told of a sign of life of another that was new here.
func (l *List) told(by, of workflow.PartnerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.hearsayOf(of)
	h.some, h.teller = true, by
}

// hearsayOf must be called with mu held, for a listed partner.
func (l *List) hearsayOf(id workflow.PartnerID) *hearsay {
	if l.hearsay[id] == nil {
		l.hearsay[id] = &hearsay{wanted: map[workflow.PartnerID]time.Duration{}}
	}
	return l.hearsay[id]
}

// HeardOf reports whether others tell of signs of life of a partner.
func (l *List) HeardOf(id workflow.PartnerID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.hearsay[id]
	x, listed := l.list.Get(id)
	if h == nil || !h.some || !listed {
		return false
	}
	// Others are asked, and pass its beats on, before this share is over.
	return float64(l.of.Clock.Now().Wall.Sub(x.Validated.Time())) < askShare*float64(x.Record.ConnectionTime)
}

// teller is the one that told last of a partner, so most likely knows more;
// empty: nobody. It is given once: if it then tells nothing new it is not asked
// again.
func (l *List) teller(of workflow.PartnerID) (by workflow.PartnerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.hearsay[of]; h != nil {
		by, h.teller = h.teller, ""
	}
	return by
}

// want notes that a partner wants the beats of others passed on.
func (l *List) want(by workflow.PartnerID, of []workflow.PartnerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.of.Clock.Now().Awake
	for _, id := range of {
		if x, ok := l.list.Get(id); ok && id != by && id != l.of.Self {
			l.hearsayOf(id).wanted[by] = now + wantedFor*x.Record.ConnectionTime
		}
	}
}

// wantedBy are the partners that want the beats of another passed on.
func (l *List) wantedBy(id workflow.PartnerID) (by []workflow.PartnerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.hearsay[id]
	if h == nil {
		return nil
	}
	now := l.of.Clock.Now().Awake
	for who, until := range h.wanted {
		if now >= until {
			delete(h.wanted, who)
			continue
		}
		by = append(by, who)
	}
	slices.Sort(by)
	return by
}

// silent are those that have not been validated for a good part of their
// connectionTime, and after what time to look again. Of one that is absent as it announced nobody is
// asked: its return is news, which everybody is told.
func (l *List) silent() (silent []workflow.PartnerID, next time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next = time.Minute
	now := l.of.Clock.Now()
	for _, x := range l.list.Partners() {
		id, ct := x.Record.Partner, x.Record.ConnectionTime
		if x.State.Gone() || id == l.of.Self || x.Absent() && now.Boot < x.Back {
			continue
		}
		least := askShare
		if h := l.hearsay[id]; x.State == membership.Unreachable && (h == nil || !h.some) {
			least = askShareFirst
		}
		if float64(now.Wall.Sub(x.Validated.Time())) > least*float64(ct) {
			silent = append(silent, id)
		}
		next = min(next, max(ct/askEvery, 500*time.Millisecond))
	}
	return silent[:min(len(silent), wire.MaxRecords)], next
}

// pullAgain is how long a partner is not asked the same once more: what it
// answered to that was refused here.
const pullAgain = time.Minute

// pull asks a partner for the records and beats that are not known here.
func (ro *Topic) pull(p workflow.PartnerID) {
	if !ro.in.Peers.Met(p) {
		return
	}
	digest, now := ro.list.digest(), ro.in.Clock.Now().Awake
	ro.mu.Lock()
	last := ro.asked[p]
	futile := bytes.Equal(last.digest, digest) && now < last.at+pullAgain
	if !futile {
		ro.asked[p] = asked{digest, now}
	}
	ro.mu.Unlock()
	if !futile {
		ro.in.Peers.Transmit(p, &wire.Message{Digest: digest})
	}
}
