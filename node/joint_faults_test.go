package node_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about joint locks while a disk is full, with holders that lie, and with one that is slow.

// wantNone checks that nothing came of a joint lock: nothing is to be given back any more, and somebody else can have
// all of it.
func (tm *team) wantNone(items []string) {
	tm.t.Helper()
	if n := tm.underWay("tablet"); n != 0 {
		tm.t.Errorf("%d joint locks are left on the disk", n)
	}
	tm.wantAhead("tablet", "bia", "weigh READY", "feed NOT_READY")
	tm.wantAhead("base", "ana", "weigh READY", "feed NOT_READY")
	if err := tm.lockAll("base", "ana", items); err != nil {
		tm.t.Error(err)
	}
	tm.wantAhead("base", "ana", "weigh LOCKED", "feed LOCKED")
}

// onlyWhatIsOnTheDisk checks of each item that the tablet asks for jointly that this is on its disk by then.
func (tm *team) onlyWhatIsOnTheDisk() {
	for _, at := range []string{"base", "kitchen"} {
		plug := tm.p[at].plug
		was := plug.handlers[worklists.ProtocolClaim]
		plug.HandleRequest(worklists.ProtocolClaim, false, func(from workflow.PartnerID, req []byte) ([]byte, error) {
			c, err := wire.DecodeSpoken(req)
			if err != nil {
				return nil, err
			}
			body, err := worklist.Decode(c.Says)
			if err != nil {
				return nil, err
			}
			onDisk := false
			err = tm.p["tablet"].disk.Scan([]byte{worklists.PrefixJoint}, func(_, value []byte) error {
				onDisk = onDisk || bytes.Contains(value, req)
				return nil
			})
			if g, is := body.(worklist.Grant); is && from == tm.p["tablet"].id() && (err != nil || !onDisk) {
				tm.t.Errorf("%s is asked for %s of %v, which is not on the disk (%v)", at, g.Mode, g.Items, err)
			}
			return was(from, req)
		})
	}
}

// The disk of the device becomes full in the middle of a joint lock, at whichever write: its user is told so, nobody
// was asked for what is not on the disk, and once there is room nothing is held; also where the device is lost before.
func TestTheDeviceIsFullInTheMiddleOfAJointLock(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for write := 1; ; write++ {
			locked := false
			t.Run(fmt.Sprintf("write %d lost=%t", write, lost), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tm, _, items := ahead(t)
					tm.onlyWhatIsOnTheDisk()
					tm.p["tablet"].disk.fullAt(write)
					err := tm.lockAll("tablet", "bia", items)
					if locked = err == nil; locked {
						tm.p["tablet"].disk.failWith(nil)
						tm.wantAhead("tablet", "bia", "weigh LOCKED", "feed LOCKED")
						return
					}
					wantCode(t, err, api.Failed, "disk full")
					pass(time.Minute) // there is no room for long
					if lost {
						tm.p["tablet"].crash()
						tm.p["tablet"].disk.failWith(nil)
						tm.p["tablet"].start()
						tm.connect("base", "tablet")
						tm.connect("kitchen", "tablet")
						tm.connect("phone", "tablet")
					}
					tm.p["tablet"].disk.failWith(nil)
					pass(time.Minute)
					tm.wantNone(items)
				})
			})
			if locked || t.Failed() {
				if write < 6 && !t.Failed() {
					t.Errorf("a joint lock of two holders took %d writes", write-1)
				}
				break
			}
		}
	}
}

// The disk of one of the holders becomes full in the middle of a joint lock, at whichever word: the user is told who
// could not write it down, the other holder has its item back at once, and once there is room nothing is held.
func TestAHolderIsFullInTheMiddleOfAJointLock(t *testing.T) {
	for _, full := range []string{"base", "kitchen"} {
		for word := 1; word <= 2; word++ {
			t.Run(fmt.Sprintf("%s word %d", full, word), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tm, id, items := ahead(t)
					var said atomic.Int64
					tm.onWord(full, func(carryOut func() ([]byte, error)) ([]byte, error) {
						if said.Add(1) == int64(word) {
							tm.p[full].disk.failWith(kv.ErrFull)
						}
						return carryOut()
					})
					err := tm.lockAll("tablet", "bia", items)
					wantCode(t, err, api.Failed, "could not write it down now")
					if !strings.Contains(err.Error(), full) {
						t.Errorf("it does not say who: %v", err)
					}
					pass(time.Minute)
					if n := tm.underWay("tablet"); n != 1 {
						t.Errorf("%d joint locks are on the disk while %s has no room, want 1", n, full)
					}
					tm.p[full].disk.failWith(nil)
					pass(time.Minute)
					tm.wantNone(items)
					tm.doBoth("base", "ana", id, items)
				})
			})
		}
	}
}

