package apitest

import (
	"context"
	"io"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// WorklistFake is the part of Fake about people's work.
type WorklistFake struct {
	OnWorklist           func(api.WorklistQuery) ([]api.Item, error)
	OnWorklistUnanswered func(user string) ([]string, error)
	OnItemSheet          func(api.ItemQuery) (*api.ItemSheet, error)
	OnItemFile           func(q api.ItemQuery, name string) (*api.File, io.ReadCloser, error)
	OnMoveItem           func(api.MoveRequest) ([]api.Item, error)
	OnClaimItems         func(api.ClaimRequest) ([]api.Item, error)
	OnFinishItem         func(api.ItemResult) (*api.Item, error)
	OnOrderTask          func(api.TaskOrder) (*api.TaskOrdered, error)
	OnDeciding           func(api.DecidingQuery) (*api.Deciding, error)
	OnExtendDeadline     func(api.ExtendRequest) (*api.Extended, error)
	OnChangeNotify       func(api.NotifyRequest) (*api.Notified, error)
	OnOutbox             func() ([]api.Undelivered, error)
	OnDropRefused        func(api.DropRequest) (*api.Undelivered, error)
	OnTransferItem       func(api.TransferRequest) (*api.Transferred, error)
	OnAdoptResult        func(api.AdoptRequest) (*api.Adopted, error)
	OnWorklistLost       func(user string) ([]api.LostItem, error)
	OnMessages           func(api.MessagesQuery) ([]api.Message, error)
	OnUnreadMessages     func(user string) (int, error)
	OnReadMessages       func(api.MessagesRead) error
	OnDisconnect         func(api.DisconnectRequest) (*api.Contact, error)
	OnReconnect          func() (*api.Contact, error)
	OnContact            func() (*api.Contact, error)
	OnPrefetch           func(user string) (*api.Prefetch, error)
	OnSetPrefetch        func(api.PrefetchRequest) (*api.Prefetch, error)
}

// Worklist implements api.Service.
func (f *WorklistFake) Worklist(_ context.Context, q api.WorklistQuery) ([]api.Item, error) {
	return f.OnWorklist(q)
}

// WorklistUnanswered implements api.Service; without its function all answered.
func (f *WorklistFake) WorklistUnanswered(_ context.Context, user string) ([]string, error) {
	if f.OnWorklistUnanswered == nil {
		return []string{}, nil
	}
	return f.OnWorklistUnanswered(user)
}

// ItemSheet implements api.Service.
func (f *WorklistFake) ItemSheet(_ context.Context, q api.ItemQuery) (*api.ItemSheet, error) {
	return f.OnItemSheet(q)
}

// ClaimItems implements api.Service.
func (f *WorklistFake) ClaimItems(_ context.Context, r api.ClaimRequest) ([]api.Item, error) {
	return f.OnClaimItems(r)
}

// FinishItem implements api.Service.
func (f *WorklistFake) FinishItem(_ context.Context, r api.ItemResult) (*api.Item, error) {
	return f.OnFinishItem(r)
}

// OrderTask implements api.Service.
func (f *WorklistFake) OrderTask(_ context.Context, r api.TaskOrder) (*api.TaskOrdered, error) {
	return f.OnOrderTask(r)
}

// TransferItem implements api.Service.
func (f *WorklistFake) TransferItem(_ context.Context, r api.TransferRequest) (*api.Transferred, error) {
	return f.OnTransferItem(r)
}

// ChangeNotify implements api.Service.
func (f *WorklistFake) ChangeNotify(_ context.Context, r api.NotifyRequest) (*api.Notified, error) {
	return f.OnChangeNotify(r)
}

// Deciding implements api.Service; without its function nobody decides.
func (f *WorklistFake) Deciding(_ context.Context, q api.DecidingQuery) (*api.Deciding, error) {
	if f.OnDeciding == nil {
		return &api.Deciding{User: q.User}, nil
	}
	return f.OnDeciding(q)
}

// ExtendDeadline implements api.Service.
func (f *WorklistFake) ExtendDeadline(_ context.Context, r api.ExtendRequest) (*api.Extended, error) {
	return f.OnExtendDeadline(r)
}

// AdoptResult implements api.Service.
func (f *WorklistFake) AdoptResult(_ context.Context, r api.AdoptRequest) (*api.Adopted, error) {
	return f.OnAdoptResult(r)
}

// WorklistLost implements api.Service; without its function nothing is lost.
func (f *WorklistFake) WorklistLost(_ context.Context, user string) ([]api.LostItem, error) {
	if f.OnWorklistLost == nil {
		return []api.LostItem{}, nil
	}
	return f.OnWorklistLost(user)
}

// Outbox implements api.Service.
func (f *WorklistFake) Outbox(context.Context, string) ([]api.Undelivered, error) {
	return f.OnOutbox()
}

// DropRefused implements Service.
func (f *WorklistFake) DropRefused(_ context.Context, r api.DropRequest) (*api.Undelivered, error) {
	return f.OnDropRefused(r)
}

// Messages implements api.Service.
func (f *WorklistFake) Messages(_ context.Context, q api.MessagesQuery) ([]api.Message, error) {
	return f.OnMessages(q)
}

// UnreadMessages implements api.Service; without its function there are none.
func (f *WorklistFake) UnreadMessages(_ context.Context, user string) (int, error) {
	if f.OnUnreadMessages == nil {
		return 0, nil
	}
	return f.OnUnreadMessages(user)
}

// ReadMessages implements api.Service.
func (f *WorklistFake) ReadMessages(_ context.Context, r api.MessagesRead) error {
	return f.OnReadMessages(r)
}

// Disconnect implements api.Service.
func (f *WorklistFake) Disconnect(_ context.Context, r api.DisconnectRequest) (*api.Contact, error) {
	return f.OnDisconnect(r)
}

// Reconnect implements api.Service.
func (f *WorklistFake) Reconnect(context.Context) (*api.Contact, error) { return f.OnReconnect() }

// Contact implements api.Service.
func (f *WorklistFake) Contact(context.Context) (*api.Contact, error) { return f.OnContact() }

// ItemFile implements api.Service.
func (f *WorklistFake) ItemFile(_ context.Context, q api.ItemQuery, name string) (*api.File, io.ReadCloser, error) {
	return f.OnItemFile(q, name)
}

// MoveItem implements api.Service.
func (f *WorklistFake) MoveItem(_ context.Context, r api.MoveRequest) ([]api.Item, error) {
	return f.OnMoveItem(r)
}

// Prefetch implements api.Service.
func (f *WorklistFake) Prefetch(_ context.Context, user string) (*api.Prefetch, error) {
	return f.OnPrefetch(user)
}

// SetPrefetch implements api.Service.
func (f *WorklistFake) SetPrefetch(_ context.Context, r api.PrefetchRequest) (*api.Prefetch, error) {
	return f.OnSetPrefetch(r)
}
