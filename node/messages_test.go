package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// messages are what a user is told at a node; new ones have a star.
func (tm *team) messages(at, user string) (out []string) {
	tm.t.Helper()
	list, err := tm.p[at].api.Messages(tm.t.Context(), api.MessagesQuery{User: user})
	if err != nil {
		tm.t.Fatal(err)
	}
	for _, m := range list {
		if m.Workflow == "rota" {
			continue // which nurses begins
		}
		fresh := "*"
		if m.Read {
			fresh = ""
		}
		out = append(out, strings.TrimSuffix(fmt.Sprintf("%s%s %s: %s", fresh, m.Workflow, m.Type, m.Text), ": "))
	}
	return out
}

func (tm *team) wantMessages(at, user string, want ...string) {
	tm.t.Helper()
	if got := tm.messages(at, user); !slices.Equal(got, want) {
		tm.t.Errorf("%s at %s is told\n%s\nwant\n%s", user, at, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (tm *team) readAll(at, user string) {
	tm.t.Helper()
	if err := tm.p[at].api.ReadMessages(tm.t.Context(), api.MessagesRead{User: user, All: true}); err != nil {
		tm.t.Fatal(err)
	}
}

// What is counted beside the list of messages is what the list has, also where it was counted a moment ago.
func TestTheCountOfMessagesIsThatOfTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		tm.add("base", plan)
		count := func() int {
			n, err := tm.p["base"].api.UnreadMessages(t.Context(), "ana")
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := count()
		tm.begin("base", "plan", nil)
		list, err := tm.p["base"].api.Messages(t.Context(), api.MessagesQuery{Unread: true, User: "ana"})
		if got := count(); err != nil || len(list) <= before || got != len(list) {
			t.Errorf("%d were counted before; the list has %d, and %d are counted beside it: %v", before, len(list), got, err)
		}
	})
}

// plan has tasks that fail and tasks that are late.
const plan = `
workflow: plan
warnings: [1h, 30m]
tasks:
  look: {type: manual, role: nurse, deadline: 3h, offline: true}
  mend: {type: manual, after: look}
partitions: {main: {tasks: [look, mend], partner: base}}
`

// plannedFor is a mesh of nurses with an instance of plan for which ana answers.
func plannedFor(t *testing.T) (tm *team, id string) {
	tm, rotaID := nurses(t)
	if err := tm.p["base"].api.Cancel(t.Context(), rotaID, "no need"); err != nil {
		t.Fatal(err)
	}
	tm.add("base", plan)
	st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "plan", Responsible: "ana"})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return tm, st.ID
}

// Whoever answers for an instance is told of its course and of its deadlines; whoever has an item, of that
// item's deadline, also out of reach and after the device was started again; nobody else is told anything.
func TestMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := plannedFor(t)
		const began = "plan started: it has started"
		tm.wantMessages("base", "ana", "*"+began)
		tm.wantMessages("tablet", "bia")
		tm.wantMessages("phone", "phone")
		tm.readAll("base", "ana")
		item := tm.items("tablet", "bia")[0].ID
		if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
			t.Fatal(err)
		}
		tm.disconnect("base", "tablet")
		pass(2*time.Hour + time.Minute)
		const hour, half, over = "plan deadline: look is due in 1h", "plan deadline: look is due in 30m",
			"plan deadline: the deadline of look is over"
		tm.wantMessages("base", "ana", began, "*"+hour)
		tm.wantMessages("tablet", "bia", "*"+hour)
		tm.readAll("tablet", "bia")
		tm.p["tablet"].crash()
		tm.p["base"].crash()
		pass(30 * time.Minute)
		tm.p["tablet"].start()
		tm.p["base"].start()
		tm.wantMessages("tablet", "bia", hour, "*"+half)
		tm.wantMessages("base", "ana", began, "*"+hour, "*"+half)
		tm.readAll("base", "ana")
		pass(30 * time.Minute)
		tm.wantMessages("base", "ana", began, hour, half, "*"+over+": let it go on, or stop it")
		tm.wantMessages("tablet", "bia", hour, "*"+half, "*"+over)

		// The same message has one name at all devices.
		names := map[string]int{}
		for at, user := range map[string]string{"base": "ana", "tablet": "bia"} {
			list, err := tm.p[at].api.Messages(t.Context(), api.MessagesQuery{User: user})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range list {
				if m.Type == api.MessageDeadline {
					names[m.ID]++
				}
				if m.Workflow == "plan" && m.Instance != id || m.At.After(time.Now()) {
					t.Errorf("it is about %s, at %s", m.Instance, m.At)
				}
			}
		}
		if len(names) != 3 {
			t.Errorf("three messages have the names %v", names)
		}

		tm.connect("base", "tablet")
		pass(time.Minute)
		if _, err := tm.p["tablet"].api.FinishItem(t.Context(),
			api.ItemResult{User: "bia", Item: item, Failed: true, Reason: "fog"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		tm.wantMessages("tablet", "bia")
		tm.wantMessages("base", "ana", began, "*plan failed: look has failed: fog",
			"*plan ended: it has ended: blocked")
		if err := tm.p["base"].api.Cancel(t.Context(), id, "enough"); err != nil {
			t.Fatal(err)
		}
		tm.readAll("base", "ana")
		tm.p["base"].crash()
		tm.p["base"].start()
		tm.wantMessages("base", "ana", began, "plan failed: look has failed: fog",
			"plan ended: it has ended: cancelled")
		tm.wantMessages("base", "base")
		wantCode(t, tm.p["base"].api.ReadMessages(t.Context(), api.MessagesRead{User: "ana", IDs: []string{"00"}}),
			api.NotFound, "no message")
	})
}

