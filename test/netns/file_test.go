//go:build linux

package netns_test

import (
	"bytes"
	"context"
	"flag"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/test/testnode"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// fileSize is how many MB TestFileOverABrokenLink sends.
var fileSize = flag.Int("file", 24, "TestFileOverABrokenLink: the size of the file in MB")

const delivery = `
workflow: delivery
data: {film: {type: file, required: true}}
tasks:
  watch: {type: manual, in: [film]}
partitions:
  there: [watch]
`

// A file comes whole over a link that is cut ten times, with either side killed besides, and no more
// than one chunk comes twice for each break.
func TestFileOverABrokenLink(t *testing.T) {
	l := newLAN(t, 2)
	if l == nil {
		return
	}
	all := l.mesh("preset: lan", "connection-time: 10m")
	allSee(t, healing, all, "active", names(all)...)
	giver, taker := all[0], all[1]
	slow := l.Command(0, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "80mbit", "burst", "64kb",
		"latency", "50ms")
	if out, err := exec.CommandContext(t.Context(), slow[0], slow[1:]...).CombinedOutput(); err != nil {
		t.Logf("the link is as fast as it is: %v: %s", err, out)
	}

	content := make([]byte, *fileSize*1_000_000)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range content {
		content[i] = byte(r.Uint32())
	}
	f, err := giver.API.PutFile(t.Context(), "film.mp4", bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := giver.API.AddWorkflow(t.Context(), "delivery.yaml", []byte(delivery)); err != nil {
		t.Fatal(err)
	}
	st, err := giver.API.Start(t.Context(), api.StartRequest{
		Workflow: "delivery", Input: map[string]string{"film": f.Value}, Assign: map[string]string{"there": taker.Name},
	})
	if err != nil {
		t.Fatal(err)
	}
	part := func() int64 { // of the file, what is on the taker's disk, holes left out
		var sum int64
		found, _ := filepath.Glob(filepath.Join(taker.Dir, "files", "*.part"))
		for _, name := range append(found, glob(taker.Dir, "*.data")...) {
			var s syscall.Stat_t
			if syscall.Stat(name, &s) == nil {
				sum += s.Blocks * 512
			}
		}
		return sum
	}
	before, _ := l.sent(0)
	breaks := breakAgainAndAgain(t, l, giver, taker, part, int64(len(content)))
	testnode.Within(t, 5*time.Minute, "the file is at the taker", func() bool { return here(t, taker, st.ID) })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, got, err := taker.API.File(ctx, st.ID, "film")
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(got)
	if err != nil || !bytes.Equal(b, content) {
		t.Fatalf("%d bytes came, of %d: %v", len(b), len(content), err)
	}
	after, _ := l.sent(0)
	t.Logf("%s came whole over %d breaks; its giver sent %s", workflow.FormatSize(int64(len(content))), breaks,
		workflow.FormatSize(int64(after-before)))
	// An eighth is for headers, what QUIC sends again, and what else nodes say.
	if most := uint64(len(content))*9/8 + uint64(breaks)*files.Chunk; after-before > most {
		t.Errorf("more than %s were sent", workflow.FormatSize(int64(most)))
	}
}

func glob(dir, what string) []string {
	found, err := filepath.Glob(filepath.Join(dir, "files", what))
	if err != nil {
		return nil
	}
	return found
}

// here reports whether the film is whole at a node.
func here(t *testing.T, n *testnode.Node, id string) bool {
	list, err := n.API.Data(t.Context(), id)
	return err == nil && len(list) == 1 && list[0].File != nil && list[0].File.Here
}

// breakAgainAndAgain breaks what goes on twelve times, each time after a fourteenth of the file: the
// link is cut ten times, and each side is killed once. It looks that nothing is lost of
// what had come but the chunk that was under way.
func breakAgainAndAgain(t *testing.T, l *lan, giver, taker *testnode.Node, part func() int64, size int64) (breaks int) {
	t.Helper()
	for n := range int64(12) {
		testnode.Within(t, 5*time.Minute, "another part came", func() bool { return part() >= size*(n+1)/14 })
		before := part()
		switch n {
		case 4:
			taker.Signal(syscall.SIGKILL)
			taker.End()
			taker.Start()
		case 8:
			giver.Signal(syscall.SIGKILL)
			giver.End()
			giver.Start()
		default:
			l.must(l.Link(1, false))
			time.Sleep(time.Second)
			l.must(l.Link(1, true))
		}
		breaks++
		if after := part(); after < before-files.Chunk {
			t.Errorf("break %d: %d bytes were here, and then %d", n, before, after)
		}
	}
	return breaks
}
