package node

import (
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
)

// watchedStore reports how every commit went, by whatever part of the node.
type watchedStore struct {
	Store
	told func(error)
}

func (w watchedStore) Commit(writes []kv.Write, done func(error)) {
	w.Store.Commit(writes, func(err error) {
		w.told(err)
		done(err)
	})
}

func (w watchedStore) CommitWait(writes []kv.Write) error {
	err := w.Store.CommitWait(writes)
	w.told(err)
	return err
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
