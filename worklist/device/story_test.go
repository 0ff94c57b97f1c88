package device

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// TestStories runs testdata/stories/*.txt: each is the session of a user at a device.
// Commands:
//
//	device [disk=N] [rate=N] [prefetch] [spare=N] [save-energy]
//	piece NAME size=N [here=N] [app]
//	items                   reads how the user's items stand, a line each, in the order of the list:
//	    NAME [select|lock|handed] [offline] [needs=(PIECE,…)] [output=N] [after=(NAME,…)] [waits]
//	    [due=D] [warnings=(D,…)] [remote-app] [lost=REASON]
//	    with part: what is not listed stays
//	ask MODE ITEM…          the user asks for items
//	granted ITEM MODE, refused ITEM REASON
//	open ITEM [remote], finish ITEM [failed] [size=N], release ITEM, seen ITEM
//	disconnect D, accept, stay, freed N, lost, return, slow, fast, low
//	got PIECE UPTO, corrupt PIECE FROM, measure BYTES D
//	sent ITEM UPTO, acknowledged ITEM [release]
//	advise ITEM, hear P, as-of P, alerts ITEM, lease ITEM
//	crash                   the device starts again with what it had saved
//	advance D
//	show
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		s := &story{d: New("davi")}
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			t.Helper()
			s.t, s.td = t, td
			if out := strings.TrimRight(s.run(), "\n"); out != "" {
				return out + "\n"
			}
			return ""
		})
	})
}

type story struct {
	t     *testing.T
	td    *datadriven.TestData
	d     *Device
	saved State
	now   time.Duration
}

var start = time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)

func (s *story) moment() worklist.Moment { return worklist.Moment{Boot: s.now, Wall: start.Add(s.now)} }