// saysYes has a holder say yes to each word, and carry none out.
func (tm *team) saysYes(at string) {
	tm.onWord(at, func(func() ([]byte, error)) ([]byte, error) { return []byte("{}"), nil })
}

// A holder that says it gave what it did not give: the user is told that it does not say so again, the honest holder
// has its item back, and somebody else can have it.
func TestAHolderSaysThatItGave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _, items := ahead(t)
		tm.saysYes("kitchen")
		wantCode(t, tm.lockAll("tablet", "bia", items), api.Failed,
			"kitchen did not say that feed is locked; all is given back")
		if n := tm.underWay("tablet"); n != 0 {
			t.Errorf("%d joint locks are left on the disk", n)
		}
		tm.wantAhead("base", "ana", "weigh READY", "feed NOT_READY")
		if err := tm.claim("base", "ana", api.ClaimSelect, items[0]); err != nil {
			t.Error(err)
		}
	})
}

// listsAsLocked has a holder list feed as locked by whoever asks, as soon as it lies.
func (tm *team) listsAsLocked(at string, lies func() bool) {
	handlers := tm.p[at].plug.handlers
	items, ahead := handlers[worklists.ProtocolItems], handlers[worklists.ProtocolAhead]
	lists := func(from workflow.PartnerID, req []byte) ([]byte, error) {
		b, err := items(from, req)
		if err != nil || !lies() {
			return b, err
		}
		if b, err = ahead(from, req); err != nil {
			return nil, err
		}
		var rows []worklists.Row
		if err := json.Unmarshal(b, &rows); err != nil {
			return nil, err
		}
		for i := range rows {
			rows[i].Mine, rows[i].Grant = worklist.Lock, worklist.ID{1}
		}
		return json.Marshal(rows)
	}
	tm.p[at].plug.HandleRequest(worklists.ProtocolItems, false, lists)
}

// A holder that says that it gave, and lists it so as well: the user has all of the honest holder's, what is done of
// that counts, and no other has it. Only the liar's own task is not done, which it could have kept from everybody
// anyway; what was made of it is shown to the user as not known there, once the liar is asked.
func TestAHolderListsWhatItDidNotGive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, items := ahead(t)
		var lying atomic.Bool
		tm.onWord("kitchen", func(func() ([]byte, error)) ([]byte, error) {
			lying.Store(true)
			return []byte("{}"), nil
		})
		tm.listsAsLocked("kitchen", lying.Load)
		if err := tm.lockAll("tablet", "bia", items); err != nil {
			t.Fatal(err)
		}
		wantCode(t, tm.claim("base", "ana", api.ClaimSelect, items[0]), api.Refused, "bia has the task weigh")
		if err := tm.hand("tablet", "bia", items[0], map[string]string{"weight": "3"}); err != nil {
			t.Fatal(err)
		}
		_ = tm.hand("tablet", "bia", items[1], nil) // whatever the liar says
		pass(time.Minute)
		in := tm.show("base", id)
		if in.Data["weight"] != int64(3) || tm.task("base", id, "weigh") != workflow.Succeeded {
			t.Errorf("weigh is %s with %v", tm.task("base", id, "weigh"), in.Data["weight"])
		}
		if got := tm.task("base", id, "feed"); got != workflow.Ready {
			t.Errorf("feed is %s, and nobody did it", got)
		}
	})
}

// A holder that gives one item to two users who lock it, at the same time, with that of an honest holder: one of them
// has all, and the other nothing, and is told who has it.
func TestAHolderGivesTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, items := ahead(t)
		if err := tm.signIn("phone", tm.addUser("base", "rui", "nurse")); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		both := make(chan struct{})
		var asked atomic.Int64
		tm.onWord("kitchen", func(func() ([]byte, error)) ([]byte, error) {
			if asked.Add(1) == 2 {
				close(both)
			}
			<-both // each is given it before anybody has the honest holder's
			return []byte("{}"), nil
		})
		tm.listsAsLocked("kitchen", func() bool { return asked.Load() >= 2 })
		errs := map[string]error{}
		ended := make(chan struct{})
		lock := func(at, user string, out *error) {
			_, *out = tm.p[at].api.ClaimItems(t.Context(),
				api.ClaimRequest{User: user, Claim: api.ClaimLock, Items: items})
			ended <- struct{}{}
		}
		var bia, rui error
		go lock("tablet", "bia", &bia)
		go lock("phone", "rui", &rui)
		<-ended
		<-ended
		errs["bia"], errs["rui"] = bia, rui
		winner, loser, at := "bia", "rui", "tablet"
		if bia != nil {
			winner, loser, at = "rui", "bia", "phone"
		}
		if errs[winner] != nil {
			t.Fatalf("neither has all: %v, %v", bia, rui)
		}
		wantCode(t, errs[loser], api.Refused, winner)
		pass(time.Minute)
		for _, p := range []string{"tablet", "phone"} {
			if n := tm.underWay(p); n != 0 {
				t.Errorf("%d joint locks are left on the disk of %s", n, p)
			}
		}
		if err := tm.hand(at, winner, items[0], map[string]string{"weight": "3"}); err != nil {
			t.Error(err)
		}
		pass(time.Minute)
		if got := tm.task("base", id, "weigh"); got != workflow.Succeeded {
			t.Errorf("weigh is %s", got)
		}
	})
}

