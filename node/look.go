package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/overview"
	"github.com/mutirao-mesh/mutirao/node/show"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// The coordinator sees the whole mesh's instances. One that it takes no part in
// it has shown by a participant, who answers from its own facts.

// protocolLook is a request to show an instance.
const protocolLook = "/mutirao/look/1.0.0"

// lookWait is how long a partner is waited for, and its own shard by it.
const lookWait = 5 * time.Second

var (
	errMayNotLook = errors.New("only the coordinator and participants may look at an instance")
	errNotHere    = errors.New("takes no part in this instance")
)

// tellLook answers protocolLook in JSON, as the local API would.
func (k *desk) tellLook(from workflow.PartnerID, req []byte) ([]byte, error) {
	l, err := wire.DecodeLook(req)
	if err != nil {
		return nil, err
	}
	if _, here := k.index.Get(l.Instance); !here {
		return nil, errNotHere
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookWait)
	defer cancel()
	may := from == k.elections.Coordinator()
	var out any
	err = k.peek(ctx, l.Instance, func(h *held) {
		if may = may || h.m.Participates(from); !may {
			return
		}
		if l.What == wire.LookLog {
			out = k.view.Log(h.shown())
		} else {
			out = k.view.Instance(h.shown())
		}
	})
	switch {
	case err != nil:
		k.log.Warn("an instance could not be shown to a partner", "to", from, "instance", l.Instance, "error", err)
		return nil, errors.New("cannot read this instance now")
	case !may:
		k.refuse("look", from)
		return nil, errMayNotLook
	}
	return json.Marshal(out)
}

// lookAt has a partner show an instance, and read take what it shows.
func (k *desk) lookAt(ctx context.Context, p workflow.PartnerID, l wire.Look, read func([]byte) error) error {
	if !k.up(p) {
		return errors.New("cannot be reached")
	}
	req, err := wire.EncodeLook(l)
	if err != nil {
		return err
	}
	b, err := k.request(ctx, p, nil, protocolLook, req, lookWait)
	if err != nil {
		return err
	}
	return read(b)
}

// lookAround asks those who reported an instance, the best informed first, until
// one shows it. It returns whose account it is; if nobody answers, the error of
// the first.
func (k *desk) lookAround(
	ctx context.Context, accounts []overview.Account, what wire.LookWhat, read func([]byte) error,
) (overview.Account, error) {
	var first error
	for _, a := range accounts {
		err := k.lookAt(ctx, a.By, wire.Look{Instance: a.Instance, What: what}, read)
		if err == nil {
			return a, nil
		}
		if first == nil {
			first = fmt.Errorf("%s: %w", k.people.label(a.By), err)
		}
	}
	return accounts[0], first
}

// showElsewhere shows an instance that others reported: as one of them shows it
// now or, if nobody can be asked, as far as the report says.
func (k *desk) showElsewhere(ctx context.Context, accounts []overview.Account) *api.Instance {
	var in *api.Instance
	a, err := k.lookAround(ctx, accounts, wire.LookInstance, func(b []byte) (err error) {
		in, err = show.ReadInstance(b, accounts[0].Instance)
		return err
	})
	if err == nil {
		in.Told = &api.Told{By: k.overview.Witness(a)}
		k.view.Redate(in)
		return in
	}
	a = accounts[0]
	return &api.Instance{
		ID: a.Instance.String(), Workflow: a.Workflow, Label: k.definitions.Label(a.Definition), Version: a.Version,
		State:   a.State,
		Started: wire.AtMilli(a.Started), Ended: wire.Instant(a.Ended),
		Told: &api.Told{
			By: k.overview.Witness(a), Summary: true, Why: err.Error(), Done: int(a.Done), Tasks: int(a.Tasks),
			Current: k.people.names(a.At), Participants: k.people.names(a.Participants),
		},
	}
}

// logElsewhere is the log of an instance that others reported.
func (k *desk) logElsewhere(ctx context.Context, accounts []overview.Account) ([]api.LogEntry, error) {
	var out []api.LogEntry
	_, err := k.lookAround(ctx, accounts, wire.LookLog, func(b []byte) (err error) {
		out, err = show.ReadLog(b)
		return err
	})
	if err != nil {
		return nil, api.Errorf(api.Failed,
			"this node takes no part in the instance, and nobody who does shows its log: %v", err).
			WithHint("mutirao show says who holds it; ask there, or again when they are back")
	}
	return out, nil
}

// show shows one instance; at the coordinator also one of others.
func (k *desk) show(ctx context.Context, ref string) (*api.Instance, error) {
	var out *api.Instance
	err := k.look(ctx, ref, func(h *held) { out = k.view.Instance(h.shown()) }, func(there []overview.Account) error {
		out = k.showElsewhere(ctx, there)
		return nil
	})
	var only *onlySummary
	if errors.As(err, &only) {
		return k.retention.shownClosing(only.closing), nil
	}
	return out, err
}

// history shows the facts of one instance; at the coordinator also of one of others.
func (k *desk) history(ctx context.Context, ref string) ([]api.LogEntry, error) {
	var out []api.LogEntry
	err := k.look(ctx, ref, func(h *held) { out = k.view.Log(h.shown()) }, func(there []overview.Account) (err error) {
		out, err = k.logElsewhere(ctx, there)
		return err
	})
	return out, err
}

// diagram draws an instance with the states of its tasks.
func (k *desk) diagram(ctx context.Context, ref, format string) ([]byte, error) {
	id, there, err := k.locate(ref)
	if err != nil {
		return nil, err
	}
	in, err := k.show(ctx, id.String())
	if err != nil {
		return nil, err
	}
	if of, language, _ := strings.Cut(format, "-"); of == show.FormatGantt {
		return show.Gantt(in, k.clock.Now().Wall, language, time.Local)
	}
	if err := show.Undrawable(in); err != nil {
		return nil, err
	}
	sum, _ := k.index.Get(id)
	hash := sum.Definition
	if there != nil {
		hash = there[0].Definition
	}
	def, err := k.definitions.Get(hash)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, api.Errorf(api.Failed, "the definition of this instance, %s@%d, is not known here", in.Workflow,
			in.Version).
			WithHint("draw it on a node that takes part")
	}
	if err != nil {
		return nil, err
	}
	return show.Draw(def.Def, in, format)
}
