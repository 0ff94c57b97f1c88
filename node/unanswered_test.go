package node_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about locks of which the device that asked for them had no answer, or did not come to keep them.

// offlineNurses is nurses, with a first task that may be done out of reach.
func offlineNurses(t *testing.T) (tm *team, id, item string) {
	tm = newTeam(t, "base:nurse", "tablet", "phone")
	tm.signInNurses()
	tm.add("base", strings.Replace(rota, "role: nurse, out", "role: nurse, offline: true, out", 1))
	id = tm.begin("base", "rota", nil)
	return tm, id, tm.itemOf("tablet", "bia", "weigh").ID
}

// losesAnswers has answers to what is brought to holders get lost on their way, or arrive again.
func (tm *team) losesAnswers(lost bool) {
	tm.f.mu.Lock()
	defer tm.f.mu.Unlock()
	tm.f.unheard = nil
	if lost {
		tm.f.unheard = func(_ workflow.PartnerID, protocol string) bool { return protocol == worklists.ProtocolClaim }
	}
}

// keeps is how many items a partner keeps on its disk.
func (tm *team) keeps(at string) (n int) {
	tm.t.Helper()
	err := tm.p[at].disk.Scan([]byte{worklists.Prefix}, func([]byte, []byte) error { n++; return nil })
	if err != nil {
		tm.t.Fatal(err)
	}
	return n
}

// restart has the tablet go down at once and be started again, and connected.
func (tm *team) restart() {
	tm.t.Helper()
	tm.p["tablet"].crash()
	tm.p["tablet"].start()
	tm.connect("base", "tablet")
	tm.connect("phone", "tablet")
}

// wantDoneOutOfReach cuts the tablet off and starts it again: it has the item with all that is needed to do it, and
// what is done counts once it is back.
func (tm *team) wantDoneOutOfReach(id, item string) {
	tm.t.Helper()
	tm.p["tablet"].crash()
	tm.p["tablet"].start()
	tm.wantItems("tablet", "bia", "weigh LOCKED")
	sheet, err := tm.p["tablet"].api.ItemSheet(tm.t.Context(), api.ItemQuery{User: "bia", Item: item})
	if err != nil || !sheet.Whole || len(sheet.Fields) != 1 {
		tm.t.Errorf("out of reach one sees %+v (%v)", sheet, err)
	}
	wantCode(tm.t, tm.hand("tablet", "bia", item, map[string]string{"height": "3"}), api.Invalid, `may not set "height"`)
	if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "3"}); err != nil {
		tm.t.Error(err)
	}
	tm.connect("base", "tablet")
	pass(time.Minute)
	if got := tm.task("base", id, "weigh"); got != workflow.Succeeded {
		tm.t.Errorf("weigh is %s, and bia has done it", got)
	}
}

// A lock whose answer was lost is kept on the device once its holder can be asked, as one that was answered, also when
// nobody looks at the list: whether the device goes on, is lost right after it asked, or is lost again before it kept
// it.
func TestALockThatWasNotAnsweredIsKept(t *testing.T) {
	for _, then := range []string{"goes on", "cut off", "lost", "lost twice"} {
		t.Run(then, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm, id, item := offlineNurses(t)
				tm.losesAnswers(true)
				wantCode(t, tm.claim("tablet", "bia", api.ClaimLock, item), api.Refused, "it may have written it down all the same")
				switch then {
				case "cut off":
					tm.disconnect("base", "tablet")
					tm.losesAnswers(false)
					pass(time.Hour)
					tm.connect("base", "tablet")
				case "lost", "lost twice":
					tm.restart()
				}
				if tm.losesAnswers(false); then == "lost twice" {
					tm.restart()
				}
				if pass(10 * time.Second); tm.keeps("tablet") != 1 {
					t.Errorf("%d items are kept, want 1", tm.keeps("tablet"))
				}
				tm.disconnect("base", "tablet")
				tm.wantDoneOutOfReach(id, item)
			})
		})
	}
}

// It is as well a lock that the device asked for before it went down, and that its holder carries out only after the
// device has come back and asked about it.
func TestALockThatIsCarriedOutLateIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, item := offlineNurses(t)
		reaches := make(chan bool)
		tm.onWord("base", func(carryOut func() ([]byte, error)) ([]byte, error) {
			<-reaches
			return carryOut()
		})
		go func() {
			_, _ = tm.p["tablet"].api.ClaimItems(t.Context(),
				api.ClaimRequest{User: "bia", Claim: api.ClaimLock, Items: []string{item}})
		}()
		synctest.Wait()
		tm.restart()
		pass(30 * time.Second)
		close(reaches)
		if pass(2 * time.Minute); tm.keeps("tablet") != 1 {
			t.Errorf("%d items are kept, want 1", tm.keeps("tablet"))
		}
		tm.disconnect("base", "tablet")
		tm.wantDoneOutOfReach(id, item)
	})
}

