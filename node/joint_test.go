package node_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const round = `
workflow: round
data:
  weight: {type: integer}
tasks:
  weigh: {type: manual, role: nurse, offline: true, out: [weight]}
  feed:  {type: manual, role: nurse, offline: true, after: weigh}
partitions:
  ward:    {tasks: [weigh], partner: base}
  kitchen: {tasks: [feed], partner: kitchen}
`

// ahead is a mesh in which bia, at the tablet, may lock two items of two partners, of which the second waits for the
// first; ana may have them as well, at base.
func ahead(t *testing.T) (tm *team, id string, items []string) { return aheadIn(t, round) }

// aheadIn is ahead in a workflow called round.
func aheadIn(t *testing.T, text string) (tm *team, id string, items []string) {
	return aheadWith(t, text, nil)
}

// aheadWith is aheadIn with another configuration.
func aheadWith(t *testing.T, text string, adjust func(*configs.Config)) (tm *team, id string, items []string) {
	return aheadAmong(t, text, adjust, "base:nurse", "kitchen", "tablet", "phone")
}

// aheadAmong is aheadWith in a mesh of others. A partner keeps a task that is ready if it has its role itself.
func aheadAmong(
	t *testing.T, text string, adjust func(*configs.Config), names ...string,
) (tm *team, id string, items []string) {
	tm = newTeamOf(t, adjust, names...)
	tm.signInNurses()
	tm.add("base", text)
	st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "round"})
	if err != nil {
		t.Fatal(err)
	}
	pass(time.Second)
	for _, x := range tm.aheadOf("tablet", "bia") {
		items = append(items, x.ID)
	}
	if len(items) != 2 {
		t.Fatalf("there are %d items, want 2", len(items))
	}
	return tm, st.ID, items
}

// aheadOf is a worklist with what is not ready.
func (tm *team) aheadOf(at, user string) []api.Item {
	tm.t.Helper()
	list, err := tm.p[at].api.Worklist(tm.t.Context(), api.WorklistQuery{User: user, Ahead: true})
	if err != nil {
		tm.t.Fatal(err)
	}
	slices.SortFunc(list, func(a, b api.Item) int { return -strings.Compare(a.Task, b.Task) }) // weigh, feed
	return list
}

func (tm *team) wantAhead(at, user string, want ...string) {
	tm.t.Helper()
	var got []string
	for _, x := range tm.aheadOf(at, user) {
		got = append(got, x.Task+" "+x.State)
	}
	if !slices.Equal(got, want) {
		tm.t.Errorf("the worklist of %s at %s is %q, want %q", user, at, got, want)
	}
}

func (tm *team) lockAll(at, user string, items []string) error {
	tm.t.Helper()
	_, err := tm.p[at].api.ClaimItems(tm.t.Context(),
		api.ClaimRequest{User: user, Claim: api.ClaimLock, Items: items})
	synctest.Wait()
	return err
}

// onWord has fn called with each word that is brought to a partner: it has the word carried out, or not.
func (tm *team) onWord(at string, fn func(carryOut func() ([]byte, error)) ([]byte, error)) {
	plug := tm.p[at].plug
	was := plug.handlers[worklists.ProtocolClaim]
	plug.HandleRequest(worklists.ProtocolClaim, false, func(from workflow.PartnerID, req []byte) ([]byte, error) {
		return fn(func() ([]byte, error) { return was(from, req) })
	})
}

// cutAtWord has the tablet lose its links to partners at the word of that number which it brings to a holder, whether
// or not that is carried out.
func (tm *team) cutAtWord(word int, done bool, from ...string) {
	var said atomic.Int64
	for _, at := range []string{"base", "kitchen"} {
		tm.onWord(at, func(carryOut func() ([]byte, error)) ([]byte, error) {
			if said.Add(1) != int64(word) {
				return carryOut()
			}
			if done {
				_, _ = carryOut()
			}
			for _, of := range from {
				tm.disconnect(of, "tablet")
			}
			return nil, errors.New("cut")
		})
	}
}

// underWay is how many joint locks a partner has on its disk.
func (tm *team) underWay(at string) (n int) {
	tm.t.Helper()
	err := tm.p[at].disk.Scan([]byte{worklists.PrefixJoint}, func([]byte, []byte) error { n++; return nil })
	if err != nil {
		tm.t.Fatal(err)
	}
	return n
}

// Whichever word of a joint lock the device is lost at, whether or not the word was carried out: once it is back all
// is given back, and can be locked by others and by the same user.
func TestAJointLockIsGivenBackAfterACrash(t *testing.T) {
	for word := 1; word <= 4; word++ {
		for _, done := range []bool{true, false} {
			t.Run(fmt.Sprintf("word %d done=%t", word, done), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tm, _, items := ahead(t)
					tm.cutAtWord(word, done, "base", "kitchen")
					if err := tm.lockAll("tablet", "bia", items); err == nil {
						t.Fatal("they are locked")
					}
					if n := tm.underWay("tablet"); n != 1 {
						t.Errorf("%d joint locks are on the disk, want 1", n)
					}
					tm.p["tablet"].crash()
					tm.p["tablet"].start()
					pass(time.Minute)
					tm.connect("base", "tablet")
					tm.connect("kitchen", "tablet")
					pass(time.Minute)
					if n := tm.underWay("tablet"); n != 0 {
						t.Errorf("%d joint locks are left on the disk", n)
					}
					tm.wantAhead("tablet", "bia", "weigh READY", "feed NOT_READY")
					tm.wantAhead("base", "ana", "weigh READY", "feed NOT_READY")
					if err := tm.lockAll("base", "ana", items); err != nil {
						t.Error(err)
					}
					tm.wantAhead("base", "ana", "weigh LOCKED", "feed LOCKED")
					tm.wantAhead("tablet", "bia")
				})
			})
		}
	}
}

// A word that was refused and comes once more, minutes later, when what stood in its way is over, gives nobody anything:
// its user was told that nothing came of it. Said once more by the user, it does.
func TestARefusedWordThatComesLateIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _, items := ahead(t)
		if err := tm.lockAll("base", "ana", items[:1]); err != nil {
			t.Fatal(err)
		}
		var late []func() ([]byte, error)
		for _, at := range []string{"base", "kitchen"} {
			tm.onWord(at, func(carryOut func() ([]byte, error)) ([]byte, error) {
				late = append(late, carryOut)
				return carryOut()
			})
		}
		for _, of := range [][]string{items[:1], items} { // alone, and together with what another holds
			wantCode(t, tm.lockAll("tablet", "bia", of), api.Refused, "weigh")
		}
		if _, err := tm.p["base"].api.ClaimItems(t.Context(),
			api.ClaimRequest{User: "ana", Claim: api.ClaimRelease, Items: items[:1]}); err != nil {
			t.Fatal(err)
		}
		pass(9 * time.Minute)
		if len(late) < 2 {
			t.Fatalf("holders were asked %d times", len(late))
		}
		for _, again := range slices.Clone(late) {
			if _, err := again(); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Second)
		tm.wantAhead("tablet", "bia", "weigh READY", "feed NOT_READY")
		if err := tm.lockAll("tablet", "bia", items); err != nil {
			t.Error(err)
		}
		tm.wantAhead("tablet", "bia", "weigh LOCKED", "feed LOCKED")
	})
}