// A holder that answers no word: the honest one has its item back at once, others do it, and that counts. What the
// device has to give back stays on its disk meanwhile.
func TestAHolderNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, items := aheadWith(t, round, connectionTime(15*time.Second))
		end := make(chan struct{})
		defer close(end)
		tm.onWord("kitchen", func(func() ([]byte, error)) ([]byte, error) {
			<-end
			return nil, errors.New("over")
		})
		began := time.Now()
		wantCode(t, tm.lockAll("tablet", "bia", items), api.Refused,
			"kitchen, who holds feed, did not answer within 3s: nothing is locked")
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("it took %s", took)
		}
		if err := tm.claim("base", "ana", api.ClaimSelect, items[0]); err != nil {
			t.Error(err)
		}
		if err := tm.hand("base", "ana", items[0], map[string]string{"weight": "3"}); err != nil {
			t.Error(err)
		}
		pass(10 * time.Minute)
		if n := tm.underWay("tablet"); n != 1 {
			t.Errorf("%d joint locks are on the disk, want 1", n)
		}
		if got := tm.task("base", id, "weigh"); got != workflow.Succeeded {
			t.Errorf("weigh is %s", got)
		}
	})
}

// A holder whose connection time says that its links are slow is waited for as long as for one item alone, and can be
// part of a joint lock; by default it could not. If it hangs, the user is told for how long it was waited for.
func TestASlowHolderIsPartOfAJointLock(t *testing.T) {
	for _, takes := range []time.Duration{8 * time.Second, time.Minute} {
		t.Run(takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm, _, items := aheadWith(t, round, connectionTime(15*time.Second))
				kitchen := tm.p["kitchen"]
				kitchen.crash()
				kitchen.adjust = connectionTime(configs.Default(configs.Mobile).ConnectionTime)
				kitchen.start()
				for _, of := range []string{"base", "tablet", "phone"} {
					tm.connect(of, "kitchen")
				}
				pass(time.Minute)
				var quick atomic.Bool
				tm.onWord("kitchen", func(carryOut func() ([]byte, error)) ([]byte, error) {
					if !quick.Load() {
						time.Sleep(takes)
					}
					return carryOut()
				})
				err := tm.lockAll("tablet", "bia", items)
				if takes < 10*time.Second {
					if err != nil {
						t.Error(err)
					}
					tm.wantAhead("tablet", "bia", "weigh LOCKED", "feed LOCKED")
					return
				}
				wantCode(t, err, api.Refused, "did not answer within 10s: nothing is locked")
				quick.Store(true)
				pass(2 * time.Minute)
				tm.wantNone(items)
			})
		})
	}
}

// What was done out of reach is not refused because the holder's disk is full when it is handed in: it waits on in the
// outbox, and counts once there is room. So it is with what is done of a locked item while its holder can be asked.
func TestWhatIsHandedInAtAFullDiskWaits(t *testing.T) {
	for _, away := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			tm, id, item := offline(t)
			if !away {
				tm.connect("base", "tablet")
				pass(time.Second)
				tm.p["base"].disk.failWith(kv.ErrFull)
			}
			if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "3"}); err != nil {
				t.Fatal(err)
			}
			if away {
				tm.p["base"].disk.failWith(kv.ErrFull)
				tm.connect("base", "tablet")
			}
			pass(time.Minute)
			tm.wantOutbox("tablet", "bia|weigh|completed|base")
			tm.p["base"].disk.failWith(nil)
			pass(time.Minute)
			tm.wantOutbox("tablet")
			if in := tm.show("base", id); in.Data["weight"] != int64(3) {
				t.Errorf("the weight is %v", in.Data["weight"])
			}
		})
	}
}
