package aptitude

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestAllocate runs the scenarios in testdata. A scenario lists resources,
//
//	r NAME [availability=A] [rested=R] [busy] [flow=F] TASK=SUITABILITY…
//
// items that wait,
//
//	w NAME TASK [time=T] [ready=T] [due=T] [start=T] [expected=T] [urgency=U] [growth=G] [rejected=RESOURCE] [violates=RESOURCE:CONSTRAINT:PENALTY]…
//
// and work in hand, "h TASK TIME", and prints who gets what and why.
func TestAllocate(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			q, rs := readScene(t, d)
			if err := Check(q, rs); err != nil {
				return "error: " + err.Error()
			}
			var out strings.Builder
			for _, a := range Allocate(q, rs, readPolicy(t, d), rand.New(rand.NewPCG(1, 2))) {
				fmt.Fprintln(&out, &a)
				if a.Again > 0 {
					fmt.Fprintf(&out, "  ask again at %v\n", a.Again)
				}
				if a.Load > 0 {
					fmt.Fprintf(&out, "  costs %.3f\n", a.Load)
				}
			}
			return out.String()
		})
	})
}

func readPolicy(t *testing.T, d *datadriven.TestData) Policy {
	m, err := ParseMechanism(d.Cmd)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	p := Policy{Mechanism: m, Relax: d.HasArg("relax"), Compensate: d.HasArg("compensate")}
	if d.HasArg("patience") {
		var patience int
		d.ScanArgs(t, "patience", &patience)
		p.Patience = float64(patience)
	}
	if d.HasArg("order") {
		var order string
		d.ScanArgs(t, "order", &order)
		if p.Dispatching, err = ParseDispatching(order); err != nil {
			d.Fatalf(t, "%v", err)
		}
	}
	return p
}

func readScene(t *testing.T, d *datadriven.TestData) (Queue, []Resource) {
	q := Queue{InHand: map[TaskID]float64{}}
	if d.HasArg("now") {
		var now int
		d.ScanArgs(t, "now", &now)
		q.Now = float64(now)
	}
	var rs []Resource
	for line := range strings.Lines(d.Input) {
		f := strings.Fields(line)
		switch f[0] {
		case "r":
			rs = append(rs, readResource(t, d, f[1:]))
		case "w":
			q.Waiting = append(q.Waiting, readItem(t, d, f[1:]))
		case "h":
			q.InHand[TaskID(f[1])] = number(t, d, f[2])
		default:
			d.Fatalf(t, "unknown line %q", line)
		}
	}
	return q, rs
}

func readResource(t *testing.T, d *datadriven.TestData, f []string) Resource {
	r := Resource{ID: ResourceID(f[0]), Rested: 1, Suitability: map[TaskID]float64{}}
	availability := -1.0
	for _, arg := range f[1:] {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "availability":
			availability = number(t, d, value)
		case "rested":
			r.Rested = number(t, d, value)
		case "busy":
			r.Busy = true
		case "flow":
			r.LastFlow = number(t, d, value)
		default:
			r.Suitability[TaskID(key)] = number(t, d, value)
		}
	}
	if r.Availability = availability; availability < 0 {
		r.Availability = r.Rested
	}
	return r
}

func readItem(t *testing.T, d *datadriven.TestData, f []string) Item {
	it := Item{ID: ItemID(f[0]), Task: TaskID(f[1]), Time: 10, Violations: map[ResourceID][]Violation{}}
	numbers := map[string]*float64{
		"time": &it.Time, "ready": &it.Ready, "due": &it.Instance.Due, "start": &it.Instance.Start,
		"expected": &it.Instance.Expected, "urgency": &it.Urgency.Initial, "growth": &it.Urgency.Growth,
	}
	for _, arg := range f[2:] {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "rejected":
			it.Rejected = append(it.Rejected, ResourceID(value))
		case "violates":
			v := strings.Split(value, ":")
			id := ResourceID(v[0])
			it.Violations[id] = append(it.Violations[id], Violation{v[1], number(t, d, v[2])})
		default:
			if numbers[key] == nil {
				d.Fatalf(t, "unknown word %q", arg)
			}
			*numbers[key] = number(t, d, value)
		}
	}
	return it
}

func number(t *testing.T, d *datadriven.TestData, s string) float64 {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return x
}