// What was given in a joint lock that came to nothing is given back, too, where it can be done no more by then, as what
// it waits for has failed: if that is done again, others have both.
func TestWhatIsOverIsGivenBack(t *testing.T) {
	for _, word := range []int{2, 4} { // the kitchen has kept it, or has given it
		synctest.Test(t, func(t *testing.T) {
			tm, id, items := ahead(t)
			tm.cutAtWord(word, true, "base", "kitchen")
			if err := tm.lockAll("tablet", "bia", items); err == nil {
				t.Fatal("they are locked")
			}
			tm.connect("base", "tablet")
			pass(time.Minute)
			if err := tm.lockAll("base", "ana", items[:1]); err != nil {
				t.Fatal(err)
			}
			_, err := tm.p["base"].api.FinishItem(t.Context(),
				api.ItemResult{User: "ana", Item: items[0], Failed: true, Reason: "no scales"})
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			tm.connect("kitchen", "tablet")
			pass(time.Minute)
			if n := tm.underWay("tablet"); n != 0 {
				t.Errorf("word %d: %d joint locks are left on the disk", word, n)
			}
			if err := tm.order("base", "ana", id, api.TaskAgain, "weigh"); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			items = nil
			for _, x := range tm.aheadOf("base", "ana") {
				items = append(items, x.ID)
			}
			if err := tm.lockAll("base", "ana", items); err != nil || len(items) != 2 {
				t.Errorf("word %d: %d items, %v", word, len(items), err)
			}
		})
	}
}

// What was locked with what it waits for stays on its user's list while that is presumed to have failed, with the reason,
// also after a restart, and counts in its turn when the holder is back. What both came to out of reach is not lost.
func TestWhatWaitsForAHolderThatIsGoneStaysOnTheList(t *testing.T) {
	for _, done := range []bool{false, true} { // while the first holder is gone
		synctest.Test(t, func(t *testing.T) {
			tm, id, items := ahead(t)
			if err := tm.lockAll("tablet", "bia", items); err != nil {
				t.Fatal(err)
			}
			for _, at := range []string{"kitchen", "tablet", "phone"} {
				tm.disconnect("base", at)
			}
			pass(2 * time.Hour)
			if x := tm.task("kitchen", id, "weigh"); x != workflow.Failed {
				t.Fatalf("weigh is %s", x)
			}
			held := "waits for weigh, presumed to have failed at base, which may still do it: " +
				"the partner has expired: it was not heard of since "
			wants := func(text string) {
				t.Helper()
				tm.wantAhead("tablet", "bia", "weigh LOCKED", "feed LOCKED")
				for _, x := range tm.aheadOf("tablet", "bia") {
					if x.Task == "feed" && !strings.HasPrefix(x.HeldUp, text) || x.Task != "feed" && x.HeldUp != "" {
						t.Errorf("%s is held up, as %q", x.Task, x.HeldUp)
					}
				}
			}
			wants(held)
			tm.p["tablet"].crash()
			tm.p["tablet"].start()
			wants(held)
			tm.connect("kitchen", "tablet")
			pass(time.Minute)
			wants(held)
			if done {
				if err := tm.hand("tablet", "bia", items[0], map[string]string{"weight": "3"}); err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				if x := tm.aheadOf("tablet", "bia")[1]; x.HeldUp != "" || len(x.Awaits) > 0 {
					t.Errorf("feed can be done now, and is held up, as %q", x.HeldUp)
				}
				if err := tm.hand("tablet", "bia", items[1], nil); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
				tm.wantOutbox("tablet", "bia|weigh|completed|base", "bia|feed|completed|kitchen has it, after weigh")
			}
			tm.connect("base", "kitchen")
			tm.connect("base", "tablet")
			pass(10 * time.Minute)
			if !done {
				wants("waits for weigh, presumed to have failed at base, which may still do it: ")
				tm.doBoth("tablet", "bia", id, items)
			}
			tm.wantOutbox("tablet")
			if x := tm.state("kitchen", id); x != workflow.InstanceSucceeded {
				t.Errorf("the instance is %s", x)
			}
		})
	}
}

// What was done out of reach is kept by its holder where an amendment does not allow its value any more, and its user is
// told the reason, as is whoever made something from it. The user still has both, and does them once more.
func TestWhatAnAmendmentDoesNotAllowAnyMoreIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, items := ahead(t)
		if err := tm.lockAll("tablet", "bia", items); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{"base", "kitchen", "phone"} {
			tm.disconnect(at, "tablet")
		}
		pass(time.Second)
		tm.doneOutOfReach("tablet", "bia", items, "12")
		_, err := tm.p["base"].api.AmendInstance(t.Context(), api.AmendRequest{
			User: "ana", ID: id, File: "round.yaml", Source: strings.Replace(round, "type: integer", "type: integer, max: 9", 1),
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{"base", "kitchen"} {
			tm.connect(at, "tablet")
		}
		pass(10 * time.Minute)
		const why = "the definition was amended meanwhile, and the task may not have such a result any more: " +
			"weight: 12 is not in the range … to 9"
		tm.wantOutbox("tablet", "bia|weigh|completed||it does not count, as "+why+"; it is kept there",
			"bia|feed|completed||it does not count, as it was made from a result that does not count; it is kept there")
		tm.wantAhead("tablet", "bia", "weigh LOCKED", "feed LOCKED")
		if !tm.incident("kitchen", id, why) {
			t.Errorf("the incidents do not say it: %+v", tm.show("kitchen", id).Incidents)
		}
		err = tm.hand("tablet", "bia", items[0], map[string]string{"weight": "11"})
		wantCode(t, err, api.Refused, "the result of weigh does not count, as the definition was amended meanwhile")
		tm.wantAhead("tablet", "bia", "weigh LOCKED", "feed LOCKED")
		tm.doBoth("tablet", "bia", id, items)
	})
}

