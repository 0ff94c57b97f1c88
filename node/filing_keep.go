package node

import (
	"context"
	"errors"
	"io"

	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// mentions calls each for every file that an instance here has among its data, now or before.
// complete is false if there are instances that cannot be read.
func (k *filing) mentions(ctx context.Context, each func(files.Mention)) (complete bool) {
	complete = true
	for id, of := range k.index.Definitions() {
		if ctx.Err() != nil {
			return false
		}
		if e, err := k.definitions.Get(of); err == nil && !hasFiles(e.Def) {
			continue // it need not be read
		}
		var all []files.Mention
		err := k.peek(ctx, id, func(h *held) {
			for _, g := range h.m.FilesGiven() {
				all = append(all, files.Mention{
					File: g.File, Instance: id, Item: g.Item, By: k.initiator(h.sum.By), Gave: g.By == k.member.ID(),
				})
			}
		})
		complete = complete && (err == nil || errors.Is(err, kv.ErrNotFound)) // it was given up meanwhile
		for _, m := range all {                                               // not while the instance waits: this may write to the disk
			each(m)
		}
	}
	return complete
}

// wantAgain is what has a file come here again that an instance has.
func (k *filing) wantAgain(m files.Mention) files.Want {
	w := k.want(m.Instance, "", m.Item, m.File)
	w.By = m.By
	return w
}

// keepFiles looks after the files that are here, until the node stops.
func (k *filing) keepFiles() {
	ctx, cancel := k.untilStopped()
	defer cancel()
	k.files.Keep(ctx)
}

// readFirst is how long a file may be to be read as a whole before any of it is given to a
// user. Of a longer one each chunk is verified as it is given, and what is damaged breaks it off.
const readFirst = 64 << 20

// read opens the content of a file, which it has fetched if it is not here, or not as it was.
func (k *filing) read(ctx context.Context, f workflow.File, w files.Want) (io.ReadCloser, error) {
	for tries := 0; ; tries++ {
		sound, err := k.files.Sound(ctx, f, f.Size <= readFirst)
		if err == nil && !sound {
			err = k.await(ctx, f, w)
		}
		if err != nil {
			return nil, err
		}
		r, err := k.files.Reader(f)
		if err == nil || tries == mostTries || !errors.Is(err, files.ErrDamaged) && !errors.Is(err, files.ErrNotHere) {
			return r, err
		}
	}
}

// mostTries is how often a file is fetched again that the disk changes right after that.
const mostTries = 3