func (s *story) run() string {
	commands := map[string]func() (Effects, error){
		"device": s.device, "piece": s.piece, "items": s.items, "ask": s.ask,
		"granted": func() (Effects, error) {
			return s.d.Granted(s.item(0), worklist.Mode(s.word(1)), worklist.ID{1}, s.moment()), nil
		},
		"refused": func() (Effects, error) { return s.d.Refused(s.item(0), s.word(1)), nil },
		"open":    func() (Effects, error) { return s.d.Open(s.item(0), !s.td.HasArg("remote")) },
		"finish": func() (Effects, error) {
			return s.d.Finish(s.item(0), s.td.HasArg("failed"), s.number(s.arg("size")), s.moment())
		},
		"release":      func() (Effects, error) { return s.d.Release(s.item(0), s.moment()) },
		"seen":         func() (Effects, error) { return s.d.Seen(s.item(0)), nil },
		"disconnect":   func() (Effects, error) { return s.d.Disconnect(s.span(s.word(0)), s.moment()) },
		"accept":       func() (Effects, error) { return s.d.Accept(s.moment()) },
		"stay":         func() (Effects, error) { return s.d.Stay(), nil },
		"freed":        func() (Effects, error) { return s.d.Freed(s.number(s.word(0)), s.moment()), nil },
		"lost":         func() (Effects, error) { return s.d.Lost(), nil },
		"return":       func() (Effects, error) { return s.d.Return(s.moment()) },
		"slow":         func() (Effects, error) { return s.d.Slow(true), nil },
		"fast":         func() (Effects, error) { return s.d.Slow(false), nil },
		"low":          func() (Effects, error) { s.d.Low = true; return Effects{}, nil },
		"got":          func() (Effects, error) { return s.d.Got(PieceID(s.word(0)), s.number(s.word(1)), s.moment()), nil },
		"corrupt":      func() (Effects, error) { return s.d.Corrupt(PieceID(s.word(0)), s.number(s.word(1))), nil },
		"measure":      func() (Effects, error) { s.d.Measure(s.number(s.word(0)), s.span(s.word(1))); return Effects{}, nil },
		"sent":         func() (Effects, error) { return s.d.Sent(ParcelID{s.item(0), "result"}, s.number(s.word(1))), nil },
		"acknowledged": s.acknowledged,
		"hear":         func() (Effects, error) { s.d.Hear(s.word(0), s.moment().Wall); return Effects{}, nil },
		"advance":      func() (Effects, error) { s.now += s.span(s.word(0)); return Effects{}, nil },
		"crash":        func() (Effects, error) { s.d = Load(s.saved); return Effects{}, nil },
	}
	switch s.td.Cmd {
	case "show":
		return s.show()
	case "as-of":
		return s.d.AsOf(s.word(0), s.moment().Wall)
	case "advise":
		a, err := s.d.Advise(s.item(0))
		return a.Text + errText(err)
	case "alerts":
		return s.alerts()
	case "lease":
		left, has := s.d.LeaseLeft(s.item(0), s.moment())
		return fmt.Sprint(left, " ", has)
	}
	fn := commands[s.td.Cmd]
	if fn == nil {
		s.td.Fatalf(s.t, "unknown command %s", s.td.Cmd)
	}
	plan := s.d.Plan
	out, err := fn()
	if err != nil {
		return "refused: " + err.Error()
	}
	if out.Save || s.td.Cmd == "device" || s.td.Cmd == "piece" {
		s.saved = s.d.Save()
	}
	return s.effects(out) + s.plan(plan)
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// plan is what the user is asked, and that all is done.
func (s *story) plan(was *Plan) string {
	switch p := s.d.Plan; {
	case p != nil && p.Asks != NoQuestion:
		return fmt.Sprintf("asks %s about %s: %s\n", p.Asks, names(p.Items), p.Text)
	case p == nil && (was != nil || s.td.Cmd == "disconnect") && s.d.Link == Away:
		return "disconnected\n"
	}
	return ""
}

func names(items []worklist.Item) string {
	var out []string
	for _, i := range items {
		out = append(out, string(i.Slot))
	}
	return strings.Join(out, ", ")
}

func (s *story) effects(x Effects) string {
	var b strings.Builder
	if x.Active != nil {
		fmt.Fprintf(&b, "tell partners: active %v\n", *x.Active)
	}
	for _, a := range x.Ask {
		fmt.Fprintf(&b, "ask for %s: %s\n", a.Item.Slot, a.Mode)
	}
	if x.Sync {
		b.WriteString("ask all holders how the items stand\n")
	}
	for _, f := range x.Fetch {
		fmt.Fprintf(&b, "fetch %s from %d%s\n", f.Piece, f.From, map[bool]string{true: " with what is spare"}[f.Spare])
	}
	for _, p := range x.Remove {
		fmt.Fprintf(&b, "remove %s\n", p)
	}
	for _, p := range x.Send {
		fmt.Fprintf(&b, "send the %s of %s from %d\n", p.Parcel.What, p.Parcel.Item.Slot, p.From)
	}
	if x.Cut {
		b.WriteString("leave all contact\n")
	}
	return b.String()
}

func (s *story) word(i int) string {
	if i >= len(s.td.CmdArgs) {
		s.td.Fatalf(s.t, "argument %d is missing", i)
	}
	return s.td.CmdArgs[i].Key
}

func (s *story) arg(key string) string {
	if a, ok := s.td.Arg(key); ok {
		return strings.Join(a.Vals, ",")
	}
	return ""
}

func (s *story) number(text string) int64 {
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.td.Fatalf(s.t, "%v", err)
	}
	return n
}

func (s *story) span(text string) time.Duration {
	d, err := workflow.ParseDuration(text)
	if err != nil {
		s.td.Fatalf(s.t, "%v", err)
	}
	return d
}

func item(name string) worklist.Item { return worklist.Item{Slot: workflow.TaskName(name)} }

func (s *story) item(i int) worklist.Item { return item(s.word(i)) }

func (s *story) device() (Effects, error) {
	s.d.Free, s.d.Rate = s.number(s.arg("disk")), s.number(s.arg("rate"))
	s.d.Setting = Settings{Prefetch: s.td.HasArg("prefetch"), Spare: s.number(s.arg("spare")), SaveEnergy: s.td.HasArg("save-energy")}
	return Effects{}, nil
}

