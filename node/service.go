package node

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

var _ api.Service = (*Node)(nil)

// Status says which node this is and how it fares.
func (n *Node) Status(context.Context) (*api.Status, error) {
	leaf := n.certificates.Chain().Leaf()
	st := &api.Status{
		Name: leaf.Name, ID: n.member.ID(), Mesh: n.member.Mesh.Name, Version: n.parts.Version,
		Roles: texts(leaf.Roles),
		Since: n.started, Incarnation: n.life.incarnation().String(), Boot: n.life.bootCount(),
		Instances: n.index.Running(), Counters: n.counters.all(),
		Disconnected: n.absence.since(),
		Leaving:      n.departure.leaving.Load(), ForGood: n.departure.leaving.Load() && n.departure.forGood.Load(),
		Device: n.parts.device(),
	}
	if err := n.parts.mayLock(); err != nil {
		st.LocksNothing = err.Error()
	}
	if n.carrier != nil {
		st.Addresses, st.Traffic = n.carrier.Addrs(), n.carrier.Traffic()
		for k, v := range n.carrier.Refused() {
			st.Counters["mesh.refused."+k] = v
		}
	}
	st.Trouble = append(n.losses.damages(n.index.Quarantined()), n.troubles.list()...)
	if t := n.definitions.Trouble(); t != "" {
		st.Trouble = append(st.Trouble, t)
	}
	st.Trouble = append(st.Trouble, n.retention.lateOnes()...)
	return st, nil
}