// doneOutOfReach has somebody do the two items one after the other at a device that is out of reach.
func (tm *team) doneOutOfReach(at, who string, items []string, weight string) {
	tm.t.Helper()
	if err := tm.hand(at, who, items[0], map[string]string{"weight": weight}); err != nil {
		tm.t.Fatal(err)
	}
	pass(time.Second)
	if err := tm.hand(at, who, items[1], nil); err != nil {
		tm.t.Fatal(err)
	}
	tm.wantOutbox(at, who+"|weigh|completed|base", who+"|feed|completed|kitchen")
}

// What was made from what its holder refused, and did not keep, says in the outbox that both are to be done once more.
func TestWhatIsMadeFromWhatIsRefusedSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, items := aheadIn(t, strings.Replace(round, "tasks:\n",
			"constraints: [{name: light, when: weight == null or weight < 9, strict: true}]\ntasks:\n", 1))
		if err := tm.lockAll("tablet", "bia", items); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{"base", "kitchen", "phone"} {
			tm.disconnect(at, "tablet")
		}
		pass(time.Second)
		tm.doneOutOfReach("tablet", "bia", items, "12")
		for _, at := range []string{"base", "kitchen"} {
			tm.connect(at, "tablet")
		}
		pass(10 * time.Minute)
		list, err := tm.p["tablet"].api.Outbox(t.Context(), "bia")
		if err != nil || len(list) != 2 || list[0].Refused == "" || list[1].Refused != "" ||
			!slices.Equal(list[1].Redo, []string{"weigh"}) {
			t.Fatalf("the outbox is %+v, %v", list, err)
		}
		if err := tm.hand("tablet", "bia", items[0], map[string]string{"weight": "3"}); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Minute)
		if err := tm.hand("tablet", "bia", items[1], nil); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if got := tm.state("kitchen", id); got != workflow.InstanceSucceeded {
			t.Errorf("the instance is %s", got)
		}
	})
}

// What was locked with what failed stays on its user's list, with the reason, and can be done once that is done again.
func TestWhatWaitsForAFailureStaysOnTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, items := ahead(t)
		if err := tm.lockAll("tablet", "bia", items); err != nil {
			t.Fatal(err)
		}
		_, err := tm.p["tablet"].api.FinishItem(t.Context(),
			api.ItemResult{User: "bia", Item: items[0], Failed: true, Reason: "no scales"})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		tm.wantAhead("tablet", "bia", "feed LOCKED")
		const want = "waits for weigh, which failed at base, and whoever decides may have it done again: no scales"
		for _, at := range []string{"tablet", "phone"} {
			if at == "phone" {
				tm.disconnect("kitchen", "tablet") // as kept
				at = "tablet"
			}
			if x := tm.aheadOf(at, "bia"); len(x) != 1 || x[0].HeldUp != want {
				t.Errorf("the list is %+v", x)
			}
		}
		if err := tm.hand("tablet", "bia", items[1], nil); err == nil {
			t.Error("feed is done, and weigh is not")
		}
		tm.connect("kitchen", "tablet")
		if err := tm.order("base", "ana", id, api.TaskAgain, "weigh"); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		tm.wantAhead("tablet", "bia", "weigh READY", "feed LOCKED")
		if err := tm.claim("tablet", "bia", api.ClaimLock, tm.aheadOf("tablet", "bia")[0].ID); err != nil {
			t.Fatal(err)
		}
		tm.doBoth("tablet", "bia", id, []string{tm.aheadOf("tablet", "bia")[0].ID, items[1]})
	})
}

// If a holder does not answer, though it has written down what it was asked for, all is given back at once where
// that can be, and there as soon as it answers.
func TestALostAnswerHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _, items := ahead(t)
		var mute atomic.Bool
		mute.Store(true)
		tm.onWord("kitchen", func(carryOut func() ([]byte, error)) ([]byte, error) {
			b, err := carryOut()
			if mute.Load() {
				return nil, errors.New("lost")
			}
			return b, err
		})
		wantCode(t, tm.lockAll("tablet", "bia", items), api.Failed, "could not write it down now")
		if n := tm.underWay("tablet"); n != 1 {
			t.Errorf("%d joint locks are on the disk, want 1", n)
		}
		mute.Store(false)
		pass(time.Minute)
		tm.wantAhead("tablet", "bia", "weigh READY", "feed NOT_READY")
		if n := tm.underWay("tablet"); n != 0 {
			t.Errorf("%d joint locks are left on the disk", n)
		}
	})
}

// A holder that hangs is waited for three seconds, at whichever step, and not once more by who gives back: nothing is
// locked, what others gave is free, and what it does of it when it goes on is given back.
func TestAHolderThatHangsHoldsNobodyUp(t *testing.T) {
	for step := 1; step <= 2; step++ {
		t.Run(fmt.Sprintf("step %d", step), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm, _, items := aheadWith(t, round, connectionTime(15*time.Second))
				goOn := make(chan struct{})
				var said atomic.Int64
				tm.onWord("kitchen", func(carryOut func() ([]byte, error)) ([]byte, error) {
					if said.Add(1) >= int64(step) {
						<-goOn
					}
					return carryOut()
				})
				began := time.Now()
				wantCode(t, tm.lockAll("tablet", "bia", items), api.Refused,
					"kitchen, who holds feed, did not answer within 3s: nothing is locked")
				if took := time.Since(began); took > 4*time.Second {
					t.Errorf("it took %s", took)
				}
				tm.wantAhead("base", "ana", []string{"weigh READY", "feed NOT_READY"}[:3-step]...) // the later is kept since step 1
				close(goOn)
				pass(time.Minute)
				tm.wantAhead("base", "ana", "weigh READY", "feed NOT_READY")
				if n := tm.underWay("tablet"); n != 0 {
					t.Errorf("%d joint locks are left on the disk", n)
				}
			})
		})
	}
}

// Of what somebody else has done nobody is told that the other has it.
func TestWhatAnotherHasDoneIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _, items := aheadWith(t, round, connectionTime(time.Minute))
		if err := tm.claim("base", "ana", api.ClaimSelect, items[0]); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		wantCode(t, tm.hand("base", "base", items[0], map[string]string{"weight": "4"}), api.Refused,
			"ana has the task weigh, not base")
		if err := tm.hand("base", "ana", items[0], map[string]string{"weight": "4"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		wantCode(t, tm.hand("base", "base", items[0], map[string]string{"weight": "4"}), api.Refused,
			"ana had the task weigh, not base, and it is over")
	})
}