func (s *story) piece() (Effects, error) {
	s.d.Learn(PieceID(s.word(0)), Piece{Size: s.number(s.arg("size")), Here: s.number(s.arg("here")), Application: s.td.HasArg("app")})
	return Effects{}, nil
}

func (s *story) items() (Effects, error) {
	var jobs []Job
	for line := range strings.Lines(s.td.Input) {
		name, args, err := datadriven.ParseLine(line)
		if err != nil {
			s.td.Fatalf(s.t, "%v", err)
		}
		j := Job{Item: item(name), Ready: true}
		for _, a := range args {
			s.attribute(&j, a)
		}
		jobs = append(jobs, j)
	}
	return s.d.Update(jobs, !s.td.HasArg("part")), nil
}

func (s *story) attribute(j *Job, a datadriven.CmdArg) {
	switch a.Key {
	case "select", "lock", "handed":
		j.Mode, j.Grant, j.Lease, j.Locked = worklist.Mode(a.Key), worklist.ID{1}, worklist.DefaultLease(worklist.Mode(a.Key)), s.now
	case "offline":
		j.Offline = true
	case "waits":
		j.Ready = false
	case "lost":
		j.Taken = a.Vals[0]
	case "remote-app":
		j.RemoteApp = true
	case "output":
		j.Output = s.number(a.Vals[0])
	case "due":
		j.Due.After = s.span(a.Vals[0])
	case "warnings":
		for _, v := range a.Vals {
			j.Warnings = append(j.Warnings, s.span(v))
		}
	case "needs":
		for _, v := range a.Vals {
			j.Needs = append(j.Needs, PieceID(v))
		}
	case "after":
		for _, v := range a.Vals {
			j.After = append(j.After, item(v))
		}
	default:
		s.td.Fatalf(s.t, "an item has no %s", a.Key)
	}
}

func (s *story) ask() (Effects, error) {
	var items []worklist.Item
	for _, a := range s.td.CmdArgs[1:] {
		items = append(items, item(a.Key))
	}
	return s.d.Ask(worklist.Mode(s.word(0)), items...)
}

func (s *story) acknowledged() (Effects, error) {
	what := "result"
	if s.td.HasArg("release") {
		what = "release"
	}
	return s.d.Acknowledged(ParcelID{s.item(0), what}), nil
}

func (s *story) alerts() string {
	var b strings.Builder
	for _, a := range s.d.Alerts(s.item(0), s.moment()) {
		fmt.Fprintf(&b, "%s: %s left\n", a.At.Format("02 15:04"), a.Left)
	}
	return b.String()
}

func (s *story) show() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d bytes free\n", s.d.Link, s.d.Free)
	for _, e := range s.d.List() {
		j := s.d.Jobs[e.Item]
		fmt.Fprintf(&b, "%s %s", e.Item.Slot, e.State)
		if j.Run != Idle && j.Run != Done {
			fmt.Fprintf(&b, " %s", j.Run)
		}
		if j.Asked != "" {
			fmt.Fprintf(&b, " asked to %s", j.Asked)
		}
		if ok, why := s.d.Enabled(e.Item); !ok {
			fmt.Fprintf(&b, " (%s)", why)
		}
		b.WriteString("\n")
	}
	var pieces []string
	for id, p := range s.d.Pieces {
		pieces = append(pieces, fmt.Sprintf("%s %d of %d", id, p.Here, p.Size))
	}
	slices.Sort(pieces)
	if len(pieces) > 0 {
		fmt.Fprintf(&b, "pieces: %s\n", strings.Join(pieces, ", "))
	}
	for _, p := range s.d.InOutbox() {
		fmt.Fprintf(&b, "outbox: %s of %s, %d of %d bytes, since %s\n", p.What, p.Item.Slot, p.Sent, p.Size, p.Since.Format("02 15:04"))
	}
	return b.String()
}