// An order by which a task is done once more lets the instance go on: its next end is another message.
func TestEveryEndIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := plannedFor(t)
		fail := func() {
			t.Helper()
			if err := tm.p["base"].api.FinishTask(t.Context(),
				api.FinishRequest{ID: id, Task: "look", Failed: true, Reason: "fog\n  no boat\n"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		fail()
		tm.readAll("base", "ana")
		if _, err := tm.p["base"].api.OrderTask(t.Context(),
			api.TaskOrder{User: "ana", ID: id, Task: "look", Order: api.TaskAgain}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		tm.wantMessages("base", "ana", "plan started: it has started", "plan failed: look has failed: fog; no boat")
		pass(time.Minute)
		fail()
		tm.wantMessages("base", "ana", "plan started: it has started", "plan failed: look has failed: fog; no boat",
			"*plan failed: look has failed: fog; no boat",
			"*plan ended: it has ended: blocked")
	})
}

// What people are told of an instance goes with its facts, and with what they had read of it.
func TestMessagesGoWithTheirInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Keep = time.Hour }, "base")
		tm.add("base", "workflow: short\ntasks: {a: {}}\npartitions: {main: {tasks: [a], partner: base}}\n")
		for range 3 {
			if _, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "short"}); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Minute)
		if got := tm.messages("base", "base"); len(got) != 6 {
			t.Fatalf("told: %q", got)
		}
		tm.readAll("base", "base")
		pass(4 * time.Hour)
		tm.wantMessages("base", "base")
		for _, prefix := range []byte{'n', worklists.PrefixRead, 'i'} {
			_ = tm.p["base"].disk.Scan([]byte{prefix}, func(key, _ []byte) error {
				t.Errorf("%q is left of it", key)
				return nil
			})
		}
	})
}

// Whoever watches hears of a deadline that comes near, though nothing else happens.
func TestADeadlineIsHeardOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := plannedFor(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		heard := make(chan time.Time, 100)
		go func() {
			_ = tm.p["base"].api.Watch(ctx, func(e api.Event) error {
				if e.Kind == "message" {
					heard <- time.Now()
				}
				return nil
			})
		}()
		began := time.Now()
		pass(4 * time.Hour)
		cancel()
		synctest.Wait()
		close(heard)
		var got []time.Duration
		for at := range heard {
			got = append(got, at.Sub(began).Round(time.Minute))
		}
		if want := []time.Duration{2 * time.Hour, 150 * time.Minute, 3 * time.Hour}; !slices.Equal(got, want) {
			t.Errorf("heard after %v, want %v", got, want)
		}
	})
}

// Of an instance whose responsible user is gone for good, a partner that was evicted or a user who was removed, those
// are told who may still do something about it: administrators, who decide, and partners that take part, who may cancel
// it. That is so after its end and a restart too; who is neither is told nothing, and while that one is there nobody is.
func TestWhoIsToldWhenNobodyAnswers(t *testing.T) {
	for _, gone := range []string{"phone", "rui"} {
		t.Run(gone, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm, rotaID := nurses(t) // bia at the tablet, ana at base
				if err := tm.p["base"].api.Cancel(t.Context(), rotaID, "no need"); err != nil {
					t.Fatal(err)
				}
				for user, role := range map[string]string{"eva": "chief", "rui": "nurse"} {
					at := map[string]string{"eva": "base", "rui": "phone"}[user]
					if err := tm.signIn(at, tm.addUser("base", user, role)); err != nil {
						t.Fatal(err)
					}
				}
				pass(time.Second)
				tm.add("phone", strings.Replace(plan, "workflow: plan", "workflow: plan\nadministrators: chief", 1))
				st, err := tm.p["phone"].api.Start(t.Context(), api.StartRequest{Workflow: "plan", Responsible: gone})
				if err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				const began, failed = "*plan started: it has started", "*plan failed: look has failed: fog"
				tm.wantMessages("base", "eva")
				tm.wantMessages("base", "base")
				if gone == "phone" {
					tm.expel("base", "phone")
				} else if _, err := tm.p["base"].api.RemoveUser(t.Context(), gone); err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				tm.wantMessages("base", "eva", began)
				tm.wantMessages("base", "base", began)
				tm.wantMessages("base", "ana")
				wantCode(t, tm.order("base", "ana", st.ID, api.TaskCancel, ""), api.NotAllowed,
					", who answered for the instance, is not here any more: that is decided by who has the role chief")
				tm.wantMessages("tablet", "bia")
				item := tm.items("tablet", "bia")[0].ID
				if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
					t.Fatal(err)
				}
				if _, err := tm.p["tablet"].api.FinishItem(t.Context(),
					api.ItemResult{User: "bia", Item: item, Failed: true, Reason: "fog"}); err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				const ended = "*plan ended: it has ended: blocked"
				tm.wantMessages("base", "eva", began, failed, ended)
				tm.p["base"].crash()
				tm.p["base"].start()
				tm.wantMessages("base", "eva", began, failed, ended)
				tm.wantMessages("base", "base", began, failed, ended)
				tm.wantMessages("base", "ana")
				hinted := func(want string) { // to cancel it is named where that can be done
					t.Helper()
					var no *api.Error
					if err := tm.order("base", "ana", st.ID, api.TaskAgain, "look"); !errors.As(err, &no) || no.Hint != want {
						t.Errorf("ana is refused with %v, and the hint %q; want %q", err, no.Hint, want)
					}
				}
				hinted("ask them (mutirao user list); each partner that takes part may cancel the instance, as the user of its own name")
				if err := tm.order("base", "base", st.ID, api.TaskCancel, ""); err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				hinted("ask them: mutirao user list shows who has the role")
			})
		})
	}
}