// One holder of one item is waited for ten seconds at most, all in all; what it gave all the same is on the list then.
func TestAHolderThatHangsIsWaitedForTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _, items := aheadWith(t, round, connectionTime(time.Minute))
		goOn := make(chan struct{})
		tm.onWord("base", func(carryOut func() ([]byte, error)) ([]byte, error) {
			<-goOn
			return carryOut()
		})
		began := time.Now()
		_, err := tm.p["tablet"].api.ClaimItems(t.Context(),
			api.ClaimRequest{User: "bia", Items: items[:1], Claim: api.ClaimSelect})
		wantCode(t, err, api.Refused, "base, who holds weigh, did not answer; it may have written it down all the same")
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
		close(goOn)
		pass(time.Minute)
		if _, err := tm.p["tablet"].api.ClaimItems(t.Context(),
			api.ClaimRequest{User: "bia", Items: items[:1], Claim: api.ClaimSelect}); err != nil {
			t.Error(err)
		}
	})
}

// Nor does it hold up who hands in what was locked: that is kept here, and handed in by itself once it goes on.
func TestAHolderThatHangsDelaysNoResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, items := aheadWith(t, round, connectionTime(time.Minute))
		if err := tm.lockAll("tablet", "bia", items); err != nil {
			t.Fatal(err)
		}
		goOn := make(chan struct{})
		tm.onWord("base", func(carryOut func() ([]byte, error)) ([]byte, error) {
			<-goOn
			return carryOut()
		})
		began := time.Now()
		if err := tm.hand("tablet", "bia", items[0], map[string]string{"weight": "4"}); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("it took %s", took)
		}
		tm.wantOutbox("tablet", "bia|weigh|completed|base")
		close(goOn)
		pass(time.Minute)
		tm.wantOutbox("tablet")
		if x := tm.show("base", id).Tasks[0]; x.Name != "weigh" || x.State != workflow.Succeeded {
			t.Errorf("it is %+v", x)
		}
	})
}

// What could not be given back is not given back any more once its user has asked for it again and has it.
func TestWhatIsLockedAnewStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, items := ahead(t)
		var mute atomic.Bool
		mute.Store(true)
		tm.onWord("kitchen", func(carryOut func() ([]byte, error)) ([]byte, error) {
			b, err := carryOut()
			if mute.Load() {
				return nil, errors.New("lost")
			}
			return b, err
		})
		if err := tm.lockAll("tablet", "bia", items); err == nil {
			t.Fatal("they are locked")
		}
		if n := tm.underWay("tablet"); n != 1 {
			t.Errorf("%d joint locks are on the disk, want 1", n)
		}
		mute.Store(false)
		if err := tm.lockAll("tablet", "bia", items); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Minute)
		tm.wantAhead("tablet", "bia", "weigh LOCKED", "feed LOCKED")
		if n := tm.underWay("tablet"); n != 0 {
			t.Errorf("%d joint locks are left on the disk", n)
		}
		tm.doBoth("tablet", "bia", id, items)
	})
}

// A device is lost in the middle of a joint lock, at whichever word, carried out or not. Before it is back its user
// locks the items at another device, at once or one after the other, or selects one: the first gives nothing of that
// back.
func TestWhatIsLockedAtAnotherDeviceStays(t *testing.T) {
	for word := 1; word <= 4; word++ {
		for _, done := range []bool{true, false} {
			for _, how := range []string{"together", "one by one", "select"} {
				t.Run(fmt.Sprintf("word %d done=%t %s", word, done, how), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { lockedAtAnotherDevice(t, word, done, how) })
				})
			}
		}
	}
}

func lockedAtAnotherDevice(t *testing.T, word int, done bool, how string) {
	tm, id, items := ahead(t)
	tok, err := tm.p["tablet"].api.LinkUser(t.Context(), "bia", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := tm.signIn("phone", tok.Token); err != nil {
		t.Fatal(err)
	}
	pass(time.Second)
	tm.cutAtWord(word, done, "base", "kitchen", "phone")
	if err := tm.lockAll("tablet", "bia", items); err == nil {
		t.Fatal("they are locked")
	}
	tm.p["tablet"].crash()
	want := []string{"weigh LOCKED", "feed LOCKED"}
	switch how {
	case "together":
		err = tm.lockAll("phone", "bia", items)
	case "one by one":
		err = errors.Join(tm.lockAll("phone", "bia", items[:1]), tm.lockAll("phone", "bia", items[1:]))
	case "select":
		if word > 2 { // it is locked already, which is not taken back
			return
		}
		err = tm.claim("phone", "bia", api.ClaimSelect, items[0])
		want = []string{"weigh SELECTED", "feed NOT_READY"}
	}
	if err != nil {
		t.Fatal(err)
	}
	tm.p["tablet"].start()
	for _, of := range []string{"base", "kitchen", "phone"} {
		tm.connect(of, "tablet")
	}
	pass(2 * time.Minute)
	if n := tm.underWay("tablet"); n != 0 {
		t.Errorf("%d joint locks are left on the disk", n)
	}
	tm.wantAhead("phone", "bia", want...)
	if how == "select" {
		return
	}
	if err := tm.hand("phone", "bia", items[0], map[string]string{"weight": "3"}); err != nil {
		t.Fatal(err)
	}
	pass(time.Second)
	if err := tm.hand("phone", "bia", items[1], nil); err != nil {
		t.Fatal(err)
	}
	pass(time.Minute)
	if got := tm.state("kitchen", id); got != workflow.InstanceSucceeded {
		t.Errorf("the instance is %s", got)
	}
}

// The later one is handed in where its holder can be reached, before the earlier: it waits there, also through a
// restart, and counts when the earlier has. Where the earlier does not count, it does not, and is kept.
func TestTheLaterWaitsForTheEarlier(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("lost=%t", lost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm, id, items := ahead(t)
				if err := tm.lockAll("tablet", "bia", items); err != nil {
					t.Fatal(err)
				}
				tm.disconnect("base", "tablet")
				pass(time.Minute)
				wantCode(t, tm.hand("tablet", "bia", items[1], nil), api.Refused, "feed waits for weigh")
				if err := tm.hand("tablet", "bia", items[0], map[string]string{"weight": "3"}); err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				if err := tm.hand("tablet", "bia", items[1], nil); err != nil {
					t.Fatal(err)
				}
				tm.wantOutbox("tablet", "bia|weigh|completed|base", "bia|feed|completed|kitchen has it, after weigh")
				tm.wantAhead("tablet", "bia", "weigh DONE", "feed DONE")
				if got := tm.task("kitchen", id, "feed"); got != workflow.NotReady {
					t.Errorf("feed is %s", got)
				}
				for _, at := range []string{"kitchen", "tablet"} {
					tm.p[at].crash()
					tm.p[at].start()
				}
				tm.connect("base", "kitchen")
				tm.connect("kitchen", "tablet")
				pass(time.Minute)
				tm.wantOutbox("tablet", "bia|weigh|completed|base", "bia|feed|completed|kitchen has it, after weigh")
				tm.wantAhead("tablet", "bia", "weigh DONE", "feed DONE")
				if err := tm.hand("tablet", "bia", items[1], nil); err != nil { // the same once more
					t.Error(err)
				}
				_, err := tm.p["tablet"].api.FinishItem(t.Context(),
					api.ItemResult{User: "bia", Item: items[1], Failed: true, Reason: "no food"})
				wantCode(t, err, api.Refused, "is with kitchen already, and cannot be changed")
				if lost {
					if _, err := tm.p["base"].api.TransferItem(t.Context(),
						api.TransferRequest{User: "ana", Item: items[0], To: "ana"}); err != nil {
						t.Fatal(err)
					}
				}
				tm.connect("base", "tablet")
				pass(time.Minute)
				if !lost {
					if got := tm.state("kitchen", id); got != workflow.InstanceSucceeded {
						t.Errorf("the instance is %s", got)
					}
					tm.wantOutbox("tablet")
					return
				}
				const no = "it does not count, as it was made from a result that does not count; it is kept there"
				for range 2 { // also after a restart
					if out := tm.outbox("tablet"); len(out) != 2 || out[1] != "bia|feed|completed||"+no {
						t.Errorf("the outbox is %q", out)
					}
					tm.p["tablet"].crash()
					tm.p["tablet"].start()
					tm.connect("base", "tablet")
					tm.connect("kitchen", "tablet")
					pass(time.Minute)
				}
				wantCode(t, tm.hand("tablet", "bia", items[1], nil), api.Refused, "feed waits for weigh, which bia does not have")
				if err := errors.Join(tm.claim("base", "ana", api.ClaimSelect, items[0]),
					tm.hand("base", "ana", items[0], map[string]string{"weight": "4"})); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
				if got := tm.task("kitchen", id, "feed"); got != workflow.Ready {
					t.Errorf("feed is %s", got)
				}
				in := tm.show("kitchen", id)
				if !slices.ContainsFunc(in.Incidents, func(x api.Incident) bool {
					return x.Task == "feed" && strings.Contains(x.What, "it was made from a result that does not count")
				}) {
					t.Errorf("that feed is kept is not shown: %+v", in.Incidents)
				}
				if err := tm.hand("tablet", "bia", items[1], nil); err != nil { // it still has it
					t.Error(err)
				}
				if out := tm.outbox("tablet"); len(out) != 1 { // weigh is lost
					t.Errorf("the outbox is %q", out)
				}
				pass(time.Minute)
				if got := tm.state("kitchen", id); got != workflow.InstanceSucceeded {
					t.Errorf("the instance is %s", got)
				}
			})
		})
	}
}

