//go:build unix

package mesh

import (
	"bufio"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Environment of a child process that is a node: its key's seed, boot counter,
// what it listens on, and whom it knows (ID and addresses) or nothing.
const (
	childSeed   = "MESH_TEST_SEED"
	childBoot   = "MESH_TEST_BOOT"
	childListen = "MESH_TEST_LISTEN"
	childKnows  = "MESH_TEST_KNOWS"
)

func TestMain(m *testing.M) {
	if os.Getenv(childSeed) != "" {
		if err := beNode(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// echo sends each frame back.
type echo struct{ mesh *Mesh }

func (echo) OnUp(workflow.PartnerID)   {}
func (echo) OnDown(workflow.PartnerID) {}
func (e *echo) OnFrame(p workflow.PartnerID, frame []byte) {
	if err := e.mesh.Send(p, slices.Clone(frame)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// beNode is an echoing node; it prints its addresses and lives until it is killed.
func beNode() error {
	seed, err := hex.DecodeString(os.Getenv(childSeed))
	if err != nil {
		return err
	}
	boot, err := strconv.ParseUint(os.Getenv(childBoot), 10, 64)
	if err != nil {
		return err
	}
	h := &echo{}
	m, err := New(Config{Key: ed25519.NewKeyFromSeed(seed), Boot: boot, Listen: strings.Fields(os.Getenv(childListen)),
		Handler: h,
		Admit:   func(workflow.PartnerID, []byte, uint64) error { return nil }})
	if err != nil {
		return err
	}
	h.mesh = m
	if knows := strings.Fields(os.Getenv(childKnows)); len(knows) > 0 {
		p := workflow.PartnerID(knows[0])
		if err := m.SetAddrs(p, knows[1:]); err != nil {
			return err
		}
		if err := m.Want(p, true); err != nil {
			return err
		}
	}
	fmt.Println(strings.Join(m.Addrs(), " "))
	select {}
}

// process is a node in a process of its own.
type process struct {
	*exec.Cmd
	id    workflow.PartnerID
	addrs []string
}

// spawnNode starts one and waits until it listens.
func spawnNode(t *testing.T, key ed25519.PrivateKey, boot int, listen []string, knows ...string) *process {
	t.Helper()
	id := trust.IDOf(key.Public().(ed25519.PublicKey))
	p := &process{Cmd: exec.Command(os.Args[0]), id: id}
	p.Env = append(os.Environ(), childSeed+"="+hex.EncodeToString(key.Seed()), childBoot+"="+strconv.Itoa(boot),
		childListen+"="+strings.Join(listen, " "), childKnows+"="+strings.Join(knows, " "))
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	p.addrs = strings.Fields(line)
	return p
}

// kill kills with signal 9 and waits for the end.
func (p *process) kill() {
	p.Process.Kill()
	p.Wait()
}

// ask sends a frame until it comes back: one may go down with a dead connection.
func (n *node) ask(t *testing.T, p workflow.PartnerID, frame string) {
	t.Helper()
	n.until(t, "the echo of "+frame, func() bool {
		if slices.Contains(n.all(), event{"frame", p, frame}) {
			return true
		}
		if err := n.Send(p, []byte(frame)); err != nil && !errors.Is(err, ErrNotConnected) {
			t.Fatal(err)
		}
		return false
	})
}

func (n *node) follow(t *testing.T, p *process) {
	t.Helper()
	if err := n.SetAddrs(p.id, p.addrs); err != nil {
		t.Fatal(err)
	}
	if err := n.Want(p.id, true); err != nil {
		t.Fatal(err)
	}
}

// A process is killed with signal 9 and comes back at another port before anybody
// noticed. It is followed within two seconds, and what ten starts and connections take
// on this machine, whether the others are told its new address or it dials them.
func TestKilledAndRestarted(t *testing.T) {
	for _, dials := range []bool{false, true} {
		transports(t, func(t *testing.T, listen []string) {
			key := newKey(t)
			a := start(t, listen)
			begin := time.Now()
			p := spawnNode(t, key, 1, listen)
			a.follow(t, p)
			a.ask(t, p.id, "first life")
			most := 2*time.Second + 10*time.Since(begin)
			p.kill()
			begin = time.Now()
			if dials {
				p = spawnNode(t, key, 2, listen, append([]string{string(a.ID())}, a.Addrs()...)...)
			} else {
				p = spawnNode(t, key, 2, listen)
				begin = time.Now()
				a.follow(t, p)
			}
			a.ask(t, p.id, "second life")
			if took := time.Since(begin); took > most {
				t.Errorf("dials %v: following took %v, at most %v", dials, took, most)
			}
			if info := a.Peers(); len(info) != 1 || info[0].Boot != 2 {
				t.Errorf("peers %+v, want the second life alone", info)
			}
		})
	}
}

// A process that is stopped (its kernel still takes packets, over TCP) or killed
// (over QUIC nobody says so) is noticed in PingEvery + PingTimeout, long before QUIC
// itself gives up (30 s) or TCP (hours).
func TestSilenceIsNoticed(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"stopped": syscall.SIGSTOP, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			transports(t, func(t *testing.T, listen []string) {
				a := start(t, listen, func(c *Config) {
					c.Limits.PingEvery, c.Limits.PingTimeout = time.Second, time.Second
				})
				p := spawnNode(t, newKey(t), 1, listen)
				a.follow(t, p)
				a.ask(t, p.id, "hello")
				begin := time.Now()
				if err := p.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
				a.until(t, "the silence noticed", func() bool { return a.count("down", p.id) == 1 })
				if took := time.Since(begin); took > 20*time.Second {
					t.Errorf("noticed after %v, want 2 s and what the machine takes", took)
				}
				if signal == syscall.SIGSTOP {
					if err := p.Process.Signal(syscall.SIGCONT); err != nil {
						t.Fatal(err)
					}
					a.ask(t, p.id, "awake again")
				}
			})
		})
	}
}