// Whoever had an item when its deadline came near is told so also after others took it away, until that is read, and
// nothing that comes later: at a node that takes part in the instance, and at one that does not.
func TestADeadlineIsToldAlsoToWhoHadIt(t *testing.T) {
	for at, user := range map[string]string{"tablet": "bia", "base": "base"} {
		to := map[string]string{"bia": "base", "base": "bia"}[user]
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm, id := plannedFor(t)
				if err := tm.claim(at, user, api.ClaimSelect, tm.items(at, user)[0].ID); err != nil {
					t.Fatal(err)
				}
				const hour = "*plan deadline: look is due in 1h"
				pass(2*time.Hour + time.Minute)
				tm.wantMessages(at, user, hour)
				if _, err := tm.p["base"].api.TransferItem(t.Context(),
					api.TransferRequest{User: "ana", ID: id, Task: "look", To: to, Reason: "the other ward"}); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
				tm.items(at, user)
				const lost = "plan lost: look is no longer yours, as the item was handed on by ana"
				tm.wantMessages(at, user, hour, "*"+lost)
				list, err := tm.p[at].api.Messages(t.Context(), api.MessagesQuery{User: user, Unread: true})
				if err != nil || !slices.ContainsFunc(list, func(m api.Message) bool { return m.Past && m.Type == api.MessageDeadline }) {
					t.Errorf("it is told as %+v, %v", list, err)
				}
				pass(time.Hour) // more warnings, and the end of the deadline
				tm.wantMessages(at, user, hour, "*"+lost)
				tm.readAll(at, user)
				tm.wantMessages(at, user, lost)
				tm.wantMessages("phone", "phone")
			})
		})
	}
}

// Whoever answers for an instance is told whether a task failed, or succeeded and brought the state that interrupts it.
func TestWhatInterruptsAnInstanceIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one")
		tm.add("one", "workflow: hire\ndata: {n: {type: integer, default: 0}}\ntasks:\n"+
			"  pick: {when: n == 0, repeat: true, type: manual, out: [n]}\nfinal: n == 9\n")
		for _, failed := range []bool{true, false} {
			id := tm.begin("one", "hire", map[string]string{})
			pass(time.Second)
			r, want := api.FinishRequest{Task: "pick", Failed: true, Reason: "no ink"},
				"pick has failed: the instance is interrupted: no ink"
			if !failed {
				r, want = api.FinishRequest{Task: "pick", Outputs: map[string]string{"n": "1"}},
					"pick brought a state that interrupts the instance: the state fires no trigger"
			}
			tm.ends("one", id, r)
			pass(time.Second)
			if told := strings.Join(tm.messages("one", "one"), "\n"); !strings.Contains(told, want) {
				t.Errorf("told is\n%s\nwant %s", told, want)
			}
		}
	})
}

// errand is done by the station, or, if that gives no word, by whoever takes it.
const errand = `
workflow: errand
tasks:
  go:  {type: manual, role: nurse, timeout: 10m, on-failure: {contingency: ask}}
  ask: {type: manual, role: nurse, offline: true}
  sum: {type: manual, role: doctor, after: go}
partitions: {away: {tasks: [go], partner: station}, main: {tasks: [sum], partner: base}}
`