// What a user set in an item out of reach is shown with the one that waits for it, also where its holder, who does not
// know it yet, can be asked, and after a restart of the device.
func TestTheLaterShowsWhatTheEarlierSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _, items := aheadIn(t, strings.NewReplacer("type: manual, role: nurse, offline: true, after: weigh",
			"type: manual, role: nurse, offline: true, after: weigh, in: [weight], out: [weight]").Replace(round))
		if err := tm.lockAll("tablet", "bia", items); err != nil {
			t.Fatal(err)
		}
		want := func(when string, value any) {
			t.Helper()
			s := tm.sheet("tablet", "bia", items[1])
			if len(s.Data) != 1 || len(s.Fields) != 1 || fmt.Sprint(s.Data[0].Value) != fmt.Sprint(value) ||
				fmt.Sprint(s.Fields[0].Value) != fmt.Sprint(value) {
				t.Errorf("%s: the sheet has %+v and %+v, want the weight %v", when, s.Data, s.Fields, value)
			}
		}
		want("before", nil)
		tm.disconnect("base", "tablet")
		tm.disconnect("base", "kitchen")
		if err := tm.hand("tablet", "bia", items[0], map[string]string{"weight": "5"}); err != nil {
			t.Fatal(err)
		}
		want("its holder can be asked", 5)
		tm.disconnect("kitchen", "tablet")
		pass(time.Minute)
		want("out of reach", 5)
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		want("after a restart", 5)
	})
}

// What a user did of an item that waited for another, and set in it, is kept on the device as what the user did of the
// other is, also by a device that crashes then.
func TestWhatWasDoneOfTheLaterOutlastsACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, items := aheadIn(t, strings.NewReplacer("type: manual, role: nurse, offline: true, after: weigh",
			"type: manual, role: nurse, offline: true, after: weigh, out: [eaten]",
			"weight: {type: integer}", "weight: {type: integer}\n  eaten: {type: boolean}").Replace(round))
		if err := tm.lockAll("tablet", "bia", items); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{"base", "kitchen"} {
			tm.disconnect(at, "tablet")
		}
		pass(time.Minute)
		for i, set := range []map[string]string{{"weight": "5"}, {"eaten": "true"}} {
			if err := tm.hand("tablet", "bia", items[i], set); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		tm.wantOutbox("tablet", "bia|weigh|completed|base", "bia|feed|completed|kitchen")
		for _, at := range []string{"base", "kitchen"} {
			tm.connect(at, "tablet")
		}
		pass(5 * time.Minute)
		for _, x := range tm.show("base", id).Tasks {
			if x.State != workflow.Succeeded {
				t.Errorf("%s is %s", x.Name, x.State)
			}
		}
	})
}

// Whoever wants the later, where somebody else has the earlier, is told who that is by name.
func TestWhoHasTheEarlierIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _, items := ahead(t)
		if err := tm.lockAll("tablet", "bia", items[:1]); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		wantCode(t, tm.lockAll("base", "ana", items[1:]), api.Refused, "it waits for weigh, which bia has")
	})
}

