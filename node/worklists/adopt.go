package worklists

import (
	"context"
	"encoding/hex"
	"strings"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about adoption: who decides about an instance signs that a result counts which is kept. Any
// partner that takes part writes it down; whoever held the task may be gone for good.

// Adopt has a person adopt a result.
func (d *Desk) Adopt(ctx context.Context, in api.AdoptRequest) (*api.Adopted, error) {
	who, err := d.in.People.Who(in.User)
	if err != nil {
		return nil, err
	}
	ref := strings.ToLower(strings.TrimSpace(in.Result))
	req, err := wire.EncodeKept(wire.Kept{User: who.ID, Instance: in.ID, Result: ref})
	if err != nil {
		return nil, api.Judge(api.Invalid, err)
	}
	t, err := d.seek(ctx, sought{
		who: who, ref: in.ID, result: ref, protocol: ProtocolKept, req: req,
		here: func(ctx context.Context) (Target, error) {
			return d.in.Instances.Kept(ctx, in.ID, ref, worklist.User(who.ID))
		},
		fits: func(p workflow.PartnerID, t *Target) bool {
			return t.fits(in.ID) && t.Task != "" && t.Item.Slot != "" && t.At == p && ref != "" &&
				strings.HasPrefix(hex.EncodeToString(t.Result[:]), ref)
		},
	})
	if err != nil {
		return nil, err
	}
	if err := t.counts(); err != nil {
		return nil, err
	}
	r := &Row{Instance: t.Instance, Workflow: t.Workflow, Task: t.Task, Item: t.Item, At: t.At}
	if _, err := d.send(ctx, who, r, worklist.Adopt{Item: t.Item, Result: t.Result}); err != nil {
		return nil, err
	}
	return &api.Adopted{
		ID: t.Instance.String(), Task: t.Task, Result: hex.EncodeToString(t.Result[:]), User: who.Name,
		At: d.in.Name(t.At),
	}, nil
}

// AnswerKept answers a partner which result a person at its node may adopt.
func (d *Desk) AnswerKept(from workflow.PartnerID, req []byte) ([]byte, error) {
	r, err := wire.DecodeKept(req)
	if err != nil {
		return nil, err
	}
	if err := d.admit(from, r.User); err != nil {
		return nil, err
	}
	return d.answerTarget(from, r.Instance, r.User, func(ctx context.Context) (Target, error) {
		return d.in.Instances.Kept(ctx, r.Instance, r.Result, worklist.User(r.User))
	})
}