// Whoever has the item of a contingency is told at once when that is not needed any more, as what it stands in for was
// done in time after all: where the instance goes on, and where it has ended by that; at nodes that take part, and at
// others; and not once more after a restart.
func TestWhoHasWhatIsNotNeededIsTold(t *testing.T) {
	for _, ends := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tm := newTeam(t, "base:nurse", "station:nurse", "tablet")
			for at, user := range map[string]string{"tablet": "bia", "base": "ana"} {
				if err := tm.signIn(at, tm.addUser("base", user, "nurse", "doctor")); err != nil {
					t.Fatal(err)
				}
			}
			pass(time.Second)
			text := errand
			if ends {
				text = strings.NewReplacer("  sum: {type: manual, role: doctor, after: go}\n", "", ", main: {tasks: [sum], partner: base}", "").
					Replace(errand)
			}
			tm.add("base", text)
			st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "errand", Responsible: "station"})
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			tm.cut([]string{"station"}, []string{"base", "tablet"})
			tm.finish("station", st.ID, "go")
			pass(30 * time.Minute)
			at, user := "base", "ana"
			if !ends { // the tablet takes no part
				at, user = "tablet", "bia"
			}
			if err := tm.claim(at, user, api.ClaimLock, tm.itemOf(at, user, "ask").ID); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
			tm.wantMessages(at, user)
			tm.connect("base", "station")
			pass(6 * time.Second)
			const lost = "errand lost: ask is no longer yours, as the task that it stands in for was done after all"
			tm.wantMessages(at, user, "*"+lost)
			tm.wantMessages("base", "base")
			tm.readAll(at, user)
			if !ends {
				return
			}
			pass(time.Hour)
			tm.p[at].crash()
			tm.p[at].start()
			pass(time.Minute)
			tm.wantMessages(at, user, lost)
		})
	}
}

// Whoever has an item that somebody else passes on is told, each time: at a node that takes part, and at another, also
// after a restart. That the user passes it on is not told.
func TestWhoHasWhatIsPassedOnIsTold(t *testing.T) {
	for _, at := range []string{"base", "tablet"} { // the tablet takes no part
		synctest.Test(t, func(t *testing.T) {
			tm := newTeam(t, "base:nurse", "station:nurse", "tablet")
			for _, user := range []string{"bia", "ana"} {
				if err := tm.signIn(at, tm.addUser("base", user, "nurse", "doctor")); err != nil {
					t.Fatal(err)
				}
			}
			pass(time.Second)
			tm.add("base", errand)
			st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "errand", Responsible: "base"})
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			const lost = "errand lost: go is no longer yours, as the item was put back by base"
			for range 2 {
				if err := tm.claim(at, "bia", api.ClaimSelect, tm.itemOf(at, "bia", "go").ID); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
				tm.wantMessages(at, "bia")
				if _, err := tm.p["base"].api.TransferItem(t.Context(),
					api.TransferRequest{ID: st.ID, Task: "go", User: "base", Back: true}); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
				tm.wantMessages(at, "bia", "*"+lost)
				tm.readAll(at, "bia")
				tm.wantMessages(at, "bia", lost)
			}
			tm.wantMessages(at, "ana")
			mine := tm.itemOf(at, "ana", "go").ID
			if err := tm.claim(at, "ana", api.ClaimSelect, mine); err != nil {
				t.Fatal(err)
			}
			if _, err := tm.p[at].api.TransferItem(t.Context(), api.TransferRequest{User: "ana", Item: mine, To: "bia"}); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
			tm.wantMessages(at, "ana")
			tm.p[at].crash()
			tm.p[at].start()
			pass(time.Minute)
			tm.wantMessages(at, "bia", lost)
		})
	}
}

// What a user lost is said under the list until the user has read it, there or as a message, and again when the item is
// lost once more; also of what no message says, and after a restart.
func TestWhatWasLostIsReadOnce(t *testing.T) {
	for _, at := range []string{"base", "tablet"} { // the tablet takes no part
		synctest.Test(t, func(t *testing.T) {
			tm := newTeam(t, "base:nurse", "tablet")
			for _, user := range []string{"bia", "ana"} {
				if err := tm.signIn(at, tm.addUser("base", user, "nurse")); err != nil {
					t.Fatal(err)
				}
			}
			pass(time.Second)
			tm.add("base", hunt)
			st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "hunt", Responsible: "base"})
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			lost := func(read bool) (message string) {
				t.Helper()
				if _, err := tm.p[at].api.Worklist(t.Context(), api.WorklistQuery{User: "bia"}); err != nil { // as the command has it
					t.Fatal(err)
				}
				list, err := tm.p[at].api.WorklistLost(t.Context(), "bia")
				if err != nil || len(list) != 1 || list[0].Read != read {
					t.Fatalf("at %s: %+v, %v; want one that was read: %t", at, list, err, read)
				}
				return list[0].Message
			}
			take := func(user string) {
				t.Helper()
				if err := tm.claim(at, user, api.ClaimSelect, tm.itemOf(at, user, "paper").ID); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
			}
			for i := range 2 { // is put back, which is a message as well
				take("bia")
				if _, err := tm.p["base"].api.TransferItem(t.Context(),
					api.TransferRequest{ID: st.ID, Task: "paper", User: "base", Back: true}); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
				if is := lost(false); i > 0 {
					tm.readAll(at, "bia")
				} else if err := tm.p[at].api.ReadMessages(t.Context(), api.MessagesRead{User: "bia", IDs: []string{is}}); err != nil {
					t.Fatal(err)
				}
				lost(true)
				if n, err := tm.p[at].api.UnreadMessages(t.Context(), "bia"); err != nil || n > 0 {
					t.Errorf("at %s %d messages are new, %v", at, n, err)
				}
			}
			take("bia")
			pass(25 * time.Hour) // its time is over, and no message says so
			take("ana")
			tm.readAll(at, "bia")
			is := lost(false)
			if err := tm.p[at].api.ReadMessages(t.Context(), api.MessagesRead{User: "bia", IDs: []string{is}}); err != nil {
				t.Fatal(err)
			}
			lost(true)
			tm.p[at].crash()
			tm.p[at].start()
			pass(time.Minute)
			lost(true)
			if err := tm.p[at].api.ReadMessages(t.Context(), api.MessagesRead{User: "ana", IDs: []string{is}}); err == nil {
				t.Errorf("at %s another can read it", at)
			}
		})
	}
}