// Partners lists the partners that are here.
func (n *Node) Partners(context.Context) ([]api.Partner, error) {
	out := []api.Partner{}
	for _, p := range n.people.All() { // by the names that all else has for them, also where two have the same
		r := p.Record
		out = append(out, api.Partner{
			Name: n.people.name(r.Partner), ID: r.Partner, Roles: texts(r.Roles()), State: string(p.State), Since: since(p),
			Reason: string(p.Reason()), Remark: n.people.remark(p), Addresses: append([]string{}, r.Addresses...),
			LastValidated: p.Validated.Time(), ConnectionTime: r.ConnectionTime.String(), Load: p.Load.Share(),
			FilesRate: n.filing.RateFrom(r.Partner), Self: r.Partner == n.member.ID(),
			Refused: n.refusals.List(r.Partner),
		})
	}
	slices.SortFunc(out, func(a, b api.Partner) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// since is when a partner came into its state; nil: not known.
func since(p membership.Partner) *time.Time {
	if p.Since == 0 {
		return nil
	}
	t := p.Since.Time()
	return &t
}

// Invite opens an invitation to the mesh.
func (n *Node) Invite(_ context.Context, r api.InviteRequest) (*api.Invitation, error) {
	out, err := n.joining.Invite(r)
	return out, n.explain(err)
}

// Watch follows what happens.
func (n *Node) Watch(ctx context.Context, fn func(api.Event) error) error {
	return n.events.watch(ctx, fn)
}

// Happened counts what Watch tells, also what happened while nobody watched: a page that was made before it watches
// learns by it whether it is out of date already.
func (n *Node) Happened() uint64 { return n.events.happened.Load() }

// AddWorkflow checks a definition, lists it and spreads it.
func (n *Node) AddWorkflow(ctx context.Context, file string, source []byte) (*api.Workflow, error) {
	out, err := n.library.Add(ctx, file, source)
	return out, n.explain(err)
}

// Workflows lists the definitions.
func (n *Node) Workflows(context.Context) ([]api.Workflow, error) { return n.library.List(), nil }

// Workflow shows one definition.
func (n *Node) Workflow(_ context.Context, ref string) (*api.Workflow, error) {
	out, err := n.library.Show(ref)
	return out, n.explain(err)
}

// RemoveWorkflow takes all editions off the list that ref names, here and in the mesh,
// and says which. Instances of them go on.
func (n *Node) RemoveWorkflow(_ context.Context, ref string) ([]api.Workflow, error) {
	out, err := n.library.Remove(ref)
	return out, n.explain(err)
}

// Boot is this node's boot counter: how often it was started.
func (n *Node) Boot() uint64 { return n.life.bootCount() }

// CoordinatorStatus says who coordinates.
func (n *Node) CoordinatorStatus(context.Context) (*api.Coordinator, error) {
	out, err := n.elections.Status()
	return out, n.explain(err)
}

// Elect has a node stand for election, this one if none is named, and waits
// for the outcome.
func (n *Node) Elect(ctx context.Context, r api.ElectRequest) (*api.Coordinator, error) {
	out, err := n.elections.Elect(ctx, r)
	return out, n.explain(err)
}

// Resign gives this node's office up.
func (n *Node) Resign(context.Context) error {
	return n.explain(n.elections.Resign())
}

// Electorate says who may vote.
func (n *Node) Electorate(context.Context) (*api.Electorate, error) {
	out, err := n.elections.Electorate()
	return out, n.explain(err)
}

// SetElectorate changes who may vote.
func (n *Node) SetElectorate(ctx context.Context, r api.ElectorateRequest) (*api.Electorate, error) {
	out, err := n.elections.SetElectorate(ctx, r)
	return out, n.explain(err)
}

// Leads reports whether this node holds the office at this moment, and by which
// mandate.
func (n *Node) Leads() (m election.Mandate, ok bool) { return n.elections.Leads() }

// Evict removes a member for good.
func (n *Node) Evict(_ context.Context, r api.EvictRequest) (*api.Evicted, error) {
	out, err := n.evictions.Evict(r)
	return out, n.explain(err)
}

// AddData registers a data set, which partners may then be given.
func (n *Node) AddData(_ context.Context, name string, content []byte, terms api.DataTerms) (*api.DataSet, error) {
	out, err := n.data.Add(name, content, terms)
	return out, n.explain(err)
}

// RemoveData takes a data set back.
func (n *Node) RemoveData(_ context.Context, name string) error {
	return n.explain(n.data.Remove(name))
}

// Doctor looks for what is wrong with this node and its links.
func (n *Node) Doctor(ctx context.Context) (*api.Diagnosis, error) {
	out, err := n.doctor.Examine(ctx)
	return out, n.explain(err)
}

// Start creates an instance and hands its partitions out.
func (n *Node) Start(ctx context.Context, r api.StartRequest) (*api.Started, error) {
	out, err := n.desk.start(ctx, r)
	return out, n.explain(err)
}

// Instances lists instances, newest first: those that this node takes part in
// and, at the coordinator, those of the whole mesh.
func (n *Node) Instances(ctx context.Context, all bool) ([]api.InstanceSummary, error) {
	out, err := n.desk.list(ctx, all)
	return out, n.explain(err)
}

// InstancePage lists a part of them.
func (n *Node) InstancePage(ctx context.Context, q api.InstanceQuery) (*api.InstancePage, error) {
	out, err := n.desk.page(ctx, q)
	return out, n.explain(err)
}

// Refresh asks the participants of an instance for what is new, and says who answered.
func (n *Node) Refresh(ctx context.Context, ref string) (*api.Refreshed, error) {
	out, err := n.desk.refresh(ctx, ref)
	return out, n.explain(err)
}

// Show says how an instance stands.
func (n *Node) Show(ctx context.Context, ref string) (*api.Instance, error) {
	out, err := n.desk.show(ctx, ref)
	return out, n.explain(err)
}

// Log is what happened in an instance.
func (n *Node) Log(ctx context.Context, ref string) ([]api.LogEntry, error) {
	out, err := n.desk.history(ctx, ref)
	return out, n.explain(err)
}

// History are the data states that an instance went through.
func (n *Node) History(ctx context.Context, ref string) ([]api.DataState, error) {
	out, err := n.desk.states(ctx, ref)
	return out, n.explain(err)
}

// ForeseeRecovery says what a step would lead to that recovers an interrupted instance.
func (n *Node) ForeseeRecovery(ctx context.Context, ref string, step api.RecoveryStep) (*api.Outlook, error) {
	out, err := n.desk.outlook(ctx, ref, step)
	return out, n.explain(err)
}

// Diagram draws an instance or a workflow.
func (n *Node) Diagram(ctx context.Context, ref, format string) ([]byte, error) {
	out, err := n.desk.diagram(ctx, ref, format)
	return out, n.explain(err)
}

// Cancel ends an instance.
func (n *Node) Cancel(ctx context.Context, ref, reason string) error {
	_, err := n.worklists.Order(ctx, api.TaskOrder{ID: ref, Order: api.TaskCancel, Reason: reason})
	return n.explain(err)
}

// WriteOff says that a participant will not answer any more; with check it only says whether that may be said.
func (n *Node) WriteOff(ctx context.Context, ref, who string, check bool) error {
	return n.explain(n.desk.writeOff(ctx, ref, who, check))
}

// RejectTask passes a task that this node holds, and has not started, on to
// another partner.
func (n *Node) RejectTask(ctx context.Context, r api.RejectRequest) (*api.Passed, error) {
	out, err := n.desk.rejectTask(ctx, r)
	return out, n.explain(err)
}

// BeginTask notes that a person began a task that this node holds.
func (n *Node) BeginTask(ctx context.Context, r api.BeginRequest) error {
	return n.explain(n.desk.beginTask(ctx, r))
}

// FinishTask completes or fails a person's task that this node holds.
func (n *Node) FinishTask(ctx context.Context, r api.FinishRequest) error {
	return n.explain(n.desk.finishTask(ctx, r))
}

// Leave gives this node's work on, says what stays, and has the node go as soon as
// nothing stays.
func (n *Node) Leave(ctx context.Context, r api.LeaveRequest) (*api.Leaving, error) {
	if n.Away() {
		return nil, n.explain(api.Errorf(api.Refused,
			"this node is disconnected on purpose: nobody would hear that it leaves").
			WithHint("mutirao worklist reconnect, and leave then"))
	}
	out, err := n.departure.leave(ctx, r)
	return out, n.explain(err)
}

// Left says how the node left, if it did; else membership.Staying.
func (n *Node) Left() membership.Going { return n.departure.left() }

// Users lists the partners, which are users by being partners, and all other users.
func (n *Node) Users(ctx context.Context) ([]api.User, error) {
	out, err := n.users.List(ctx)
	return out, n.explain(err)
}

// AddUser makes a user, and a token by which it signs in.
func (n *Node) AddUser(_ context.Context, r api.UserRequest) (*api.SignInToken, error) {
	out, err := n.users.Add(r)
	return out, n.explain(err)
}

// RemoveUser removes a user for good, or one of its keys.
func (n *Node) RemoveUser(_ context.Context, user string) (*api.RemovedUser, error) {
	out, err := n.users.Remove(user)
	return out, n.explain(err)
}

// SignInUser signs a user in at this node.
func (n *Node) SignInUser(ctx context.Context, token string) (*api.SignedIn, error) {
	out, err := n.users.SignIn(ctx, token)
	return out, n.explain(err)
}

// SignOutUser ends a user's being signed in at this node.
func (n *Node) SignOutUser(_ context.Context, user string) (*api.SignedOut, error) {
	out, err := n.users.SignOut(user)
	return out, n.explain(err)
}

// LinkUser makes a token for another device of a user who is signed in here.
func (n *Node) LinkUser(_ context.Context, user string, expires time.Duration) (*api.SignInToken, error) {
	out, err := n.users.Link(user, expires)
	return out, n.explain(err)
}

// Worklist lists what a user has and may take.
func (n *Node) Worklist(ctx context.Context, q api.WorklistQuery) ([]api.Item, error) {
	out, err := n.worklists.List(ctx, q)
	return out, n.explain(err)
}

// WorklistUnanswered names the partners that did not answer when a user's list was asked for last.
func (n *Node) WorklistUnanswered(_ context.Context, user string) ([]string, error) {
	out, err := n.worklists.Unanswered(user)
	return out, n.explain(err)
}

// ItemSheet shows an item with all that is needed to do it.
func (n *Node) ItemSheet(ctx context.Context, q api.ItemQuery) (*api.ItemSheet, error) {
	out, err := n.worklists.Sheet(ctx, q)
	if err == nil {
		n.filing.DescribeData(out.Data)
	}
	return out, n.explain(err)
}

// ItemFile gives the content of a file among the data of an item that a user has.
func (n *Node) ItemFile(ctx context.Context, q api.ItemQuery, name string) (*api.File, io.ReadCloser, error) {
	f, content, err := n.filing.OfItem(ctx, q, name, n.worklists.Content)
	return f, content, n.explain(err)
}

// MoveItem puts an item elsewhere in a list that is ordered by hand.
func (n *Node) MoveItem(ctx context.Context, r api.MoveRequest) ([]api.Item, error) {
	out, err := n.worklists.Move(ctx, r)
	return out, n.explain(err)
}

// Prefetch says which files of a user's items come before they are needed.
func (n *Node) Prefetch(ctx context.Context, user string) (*api.Prefetch, error) {
	out, err := n.worklists.Prefetch(ctx, user)
	return out, n.explain(err)
}

// SetPrefetch switches that on or off.
func (n *Node) SetPrefetch(ctx context.Context, r api.PrefetchRequest) (*api.Prefetch, error) {
	out, err := n.worklists.SetPrefetch(ctx, r)
	return out, n.explain(err)
}

// ClaimItems takes items for a user, or gives them back.
func (n *Node) ClaimItems(ctx context.Context, r api.ClaimRequest) ([]api.Item, error) {
	out, err := n.worklists.Claim(ctx, r)
	return out, n.explain(err)
}

// WorklistLost lists the items that a user had and lost lately.
func (n *Node) WorklistLost(ctx context.Context, user string) ([]api.LostItem, error) {
	out, err := n.worklists.Lost(ctx, user)
	return out, n.explain(err)
}

// TransferItem has a user pass an item on.
func (n *Node) TransferItem(ctx context.Context, r api.TransferRequest) (*api.Transferred, error) {
	out, err := n.worklists.Transfer(ctx, r)
	return out, n.explain(err)
}

// OrderTask has a user who decides about an instance say what becomes of a task.
func (n *Node) OrderTask(ctx context.Context, r api.TaskOrder) (*api.TaskOrdered, error) {
	out, err := n.worklists.Order(ctx, r)
	return out, n.explain(err)
}

// Deciding says whether a user decides about an instance.
func (n *Node) Deciding(ctx context.Context, q api.DecidingQuery) (*api.Deciding, error) {
	out, err := n.desk.deciding(ctx, q)
	return out, n.explain(err)
}

// ExtendDeadline has a user who decides about an instance give a task a later deadline.
func (n *Node) ExtendDeadline(ctx context.Context, r api.ExtendRequest) (*api.Extended, error) {
	out, err := n.worklists.Extend(ctx, r)
	return out, n.explain(err)
}

// ChangeNotify has a user who decides about an instance change whom its items are offered to.
func (n *Node) ChangeNotify(ctx context.Context, r api.NotifyRequest) (*api.Notified, error) {
	out, err := n.worklists.Notify(ctx, r)
	return out, n.explain(err)
}

// AdoptResult has a user who decides about an instance adopt a result that is kept.
func (n *Node) AdoptResult(ctx context.Context, r api.AdoptRequest) (*api.Adopted, error) {
	out, err := n.worklists.Adopt(ctx, r)
	return out, n.explain(err)
}

// Disconnect has this node end all contact with its partners, once what it needs is here.
func (n *Node) Disconnect(ctx context.Context, r api.DisconnectRequest) (*api.Contact, error) {
	out, err := n.absence.disconnect(ctx, r)
	return out, n.explain(err)
}

// Reconnect has this node talk to its partners again.
func (n *Node) Reconnect(context.Context) (*api.Contact, error) {
	out, err := n.absence.reconnect()
	return out, n.explain(err)
}

// Contact says how this node stands to its partners.
func (n *Node) Contact(context.Context) (*api.Contact, error) { return n.absence.contact(), nil }

// Away reports whether this node is out of contact on purpose: it begins in silence.
func (n *Node) Away() bool {
	_, away := n.absence.away()
	return away
}

// Outbox lists what users did at this node that nobody else has acknowledged yet.
func (n *Node) Outbox(context.Context) ([]api.Undelivered, error) { return n.worklists.Outbox(), nil }

// Messages lists what a user is told of instances.
func (n *Node) Messages(ctx context.Context, q api.MessagesQuery) ([]api.Message, error) {
	out, err := n.worklists.Messages(ctx, q)
	return out, n.explain(err)
}

// UnreadMessages is how many messages a user has not read.
func (n *Node) UnreadMessages(ctx context.Context, user string) (int, error) {
	out, err := n.worklists.Unread(ctx, user)
	return out, n.explain(err)
}

// ReadMessages notes that a user has read messages.
func (n *Node) ReadMessages(ctx context.Context, r api.MessagesRead) error {
	return n.explain(n.worklists.ReadMessages(ctx, r))
}

// FinishItem hands in what a user made of an item.
func (n *Node) FinishItem(ctx context.Context, r api.ItemResult) (*api.Item, error) {
	out, err := n.worklists.Finish(ctx, r)
	return out, n.explain(err)
}

// Roles lists the roles that users have.
func (n *Node) Roles(ctx context.Context) ([]api.Role, error) {
	out, err := n.users.Roles(ctx)
	return out, n.explain(err)
}

// GrantRole gives a user a role.
func (n *Node) GrantRole(_ context.Context, r api.RoleRequest) (*api.UserRoles, error) {
	out, err := n.users.ChangeRole(r, true)
	return out, n.explain(err)
}

// RevokeRole takes a role away from a user.
func (n *Node) RevokeRole(_ context.Context, r api.RoleRequest) (*api.UserRoles, error) {
	out, err := n.users.ChangeRole(r, false)
	return out, n.explain(err)
}

// PutFile keeps a file at this node, to be given to an instance within a day.
func (n *Node) PutFile(ctx context.Context, name string, content io.Reader) (*api.File, error) {
	f, err := n.filing.Put(ctx, name, content)
	return f, n.explain(err)
}

// Data lists the data of an instance, and where the content of its files is.
func (n *Node) Data(ctx context.Context, ref string) ([]api.DataItem, error) {
	out := []api.DataItem{}
	err := n.desk.look(ctx, ref, func(h *held) {
		for _, d := range h.def.Def.Data {
			item := api.DataItem{Name: d.Name, Label: d.Label, Type: string(d.Type), Value: h.m.ValueOf(d.Name)}
			if d.Type == workflow.TypeFile && item.Value != nil {
				item.File = n.filing.Describe(h.filed(), d.Name, fmt.Sprint(item.Value))
			}
			out = append(out, item)
		}
	}, n.desk.onlyThere)
	return out, n.explain(err)
}

// File gives the content of a file among an instance's data. It fetches what is not here,
// until ctx ends.
func (n *Node) File(ctx context.Context, ref string, item workflow.DataName) (*api.File, io.ReadCloser, error) {
	f, content, err := n.filing.Get(ctx, ref, item)
	return f, content, n.explain(err)
}

// ForeseeAmendment says what an instance would do with a changed definition.
func (n *Node) ForeseeAmendment(ctx context.Context, ref, file string, source []byte) (*api.Amendment, error) {
	out, _, err := n.desk.foreseeAmendment(ctx, ref, file, source)
	return out, n.explain(err)
}

// AmendInstance has a user who decides about an instance change the definition by which it runs.
func (n *Node) AmendInstance(ctx context.Context, r api.AmendRequest) (*api.Amended, error) {
	out, err := n.amend(ctx, r)
	return out, n.explain(err)
}

// TakeJob implements api.Service.
func (n *Node) TakeJob(ctx context.Context, by api.Program, r api.TakeRequest) (*api.Job, error) {
	job, err := n.jobs.Take(ctx, by, r)
	return job, n.explain(err)
}

// KeepJob implements api.Service.
func (n *Node) KeepJob(ctx context.Context, by api.Program, lease string, r api.KeepRequest) (*api.Lease, error) {
	l, err := n.jobs.Keep(ctx, by, lease, r)
	return l, n.explain(err)
}

// CompleteJob implements api.Service.
func (n *Node) CompleteJob(ctx context.Context, by api.Program, lease string, r api.CompleteRequest) error {
	return n.explain(n.jobs.Complete(ctx, by, lease, r))
}

// FailJob implements api.Service.
func (n *Node) FailJob(ctx context.Context, by api.Program, lease string, r api.FailRequest) error {
	return n.explain(n.jobs.Fail(ctx, by, lease, r))
}

// GiveBackJob implements api.Service.
func (n *Node) GiveBackJob(ctx context.Context, by api.Program, lease string) error {
	return n.explain(n.jobs.GiveBack(ctx, by, lease))
}

// Jobs implements api.Service.
func (n *Node) Jobs(context.Context) ([]api.PooledJob, error) { return n.jobs.List(), nil }
