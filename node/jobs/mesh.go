package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/ration"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file lets workers beside this node do jobs that other partners hold. The holder
// decides all: this node only passes on what its workers say, and remembers nothing, since a
// lease names its holder.

// Protocol is a worker's request, passed on to the holder of the job.
const Protocol = "/mutirao/work/1.0.0"

const (
	// workWait is how long a holder is waited for.
	workWait = 5 * time.Second
	// lookElsewhere is how often a node asks other holders for jobs while a worker waits, and looks who they are.
	lookElsewhere = 2 * time.Second
	// maxFound bounds the applications whose holders are remembered meanwhile.
	maxFound = 256
)

// workRation is how many of its workers' requests a member may pass on to this node.
var workRation = ration.Ration{Burst: 500, Each: 2 * time.Millisecond}

// workRequest is what a worker asks of a holder, by way of the node beside it.
type workRequest struct {
	Token    string // which token it has there
	Look     *workLook
	Take     *workTake
	Keep     *api.KeepRequest
	Complete *api.CompleteRequest
	Fail     *api.FailRequest
	GiveBack bool
	Lease    string // of all but Look and Take
}

// workLook asks whether a job waits.
type workLook struct{ Application workflow.ApplicationName }

// workTake asks for a job.
type workTake struct {
	Application workflow.ApplicationName
	Worker      string
	Lease       string // for how long
}

// workAnswer is the holder's answer; none is given: done, or there is no job.
type workAnswer struct {
	Waits   bool // a job does that the node that asks may have
	Job     *api.Job
	Lease   *api.Lease
	Refusal *api.Error
}

// elsewhere are jobs that other partners hold.
type elsewhere struct {
	rations  *ration.Budgets
	lookouts lookouts

	mu     sync.Mutex // guards what follows
	asking map[workflow.ApplicationName]bool
	found  map[workflow.ApplicationName]found
}

// found are the holders of an application's jobs, as of a moment.
type found struct {
	at      time.Time
	holders []workflow.PartnerID
}

func newElsewhere() *elsewhere {
	return &elsewhere{
		rations: ration.New(workRation),
		lookouts: lookouts{
			of: map[workflow.ApplicationName]*lookout{}, asked: map[workflow.ApplicationName]time.Time{},
		},
		asking: map[workflow.ApplicationName]bool{}, found: map[workflow.ApplicationName]found{},
	}
}

// begin reports whether nobody else asks other holders for an application's jobs now, and
// has others think that somebody does until end.
func (e *elsewhere) begin(app workflow.ApplicationName) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asking[app] {
		return false
	}
	e.asking[app] = true
	return true
}

func (e *elsewhere) end(app workflow.ApplicationName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.asking, app)
}

// takeElsewhere asks other holders for a job; nil: none has one that can be had.
func (x *Desk) takeElsewhere(ctx context.Context, t taking) *api.Job {
	if !x.Peers.Asks() || !x.elsewhere.begin(t.app) {
		return nil
	}
	defer x.elsewhere.end(t.app)
	for _, p := range x.holders(t.app) {
		answer, err := x.passOn(ctx, p, workRequest{
			Token: t.worker.Token,
			Take:  &workTake{Application: t.app, Worker: t.worker.Name, Lease: workflow.FormatDuration(t.term)},
		})
		if err == nil && answer.Job != nil {
			x.elsewhere.lookouts.taken(t.app)
			answer.Job.Lease += "." + string(p)
			return answer.Job
		}
	}
	return nil
}

// holders are the partners that can be asked for jobs of an application, in a chance order.
func (x *Desk) holders(app workflow.ApplicationName) []workflow.PartnerID {
	out := x.elsewhere.holders(app, x.lookForHolders)
	if n := len(out); n > 1 { // all of them get their turns
		first := int(x.Chance() * float64(n))
		out = slices.Concat(out[first:], out[:first])
	}
	return out
}

// holders are the holders of an application's jobs. Many workers may wait, and there may be many partners, so that all
// are looked at only now and then.
func (e *elsewhere) holders(
	app workflow.ApplicationName, look func(workflow.ApplicationName) []workflow.PartnerID,
) []workflow.PartnerID {
	e.mu.Lock()
	defer e.mu.Unlock()
	last, known := e.found[app]
	if known && time.Since(last.at) < lookElsewhere {
		return last.holders
	}
	if !known && len(e.found) >= maxFound {
		clear(e.found)
	}
	e.found[app] = found{time.Now(), look(app)}
	return e.found[app].holders
}

// lookForHolders finds them.
func (x *Desk) lookForHolders(app workflow.ApplicationName) (out []workflow.PartnerID) {
	for _, p := range x.Members.All() {
		who := p.Record.Partner
		if who != x.Self && x.Peers.Up(who) && slices.Contains(p.Record.Applications, app) {
			out = append(out, who)
		}
	}
	return out
}

// passOn asks a holder for something. An error of its own is an *api.Error.
func (x *Desk) passOn(ctx context.Context, p workflow.PartnerID, r workRequest) (answer workAnswer, err error) {
	req, err := json.Marshal(r)
	if err != nil {
		return answer, err
	}
	away := func(why string) error {
		return api.Errorf(api.NoNode, "%s, which holds the job, cannot be asked now: %s", x.Members.Label(p), why).
			WithHint("ask again: the lease may still be good when it can")
	}
	if !x.Peers.Up(p) {
		return answer, away("it is out of reach")
	}
	b, err := x.Peers.Request(ctx, p, nil, Protocol, req, workWait)
	if err != nil {
		x.Log.Debug("a worker's word could not be passed on", "to", p, "error", err)
		return answer, away(unasked(err))
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return answer, away("its answer cannot be read")
	}
	if answer.Refusal != nil {
		return answer, answer.Refusal
	}
	return answer, nil
}