// Whoever has an item of an instance that is cancelled is told, at nodes that take part and at others; also where a
// result ends the instance by which another's contingency is not needed. What is not there any more is not shown as if the
// user had it.
func TestWhoHasAnItemOfWhatEndsIsTold(t *testing.T) {
	for _, cancelled := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			tm := newTeam(t, "base:nurse", "station:nurse", "tablet")
			for at, user := range map[string]string{"tablet": "bia", "base": "ana"} {
				if err := tm.signIn(at, tm.addUser("base", user, "nurse", "doctor")); err != nil {
					t.Fatal(err)
				}
			}
			pass(time.Second)
			tm.add("base", strings.NewReplacer("  sum: {type: manual, role: doctor, after: go}\n", "",
				", main: {tasks: [sum], partner: base}", "").Replace(errand))
			st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "errand", Responsible: "station"})
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			tm.cut([]string{"station"}, []string{"base", "tablet"})
			if !cancelled {
				tm.finish("station", st.ID, "go")
			}
			pass(30 * time.Minute)
			item := tm.itemOf("tablet", "bia", "ask")
			if err := tm.claim("tablet", "bia", api.ClaimSelect, item.ID); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
			tm.wantMessages("tablet", "bia")
			tm.connect("base", "station")
			tm.connect("tablet", "station")
			why := "the task that it stands in for was done after all"
			if cancelled {
				why = "the instance was cancelled"
				if err := tm.p["station"].api.Cancel(t.Context(), st.ID, "enough"); err != nil {
					t.Fatal(err)
				}
			}
			pass(2 * time.Minute)
			lost := "errand lost: ask is no longer yours, as " + why
			for range 2 {
				tm.wantMessages("tablet", "bia", "*"+lost)
				pass(time.Minute)
			}
			list, err := tm.p["tablet"].api.Messages(t.Context(), api.MessagesQuery{User: "bia"})
			if err != nil || len(list) != 1 || list[0].Task != "ask" {
				t.Errorf("it is about %+v, %v", list, err)
			}
			tm.wantItems("tablet", "bia")
			is, err := tm.p["tablet"].api.ItemSheet(t.Context(), api.ItemQuery{User: "bia", Item: item.ID})
			if err != nil || is.Item.State == api.ItemSelected || !is.Item.Over {
				t.Errorf("it is shown as %+v, %v", is, err)
			}
			tm.readAll("tablet", "bia")
			tm.wantMessages("tablet", "bia", lost)
		})
	}
}

// Whoever has an item of a task that others only presume to have failed, and whose holder has not heard of that, is
// told so, and not that the item is lost: the list has it still. Once the holder has heard of it, it is lost, with the
// true reason.
func TestWhoHasWhatIsPresumedToHaveFailedIsTold(t *testing.T) {
	for choice, goesOn := range map[string]string{
		"{contingency: ask}": "ask stands in for it", "release": "what waits for it goes on",
	} {
		why := "presumed to have failed, and " + goesOn
		synctest.Test(t, func(t *testing.T) {
			tm := newTeam(t, "base:nurse", "station:nurse")
			if err := tm.signIn("base", tm.addUser("base", "ana", "nurse", "doctor")); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			text := strings.NewReplacer("role: nurse, timeout: 10m", "role: nurse, offline: true, timeout: 10h",
				"{contingency: ask}", choice).Replace(errand)
			if choice == "release" {
				text = strings.Replace(text, "tasks: [sum]", "tasks: [sum, ask]", 1)
			}
			tm.add("base", text)
			st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "errand", Responsible: "base"})
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			item := tm.itemOf("base", "ana", "go")
			if err := tm.claim("base", "ana", api.ClaimLock, item.ID); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
			tm.p["station"].crash()
			pass(3 * time.Hour)
			tm.wantMessages("base", "ana", "*errand lost: go is "+why+": you may go on, but what you make of it may not count")
			tm.wantLost("base", "ana", "go as the task is "+why)
			if is := tm.itemOf("base", "ana", "go").State; is != api.ItemLocked {
				t.Errorf("it is listed as %s", is)
			}
			list, err := tm.p["base"].api.WorklistLost(t.Context(), "ana")
			if err != nil || len(list) != 1 || !list[0].Presumed {
				t.Errorf("it is said as %+v, %v", list, err)
			}
			tm.readAll("base", "ana")
			tm.p["station"].start()
			tm.connect("base", "station")
			pass(6 * time.Second)
			tm.wantMessages("base", "ana", "*errand lost: go is no longer yours, as the task was "+why)
			tm.wantLost("base", "ana", "go as the task was "+why)
			if task := tm.taskOf("base", st.ID, "go"); task.State != "FAILED" {
				t.Errorf("the task is %s", task.State)
			}
		})
	}
}

