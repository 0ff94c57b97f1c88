package worklists

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about instances that do not go on without whoever decides about them, or go on and in which somebody has,
// or had, an item, and in which none of this node's facts says so, as it takes no part in them. Whoever looks at what is
// to be told, or lists instances, has the connected partners asked, as a worklist has: nobody is told who does not look.
// What a partner said last is remembered while it cannot be asked.

const (
	// maxStuck bounds the instances in an answer, the newest, and MaxStuckNews the messages about each.
	maxStuck     = 200
	MaxStuckNews = 16
	// maxStuckText bounds the letters of a message.
	maxStuckText = 1 << 10
	// stuckPatience is how long all partners together are waited for: what they said before is shown else.
	stuckPatience = 500 * time.Millisecond
	// stuckFor is for how long an answer does for whoever does not wait for a new one.
	stuckFor = 20 * time.Second
)

// Stuck is an instance that waits for whoever decides about it, or in which that person has, or had, an item, as a partner
// knows it. Of the latter there are no messages.
type Stuck struct {
	Shown    api.InstanceSummary  `json:"shown"`
	Runs     workflow.Hash        `json:"runs,omitzero"` // by which definition; zero: it does not say
	Facts    int                  `json:"facts"`         // how many the partner has
	With     []workflow.PartnerID `json:"with"`          // who takes part
	Messages []StuckNews          `json:"messages"`
}

// StuckNews is a message about such an instance, with what people call its task.
type StuckNews struct {
	worklist.Message
	Label string `json:"label,omitempty"`
}

// stuckAt is what a partner said last of such instances, for one user.
type stuckAt struct {
	awake time.Duration
	wall  time.Time
	list  []Stuck
}

// AnswerStuck answers a partner which instances here wait for a person at its node, or concern one who has an item there.
func (d *Desk) AnswerStuck(from workflow.PartnerID, req []byte) ([]byte, error) {
	r, err := wire.DecodeItems(req)
	if err != nil {
		return nil, err
	}
	if err := d.admit(from, r.User); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), listPatience)
	defer cancel()
	list, err := d.in.Instances.Stuck(ctx, worklist.User(r.User), maxStuck)
	if err != nil {
		d.in.Log.Warn("which instances wait for somebody could not be said to a partner", "to", from, "error", err)
		return nil, errCannot
	}
	b, _, err := partOfList(list, 0)
	return b, err
}

// stuckElsewhere are the instances in which this node takes no part and that wait for a person here, each as whoever
// knows most of it says. Partners are asked that did not answer for so long; 0: none are.
func (d *Desk) stuckElsewhere(ctx context.Context, who users.Who, fresh time.Duration) []toldStuck {
	if fresh > 0 {
		d.askStuck(ctx, who, fresh)
	}
	now := d.in.Clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	lately := func(p workflow.PartnerID) bool {
		is := d.stuck[who.ID][p]
		return is != nil && now.Awake-is.awake < stuckFor
	}
	best := map[string]toldStuck{}
	for p, is := range d.stuck[who.ID] {
		if now.Wall.Sub(is.wall) >= shownFor {
			continue
		}
		for i := range is.list {
			x := toldStuck{Stuck: is.list[i], by: p, at: is.wall}
			if !lately(p) && slices.ContainsFunc(x.With, lately) {
				continue // one that takes part as well was heard since: it would have said so
			}
			was, known := best[x.Shown.ID]
			if !known || x.Facts > was.Facts || x.Facts == was.Facts && x.by < was.by {
				best[x.Shown.ID] = x
			}
		}
	}
	out := make([]toldStuck, 0, len(best))
	for _, x := range best {
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b toldStuck) int { return strings.Compare(a.Shown.ID, b.Shown.ID) })
	return out
}

// toldStuck is an instance that waits for somebody, with who said so, and when.
type toldStuck struct {
	Stuck
	by workflow.PartnerID
	at time.Time
}

// askStuck asks the connected partners that did not answer for so long.
func (d *Desk) askStuck(ctx context.Context, who users.Who, fresh time.Duration) {
	if d.away() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, stuckPatience)
	defer cancel()
	req, err := wire.EncodeItems(wire.Items{User: who.ID})
	if err != nil {
		return
	}
	d.askEach(func(p workflow.PartnerID) error {
		now := d.in.Clock.Now()
		d.mu.Lock()
		is := d.stuck[who.ID][p]
		known := is != nil && now.Awake-is.awake < fresh
		d.mu.Unlock()
		if known {
			return nil
		}
		b, err := d.in.Peers.Request(ctx, p, nil, ProtocolStuck, req, stuckPatience)
		if err != nil {
			return err
		}
		list, err := d.readStuck(b)
		if err != nil {
			d.in.Peers.Refuse("items-malformed", p)
			return err
		}
		d.noteStuck(who, p, list)
		return nil
	})
}