// What a user locked at another device is not kept, nor what was given back meanwhile, or was lost by the end of its
// lease: of the latter the user is told nothing, who was never told to have it.
func TestOfALockThatWasNotAnsweredOnlyTheOwnIsKept(t *testing.T) {
	for _, then := range []string{"elsewhere", "given back", "lease ended"} {
		t.Run(then, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm, _, item := offlineNurses(t)
				link, err := tm.p["tablet"].api.LinkUser(t.Context(), "bia", 0)
				if err != nil {
					t.Fatal(err)
				}
				if err := tm.signIn("phone", link.Token); err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				at := "tablet"
				if then == "elsewhere" {
					at = "phone"
				}
				tm.losesAnswers(true)
				_ = tm.claim(at, "bia", api.ClaimLock, item)
				tm.disconnect("base", "tablet")
				tm.losesAnswers(false)
				want := "weigh READY"
				switch then {
				case "elsewhere":
					want = "weigh LOCKED"
				case "given back":
					tm.itemOf("phone", "bia", "weigh")
					if err := tm.claim("phone", "bia", api.ClaimRelease, item); err != nil {
						t.Fatal(err)
					}
				case "lease ended":
					pass(8 * 24 * time.Hour)
				}
				tm.restart()
				pass(3 * time.Minute)
				tm.wantItems("tablet", "bia", want)
				if pass(3 * time.Minute); tm.keeps("tablet") != 0 {
					t.Errorf("%d items are kept, want none", tm.keeps("tablet"))
				}
			})
		})
	}
}

// A device whose disk is full while it locks an item keeps it by itself once there is room.
func TestALockForWhichThereWasNoRoomIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, item := offlineNurses(t)
		tm.p["tablet"].disk.failWith(kv.ErrFull)
		wantCode(t, tm.claim("tablet", "bia", api.ClaimLock, item), api.Failed, "this device cannot keep it")
		pass(10 * time.Minute)
		tm.p["tablet"].disk.failWith(nil)
		if pass(time.Hour); tm.keeps("tablet") != 1 {
			t.Errorf("%d items are kept, want 1", tm.keeps("tablet"))
		}
		tm.disconnect("base", "tablet")
		tm.wantDoneOutOfReach(id, item)
	})
}

// A partner that lists an item as locked by a user at the user's own device, which asked for none there, is not
// believed: nothing is kept of it, and the item stays with its true holder.
func TestALockThatNobodyAskedForIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, item := offlineNurses(t)
		lists := tm.p["base"].plug.handlers[worklists.ProtocolItems]
		sheets := tm.p["base"].plug.handlers[worklists.ProtocolItem]
		tm.p["phone"].plug.HandleRequest(worklists.ProtocolItem, false, sheets)
		tm.p["phone"].plug.HandleRequest(worklists.ProtocolItems, false,
			func(from workflow.PartnerID, req []byte) ([]byte, error) {
				b, err := lists(from, req)
				if err != nil {
					return nil, err
				}
				var rows []worklists.Row
				if err := json.Unmarshal(b, &rows); err != nil {
					return nil, err
				}
				for i := range rows {
					rows[i].Mine, rows[i].Grant, rows[i].From = worklist.Lock, worklist.ID{1}, tm.p["tablet"].id()
				}
				return json.Marshal(rows)
			})
		tm.restart()
		if pass(5 * time.Minute); tm.keeps("tablet") != 0 {
			t.Errorf("%d items are kept, want none", tm.keeps("tablet"))
		}
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		tm.connect("base", "tablet")
		pass(time.Second)
		if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
			t.Fatal(err)
		}
		tm.disconnect("base", "tablet")
		tm.wantDoneOutOfReach(id, item)
	})
}

// A user who loses a lock as its holder was put back from an older copy is told so, under the list and in messages,
// also after a restart: whether nobody has the item now, somebody else has it, or has done it, and also where the copy
// knows that the user had the item before and gave it back, or lost it. What the user has done of it stays in the
// outbox, with what to do.
func TestWhatItsHolderHasNoRecordOfIsTold(t *testing.T) {
	for _, before := range []string{"", "given back", "lease ended"} {
		for _, then := range []string{"free", "taken", "done", "done by both", "done once more", "done on return"} {
			t.Run(before+"/"+then, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { losesARecord(t, before, then) })
			})
		}
	}
}