// hunt ends as soon as somebody has found it.
const hunt = `
workflow: hunt
data:
  found: {type: string}
tasks:
  north: {type: manual, role: nurse, offline: true, out: [found], timeout: 2h}
  south: {type: manual, role: nurse, offline: true, out: [found]}
  paper: {type: manual, role: nurse}
final: found != null
partitions: {main: {tasks: [north, south, paper], partner: base}}
`

// Whatever ends an item that somebody has, that one is told by a message and by a line under the list, with the true
// reason, at the node that holds it and at others: also once the instance has ended.
func TestWhateverEndsAnItemIsTold(t *testing.T) {
	for _, x := range []struct {
		why, line string
		end       func(tm *team, id string)
	}{
		{"the data are final", "as the data are final", func(tm *team, _ string) {
			item := tm.itemOf("base", "ana", "south")
			if err := tm.claim("base", "ana", api.ClaimSelect, item.ID); err != nil {
				tm.t.Fatal(err)
			}
			if err := tm.hand("base", "ana", item.ID, map[string]string{"found": "here"}); err != nil {
				tm.t.Fatal(err)
			}
		}},
		{"the instance was cancelled", "as the instance was cancelled", func(tm *team, id string) {
			if err := tm.p["base"].api.Cancel(tm.t.Context(), id, "enough"); err != nil {
				tm.t.Fatal(err)
			}
		}},
		{"the task had failed by then", "as the task had failed by then", func(tm *team, _ string) { pass(3 * time.Hour) }},
		{"the task was stopped", "as the task was stopped", func(tm *team, id string) {
			if err := tm.order("base", "", id, api.TaskStop, "north"); err != nil {
				tm.t.Fatal(err)
			}
		}},
	} {
		for _, at := range []string{"tablet", "base"} {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeam(t, "base:nurse", "tablet")
				tm.signInNurses()
				user := map[string]string{"tablet": "bia", "base": "ana"}[at]
				tm.add("base", hunt)
				id := tm.begin("base", "hunt", nil)
				item := tm.itemOf(at, user, "north")
				if err := tm.claim(at, user, api.ClaimSelect, item.ID); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
				x.end(tm, id)
				for range 2 {
					pass(time.Minute)
					tm.wantTold(at, user, "*hunt lost: north is no longer yours, as "+x.why)
					tm.wantLost(at, user, "north "+x.line)
				}
				tm.p[at].crash()
				tm.p[at].start()
				if at == "tablet" { // its holder is not asked again
					tm.p["base"].crash()
				}
				pass(time.Minute)
				tm.wantTold(at, user, "*hunt lost: north is no longer yours, as "+x.why)
				tm.wantLost(at, user, "north "+x.line)
			})
		}
	}
}

// Whoever had an item hands in what was made of it also where the instance ended meanwhile and the node was started
// again: it is kept, whether that node holds the item, only takes part, or does not.
func TestWorkOfWhatHasEndedIsKeptAfterARestart(t *testing.T) {
	for _, at := range []string{"base", "crew", "tablet"} {
		for _, looks := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeam(t, "base:nurse", "crew", "tablet")
				if err := tm.signIn(at, tm.addUser("base", "bia", "nurse")); err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				tm.add("base", "workflow: dig\ndata: {found: {type: string}}\ntasks: {dig: {type: manual, role: nurse, "+
					"offline: true, out: [found]}, fill: {type: manual, after: dig}}\n"+
					"partitions: {near: {tasks: [dig], partner: base}, far: {tasks: [fill], partner: crew}}\n")
				id := tm.begin("base", "dig", nil)
				item := tm.itemOf(at, "bia", "dig").ID
				if err := tm.claim(at, "bia", api.ClaimLock, item); err != nil {
					t.Fatal(err)
				}
				if at != "base" {
					tm.p[at].crash()
				}
				if err := tm.p["base"].api.Cancel(t.Context(), id, "enough"); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
				if at != "base" {
					tm.p[at].start()
					tm.connect(at, "base")
					pass(time.Minute)
				}
				for range 2 { // also where it was looked at before the second time
					if looks {
						if _, err := tm.p[at].api.Worklist(t.Context(), api.WorklistQuery{User: "bia"}); err != nil {
							t.Fatal(err)
						}
					}
					tm.p[at].crash()
					tm.p[at].start()
					if at != "base" {
						tm.connect(at, "base")
					}
					pass(time.Minute)
				}
				err := tm.hand(at, "bia", item, map[string]string{"found": "here"})
				wantCode(t, err, api.Refused, "it is kept")
				if !tm.incident("base", id, "is kept and does not count, as the instance was cancelled: found = here") {
					t.Errorf("what was done at %s is shown nowhere", at)
				}
			})
		}
	}
}

