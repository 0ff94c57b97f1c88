package realproc_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// proc is a node in a process of its own. Its folder stays when the process
// ends.
type proc struct {
	t    testing.TB
	name string
	dir  string

	cmd    *exec.Cmd // nil: not running
	stdin  io.WriteCloser
	lines  chan string   // what it prints
	exited chan struct{} // closed when it has ended
	client *httpapi.Client

	token string   // for the workers beside it (hire)
	shown []string // what it last showed of the states of an instance (look)
}

// configure writes the node's configuration: the local preset at a port of its
// own, and nobody expires.
func (p *proc) configure(port int) {
	p.t.Helper()
	text := fmt.Sprintf("preset: local\nconnection-time: 10m\nlisten: [/ip4/127.0.0.1/udp/%d/quic-v1, /ip4/127.0.0.1/tcp/%d]\n", port, port)
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, configs.File), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// freePort is a port that nobody uses, over UDP and TCP.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		u, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		l.Close()
		if err == nil {
			u.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

// launch starts the process, with a crash point or "".
func (p *proc) launch(crash string) {
	p.t.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), childEnv+"="+p.dir, crashEnv+"="+crash)
	stderr, err := os.OpenFile(p.stderrFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer stderr.Close()
	p.cmd.Stderr = stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.lines, p.exited = make(chan string, 64), make(chan struct{})
	go func(cmd *exec.Cmd, lines chan<- string, exited chan<- struct{}) {
		for s := bufio.NewScanner(stdout); s.Scan(); {
			lines <- s.Text()
		}
		cmd.Wait() // how it ended is in cmd.ProcessState
		close(exited)
	}(p.cmd, p.lines, p.exited)
}

func (p *proc) stderrFile() string { return filepath.Join(p.dir, "stderr.log") }

// ready waits until the node answers; false: it ended before.
func (p *proc) ready() bool {
	p.t.Helper()
	if _, ok := p.line("ready"); !ok {
		return false
	}
	var err error
	if p.client, err = httpapi.Dial(p.dir); err != nil {
		if p.hasExited() {
			return false
		}
		p.t.Fatalf("%s: %v", p.name, err)
	}
	return true
}

// line waits for a line that begins with a word.
func (p *proc) line(word string) (string, bool) {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case l := <-p.lines:
			if strings.HasPrefix(l, word) {
				return l, true
			}
		case <-p.exited:
			return "", false
		case <-deadline:
			p.t.Fatalf("%s does not say %q\n%s", p.name, word, p.stderr())
		}
	}
}

// start starts the node and waits until it answers.
func (p *proc) start() {
	p.t.Helper()
	p.launch("")
	if !p.ready() {
		p.t.Fatalf("%s ended: %v\n%s", p.name, p.cmd.ProcessState, p.stderr())
	}
}

func (p *proc) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// kill is kill -9.
func (p *proc) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.exited
	p.cmd = nil
}

// terminate is kill -TERM; it returns how the process ended.
func (p *proc) terminate() *os.ProcessState {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	select {
	case <-p.exited:
	case <-time.After(20 * time.Second):
		p.t.Errorf("%s does not end on SIGTERM\n%s", p.name, p.stderr())
		p.kill()
		return nil
	}
	state := p.cmd.ProcessState
	p.cmd = nil
	return state
}

// stderr is the end of what the node wrote to standard error.
func (p *proc) stderr() string {
	b, err := os.ReadFile(p.stderrFile())
	if err != nil {
		return err.Error()
	}
	const most = 4000
	return p.name + " said:\n" + string(b[max(0, len(b)-most):])
}

// goroutines is how many the process has.
func (p *proc) goroutines() int {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.stdin, "goroutines"); err != nil {
		p.t.Fatal(err)
	}
	l, ok := p.line("goroutines")
	var n int
	if _, err := fmt.Sscanf(l, "goroutines %d", &n); !ok || err != nil {
		p.t.Fatalf("%s answers %q: %v", p.name, l, err)
	}
	return n
}

// rss is the memory that the process holds, in MiB.
func (p *proc) rss() int {
	p.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for l := range strings.Lines(string(b)) {
		var kib int
		if _, err := fmt.Sscanf(l, "VmRSS: %d kB", &kib); err == nil {
			return kib >> 10
		}
	}
	p.t.Fatal("the kernel does not tell the resident set")
	return 0
}

// all does something with several processes at once.
func all(ps []*proc, fn func(*proc)) {
	var wg sync.WaitGroup
	for _, p := range ps {
		wg.Go(func() { fn(p) })
	}
	wg.Wait()
}
