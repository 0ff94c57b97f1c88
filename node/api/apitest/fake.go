// Package apitest has a Service for tests of what talks to a node: the client,
// the command line, the web page.
//
// It imports node/api and workflow; only tests import it.
package apitest

import (
	"context"
	"io"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Fake is a Service made of functions; a method whose function is nil panics,
// which tells that the test did not expect the call.
type Fake struct {
	MeshFake
	WorkFake
	UserFake
	WorklistFake
	JobFake

	OnStatus         func() (*api.Status, error)
	OnPartners       func() ([]api.Partner, error)
	OnInvite         func(api.InviteRequest) (*api.Invitation, error)
	OnAddWorkflow    func(file string, source []byte) (*api.Workflow, error)
	OnWorkflows      func() ([]api.Workflow, error)
	OnWorkflow       func(ref string) (*api.Workflow, error)
	OnRemoveWorkflow func(ref string) ([]api.Workflow, error)
	OnStart          func(api.StartRequest) (*api.Started, error)
	OnInstances      func(all bool) ([]api.InstanceSummary, error)
	OnShow           func(id string) (*api.Instance, error)
	OnLog            func(id string) ([]api.LogEntry, error)
	OnData           func(id string) ([]api.DataItem, error)
	OnHistory        func(id string) ([]api.DataState, error)
	OnForesee        func(id string, step api.RecoveryStep) (*api.Outlook, error)
	OnForeseeAmend   func(id, file string, source []byte) (*api.Amendment, error)
	OnAmend          func(api.AmendRequest) (*api.Amended, error)
	OnDiagram        func(id, format string) ([]byte, error)
	OnCancel         func(id, reason string) error
	OnWriteOff       func(id, partner string, check bool) error
	OnRefresh        func(id string) (*api.Refreshed, error) // nil: nobody has to be asked
	OnBeginTask      func(api.BeginRequest) error
	OnFinishTask     func(api.FinishRequest) error
	OnWatch          func(ctx context.Context, fn func(api.Event) error) error
}

var _ api.Service = (*Fake)(nil)

// Status implements api.Service.
func (f *Fake) Status(context.Context) (*api.Status, error) { return f.OnStatus() }

// Partners implements api.Service.
func (f *Fake) Partners(context.Context) ([]api.Partner, error) { return f.OnPartners() }

// Invite implements api.Service.
func (f *Fake) Invite(_ context.Context, r api.InviteRequest) (*api.Invitation, error) {
	return f.OnInvite(r)
}

// AddWorkflow implements api.Service.
func (f *Fake) AddWorkflow(_ context.Context, file string, source []byte) (*api.Workflow, error) {
	return f.OnAddWorkflow(file, source)
}

// Workflows implements api.Service.
func (f *Fake) Workflows(context.Context) ([]api.Workflow, error) { return f.OnWorkflows() }

// Workflow implements api.Service.
func (f *Fake) Workflow(_ context.Context, ref string) (*api.Workflow, error) {
	return f.OnWorkflow(ref)
}

// RemoveWorkflow implements api.Service.
func (f *Fake) RemoveWorkflow(_ context.Context, ref string) ([]api.Workflow, error) {
	return f.OnRemoveWorkflow(ref)
}

// Start implements api.Service.
func (f *Fake) Start(_ context.Context, r api.StartRequest) (*api.Started, error) {
	return f.OnStart(r)
}

// Instances implements api.Service.
func (f *Fake) Instances(_ context.Context, all bool) ([]api.InstanceSummary, error) {
	return f.OnInstances(all)
}

// InstancePage implements api.Service: all are on one page.
func (f *Fake) InstancePage(_ context.Context, q api.InstanceQuery) (*api.InstancePage, error) {
	list, err := f.OnInstances(q.All)
	return &api.InstancePage{Instances: list}, err
}

// Show implements api.Service.
func (f *Fake) Show(_ context.Context, id string) (*api.Instance, error) { return f.OnShow(id) }

// History implements api.Service.
func (f *Fake) History(_ context.Context, id string) ([]api.DataState, error) { return f.OnHistory(id) }

// ForeseeRecovery implements api.Service; without its function nothing is interrupted.
func (f *Fake) ForeseeRecovery(_ context.Context, _, id string, step api.RecoveryStep) (*api.Outlook, error) {
	if f.OnForesee == nil {
		return nil, api.Errorf(api.Refused, "the instance is not interrupted")
	}
	return f.OnForesee(id, step)
}

// ForeseeAmendment implements api.Service.
func (f *Fake) ForeseeAmendment(_ context.Context, r api.AmendRequest) (*api.Amendment, error) {
	return f.OnForeseeAmend(r.ID, r.File, []byte(r.Source))
}

// AmendInstance implements api.Service.
func (f *Fake) AmendInstance(_ context.Context, r api.AmendRequest) (*api.Amended, error) {
	return f.OnAmend(r)
}

// Log implements api.Service.
func (f *Fake) Log(_ context.Context, id string) ([]api.LogEntry, error) { return f.OnLog(id) }

// Diagram implements api.Service.
func (f *Fake) Diagram(_ context.Context, id, format string) ([]byte, error) {
	return f.OnDiagram(id, format)
}

// Cancel implements api.Service.
func (f *Fake) Cancel(_ context.Context, id, reason string) error { return f.OnCancel(id, reason) }

// WriteOff implements api.Service.
func (f *Fake) WriteOff(_ context.Context, id, partner string, check bool) error {
	return f.OnWriteOff(id, partner, check)
}

// Refresh implements api.Service.
func (f *Fake) Refresh(_ context.Context, id string) (*api.Refreshed, error) {
	if f.OnRefresh == nil {
		return &api.Refreshed{Answered: []string{}, Silent: []string{}}, nil
	}
	return f.OnRefresh(id)
}

// BeginTask implements api.Service.
func (f *Fake) BeginTask(_ context.Context, r api.BeginRequest) error { return f.OnBeginTask(r) }

// FinishTask implements api.Service.
func (f *Fake) FinishTask(_ context.Context, r api.FinishRequest) error { return f.OnFinishTask(r) }

// Watch implements api.Service; without a function nothing ever happens.
func (f *Fake) Watch(ctx context.Context, fn func(api.Event) error) error {
	if f.OnWatch == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.OnWatch(ctx, fn)
}

// PutFile implements api.Service: nothing is kept.
func (f *Fake) PutFile(_ context.Context, name string, content io.Reader) (*api.File, error) {
	n, err := io.Copy(io.Discard, content)
	return &api.File{Name: name, Size: n, Value: workflow.File{Name: name, Size: n}.String(), Here: true}, err
}

// Data implements api.Service: there are none without OnData.
func (f *Fake) Data(_ context.Context, id string) ([]api.DataItem, error) {
	if f.OnData == nil {
		return nil, nil
	}
	return f.OnData(id)
}

// File implements api.Service: there is none.
func (f *Fake) File(context.Context, string, workflow.DataName) (*api.File, io.ReadCloser, error) {
	return nil, nil, api.Errorf(api.NotFound, "there is no file")
}