// Whoever took an item at a device is told what became of it, also where that device was off when the instance ended, and
// nobody had looked since.
func TestADeviceKnowsWhatWasTakenThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base:nurse", "tablet")
		if err := tm.signIn("tablet", tm.addUser("base", "bia", "nurse")); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.add("base", hunt)
		id := tm.begin("base", "hunt", nil)
		for _, task := range []string{"north", "south"} {
			if err := tm.claim("tablet", "bia", api.ClaimSelect, tm.itemOf("tablet", "bia", task).ID); err != nil {
				t.Fatal(err)
			}
		}
		if err := tm.claim("tablet", "bia", api.ClaimRelease, tm.itemOf("tablet", "bia", "south").ID); err != nil {
			t.Fatal(err)
		}
		tm.p["tablet"].crash()
		pass(time.Minute)
		if err := tm.p["base"].api.Cancel(t.Context(), id, "enough"); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		tm.p["tablet"].start()
		tm.connect("tablet", "base")
		pass(time.Minute)
		tm.wantMessages("tablet", "bia", "*hunt lost: north is no longer yours, as the instance was cancelled")
		tm.wantLost("tablet", "bia", "north as the instance was cancelled")
	})
}

// What somebody only selected of a partner in whose instance the device takes no part is listed there, as it was known
// when it was taken, though the device was started again out of reach; and so is what others presumed of what was
// locked.
func TestADeviceListsWhatWasTakenThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base:nurse", "crew", "tablet")
		if err := tm.signIn("tablet", tm.addUser("base", "bia", "nurse")); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.add("base", "workflow: dig\ntasks: {dig: {type: manual, role: nurse, offline: true}, fill: {type: manual, after: dig}}\n"+
			"partitions: {near: {tasks: [dig], partner: base}, far: {tasks: [fill], partner: crew}}\n")
		tm.begin("base", "dig", nil)
		if err := tm.claim("tablet", "bia", api.ClaimLock, tm.itemOf("tablet", "bia", "dig").ID); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{"base", "tablet"} {
			tm.disconnect(at, "crew")
		}
		pass(3 * time.Hour)
		tm.connect("base", "crew")
		pass(time.Minute)
		tm.add("base", hunt)
		tm.begin("base", "hunt", nil)
		item := tm.itemOf("tablet", "bia", "north")
		if err := tm.claim("tablet", "bia", api.ClaimSelect, item.ID); err != nil {
			t.Fatal(err)
		}
		known := time.Now()
		pass(time.Minute)
		if x := tm.itemOf("tablet", "bia", "dig"); x.Presumed == "" {
			t.Errorf("in reach nobody presumes anything of %+v", x)
		}
		tm.disconnect("base", "tablet")
		pass(time.Hour)
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		pass(time.Minute)
		var of []api.Item
		for _, x := range tm.items("tablet", "bia") {
			if x.State == api.ItemSelected {
				of = append(of, x)
			}
			if x.State == api.ItemLocked && x.Presumed != "expired" {
				t.Errorf("of dig others presumed %q", x.Presumed)
			}
		}
		if len(of) != 1 || of[0].ID != item.ID || of[0].Role != item.Role || !of[0].AsOf.Equal(known) || !of[0].Unreachable {
			t.Errorf("bia has %+v", of)
		}
		wantCode(t, tm.hand("tablet", "bia", item.ID, nil), api.Refused, "base, who holds north, cannot be asked now")
		tm.connect("base", "tablet")
		pass(time.Minute)
		if x := tm.itemOf("tablet", "bia", "north"); x.State != api.ItemSelected || x.Unreachable {
			t.Errorf("back in reach it is %+v", x)
		}
		if err := tm.hand("tablet", "bia", item.ID, nil); err != nil {
			t.Error(err)
		}
	})
}

