package httpapi

import (
	"context"
	"net/url"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// Worklist implements Service.
func (c *Client) Worklist(ctx context.Context, q api.WorklistQuery) ([]api.Item, error) {
	values := url.Values{}
	if q.User != "" {
		values.Set("user", q.User)
	}
	if q.Order != "" {
		values.Set("order", q.Order)
	}
	if q.Ahead {
		values.Set("ahead", "true")
	}
	return call[[]api.Item](ctx, c, worklistRoute, values, nil)
}

// WorklistUnanswered implements Service.
func (c *Client) WorklistUnanswered(ctx context.Context, user string) ([]string, error) {
	values := url.Values{}
	if user != "" {
		values.Set("user", user)
	}
	return call[[]string](ctx, c, worklistUnansweredRoute, values, nil)
}

// WorklistLost implements Service.
func (c *Client) WorklistLost(ctx context.Context, user string) ([]api.LostItem, error) {
	values := url.Values{}
	if user != "" {
		values.Set("user", user)
	}
	return call[[]api.LostItem](ctx, c, worklistLostRoute, values, nil)
}

// TransferItem implements Service.
func (c *Client) TransferItem(ctx context.Context, r api.TransferRequest) (*api.Transferred, error) {
	return call[*api.Transferred](ctx, c, transferItemRoute, nil, r)
}

// ItemSheet implements Service.
func (c *Client) ItemSheet(ctx context.Context, q api.ItemQuery) (*api.ItemSheet, error) {
	values := url.Values{}
	if q.User != "" {
		values.Set("user", q.User)
	}
	return call[*api.ItemSheet](ctx, c, itemSheetRoute, values, nil, q.Item)
}

// MoveItem implements Service.
func (c *Client) MoveItem(ctx context.Context, r api.MoveRequest) ([]api.Item, error) {
	return call[[]api.Item](ctx, c, moveItemRoute, nil, r)
}

// ClaimItems implements Service.
func (c *Client) ClaimItems(ctx context.Context, r api.ClaimRequest) ([]api.Item, error) {
	return call[[]api.Item](ctx, c, claimItemsRoute, nil, r)
}

// FinishItem implements Service.
func (c *Client) FinishItem(ctx context.Context, r api.ItemResult) (*api.Item, error) {
	return call[*api.Item](ctx, c, finishItemRoute, nil, r)
}

// OrderTask implements Service.
func (c *Client) OrderTask(ctx context.Context, r api.TaskOrder) (*api.TaskOrdered, error) {
	return call[*api.TaskOrdered](ctx, c, orderTaskRoute, nil, r)
}

// Deciding implements Service.
func (c *Client) Deciding(ctx context.Context, q api.DecidingQuery) (*api.Deciding, error) {
	values := url.Values{}
	if q.User != "" {
		values.Set("user", q.User)
	}
	return call[*api.Deciding](ctx, c, decidingRoute, values, nil, q.ID)
}

// ExtendDeadline implements Service.
func (c *Client) ExtendDeadline(ctx context.Context, r api.ExtendRequest) (*api.Extended, error) {
	return call[*api.Extended](ctx, c, extendDeadlineRoute, nil, r)
}

// ChangeNotify implements Service.
func (c *Client) ChangeNotify(ctx context.Context, r api.NotifyRequest) (*api.Notified, error) {
	return call[*api.Notified](ctx, c, changeNotifyRoute, nil, r)
}

// AdoptResult implements Service.
func (c *Client) AdoptResult(ctx context.Context, r api.AdoptRequest) (*api.Adopted, error) {
	return call[*api.Adopted](ctx, c, adoptResultRoute, nil, r)
}

// Prefetch implements Service.
func (c *Client) Prefetch(ctx context.Context, user string) (*api.Prefetch, error) {
	values := url.Values{}
	if user != "" {
		values.Set("user", user)
	}
	return call[*api.Prefetch](ctx, c, prefetchRoute, values, nil)
}

// SetPrefetch implements Service.
func (c *Client) SetPrefetch(ctx context.Context, r api.PrefetchRequest) (*api.Prefetch, error) {
	return call[*api.Prefetch](ctx, c, setPrefetchRoute, nil, r)
}

// Contact implements Service.
func (c *Client) Contact(ctx context.Context) (*api.Contact, error) {
	return call[*api.Contact](ctx, c, contactRoute, nil, nil)
}

// Disconnect implements Service.
func (c *Client) Disconnect(ctx context.Context, r api.DisconnectRequest) (*api.Contact, error) {
	return call[*api.Contact](ctx, c, disconnectRoute, nil, r)
}

// Reconnect implements Service.
func (c *Client) Reconnect(ctx context.Context) (*api.Contact, error) {
	return call[*api.Contact](ctx, c, reconnectRoute, nil, nil)
}

// Outbox implements Service.
func (c *Client) Outbox(ctx context.Context, user string) ([]api.Undelivered, error) {
	values := url.Values{}
	if user != "" {
		values.Set("user", user)
	}
	return call[[]api.Undelivered](ctx, c, outboxRoute, values, nil)
}

// DropRefused implements Service.
func (c *Client) DropRefused(ctx context.Context, r api.DropRequest) (*api.Undelivered, error) {
	return call[*api.Undelivered](ctx, c, dropRefusedRoute, nil, r)
}

// Messages implements Service.
func (c *Client) Messages(ctx context.Context, q api.MessagesQuery) ([]api.Message, error) {
	values := url.Values{}
	if q.User != "" {
		values.Set("user", q.User)
	}
	if q.Unread {
		values.Set("unread", "true")
	}
	return call[[]api.Message](ctx, c, messagesRoute, values, nil)
}

// ReadMessages implements Service.
func (c *Client) ReadMessages(ctx context.Context, r api.MessagesRead) error {
	_, err := call[nothing](ctx, c, readMessagesRoute, nil, r)
	return err
}

// UnreadMessages implements Service.
func (c *Client) UnreadMessages(ctx context.Context, user string) (int, error) {
	values := url.Values{}
	if user != "" {
		values.Set("user", user)
	}
	return call[int](ctx, c, unreadMessagesRoute, values, nil)
}
