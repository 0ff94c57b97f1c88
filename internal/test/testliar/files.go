package testliar

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// How the liar answers who asks for a file that it named. Each of its files is of one kind.
const (
	mute        = iota // nothing, while it is waited for
	fading             // its hashes, and then nothing
	wrongBytes         // its hashes, and other bytes
	tinyPieces         // its hashes, and a byte each time
	wrongHashes        // hashes that are not those of the file
	tooMuch            // as much as a frame holds
	trueFile           // all of it, as it is
	kindsOfFile
)

// fileSize is of most of the liar's files; each 64th has three chunks.
const fileSize = 300

// filesOf are what the liar named.
type filesOf struct {
	mu     sync.Mutex
	named  map[string]int // by reference: its number
	closed chan struct{}
}

// contentOf is a file by its number.
func contentOf(n int) []byte {
	b := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("the liar's"), uint64(n)))
	size := fileSize
	if n%64 == 0 {
		size = 2*files.Chunk + 10
	}
	return bytes.Repeat(b[:], size/len(b)+1)[:size]
}

// hashesOf are those of the chunks of a file, one after the other.
func hashesOf(b []byte) (out []byte) {
	for ; len(b) > 0; b = b[min(len(b), files.Chunk):] {
		h := sha256.Sum256(b[:min(len(b), files.Chunk)])
		out = append(out, h[:]...)
	}
	return out
}

// names makes the reference to a file, and remembers it.
func (l *Liar) names(n int) workflow.File {
	b := contentOf(n)
	root := sha256.Sum256(append(binary.BigEndian.AppendUint64([]byte("mutirao file 1\x00"), uint64(len(b))),
		hashesOf(b)...))
	f := workflow.File{Name: fmt.Sprint("lie-", n), Size: int64(len(b)), Root: root}
	l.files.mu.Lock()
	defer l.files.mu.Unlock()
	l.files.named[f.String()] = n
	return f
}

var errLiar = errors.New("it is not here")

// answerFile answers who asks for a file.
func (l *Liar) answerFile(_ workflow.PartnerID, req []byte) ([]byte, error) {
	a, err := wire.DecodeFileAsk(req)
	if err != nil {
		return nil, err
	}
	l.files.mu.Lock()
	n, named := l.files.named[a.File]
	l.files.mu.Unlock()
	if !named {
		return nil, errLiar
	}
	content := contentOf(n)
	switch kind := n % kindsOfFile; {
	case kind == mute, kind == fading && !a.Sums:
		select {
		case <-l.files.closed:
		case <-time.After(time.Minute):
		}
		return nil, errLiar
	case kind == tooMuch:
		return make([]byte, wire.MaxFrame-64), nil
	case kind == wrongHashes && a.Sums:
		return make([]byte, len(hashesOf(content))), nil
	case a.Sums:
		return hashesOf(content), nil
	case kind == wrongBytes:
		return make([]byte, min(len(content), files.Piece)), nil
	case kind == tinyPieces:
		return content[:1], nil
	}
	from := min(max(a.Offset, 0), int64(len(content)))
	return content[from:min(from+files.Piece, int64(len(content)))], nil
}

// perInstance is how many files an instance of the liar's has among its data.
const perInstance = 50

// fileLies begins instances whose task at the victim reads files that the liar names, of which it gives
// the victim what it likes; and it asks the victim for all pieces of all of them, and for such as there are none.
func fileLies(ctx context.Context, l *Liar, size int) {
	var b strings.Builder
	b.WriteString("workflow: filed\ndata:\n")
	var items []string
	for i := range perInstance {
		items = append(items, fmt.Sprint("f", i))
		fmt.Fprintf(&b, "  f%d: {type: file}\n", i)
	}
	fmt.Fprintf(&b, "tasks:\n  a: {type: manual}\n  c: {type: manual, in: [%s]}\npartitions: {mine: [a], yours: [c]}\n",
		strings.Join(items, ", "))
	def := must(workflow.Parse("filed.yaml", []byte(b.String())))
	var asks []wire.FileAsk
	for range share(3000/perInstance, size) {
		input := map[workflow.DataName]workflow.Value{}
		var of []wire.FileAsk
		for _, item := range items {
			f := l.names(int(l.numbered.Add(1)))
			input[workflow.DataName(item)] = f.String()
			of = append(of, wire.FileAsk{Item: workflow.DataName(item), File: f.String()})
		}
		id := l.Begins(ctx, def, func(f *fact.Fact) { f.Body.Genesis.Input = input })
		for i := range of {
			of[i].Instance = id
		}
		asks = append(asks, of...)
	}
	select { // the victim asks for them
	case <-ctx.Done():
	case <-time.After(2 * time.Second):
	}
	offsets := []int64{0, files.Piece, files.Chunk, 1, -1, math.MaxInt64}
	l.floods(ctx, share(20_000, size), func(i int) (string, []byte) {
		a := asks[i%len(asks)]
		a.Sums, a.Offset = i%7 == 0, offsets[i%len(offsets)]
		if i%5 == 0 { // of an instance that is not the liar's
			a.Instance = l.aboutNow()
		}
		if i%11 == 0 {
			a.User = strings.Repeat("f", 32)
		}
		return files.Protocol, must(wire.EncodeFileAsk(a))
	})
}

// must is what the project's own packages make of what is ours.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // our bug
	}
	return v
}

// aboutNow is the instance that attacks are about.
func (l *Liar) aboutNow() workflow.InstanceID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.about
}

// atOnce is how many requests the liar has under way, and inVain after how many without an answer it gives up.
const (
	atOnce = 8
	inVain = 200
)

// floods asks the victim n times.
func (l *Liar) floods(ctx context.Context, n int, ask func(i int) (protocol string, req []byte)) {
	ctx, cancel := context.WithTimeout(ctx, l.Patience)
	defer cancel()
	var work sync.WaitGroup
	var mu sync.Mutex
	next, vain := 0, 0
	for range atOnce {
		work.Go(func() {
			for ctx.Err() == nil {
				mu.Lock()
				i := next
				next++
				over := i >= n || vain >= inVain
				mu.Unlock()
				if over {
					return
				}
				protocol, req := ask(i)
				_, err := l.mesh.Request(ctx, l.victim, nil, protocol, req)
				var answer interface{ Answer() string }
				mu.Lock()
				if l.Sent++; err == nil || errors.As(err, &answer) {
					vain = 0
				} else {
					vain++
				}
				mu.Unlock()
			}
		})
	}
	work.Wait()
}
