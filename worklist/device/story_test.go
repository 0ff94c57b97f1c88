package device_test

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist/device"
)

var rewrite = flag.Bool("rewrite", false, "write what the stories say into their files")

// TestStories plays the stories of testdata/stories: a command a line, and below it what
// the device is to do then. With -rewrite the answers are written into the files.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			s := story{t: t, d: device.Device{Files: map[device.FileID]device.File{}}}
			for line := range strings.Lines(string(b)) {
				switch {
				case strings.HasPrefix(line, "  "):
				case strings.HasPrefix(line, "#"), strings.TrimSpace(line) == "":
					got.WriteString(line)
				default:
					s.does(strings.Fields(line))
					fmt.Fprintf(&got, "%s%s", line, s.says())
				}
			}
			if got.String() == string(b) {
				return
			}
			if !*rewrite {
				t.Errorf("the story is now:\n%s", got.String())
			} else if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
				t.Error(err)
			}
		})
	}
}

type story struct {
	t *testing.T
	d device.Device
}

func (s *story) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *story) span(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// does carries out a command.
func (s *story) does(words []string) {
	file := func() (device.FileID, device.File) { id := device.FileID(words[1]); return id, s.d.Files[id] }
	switch words[0] {
	case "file": // NAME SIZE
		s.d.Files[device.FileID(words[1])] = device.File{Size: s.number(words[2])}
	case "locked", "selected", "own": // NAME FILE...
		i := device.Item{ID: words[1], Locked: words[0] == "locked", Own: words[0] == "own"}
		for _, id := range words[2:] {
			i.Files = append(i.Files, device.FileID(id))
		}
		s.d.Items = append(slices.DeleteFunc(s.d.Items, func(x device.Item) bool { return x.ID == i.ID }), i)
	case "lacks": // NAME APPLICATION
		for n := range s.d.Items {
			if s.d.Items[n].ID == words[1] {
				s.d.Items[n].Lacks = workflow.ApplicationName(words[2])
			}
		}
	case "installed": // APPLICATION
		for n := range s.d.Items {
			if s.d.Items[n].Lacks == workflow.ApplicationName(words[1]) {
				s.d.Items[n].Lacks = ""
			}
		}
	case "release":
		s.d.Items = slices.DeleteFunc(s.d.Items, func(x device.Item) bool { return x.ID == words[1] })
	case "came": // FILE BYTES in SPAN
		id, f := file()
		f.Here, f.Stuck = f.Here+s.number(words[2]), ""
		f.Whole = f.Here == f.Size
		s.d.Files[id] = f
		if n := s.number(words[2]); n > 0 {
			s.d.Rate, s.d.From = n/int64(s.span(words[4])/time.Second), "depot"
		}
		s.d.Waited += s.span(words[4])
	case "stuck": // FILE WHY...
		id, f := file()
		f.Stuck = strings.Join(words[2:], " ")
		s.d.Files[id] = f
	case "waited":
		s.d.Waited += s.span(words[1])
	case "disk": // lacks BYTES
		s.d.Lacks, s.d.Limit = s.number(words[2]), 0
	case "limit": // lacks BYTES wants BYTES
		s.d.Lacks, s.d.Limit = s.number(words[2]), s.number(words[4])
	case "disconnect": // within SPAN
		s.d.Within, s.d.Waited = s.span(words[2]), 0
	case "accept":
		s.d.Accepted = append(s.d.Accepted, device.Question(words[1]))
	default:
		s.t.Fatalf("no such command: %q", words)
	}
}

// says is what the device is to do.
func (s *story) says() string {
	if s.d.Within == 0 {
		return ""
	}
	p := device.Leave(s.d)
	var b strings.Builder
	if p.Volume > 0 {
		fmt.Fprintf(&b, "  %d bytes are to come, in %s\n", p.Volume,
			cmp.Or(map[bool]string{p.Takes > 0: p.Takes.String()}[true], "?"))
	}
	if len(p.Fetch) > 0 {
		fmt.Fprintf(&b, "  fetches %v\n", p.Fetch)
	}
	if p.Asks != device.NoQuestion {
		fmt.Fprintf(&b, "  asks %s about %s: %s\n", p.Asks, strings.Join(p.Items, ", "), p.Text)
	}
	if p.Go {
		b.WriteString("  goes\n")
	}
	return b.String()
}

// TestLeaveAnyhow asks devices in any state: none goes with a question open or a file missing
// that nobody gave up, each question can be met, and whoever says yes to all that can be
// accepted waits for nothing but what comes and what has no room.
func TestLeaveAnyhow(t *testing.T) {
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := device.Device{
			Files: map[device.FileID]device.File{}, Rate: r.Int64N(3) * 10, Lacks: max(r.Int64N(4)-2, 0),
			Within: time.Duration(r.IntN(20)) * time.Second, Waited: time.Duration(r.IntN(30)) * time.Second,
		}
		for n := range r.IntN(5) {
			f := device.File{Size: r.Int64N(100)}
			f.Here = r.Int64N(f.Size + 1)
			f.Whole = f.Here == f.Size && r.IntN(2) == 0
			if r.IntN(3) == 0 {
				f.Stuck = "nobody is there"
			}
			d.Files[device.FileID(fmt.Sprint(n))] = f
		}
		for n := range r.IntN(4) {
			i := device.Item{ID: fmt.Sprint("i", n), Locked: r.IntN(3) > 0, Own: r.IntN(5) == 0}
			for n := range len(d.Files) {
				if r.IntN(2) == 0 {
					i.Files = append(i.Files, device.FileID(fmt.Sprint(n)))
				}
			}
			if r.IntN(4) == 0 {
				i.Lacks = "editor"
			}
			d.Items = append(d.Items, i)
		}
		for _, q := range device.Acceptable {
			if r.IntN(2) == 0 {
				d.Accepted = append(d.Accepted, q)
			}
		}
		p := device.Leave(d)
		lacking := device.Missed(d.Items, d.Files, false)
		for _, id := range lacking {
			if p.Go && (d.Files[id].Stuck == "" || !slices.Contains(d.Accepted, device.Missing)) {
				t.Fatalf("seed %d: it goes without %s: %+v", seed, id, d)
			}
		}
		asks := p.Asks != device.NoQuestion
		if asks && (p.Go || p.Text == "" || len(p.Items) == 0 || slices.Contains(d.Accepted, p.Asks)) {
			t.Fatalf("seed %d: %+v of %+v", seed, p, d)
		}
		lacks := func(i device.Item) bool { return i.Locked && i.Lacks != "" }
		if p.Go && slices.ContainsFunc(d.Items, lacks) && !slices.Contains(d.Accepted, device.NoProgram) {
			t.Fatalf("seed %d: it goes without an application: %+v", seed, d)
		}
		if p.Go && asks || !p.Go && !asks && len(p.Fetch) == 0 {
			t.Fatalf("seed %d: nothing follows: %+v of %+v", seed, p, d)
		}
		d.Accepted = device.Acceptable
		if p := device.Leave(d); p.Asks != device.NoQuestion && p.Asks != device.NoSpace || !p.Tell {
			t.Fatalf("seed %d: all is accepted, and it asks %s", seed, p.Asks)
		}
	}
}

func TestTakes(t *testing.T) {
	for _, x := range []struct {
		bytes, rate int64
		want        time.Duration
	}{
		{0, 5, 0}, {10, 0, 0}, {1, 1000, time.Second}, {90, 30, 3 * time.Second},
		{1 << 62, 1, 100 * 365 * 24 * time.Hour},
	} {
		if got := device.Takes(x.bytes, x.rate); got != x.want {
			t.Errorf("%d bytes at %d a second take %s, want %s", x.bytes, x.rate, got, x.want)
		}
	}
}