// Where the earlier is adopted the later counts by itself: its user is told so, and not that it was adopted.
func TestTheLaterCountsOnceTheEarlierIsAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, items := ahead(t)
		if err := tm.lockAll("tablet", "bia", items); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{"base", "kitchen"} {
			tm.disconnect(at, "tablet")
		}
		pass(time.Minute)
		for i, outputs := range []map[string]string{{"weight": "3"}, nil} {
			if err := tm.hand("tablet", "bia", items[i], outputs); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		if _, err := tm.p["base"].api.TransferItem(t.Context(),
			api.TransferRequest{User: "ana", Item: items[0], To: "ana"}); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{"base", "kitchen"} {
			tm.connect(at, "tablet")
			pass(2 * time.Minute)
		}
		box, err := tm.p["tablet"].api.Outbox(t.Context(), "bia")
		if err != nil || len(box) != 2 || box[0].Task != "weigh" || box[0].Refused == "" || box[1].Refused == "" {
			t.Fatalf("the outbox has %+v, %v: want both, refused", box, err)
		}
		if _, err := tm.p["base"].api.AdoptResult(t.Context(), api.AdoptRequest{ID: id, Result: box[0].Result}); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Minute)
		if got := tm.state("kitchen", id); got != workflow.InstanceSucceeded {
			t.Errorf("the instance is %s", got)
		}
		var texts []string
		for _, m := range tm.adoptions("tablet", "bia") {
			texts = append(texts, m.Text)
		}
		slices.Sort(texts)
		if want := []string{"your result of feed, which had not counted, counts now",
			"your result of weigh was adopted: it counts now"}; !slices.Equal(texts, want) {
			t.Errorf("bia is told %q, want %q", texts, want)
		}
	})
}

// What a user did out of reach cannot be changed, nor said to have failed, once something was made from it that waits as
// well: that would not count any more.
func TestTheEarlierStaysOnceTheLaterIsMadeFromIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, items := ahead(t)
		if err := tm.lockAll("tablet", "bia", items); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{"base", "kitchen"} {
			tm.disconnect(at, "tablet")
		}
		pass(time.Minute)
		for _, weight := range []string{"4", "5"} { // changed as long as nothing is made from it
			if err := tm.hand("tablet", "bia", items[0], map[string]string{"weight": weight}); err != nil {
				t.Fatal(err)
			}
		}
		if err := tm.hand("tablet", "bia", items[1], nil); err != nil {
			t.Fatal(err)
		}
		const no = "what was done here of feed was made from what was done of weigh, and would not count any more"
		wantCode(t, tm.hand("tablet", "bia", items[0], map[string]string{"weight": "6"}), api.Refused, no)
		_, err := tm.p["tablet"].api.FinishItem(t.Context(),
			api.ItemResult{User: "bia", Item: items[0], Failed: true, Reason: "no scales"})
		wantCode(t, err, api.Refused, no)
		if err := tm.hand("tablet", "bia", items[1], nil); err != nil {
			t.Errorf("the later, from which nothing is made: %v", err)
		}
		for _, at := range []string{"base", "kitchen"} {
			tm.connect(at, "tablet")
		}
		pass(5 * time.Minute)
		in := tm.show("base", id)
		for _, x := range in.Tasks {
			if x.State != workflow.Succeeded {
				t.Errorf("%s is %s", x.Name, x.State)
			}
		}
		if in.Data["weight"] != int64(5) {
			t.Errorf("the weight is %v", in.Data["weight"])
		}
	})
}

// What a device holds itself, and puts off, is in its outbox until it counts, or is refused there; also once it is
// adopted it leaves.
func TestWhatIsPutOffHereIsInTheOutbox(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("lost=%t", lost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm, id, items := aheadIn(t, strings.Replace(round, "partner: kitchen", "partner: tablet", 1))
				if err := tm.lockAll("tablet", "bia", items); err != nil {
					t.Fatal(err)
				}
				tm.goesAway("tablet")
				for i, outputs := range []map[string]string{{"weight": "3"}, nil} {
					if err := tm.hand("tablet", "bia", items[i], outputs); err != nil {
						t.Fatal(err)
					}
					pass(time.Second)
				}
				tm.wantOutbox("tablet", "bia|weigh|completed|base", "bia|feed|completed|tablet has it, after weigh")
				if lost {
					if _, err := tm.p["base"].api.TransferItem(t.Context(),
						api.TransferRequest{User: "ana", Item: items[0], To: "ana"}); err != nil {
						t.Fatal(err)
					}
				}
				tm.p["tablet"].crash()
				tm.p["tablet"].start()
				tm.comesBack("tablet", "base")
				pass(10 * time.Minute)
				if !lost {
					tm.wantOutbox("tablet")
					if got := tm.state("base", id); got != workflow.InstanceSucceeded {
						t.Errorf("the instance is %s", got)
					}
					return
				}
				const no = "it does not count, as "
				out, err := tm.p["tablet"].api.Outbox(t.Context(), "")
				if err != nil || len(out) != 2 || out[1].Task != "feed" || out[1].Result == "" || !strings.HasPrefix(out[1].Refused, no) {
					t.Fatalf("the outbox is %+v, %v", out, err)
				}
				if _, err := tm.p["base"].api.AdoptResult(t.Context(),
					api.AdoptRequest{User: "ana", ID: id, Result: out[0].Result}); err != nil {
					t.Fatal(err)
				}
				pass(10 * time.Second) // what was made from it counts by itself then
				tm.wantOutbox("tablet")
			})
		})
	}
}

// TestTheLaterThatIsHeldHereShowsWhatTheEarlierSet is the same where the later is the device's own: nothing is kept of
// that but the facts.
func TestTheLaterThatIsHeldHereShowsWhatTheEarlierSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _, items := aheadIn(t, strings.NewReplacer("after: weigh", "after: weigh, in: [weight]",
			"partner: kitchen", "partner: tablet").Replace(round))
		if err := tm.lockAll("tablet", "bia", items); err != nil {
			t.Fatal(err)
		}
		want := func(when string, value any) {
			t.Helper()
			s := tm.sheet("tablet", "bia", items[1])
			if len(s.Data) != 1 || fmt.Sprint(s.Data[0].Value) != fmt.Sprint(value) {
				t.Errorf("%s: the sheet has %+v, want the weight %v", when, s.Data, value)
			}
		}
		want("before", nil)
		tm.goesAway("tablet")
		if err := tm.hand("tablet", "bia", items[0], map[string]string{"weight": "5"}); err != nil {
			t.Fatal(err)
		}
		want("out of reach", 5)
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		want("after a restart", 5)
		tm.comesBack("tablet", "base")
		pass(time.Minute)
		want("handed in", 5)
	})
}

