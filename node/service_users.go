package node

import (
	"context"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/filing"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// userService is about who works here besides the partners.
type userService struct {
	users   *users.Topic
	explain func(error) error
}

// Users lists the partners, which are users by being partners, and all other users.
func (s *userService) Users(ctx context.Context) ([]api.User, error) {
	out, err := s.users.List(ctx)
	return out, s.explain(err)
}

// AddUser makes a user, and a token by which it signs in.
func (s *userService) AddUser(_ context.Context, r api.UserRequest) (*api.SignInToken, error) {
	out, err := s.users.Add(r)
	return out, s.explain(err)
}

// RemoveUser removes a user for good, or one of its keys.
func (s *userService) RemoveUser(_ context.Context, user string) (*api.RemovedUser, error) {
	out, err := s.users.Remove(user)
	return out, s.explain(err)
}

// SignInUser signs a user in at this node.
func (s *userService) SignInUser(ctx context.Context, token string) (*api.SignedIn, error) {
	out, err := s.users.SignIn(ctx, token)
	return out, s.explain(err)
}

// SignOutUser ends a user's being signed in at this node.
func (s *userService) SignOutUser(_ context.Context, r api.SignOutRequest) (*api.SignedOut, error) {
	out, err := s.users.SignOut(r)
	return out, s.explain(err)
}

// LinkUser makes a token for another device of a user who is signed in here.
func (s *userService) LinkUser(_ context.Context, user string, expires time.Duration) (*api.SignInToken, error) {
	out, err := s.users.Link(user, expires)
	return out, s.explain(err)
}

// Roles lists the roles that users have.
func (s *userService) Roles(ctx context.Context) ([]api.Role, error) {
	out, err := s.users.Roles(ctx)
	return out, s.explain(err)
}

// GrantRole gives a user a role.
func (s *userService) GrantRole(_ context.Context, r api.RoleRequest) (*api.UserRoles, error) {
	out, err := s.users.ChangeRole(r, true)
	return out, s.explain(err)
}

// RevokeRole takes a role away from a user.
func (s *userService) RevokeRole(_ context.Context, r api.RoleRequest) (*api.UserRoles, error) {
	out, err := s.users.ChangeRole(r, false)
	return out, s.explain(err)
}

// worklistService is about people's tasks, and about what people who decide about instances say.
type worklistService struct {
	worklists *worklists.Desk
	filing    *filing.Desk
	desk      *desk
	items     peoplesItems
	explain   func(error) error
}

// Worklist lists what a user has and may take.
func (s *worklistService) Worklist(ctx context.Context, q api.WorklistQuery) ([]api.Item, error) {
	out, err := s.worklists.List(ctx, q)
	return out, s.explain(err)
}

// WorklistUnanswered names the partners that did not answer when a user's list was asked for last.
func (s *worklistService) WorklistUnanswered(_ context.Context, user string) ([]string, error) {
	out, err := s.worklists.Unanswered(user)
	return out, s.explain(err)
}

// ItemSheet shows an item with all that is needed to do it.
func (s *worklistService) ItemSheet(ctx context.Context, q api.ItemQuery) (*api.ItemSheet, error) {
	out, givers, err := s.worklists.Sheet(ctx, q)
	if err == nil {
		s.filing.DescribeSheet(out, givers)
	}
	return out, s.explain(err)
}

// ItemFile gives the content of a file among the data of an item that a user has.
func (s *worklistService) ItemFile(ctx context.Context, q api.ItemQuery, name string) (*api.File, io.ReadCloser, error) {
	f, content, err := s.filing.OfItem(ctx, q, name, s.worklists.Content)
	return f, content, s.explain(err)
}

// MoveItem puts an item elsewhere in a list that is ordered by hand.
func (s *worklistService) MoveItem(ctx context.Context, r api.MoveRequest) ([]api.Item, error) {
	out, err := s.worklists.Move(ctx, r)
	return out, s.explain(err)
}

// Prefetch says which files of a user's items come before they are needed.
func (s *worklistService) Prefetch(ctx context.Context, user string) (*api.Prefetch, error) {
	out, err := s.worklists.Prefetch(ctx, user)
	return out, s.explain(err)
}

// SetPrefetch switches that on or off.
func (s *worklistService) SetPrefetch(ctx context.Context, r api.PrefetchRequest) (*api.Prefetch, error) {
	out, err := s.worklists.SetPrefetch(ctx, r)
	return out, s.explain(err)
}

// ClaimItems takes items for a user, or gives them back.
func (s *worklistService) ClaimItems(ctx context.Context, r api.ClaimRequest) ([]api.Item, error) {
	out, err := s.worklists.Claim(ctx, r)
	return out, s.explain(s.desk.forWhom(r.User, err))
}

// WorklistLost lists the items that a user had and lost lately.
func (s *worklistService) WorklistLost(ctx context.Context, user string) ([]api.LostItem, error) {
	out, err := s.worklists.Lost(ctx, user)
	return out, s.explain(err)
}

// TransferItem has a user pass an item on.
func (s *worklistService) TransferItem(ctx context.Context, r api.TransferRequest) (*api.Transferred, error) {
	out, err := s.worklists.Transfer(ctx, r)
	return out, s.explain(s.desk.forWhom(r.User, err))
}

// OrderTask has a user who decides about an instance say what becomes of a task.
func (s *worklistService) OrderTask(ctx context.Context, r api.TaskOrder) (*api.TaskOrdered, error) {
	out, err := s.worklists.Order(ctx, r)
	return out, s.explain(s.desk.forWhom(r.User, err))
}

// Deciding says whether a user decides about an instance.
func (s *worklistService) Deciding(ctx context.Context, q api.DecidingQuery) (*api.Deciding, error) {
	out, err := s.desk.deciding(ctx, q, s.worklists)
	return out, s.explain(err)
}

// ExtendDeadline has a user who decides about an instance give a task a later deadline.
func (s *worklistService) ExtendDeadline(ctx context.Context, r api.ExtendRequest) (*api.Extended, error) {
	out, err := s.worklists.Extend(ctx, r)
	return out, s.explain(s.desk.forWhom(r.User, err))
}

// ChangeNotify has a user who decides about an instance change whom its items are offered to.
func (s *worklistService) ChangeNotify(ctx context.Context, r api.NotifyRequest) (*api.Notified, error) {
	out, err := s.worklists.Notify(ctx, r)
	return out, s.explain(s.desk.forWhom(r.User, err))
}

// AdoptResult has a user who decides about an instance adopt a result that is kept.
func (s *worklistService) AdoptResult(ctx context.Context, r api.AdoptRequest) (*api.Adopted, error) {
	out, err := s.worklists.Adopt(ctx, r)
	return out, s.explain(s.desk.forWhom(r.User, err))
}

// Outbox lists what users, or one, did at this node that nobody else has acknowledged yet.
func (s *worklistService) Outbox(ctx context.Context, user string) ([]api.Undelivered, error) {
	here, err := s.items.unshared(ctx)
	if err != nil {
		return nil, s.explain(err)
	}
	alone, err := s.filesAlone(ctx)
	if err != nil {
		return nil, s.explain(err)
	}
	out, err := s.worklists.DoneBy(user, slices.Concat(s.worklists.Outbox(ctx), here, alone))
	if why := s.desk.wallet.Standing(); why != nil {
		for i := range out {
			if x := &out[i]; x.Refused == "" && len(x.WaitsFor) > 0 && len(x.Awaits) == 0 {
				x.NoMember = s.desk.people.say(why)
			}
		}
	}
	return out, s.explain(err)
}

// filesAlone are the files that people gave here with their results, and that no other partner has.
func (s *worklistService) filesAlone(ctx context.Context) ([]api.Undelivered, error) {
	here, err := s.items.filesAlone(ctx)
	return append(s.worklists.FilesAlone(), here...), err
}

// DropRefused drops from the outbox a result that was refused.
func (s *worklistService) DropRefused(ctx context.Context, r api.DropRequest) (*api.Undelivered, error) {
	out, err := s.worklists.DropRefused(ctx, r)
	return out, s.explain(err)
}

// Messages lists what a user is told of instances.
func (s *worklistService) Messages(ctx context.Context, q api.MessagesQuery) ([]api.Message, error) {
	out, err := s.worklists.Messages(ctx, q)
	return out, s.explain(err)
}

// UnreadMessages is how many messages a user has not read.
func (s *worklistService) UnreadMessages(ctx context.Context, user string) (int, error) {
	out, err := s.worklists.Unread(ctx, user)
	return out, s.explain(err)
}

// ReadMessages notes that a user has read messages.
func (s *worklistService) ReadMessages(ctx context.Context, r api.MessagesRead) error {
	return s.explain(s.worklists.ReadMessages(ctx, r))
}

// FinishItem hands in what a user made of an item.
func (s *worklistService) FinishItem(ctx context.Context, r api.ItemResult) (*api.Item, error) {
	out, err := s.worklists.Finish(ctx, r)
	if err == nil {
		out.OnlyHere = s.onlyHere(r.Outputs)
	}
	return out, s.explain(err)
}

// onlyHere names the data among what somebody handed in that are files, which no other partner has.
func (s *worklistService) onlyHere(outputs map[string]string) (names []string) {
	for _, n := range slices.Sorted(maps.Keys(outputs)) {
		if f, err := workflow.ParseFile(outputs[n]); err == nil && s.filing.OnlyHere(f) {
			names = append(names, n)
		}
	}
	return names
}
