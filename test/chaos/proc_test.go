//go:build linux

package chaos_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/internal/sim"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// proc is a node in a process of its own, on a host of its own.
type proc struct {
	tm     *team
	id     workflow.PartnerID // known where somebody lies
	host   int
	name   string
	dir    string
	client *httpapi.Client

	mu      sync.Mutex // guards what follows
	run     *process   // nil: not running
	stopped int        // how many faults have it stopped
	down    int        // how many faults keep it down
	wrong   time.Duration
	booted  string
	second  bool // which address it has
	reboots int  // in this round
}

// process is one run of the node.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	ready  chan struct{} // closed when the API answers
	prints chan string
	ended  chan struct{}
	killed bool
}

func (p *proc) configure() error {
	// Discovery: all others may have changed their addresses while a node was out.
	text := "preset: local\ndiscovery: true\nconnection-time: " + connectionTime.String() +
		"\nlisten: [/ip4/0.0.0.0/udp/4001/quic-v1, /ip4/0.0.0.0/tcp/4001]\napi: unix:api.sock\n"
	if p.host == 0 {
		text += "capabilities: [crane]\n"
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.dir, configs.File), []byte(text), 0o600)
}

// launch starts the process; the lock must be held.
func (p *proc) launch(env ...string) error {
	args := p.tm.lan.Command(p.host, os.Args[0])
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(append(os.Environ(), folderVar+"="+p.dir, clockVar+"="+p.wrong.String(), bootVar+"="+p.booted),
		env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := os.OpenFile(p.stderrFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer stderr.Close()
	cmd.Stderr = stderr
	x := &process{cmd: cmd, ready: make(chan struct{}), prints: make(chan string, 64), ended: make(chan struct{})}
	if x.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.run = x
	go p.follow(x, stdout)
	return nil
}

// follow reads what the process says until it ends, and complains if it ends
// by itself.
func (p *proc) follow(x *process, stdout io.Reader) {
	for s := bufio.NewScanner(stdout); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), sayPrint+" "); ok {
			x.prints <- rest
		} else if s.Text() == "ready" {
			close(x.ready)
		}
	}
	err := x.cmd.Wait()
	close(x.ended)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !x.killed {
		p.tm.violate("%s ended by itself: %v: %s", p.name, err, p.said())
	}
}

func (p *proc) stderrFile() string { return filepath.Join(p.dir, "stderr.log") }

// said is the end of what the node wrote to standard error.
func (p *proc) said() string {
	b, err := os.ReadFile(p.stderrFile())
	if err != nil {
		return err.Error()
	}
	const most = 2000
	return string(b[max(0, len(b)-most):])
}

// kill is kill -9; the lock must be held.
func (p *proc) kill() {
	x := p.run
	if x == nil {
		return
	}
	x.killed = true
	_ = x.cmd.Process.Kill() // if it has ended by itself, follow says so
	p.run = nil
	p.mu.Unlock() // follow takes it
	<-x.ended
	p.mu.Lock()
}

// crash kills the process; up starts it again once nobody wants it down.
func (p *proc) crash() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down++
	p.kill()
}

func (p *proc) up() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down--
	if p.down > 0 || p.run != nil {
		return nil
	}
	if err := p.launch(); err != nil {
		return err
	}
	if p.stopped > 0 {
		return p.run.cmd.Process.Signal(syscall.SIGSTOP)
	}
	return nil
}

// reboot has the device's boot clock begin again; it must be down.
func (p *proc) reboot(boot time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.booted = fmt.Sprint(int64(boot))
	p.reboots++
}

// halt stops the process where it is (SIGSTOP); resume has it go on.
func (p *proc) halt() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped++
	return p.signal(syscall.SIGSTOP)
}

func (p *proc) resume() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped--
	if p.stopped > 0 {
		return nil
	}
	return p.signal(syscall.SIGCONT)
}

func (p *proc) signal(s syscall.Signal) error {
	if p.run == nil {
		return nil
	}
	if err := p.run.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s: %s: %w", p.name, s, err)
	}
	return nil
}

// jump sets the wall clock by so many jumps, within what certificates bear.
func (p *proc) jump(by int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = min(max(p.wrong+time.Duration(by)*jump, -maxJumps*jump), maxJumps*jump)
	p.say(sayClock, p.wrong.String())
}

// say tells the process something; one that is not running hears nothing.
func (p *proc) say(word, what string) {
	if p.run != nil {
		_, _ = fmt.Fprintln(p.run.stdin, word, what) // if it has ended, follow says so
	}
}

// readdress gives the host its other address.
func (p *proc) readdress() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.second = !p.second
	if err := p.tm.lan.Readdress(p.host, p.second); err != nil {
		return err
	}
	if p.tm.liar != nil {
		p.tm.liar.tell(p)
	}
	return nil
}

// print asks for the fingerprint of an instance; "" where there is none.
func (p *proc) print(id string) (string, error) {
	p.mu.Lock()
	x := p.run
	p.say(sayPrint, id)
	p.mu.Unlock()
	if x == nil {
		return "", errors.New("not running")
	}
	select {
	case l := <-x.prints:
		var of, sum, err string
		if _, e := fmt.Sscanf(l, "%s %s %s", &of, &sum, &err); e != nil || of != id {
			return "", fmt.Errorf("%s answers %q about %s: %v", p.name, l, id, e)
		}
		if err != "<nil>" {
			return "", nil // it takes no part
		}
		return sum, nil
	case <-time.After(patience):
		return "", fmt.Errorf("%s gives no fingerprint of %s", p.name, id)
	}
}

// resident is the memory that the process holds, in MiB.
func (p *proc) resident() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.memory("VmRSS:")
}

// memory is what the kernel says of the process's memory, in MiB, 0 where it does not
// run. The caller holds the lock.
func (p *proc) memory(what string) int {
	if p.run == nil {
		return 0
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.run.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for l := range strings.Lines(string(b)) {
		var kib int
		if _, err := fmt.Sscanf(l, what+" %d kB", &kib); err == nil {
			return kib >> 10
		}
	}
	return 0
}

// sees counts the partners that the node sees active, itself included.
func (p *proc) sees(ctx context.Context) int {
	all, err := p.client.Partners(ctx)
	if err != nil {
		return 0
	}
	n := 0
	for _, x := range all {
		if x.State == "active" {
			n++
		}
	}
	return n
}

// meet makes the node a member: the first founds the mesh, and invites.
func (p *proc) meet(ctx context.Context, first *proc) error {
	var env []string
	if p != first {
		var roles []string
		if p.name != liarName {
			roles = sim.RolesOf(p.host)
		}
		inv, err := first.client.Invite(ctx, api.InviteRequest{Roles: roles})
		if err != nil {
			return err
		}
		env = append(env, inviteVar+"="+inv.Token)
	}
	p.mu.Lock()
	err := p.launch(env...)
	x := p.run
	p.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case <-x.ready:
	case <-x.ended:
		return fmt.Errorf("%s ended: %s", p.name, p.said())
	case <-time.After(patience):
		return fmt.Errorf("%s is not ready after %s", p.name, patience)
	}
	p.client, err = httpapi.Dial(p.dir)
	return err
}
