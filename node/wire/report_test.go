package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// The request to look at an instance, held against its bytes: nodes of different
// ages speak with each other.
func TestLook(t *testing.T) {
	l := wire.Look{Instance: workflow.InstanceID{1, 2}, What: wire.LookLog}
	b, err := wire.EncodeLook(l)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%x", b), "0182500102000000000000000000000000000001"; got != want {
		t.Errorf("encoded as %s, want %s", got, want)
	}
	if got, err := wire.DecodeLook(b); err != nil || got != l {
		t.Errorf("came out as %+v, %v", got, err)
	}
	for _, c := range []struct {
		what string
		b    []byte
		want error
	}{
		{"nothing", nil, wire.ErrMalformed},
		{"another version", append([]byte{wire.Version + 1}, b[1:]...), wire.ErrVersion},
		{"cut short", b[:len(b)-1], wire.ErrMalformed},
		{"something behind it", append(bytes.Clone(b), 0), wire.ErrMalformed},
		{"what nobody can show", append(bytes.Clone(b[:len(b)-1]), 2), wire.ErrMalformed},
	} {
		if _, err := wire.DecodeLook(c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", c.what, err, c.want)
		}
	}
}

// A sender fills frames by the size of reports: it must not be too small.
func TestReportSize(t *testing.T) {
	r := report()
	for range wire.MaxReported - 2 {
		r.At = append(r.At, "12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA")
		r.Participants = append(r.Participants, "12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA")
	}
	for _, r := range []wire.Report{{}, report(), r} {
		frame, err := wire.Encode(&wire.Message{Reports: []wire.Report{r}})
		if err != nil {
			t.Fatal(err)
		}
		if len(frame) > r.Size() {
			t.Errorf("a report takes %d bytes, reckoned as %d", len(frame), r.Size())
		}
	}
}

func FuzzDecodeLook(f *testing.F) {
	for _, what := range []wire.LookWhat{wire.LookInstance, wire.LookLog} {
		b, err := wire.EncodeLook(wire.Look{Instance: workflow.InstanceID{1}, What: what})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := wire.DecodeLook(b)
		if err != nil {
			if !errors.Is(err, wire.ErrMalformed) && !errors.Is(err, wire.ErrVersion) {
				t.Fatalf("unexpected error %v", err)
			}
			return
		}
		again, err := wire.EncodeLook(l)
		if err != nil {
			t.Fatalf("a request that decoded cannot be encoded: %v", err)
		}
		if m, err := wire.DecodeLook(again); err != nil || m != l {
			t.Fatalf("came out as %+v, %v; went in as %+v", m, err, l)
		}
	})
}

// A report whose times JSON cannot say is refused, by its would-be sender, too.
func TestTimesOfReports(t *testing.T) {
	for _, c := range []struct {
		started, ended int64
		good           bool
	}{{0, 0, true}, {1, wire.MaxWall, true}, {math.MaxInt64, 0, false}, {-1, 0, false}, {1, wire.MaxWall + 1, false},
		{1, math.MinInt64, false}} {
		r := report()
		r.Started, r.Ended = c.started, c.ended
		frame, err := wire.Encode(&wire.Message{Reports: []wire.Report{r}})
		if err == nil {
			_, err = wire.Decode(frame)
		}
		if (err == nil) != c.good {
			t.Errorf("from %d to %d: %v", c.started, c.ended, err)
		}
	}
}
