package filing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// MayRead implements files.Instances.
func (k *Desk) MayRead(
	ctx context.Context, from workflow.PartnerID, user string,
	id workflow.InstanceID, item workflow.DataName, f workflow.File,
) error {
	if user == "" && k.Gives(from, id, item, f) {
		return nil // also where this node takes no part
	}
	err := k.readsHere(ctx, from, user, id, item, f)
	if errors.Is(err, files.ErrNotHere) { // by what is known of the instance; who the file was given for knows more
		switch given, no := k.Vouched(ctx, from, user, id, item, f); {
		case errors.Is(no, worklists.ErrUnasked):
			return fmt.Errorf("%w: %w", files.ErrNotNow, no)
		case given:
			return no
		}
	}
	return err
}

// readsHere is MayRead by the facts that are here.
func (k *Desk) readsHere(
	ctx context.Context, from workflow.PartnerID, user string,
	id workflow.InstanceID, item workflow.DataName, f workflow.File,
) error {
	if _, here := k.Index.Get(id); !here {
		return files.ErrNotHere
	}
	var denied error
	err := k.Instances.Peek(ctx, id, func(h *Held) { denied = k.mayRead(h, from, user, item, f) })
	if err != nil {
		k.Log.Warn("a partner asks for a file of an instance that cannot be read", "from", from, "instance", id,
			"error", err)
		return fmt.Errorf("%w: this instance cannot be read", files.ErrNotNow)
	}
	return denied
}

// Vouch returns an error if a partner, or a user at its node, may not read a file that another partner gave: that one
// asks, which has the content and need take no part in the instance.
func (k *Desk) Vouch(
	ctx context.Context, gave, reader workflow.PartnerID, user string,
	id workflow.InstanceID, item workflow.DataName, f workflow.File,
) error {
	if _, here := k.Index.Get(id); !here {
		return errors.New("the instance is not here")
	}
	var denied error
	err := k.Instances.Peek(ctx, id, func(h *Held) {
		if denied = k.mayRead(h, reader, user, item, f); !slices.Contains(h.M.GivenBy(item, f.String()), gave) {
			denied = fmt.Errorf("by what is known here, this file was not given there as %s", item)
		}
	})
	if err != nil {
		k.Log.Warn("a partner asks about a file of an instance that cannot be read", "from", gave, "instance", id,
			"error", err)
		return errors.New("this instance cannot be read now")
	}
	return denied
}

// mayRead is MayRead of an instance in memory.
func (k *Desk) mayRead(h *Held, from workflow.PartnerID, user string, item workflow.DataName, f workflow.File) error {
	d := h.Def.Datum(item)
	if d == nil || d.Type != workflow.TypeFile {
		return fmt.Errorf("workflow %s has no file %s", h.Def.Name, item)
	}
	by := h.M.GivenBy(item, f.String())
	switch {
	case len(by) == 0:
		return files.ErrNotHere // as far as is known here
	case from == h.By:
		return nil
	case len(d.Readers) > 0:
		if k.Data.MayRead(from, d.Readers) || k.userMayRead(from, user, d.Readers) {
			return nil
		}
		return fmt.Errorf("only %s may read file %s", strings.Join(d.Readers, ", "), item)
	case h.M.Reads(from, item, func(r workflow.RoleName) bool { return k.Partners.HasRole(from, r) }),
		k.userHas(h, from, user, item):
		return nil
	}
	return fmt.Errorf("only those who have a task that reads file %s may read it", item)
}

// OnlyFor are those who alone may read a file, as its declaration names them, where neither a partner nor a user at its
// node is among them; nil: one of them is, or the declaration names nobody, so that whoever has a task that reads it may.
func (k *Desk) OnlyFor(h *Held, at workflow.PartnerID, user string, item workflow.DataName, value string) []string {
	d := h.Def.Datum(item)
	if d == nil || d.Type != workflow.TypeFile || len(d.Readers) == 0 {
		return nil
	}
	f, err := workflow.ParseFile(value)
	if err != nil || len(h.M.GivenBy(item, f.String())) == 0 || k.mayRead(h, at, user, item, f) == nil {
		return nil
	}
	return slices.Clone(d.Readers)
}

// userMayRead reports whether a user at a partner's node is among the readers of a file, by name or by a role.
func (k *Desk) userMayRead(from workflow.PartnerID, user string, readers []string) bool {
	if user == "" || k.MayAsk(user, from) != nil {
		return false
	}
	who, known := k.Partners.Person(worklist.User(user))
	return known && slices.ContainsFunc(readers, func(r string) bool {
		return r == k.Partners.Called(who.User) || slices.Contains(who.Roles, workflow.RoleName(r))
	})
}

// userHas reports whether a user at a partner's node has an item whose task reads a file.
func (k *Desk) userHas(h *Held, from workflow.PartnerID, user string, item workflow.DataName) bool {
	return user != "" && k.MayAsk(user, from) == nil && h.M.ReadsWith(worklist.User(user), item)
}

// Here implements files.Instances.
func (k *Desk) Here(instance string) bool {
	id, err := workflow.ParseInstanceID(instance)
	if err != nil {
		return false
	}
	_, here := k.Index.Get(id)
	return here || k.Keeps(id)
}