// TestTheLaterIsMadeFromWhatThisNodeHolds is about an earlier item that is the device's own: it counts at once, so after
// a restart the device knows by itself that the later is ready, whose holder has not heard of that when its result
// comes.
func TestTheLaterIsMadeFromWhatThisNodeHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, items := aheadAmong(t, strings.NewReplacer("after: weigh", "after: weigh, in: [weight]",
			"partner: base", "partner: tablet").Replace(round), nil, "base:nurse", "kitchen", "tablet:nurse")
		if err := tm.lockAll("tablet", "bia", items); err != nil {
			t.Fatal(err)
		}
		want := func(when string, value any, awaits ...string) {
			t.Helper()
			s := tm.sheet("tablet", "bia", items[1])
			if len(s.Data) != 1 || fmt.Sprint(s.Data[0].Value) != fmt.Sprint(value) ||
				!slices.Equal(s.Item.Awaits, awaits) {
				t.Errorf("%s: the sheet has %+v and waits for %q, want the weight %v and %q", when, s.Data,
					s.Item.Awaits, value, awaits)
			}
		}
		want("before", nil, "weigh")
		if x := tm.show("kitchen", id).Tasks[1]; x.ClaimedBy != "bia" || x.Started != nil {
			t.Errorf("what is locked ahead is shown as begun at %v, and %q has it", x.Started, x.ClaimedBy)
		}
		tm.goesAway("tablet")
		if err := tm.hand("tablet", "bia", items[0], map[string]string{"weight": "5"}); err != nil {
			t.Fatal(err)
		}
		want("out of reach", 5)
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		want("after a restart", 5)
		if err := tm.hand("tablet", "bia", items[1], nil); err != nil {
			t.Fatal(err)
		}
		tm.f.losing(func(from, _ workflow.PartnerID, m *wire.Message) bool { // of weigh nobody hears before
			return from == tm.p["tablet"].id() && len(m.Facts) > 0
		})
		tm.comesBack("tablet", "kitchen")
		pass(10 * time.Second)
		tm.wantOutbox("tablet", "bia|feed|completed|kitchen has it, after weigh", "bia|weigh|completed|base,kitchen")
		tm.f.losing(nil)
		tm.connect("tablet", "base")
		pass(time.Minute)
		tm.wantOutbox("tablet")
		if got := tm.state("kitchen", id); got != workflow.InstanceSucceeded {
			t.Errorf("the instance is %s", got)
		}
	})
}

// TestTheLaterWaitsUntilItsHolderHears is about an earlier item that failed, and in whose place this node did what has no
// word of a person which the result of the later could name, as with a program: the result waits in the outbox until the
// holder of the later has heard of that.
func TestTheLaterWaitsUntilItsHolderHears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, items := aheadAmong(t, strings.NewReplacer("out: [weight]}",
			"out: [weight], on-failure: {contingency: guess}}\n  guess: {type: manual, out: [weight]}",
			"[weigh]", "[weigh, guess]", "partner: base", "partner: tablet").Replace(round), nil,
			"base:nurse", "kitchen", "tablet:nurse")
		if err := tm.lockAll("tablet", "bia", items); err != nil {
			t.Fatal(err)
		}
		tm.disconnect("tablet", "kitchen")
		tm.disconnect("tablet", "base")
		pass(time.Minute)
		if _, err := tm.p["tablet"].api.FinishItem(t.Context(), api.ItemResult{
			User: "bia", Item: items[0], Failed: true, Reason: "no scales",
		}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		tm.finish("tablet", id, "guess")
		if err := tm.hand("tablet", "bia", items[1], nil); err != nil {
			t.Fatal(err)
		}
		tm.f.losing(func(from, _ workflow.PartnerID, m *wire.Message) bool { // of guess nobody hears before
			return from == tm.p["tablet"].id() && len(m.Facts) > 0
		})
		tm.connect("tablet", "kitchen")
		pass(10 * time.Second)
		for _, x := range tm.outbox("tablet") {
			if strings.Contains(x, "refused") || strings.Contains(x, "waits for weigh") {
				t.Errorf("before the kitchen hears of guess: %s", x)
			}
		}
		tm.f.losing(nil)
		tm.connect("tablet", "base")
		pass(time.Minute)
		tm.wantOutbox("tablet")
		if got := tm.state("kitchen", id); got != workflow.InstanceSucceeded {
			t.Errorf("the instance is %s", got)
		}
	})
}

// TestTheLaterWaitsForWhatOthersDo is about an item that waits for one which failed, and which others do in its place: its
// user is told so, and not to do it first, before the failure is handed in and after, also where the item is held here.
func TestTheLaterWaitsForWhatOthersDo(t *testing.T) {
	for _, holder := range []string{"kitchen", "tablet"} {
		t.Run("held by "+holder, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm, id, items := aheadIn(t, strings.NewReplacer("out: [weight]}",
					"out: [weight], on-failure: {contingency: guess}}\n  guess: {type: manual, out: [weight]}",
					"[weigh]", "[weigh, guess]", "partner: kitchen", "partner: "+holder).Replace(round))
				if err := tm.lockAll("tablet", "bia", items); err != nil {
					t.Fatal(err)
				}
				wantNot := func(when, why string) {
					t.Helper()
					err := tm.hand("tablet", "bia", items[1], nil)
					if err == nil || !strings.Contains(err.Error(), why) {
						t.Errorf("%s: %v, want %q", when, err, why)
					}
				}
				tm.goesAway("tablet")
				wantNot("before", "which bia has not done here")
				if _, err := tm.p["tablet"].api.FinishItem(t.Context(), api.ItemResult{
					User: "bia", Item: items[0], Failed: true, Reason: "no scales",
				}); err != nil {
					t.Fatal(err)
				}
				wantNot("out of reach", "which failed, as bia said here")
				tm.comesBack("tablet", "base")
				pass(time.Minute)
				tm.disconnect("tablet", "kitchen")
				wantNot("handed in", "which bia does not have")
				tm.connect("tablet", "kitchen")
				tm.finish("base", id, "guess")
				pass(time.Minute)
				if err := tm.hand("tablet", "bia", items[1], nil); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// doBoth has somebody do the two items that wait for each other at a device, after which the instance has ended.
func (tm *team) doBoth(at, who, id string, items []string) {
	tm.t.Helper()
	if err := tm.hand(at, who, items[0], map[string]string{"weight": "3"}); err != nil {
		tm.t.Fatal(err)
	}
	if err := tm.hand(at, who, items[1], nil); err != nil {
		tm.t.Fatal(err)
	}
	pass(time.Minute)
	if got := tm.state("kitchen", id); got != workflow.InstanceSucceeded {
		tm.t.Errorf("the instance is %s", got)
	}
}

// Whoever was told that a result counts hears at a device that takes no part when it does not any more, as what it
// stood in for was done after all: it is in the outbox, also after a restart.
func TestWhatCountsNoMoreIsToldWhereItWasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, nil, "base:nurse", "kitchen", "tablet")
		tm.signInNurses()
		tm.add("base", `
workflow: round
data: {weight: {type: integer}}
tasks:
  weigh: {type: manual, role: nurse, out: [weight], on-failure: {contingency: guess}, reconcile: keep-original}
  guess: {type: manual, role: nurse, out: [weight]}
partitions:
  ward:    {tasks: [weigh], partner: base}
  kitchen: {tasks: [guess], partner: kitchen}
`)
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "round"})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		item := tm.items("base", "ana")[0].ID
		if err := tm.claim("base", "ana", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		for _, at := range []string{"kitchen", "tablet"} {
			tm.disconnect("base", at)
		}
		pass(2 * time.Hour)
		other := tm.items("tablet", "bia")[0]
		if err := errors.Join(tm.claim("tablet", "bia", api.ClaimSelect, other.ID),
			tm.hand("tablet", "bia", other.ID, map[string]string{"weight": "3"}),
			tm.hand("base", "ana", item, map[string]string{"weight": "4"})); err != nil {
			t.Fatal(err)
		}
		tm.wantOutbox("tablet")
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		tm.connect("kitchen", "tablet")
		tm.connect("base", "kitchen")
		pass(10 * time.Minute)
		if got := tm.show("kitchen", st.ID).Data["weight"]; got != int64(4) {
			t.Fatalf("the weight is %v", got)
		}
		for range 2 {
			out := tm.outbox("tablet")
			if len(out) != 1 || !strings.HasPrefix(out[0], "bia|guess|completed||it counted, and does not any more, as ") {
				t.Fatalf("the outbox is %q", out)
			}
			tm.p["tablet"].crash()
			tm.p["tablet"].start()
		}
	})
}

