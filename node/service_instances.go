package node

import (
	"context"
	"fmt"
	"io"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/filing"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// libraryService is about what instances are made of: workflows, and data sets.
type libraryService struct {
	library *library.Topic
	data    *datasets.Topic
	explain func(error) error
}

// AddWorkflow checks a definition, lists it and spreads it.
func (s *libraryService) AddWorkflow(ctx context.Context, file string, source []byte) (*api.Workflow, error) {
	out, err := s.library.Add(ctx, file, source)
	return out, s.explain(err)
}

// Workflows lists the definitions.
func (s *libraryService) Workflows(context.Context) ([]api.Workflow, error) {
	return s.library.List(), nil
}

// Workflow shows one definition.
func (s *libraryService) Workflow(_ context.Context, ref string) (*api.Workflow, error) {
	out, err := s.library.Show(ref)
	return out, s.explain(err)
}

// RemoveWorkflow takes all editions off the list that ref names, here and in the mesh,
// and says which. Instances of them go on.
func (s *libraryService) RemoveWorkflow(_ context.Context, ref string) ([]api.Workflow, error) {
	out, err := s.library.Remove(ref)
	return out, s.explain(err)
}

// AddData registers a data set, which partners may then be given.
func (s *libraryService) AddData(_ context.Context, name string, content []byte, terms api.DataTerms) (*api.DataSet, error) {
	out, err := s.data.Add(name, content, terms)
	return out, s.explain(err)
}

// RemoveData takes a data set back.
func (s *libraryService) RemoveData(_ context.Context, name string) error {
	return s.explain(s.data.Remove(name))
}

// instanceService is about instances, their tasks and their data.
type instanceService struct {
	desk      *desk
	worklists *worklists.Desk
	filing    *filing.Desk
	explain   func(error) error
}

// Start creates an instance and hands its partitions out.
func (s *instanceService) Start(ctx context.Context, r api.StartRequest) (*api.Started, error) {
	out, err := s.desk.start(ctx, r)
	return out, s.explain(err)
}

// Instances lists instances, newest first: those that this node takes part in
// and, at the coordinator, those of the whole mesh.
func (s *instanceService) Instances(ctx context.Context, all bool) ([]api.InstanceSummary, error) {
	out, err := s.desk.list(ctx, all, s.worklists)
	return out, s.explain(err)
}

// InstancePage lists a part of them.
func (s *instanceService) InstancePage(ctx context.Context, q api.InstanceQuery) (*api.InstancePage, error) {
	out, err := s.desk.page(ctx, q, s.worklists)
	return out, s.explain(err)
}

// Refresh asks the participants of an instance for what is new, and says who answered.
func (s *instanceService) Refresh(ctx context.Context, ref string) (*api.Refreshed, error) {
	out, err := s.desk.refresh(ctx, ref, s.worklists)
	return out, s.explain(err)
}

// Show says how an instance stands.
func (s *instanceService) Show(ctx context.Context, ref string) (*api.Instance, error) {
	out, err := s.desk.show(ctx, ref, s.worklists)
	return out, s.explain(err)
}

// Log is what happened in an instance.
func (s *instanceService) Log(ctx context.Context, ref string) ([]api.LogEntry, error) {
	out, err := s.desk.history(ctx, ref, s.worklists)
	return out, s.explain(err)
}

// History are the data states that an instance went through.
func (s *instanceService) History(ctx context.Context, ref string) ([]api.DataState, error) {
	out, err := s.desk.states(ctx, ref, s.worklists)
	return out, s.explain(err)
}

// ForeseeRecovery says what a step would lead to that recovers an interrupted instance.
func (s *instanceService) ForeseeRecovery(
	ctx context.Context, user, ref string, step api.RecoveryStep,
) (*api.Outlook, error) {
	out, err := s.desk.outlook(ctx, user, ref, step, s.worklists)
	return out, s.explain(err)
}

// Diagram draws an instance or a workflow.
func (s *instanceService) Diagram(ctx context.Context, ref, format string) ([]byte, error) {
	out, err := s.desk.diagram(ctx, ref, format, s.worklists)
	return out, s.explain(err)
}

// Cancel ends an instance.
func (s *instanceService) Cancel(ctx context.Context, ref, reason string) error {
	_, err := s.worklists.Order(ctx, api.TaskOrder{ID: ref, Order: api.TaskCancel, Reason: reason})
	return s.explain(err)
}

// WriteOff says that a participant will not answer any more; with check it only says whether that may be said.
func (s *instanceService) WriteOff(ctx context.Context, ref, who string, check bool) error {
	return s.explain(s.desk.writeOff(ctx, ref, who, check))
}

// RejectTask passes a task that this node holds, and has not started, on to
// another partner.
func (s *instanceService) RejectTask(ctx context.Context, r api.RejectRequest) (*api.Passed, error) {
	out, err := s.desk.rejectTask(ctx, r)
	return out, s.explain(err)
}

// BeginTask notes that a person began a task that this node holds.
func (s *instanceService) BeginTask(ctx context.Context, r api.BeginRequest) error {
	return s.explain(s.desk.beginTask(ctx, r))
}

// FinishTask completes or fails a person's task that this node holds.
func (s *instanceService) FinishTask(ctx context.Context, r api.FinishRequest) error {
	return s.explain(s.desk.finishTask(ctx, r))
}

// PutFile keeps a file at this node, to be given to an instance within a day.
func (s *instanceService) PutFile(ctx context.Context, name string, content io.Reader) (*api.File, error) {
	f, err := s.filing.Put(ctx, name, content)
	return f, s.explain(err)
}

// Data lists the data of an instance, and where the content of its files is.
func (s *instanceService) Data(ctx context.Context, ref string) ([]api.DataItem, error) {
	out := []api.DataItem{}
	err := s.desk.look(ctx, ref, func(h *held) {
		for _, d := range h.m.Definition().Data {
			item := api.DataItem{Name: d.Name, Label: d.Label, Type: string(d.Type), Value: h.m.ValueOf(d.Name)}
			if d.Type == workflow.TypeFile && item.Value != nil {
				item.File = s.filing.Describe(h.filed(), d.Name, fmt.Sprint(item.Value))
			}
			out = append(out, item)
		}
	}, s.desk.onlyThere)
	return out, s.explain(s.desk.notThere(ctx, ref, s.worklists, err))
}

// File gives the content of a file among an instance's data. It fetches what is not here,
// until ctx ends.
func (s *instanceService) File(ctx context.Context, ref string, item workflow.DataName) (*api.File, io.ReadCloser, error) {
	f, content, err := s.filing.Get(ctx, ref, item)
	return f, content, s.explain(s.desk.notThere(ctx, ref, s.worklists, err))
}

// ForeseeAmendment says what an instance would do with a changed definition.
func (s *instanceService) ForeseeAmendment(ctx context.Context, r api.AmendRequest) (*api.Amendment, error) {
	out, err := s.desk.foreseeAmendment(ctx, r, s.worklists)
	if err != nil {
		return nil, s.explain(err)
	}
	return out.seen, nil
}

// AmendInstance has a user who decides about an instance change the definition by which it runs.
func (s *instanceService) AmendInstance(ctx context.Context, r api.AmendRequest) (*api.Amended, error) {
	out, err := s.desk.amend(ctx, r, s.worklists)
	return out, s.explain(s.desk.forWhom(r.User, err))
}
