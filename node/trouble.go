package node

import (
	"errors"
	"fmt"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
)

// errUnwritten is the error of a commit that failed. Whether it is on the disk all the same
// may not be known; nothing follows from it before it is read there.
var errUnwritten = errors.New("it could not be stored")

// unwritten is the error of a commit, which went as err says.
func unwritten(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errUnwritten, err)
}

// watchedStore reports how every commit went, by whatever part of the node.
type watchedStore struct {
	Store
	told func(error)
}

func (w watchedStore) Commit(writes []kv.Write, done func(error)) {
	w.Store.Commit(writes, func(err error) {
		w.told(err)
		done(unwritten(err))
	})
}

func (w watchedStore) CommitWait(writes []kv.Write) error {
	err := w.Store.CommitWait(writes)
	w.told(err)
	return unwritten(err)
}

// troubled notes how the last commit went, for status and for people.
func (t *tools) troubled(err error) {
	why := ""
	if err != nil {
		why = "cannot write: " + err.Error()
	}
	was := t.troubles.note("store", why)
	switch {
	case err == nil && was != "":
		t.log.Info("the store takes writes again")
	case err != nil && was == "":
		t.events.publish(api.Event{At: t.clock.Now().Wall, Kind: "trouble", Text: why})
	}
}