// askAgain has a partner asked once more which instances wait for a user, who has just decided about one there.
func (d *Desk) askAgain(who users.Who, p workflow.PartnerID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if is := d.stuck[who.ID][p]; is != nil {
		is.awake -= freshFor
	}
}

// noteStuck notes what a partner says, and tells those who watch where it is something else than before.
func (d *Desk) noteStuck(who users.Who, p workflow.PartnerID, list []Stuck) {
	now := d.in.Clock.Now()
	d.mu.Lock()
	if d.stuck[who.ID] == nil {
		d.stuck[who.ID] = map[workflow.PartnerID]*stuckAt{}
	}
	was := d.stuck[who.ID][p]
	if was == nil {
		was = &stuckAt{}
	}
	other := !slices.EqualFunc(was.list, list, sameStuck)
	d.stuck[who.ID][p] = &stuckAt{now.Awake, now.Wall, list}
	d.mu.Unlock()
	if other {
		d.in.Publish(api.Event{At: now.Wall, Kind: "message", Text: "an instance elsewhere waits for somebody, or goes on"})
	}
}

// sameStuck reports whether people are told the same; what only passes with time is left out.
func sameStuck(a, b Stuck) bool {
	return a.Shown.ID == b.Shown.ID && a.Shown.State == b.Shown.State && a.Shown.Done == b.Shown.Done &&
		slices.EqualFunc(a.Messages, b.Messages, func(x, y StuckNews) bool { return x.ID == y.ID })
}

// readStuck reads an answer. What is at this node as well, this node knows by itself.
func (d *Desk) readStuck(b []byte) (list []Stuck, err error) {
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, err
	}
	if len(list) > maxStuck {
		return nil, errors.New("it lists too many instances")
	}
	for i := range list {
		x := &list[i]
		id, err := workflow.ParseInstanceID(x.Shown.ID)
		if err != nil {
			return nil, err
		}
		if len(x.Messages) > MaxStuckNews || len(x.With) > wire.MaxReported || len(x.Shown.Needs) > wire.MaxNeeds {
			return nil, errors.New("it says too much of one instance")
		}
		for j := range x.Messages {
			m := &x.Messages[j]
			m.Task = cmp.Or(m.Task, m.ID.Item.Slot) // of an earlier version
			if m.ID.Instance != id || len(m.Text) > maxStuckText || len(m.Task) > workflow.MaxName || workflow.LabelRule(m.Label) != "" && m.Label != "" {
				return nil, errors.New("a message that cannot be")
			}
		}
	}
	return slices.DeleteFunc(list, func(x Stuck) bool {
		id, _ := workflow.ParseInstanceID(x.Shown.ID)
		return d.in.Instances.Here(id)
	}), nil
}

// Stuck lists, as instances are listed, those in which this node takes no part and that wait for a person here, or in
// which one has, or had, an item.
func (d *Desk) Stuck(ctx context.Context) (out []api.InstanceSummary) {
	listed, now := map[string]bool{}, d.in.Clock.Now().Wall
	for _, who := range d.in.People.Here() {
		for _, x := range d.stuckElsewhere(ctx, who, freshFor) {
			if listed[x.Shown.ID] {
				continue
			}
			listed[x.Shown.ID] = true
			at := x.at
			x.Shown.AsOf = &at
			x.Shown.KnownBy = []api.Witness{d.in.Witness(x.by, at)}
			if ago := now.Sub(at); x.Shown.Known == "" && ago >= time.Second {
				x.Shown.Known = cmp.Or(d.in.Known(at), fmt.Sprintf("as known %d s ago", int(ago.Seconds())))
				x.Shown.Of = x.Shown.KnownBy[0].Name
			}
			out = append(out, x.Shown)
		}
	}
	return out
}

// toldOfStuck are the messages about them for a person.
func (d *Desk) toldOfStuck(ctx context.Context, who users.Who, fresh time.Duration) (out []Told) {
	for _, x := range d.stuckElsewhere(ctx, who, fresh) {
		for _, m := range x.Messages {
			out = append(out, Told{
				Message: m.Message, From: x.by, Label: m.Label, WorkflowLabel: x.Shown.Label, Subject: x.Shown.Subject,
			}) // this node can have it shown
		}
	}
	return out
}