// wantTold checks what a user is told that is not about an instance as a whole.
func (tm *team) wantTold(at, user string, want ...string) {
	tm.t.Helper()
	got := slices.DeleteFunc(tm.messages(at, user), func(m string) bool {
		return strings.Contains(m, " started: ") || strings.Contains(m, " ended: ") || strings.Contains(m, " failed: ")
	})
	if !slices.Equal(got, want) {
		tm.t.Errorf("%s at %s is told\n%s\nwant\n%s", user, at, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// wantLostTold compares the messages of what a user lost.
func (tm *team) wantLostTold(at, user string, want ...string) {
	tm.t.Helper()
	list, err := tm.p[at].api.Messages(tm.t.Context(), api.MessagesQuery{User: user})
	if err != nil {
		tm.t.Fatal(err)
	}
	var got []string
	for _, m := range list {
		if m.Type == "lost" {
			got = append(got, m.Text)
		}
	}
	if !slices.Equal(got, want) {
		tm.t.Errorf("%s at %s is told of what was lost %q, want %q", user, at, got, want)
	}
}

// wantLost checks what a user is told under the list to have lost.
func (tm *team) wantLost(at, user string, want ...string) {
	tm.t.Helper()
	list, err := tm.p[at].api.WorklistLost(tm.t.Context(), user)
	if err != nil {
		tm.t.Fatal(err)
	}
	var got []string
	for _, x := range list {
		got = append(got, x.Task+" "+x.Why)
	}
	if !slices.Equal(got, want) {
		tm.t.Errorf("%s at %s is shown to have lost %q, want %q", user, at, got, want)
	}
}

// Whoever has an item of a task that is not needed any more, as its rule cannot hold any more, or as an amendment took
// it out that its holder had not heard of, is told.
func TestWhoHasWhatIsSkippedIsTold(t *testing.T) {
	for _, x := range []struct{ task, at, user string }{
		{"look", "base", "ana"}, {"look", "tablet", "bia"}, {"rest", "base", "ana"}, {"rest", "tablet", "bia"},
	} {
		synctest.Test(t, func(t *testing.T) {
			tm := newTeam(t, "base:nurse", "station:nurse", "tablet")
			tm.signInNurses()
			const text = `
workflow: errand
tasks:
  go:   {type: manual, role: nurse, timeout: 10m}
  look: {type: manual, role: nurse, offline: true, when: 'failed("go")'}
  rest: {type: manual, role: nurse}
  last: {type: manual, role: nurse}
partitions: {away: {tasks: [go], partner: station}, main: {tasks: [look, rest, last], partner: base}}
`
			tm.add("base", text)
			st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "errand", Responsible: "station"})
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			tm.cut([]string{"station"}, []string{"base", "tablet"})
			tm.finish("station", st.ID, "go")
			pass(30 * time.Minute)
			if x.task == "rest" {
				_, err := tm.p["station"].api.AmendInstance(t.Context(), api.AmendRequest{
					ID: st.ID, File: "errand.yaml", Source: strings.NewReplacer("  rest: {type: manual, role: nurse}\n", "",
						"look, rest, last", "look, last").Replace(text),
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := tm.claim(x.at, x.user, api.ClaimSelect, tm.itemOf(x.at, x.user, x.task).ID); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
			tm.wantTold(x.at, x.user)
			tm.connect("base", "station")
			why := "the task is not needed any more"
			for range 2 {
				pass(time.Minute)
				if state := tm.taskOf("base", st.ID, workflow.TaskName(x.task)).State; state != "SKIPPED" {
					t.Errorf("%s is %s", x.task, state)
				}
				tm.wantTold(x.at, x.user, "*errand lost: "+x.task+" is no longer yours, as "+why)
				tm.wantLost(x.at, x.user, x.task+" as "+why)
			}
		})
	}
}

// Whoever has a task that a data state fired is told that it is over, as the instance was interrupted, and since when.
func TestWhoHasWhatAnInterruptionEndsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base:nurse")
		if err := tm.signIn("base", tm.addUser("base", "ana", "nurse")); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.add("base", "workflow: rent\ndata: {n: {type: integer}, m: {type: integer}}\ntasks:\n"+
			"  pick: {when: n == null, repeat: true, type: manual, role: nurse, out: [n]}\n"+
			"  see:  {when: m == null, repeat: true, type: manual, role: nurse, out: [m]}\nfinal: n == 1\n")
		tm.begin("base", "rent", nil)
		pass(time.Second)
		for _, task := range []string{"see", "pick"} {
			if err := tm.claim("base", "ana", api.ClaimSelect, tm.itemOf("base", "ana", task).ID); err != nil {
				t.Fatal(err)
			}
		}
		_, err := tm.p["base"].api.FinishItem(t.Context(),
			api.ItemResult{User: "ana", Item: tm.itemOf("base", "ana", "pick").ID, Failed: true, Reason: "no key"})
		if err != nil {
			t.Fatal(err)
		}
		since := time.Now()
		pass(time.Hour)
		tm.wantTold("base", "ana", "*rent lost: see is no longer yours, as the instance was interrupted")
		lost, err := tm.p["base"].api.WorklistLost(t.Context(), "ana")
		if err != nil || len(lost) != 1 || lost[0].Why != "as the instance was interrupted" || lost[0].At.Sub(since).Abs() > time.Minute {
			t.Errorf("it is lost as %+v, %v", lost, err)
		}
	})
}