// unasked is why a partner could not be asked, in its own words or in ours: those of whatever carries requests are not
// for people.
func unasked(err error) string {
	var said interface{ Answer() string }
	switch {
	case errors.As(err, &said):
		return "it says " + said.Answer()
	case errors.Is(err, context.DeadlineExceeded):
		return "it did not answer in time"
	}
	return "the connection broke off"
}

// holderOf splits a lease that another partner gave; empty: this node gave it.
func holderOf(lease string) (workflow.PartnerID, string) {
	lease, holder, _ := strings.Cut(lease, ".")
	return workflow.PartnerID(holder), lease
}

// ofHere is a lease that this node gave, as it names it.
func ofHere(lease string) string {
	_, own := holderOf(lease)
	return own
}

// forHolder passes a worker's word about a lease on; false: this node is the holder.
func (x *Desk) forHolder(ctx context.Context, by api.Program, lease string, r workRequest) (*api.Lease, error, bool) {
	holder, own := holderOf(lease)
	if holder == "" || holder == x.Self {
		return nil, nil, false
	}
	p, known := x.Members.Get(holder)
	switch { // to ask again later would never help
	case !known:
		return nil, api.Errorf(api.NotFound, "no partner %s is known, which would have given this lease", holder).
			WithHint("take another job"), true
	case p.State == membership.Left || p.State == membership.Evicted:
		return nil, api.Errorf(api.NotFound, "%s, which gave this lease, is %s, and no job of it counts any more",
			x.Members.Label(holder), p.State).
			WithHint("take another job"), true
	}
	r.Token, r.Lease = by.Token, own
	answer, err := x.passOn(ctx, holder, r)
	return answer.Lease, err, true
}

// Answer answers protocolWork, for a worker beside another member's node.
func (x *Desk) Answer(from workflow.PartnerID, req []byte) ([]byte, error) {
	var r workRequest
	if err := json.Unmarshal(req, &r); err != nil {
		return nil, errors.New("not a worker's request")
	}
	if !x.elsewhere.rations.Spend(from, 1, x.Clock.Now().Awake) {
		x.Peers.Refuse("work-too-fast", from)
		return nil, errors.New("too many requests: ask again later")
	}
	ctx, cancel := context.WithTimeout(context.Background(), workWait)
	defer cancel()
	out, err := x.workFor(ctx, from, r)
	if err = x.Explain(err); err != nil && !errors.As(err, &out.Refusal) {
		x.Log.Warn("a worker's request could not be answered", "from", from, "error", err)
		return nil, errors.New("cannot do that now")
	}
	return json.Marshal(out)
}

// workFor does what a worker beside another member's node asks.
func (x *Desk) workFor(ctx context.Context, from workflow.PartnerID, r workRequest) (out workAnswer, err error) {
	who := runner.Worker{Token: r.Token, At: from}
	switch {
	case r.Look != nil:
		app := r.Look.Application
		out.Waits = x.Served(app) && x.pool.Waits(app, func(j runner.Job) bool { return x.mayGoTo(j, from) })
	case r.Take != nil:
		var t taking
		t, err = readTake(api.Program{Token: r.Token},
			api.TakeRequest{Application: r.Take.Application, Worker: r.Take.Worker, Lease: r.Take.Lease})
		if err == nil && x.Served(t.app) {
			t.worker.At = from
			out.Job, err = x.takeNow(ctx, t)
		}
	case r.Keep != nil:
		out.Lease, err = x.keep(ctx, who, r.Lease, *r.Keep)
	case r.Complete != nil:
		var res runner.Result
		if res.Outputs, err = readOutputs(r.Complete.Outputs); err == nil {
			err = x.finish(ctx, who, r.Lease, res)
		}
	case r.Fail != nil:
		err = x.finish(ctx, who, r.Lease, runner.Result{Failed: true, Reason: whyFailed(*r.Fail)})
	case r.GiveBack:
		err = x.giveBack(who, r.Lease)
	default:
		err = api.Errorf(api.Invalid, "the request asks for nothing")
	}
	return out, err
}

// whyFailed is why a worker's try failed.
func whyFailed(r api.FailRequest) string {
	return cmp.Or(strings.TrimSpace(strings.ToValidUTF8(r.Reason, "\ufffd")), "its worker says so, and not why")
}

// mayGoTo reports whether a job may go to a worker. Beside another member's node that is where its author lets such work
// be done: which application a worker does it says itself, so the node there need not have it, nor what undoes the task.
// Files are paths of this device, so a job with files stays here.
func (x *Desk) mayGoTo(j runner.Job, at workflow.PartnerID) bool {
	if at == "" {
		return true
	}
	ref, ok := j.Ref.(Ref)
	if !ok || len(j.Files)+len(j.Makes) > 0 {
		return false
	}
	all := x.Able(ref.Plan.Definition())
	i := slices.IndexFunc(all, func(p partition.Partner) bool { return p.ID == at })
	if i < 0 {
		return false
	}
	if part := ref.Plan.Partition(ref.Plan.Home(j.Task)); part != nil && part.Partner != "" {
		return false // its author named who does it
	}
	return ref.Plan.MayWork(all[i], j.Task)
}