func losesARecord(t *testing.T, before, then string) {
	const why = "its holder has no record any more that it was given: it may have been put back from an older copy"
	tm, id, item := offlineNurses(t)
	if before != "" {
		if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
			t.Fatal(err)
		}
	}
	switch before {
	case "given back":
		if err := tm.claim("tablet", "bia", api.ClaimRelease, item); err != nil {
			t.Fatal(err)
		}
	case "lease ended":
		tm.disconnect("base", "tablet")
		pass(8 * 24 * time.Hour)
		tm.connect("base", "tablet")
		pass(time.Minute)
		tm.wantLost("tablet", "bia", "weigh as its lease is over")
	}
	old := tm.p["base"].disk.backup()
	if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
		t.Fatal(err)
	}
	tm.disconnect("base", "tablet")
	tm.disconnect("phone", "tablet")
	tm.p["base"].crash()
	tm.p["base"].disk.restore(old)
	tm.p["base"].start()
	pass(time.Minute)
	if then == "taken" || then == "done" || then == "done by both" {
		if err := tm.claim("base", "ana", api.ClaimLock, item); err != nil {
			t.Fatal(err)
		}
	}
	if then == "done" || then == "done by both" {
		if err := tm.hand("base", "ana", item, map[string]string{"weight": "3"}); err != nil {
			t.Fatal(err)
		}
	}
	const no = "its holder has no record that weigh was given to you"
	if then == "done on return" {
		tm.connect("base", "tablet")
		pass(time.Second)
		wantCode(t, tm.hand("tablet", "bia", item, map[string]string{"weight": "4"}), api.Refused, no)
		tm.wantLost("tablet", "bia", "weigh as "+why)
		wantCode(t, tm.hand("tablet", "bia", item, map[string]string{"weight": "4"}), api.Refused, no)
		return
	}
	if then == "done by both" || then == "done once more" {
		if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "4"}); err != nil {
			t.Fatal(err)
		}
	}
	tm.connect("base", "tablet")
	pass(time.Minute)
	if then == "done by both" || then == "done once more" {
		list, err := tm.p["tablet"].api.Outbox(t.Context(), "bia")
		if err != nil || len(list) != 1 || !strings.Contains(list[0].Refused, no) {
			t.Errorf("the outbox has %+v (%v)", list, err)
		}
		if tm.wantLost("tablet", "bia"); then == "done by both" {
			return
		}
		if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "4"}); err != nil {
			t.Fatal(err)
		}
		tm.wantOutbox("tablet")
		return
	}
	for range 2 {
		want := map[string][]string{"free": {"weigh READY"}, "done": {"feed READY"}}[then]
		tm.wantItems("tablet", "bia", want...)
		tm.wantLost("tablet", "bia", "weigh as "+why)
		tm.wantLostTold("tablet", "bia", "weigh is no longer yours, as "+why)
		tm.restart()
		pass(time.Minute)
	}
	if then != "free" {
		return
	}
	if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
		t.Fatal(err)
	}
	pass(time.Minute)
	tm.wantLost("tablet", "bia")
	tm.wantLostTold("tablet", "bia")
	if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "3"}); err != nil {
		t.Error(err)
	}
	if got := tm.task("base", id, "weigh"); got != workflow.Succeeded {
		t.Errorf("weigh is %s", got)
	}
}

// A result that counted, and does not any more as its holder was put back from a copy from before it, is in the outbox
// of the device that handed it in, with what to do; done once more, it leaves it.
func TestWhatCountedIsToldWhereItsHolderHasNoRecordOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, item := offlineNurses(t)
		old := tm.p["base"].disk.backup()
		do := func() {
			t.Helper()
			if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
				t.Fatal(err)
			}
			if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "4"}); err != nil {
				t.Fatal(err)
			}
			if got := tm.task("base", id, "weigh"); got != workflow.Succeeded {
				t.Fatalf("weigh is %s", got)
			}
			tm.wantOutbox("tablet")
		}
		do()
		tm.disconnect("base", "tablet")
		tm.p["base"].crash()
		tm.p["base"].disk.restore(old)
		tm.p["base"].start()
		tm.connect("base", "tablet")
		pass(2 * time.Minute)
		list, err := tm.p["tablet"].api.Outbox(t.Context(), "bia")
		const no = "it counted, and does not any more: its holder has no record that weigh was given to you"
		if err != nil || len(list) != 1 || !strings.HasPrefix(list[0].Refused, no) {
			t.Errorf("the outbox has %+v (%v)", list, err)
		}
		do()
	})
}