// Whoever handed something in at a holder that was evicted before anybody else heard of it finds it in the outbox once the
// device hears of that, also after a restart.
func TestWhatOnlyAnEvictedHolderTookIsToldWhereItWasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, nil, "base:nurse", "kitchen:nurse", "tablet")
		tm.signInNurses()
		tm.add("base", `
workflow: errand
tasks: {go: {type: manual, role: nurse}, sum: {type: manual, role: nurse, after: go}}
partitions: {far: {tasks: [go], partner: kitchen}, near: {tasks: [sum], partner: base}}
`)
		id := tm.begin("base", "errand", nil)
		pass(time.Second)
		for _, at := range []string{"kitchen", "tablet"} {
			tm.disconnect("base", at)
		}
		pass(time.Second)
		item := tm.itemOf("tablet", "bia", "go").ID
		err := errors.Join(tm.claim("tablet", "bia", api.ClaimSelect, item), tm.hand("tablet", "bia", item, nil))
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		tm.wantOutbox("tablet")
		tm.expel("base", "kitchen")
		tm.connect("base", "tablet")
		pass(time.Minute)
		if state := tm.taskOf("base", id, "go").State; state != "FAILED" {
			t.Errorf("at base it is %s", state)
		}
		for range 2 {
			tm.wantOutbox("tablet", "bia|go|completed||kitchen had taken it, and was removed from the mesh since: "+
				"it counts only where others had heard of it before that")
			tm.p["tablet"].crash()
			tm.p["tablet"].start()
		}
	})
}

// What is said to have failed after it was done, out of reach, is nothing from which anything is made.
func TestWhatWasDoneAndThenFailedIsNotBuiltUpon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _, items := aheadIn(t, strings.Replace(round, "after: weigh}", "after: weigh, in: [weight]}", 1))
		if err := tm.lockAll("tablet", "bia", items); err != nil {
			t.Fatal(err)
		}
		tm.goesAway("tablet")
		if err := tm.hand("tablet", "bia", items[0], map[string]string{"weight": "3"}); err != nil {
			t.Fatal(err)
		}
		_, err := tm.p["tablet"].api.FinishItem(t.Context(),
			api.ItemResult{User: "bia", Item: items[0], Failed: true, Reason: "no scales"})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // also after a restart
			wantCode(t, tm.hand("tablet", "bia", items[1], nil), api.Refused, "feed waits for weigh, which failed")
			if s := tm.sheet("tablet", "bia", items[1]); len(s.Data) != 1 || s.Data[0].Value != nil {
				t.Errorf("the sheet has %+v", s.Data)
			}
			tm.p["tablet"].crash()
			tm.p["tablet"].start()
		}
	})
}

// What was done ahead waits at the device where the definition was changed meanwhile so that its task waits for
// something else as well: it is handed in once that is done.
func TestWhatWaitsForMoreByNowIsHandedInLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const three = `
workflow: round
data:
  weight: {type: integer}
tasks:
  weigh: {type: manual, role: nurse, offline: true, out: [weight]}
  feed:  {type: manual, role: nurse, offline: true, after: weigh}
  wash:  {type: manual, role: nurse}
partitions:
  ward:    {tasks: [weigh, wash], partner: base}
  kitchen: {tasks: [feed], partner: kitchen}
`
		tm := newTeamOf(t, nil, "base:nurse", "kitchen", "tablet")
		tm.signInNurses()
		tm.add("base", three)
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "round", User: "ana"})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		ids := map[string]string{}
		for _, x := range tm.aheadOf("tablet", "bia") {
			ids[x.Task] = x.ID
		}
		if err := tm.lockAll("tablet", "bia", []string{ids["weigh"], ids["feed"]}); err != nil {
			t.Fatal(err)
		}
		tm.goesAway("tablet")
		if _, err := tm.p["base"].api.AmendInstance(t.Context(), api.AmendRequest{ID: st.ID, User: "ana",
			Source: strings.Replace(three, "after: weigh}", "after: wash}", 1)}); err != nil {
			t.Fatal(err)
		}
		for task, outputs := range map[string]map[string]string{"weigh": {"weight": "3"}} {
			if err := tm.hand("tablet", "bia", ids[task], outputs); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		if err := tm.hand("tablet", "bia", ids["feed"], nil); err != nil {
			t.Fatal(err)
		}
		tm.comesBack("tablet", "base")
		tm.connect("tablet", "kitchen")
		pass(10 * time.Minute)
		tm.wantOutbox("tablet", "bia|feed|completed|kitchen")
		if err := errors.Join(tm.claim("base", "ana", api.ClaimSelect, ids["wash"]),
			tm.hand("base", "ana", ids["wash"], nil)); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Minute)
		tm.wantOutbox("tablet")
		if got := tm.state("kitchen", st.ID); got != workflow.InstanceSucceeded {
			t.Errorf("the instance is %s", got)
		}
	})
}
