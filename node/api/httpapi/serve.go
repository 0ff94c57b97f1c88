package httpapi

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
)

// Server serves a node's interface on a listener of its own.
type Server struct {
	dir      string
	access   Access
	http     *http.Server
	stopping context.CancelFunc // ends event streams
	stop     sync.Once
	lan      *lan
	served   chan error
}

// Serve serves svc at an address (configs.Config.API) until Close, and writes
// AccessFile into the node's folder. An address that other devices could reach
// is refused unless there is a certificate.
func Serve(dir, address string, svc api.Service, o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{dir: dir, served: make(chan error, 1)}
	listener, err := s.listen(address, &o)
	if err != nil {
		return nil, err
	}
	o.stopping, s.stopping = context.WithCancel(context.Background())
	o.dir = dir
	s.access.Token, s.access.PID = rand.Text(), os.Getpid()
	h := newHandler(svc, s.access.Token, o)
	s.lan = h.lan
	s.http = &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      2 * time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelInfo),
	}
	go func() { s.served <- s.http.Serve(listener) }()
	if err := s.access.write(dir); err != nil {
		return nil, errors.Join(err, s.Close(context.Background()))
	}
	return s, nil
}

// Access tells how to reach the server.
func (s *Server) Access() Access { return s.access }

// Close ends the event streams, lets requests that have begun end until ctx
// does, and removes AccessFile. What has not ended then is cut off, and that is
// no error: a browser may hold a connection that asks nothing.
func (s *Server) Close(ctx context.Context) error {
	var err error
	s.stop.Do(func() {
		s.stopping()
		s.lan.stop()
		shut := s.http.Shutdown(ctx)
		if shut != nil && ctx.Err() != nil {
			shut = s.http.Close()
		}
		err = errors.Join(s.access.remove(s.dir), shut)
		<-s.served
		s.lan.wait()
	})
	return err
}

func (s *Server) listen(address string, o *Options) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return s.listenUnix(path)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, api.Errorf(api.Invalid, "API address %q: want HOST:PORT, e.g. 127.0.0.1:0, or unix:PATH", address)
	}
	if wrong := configs.PortRule(port); wrong != "" {
		return nil, api.Errorf(api.Invalid, "API address %q: port %q: %s", address, port, wrong)
	}
	if !configs.Loopback(host) && o.Certificate == "" {
		return nil, api.Errorf(api.Invalid, "API address %q: other devices could reach it", address).
			WithHint("use a loopback address such as 127.0.0.1:0, or set tls in %s", configs.File)
	}
	l, err := listenAt(host, port, o.Prefer)
	if err != nil {
		return nil, api.Errorf(api.Failed, "the API cannot be served at %s: %s", address, unbound(err)).
			WithHint("under api%s, or with --api, choose another address; port 0 takes any free one", o.Written)
	}
	s.access.Address = reachable(l.Addr().(*net.TCPAddr))
	s.access.URL = "http://" + s.access.Address
	if o.Certificate == "" {
		return l, nil
	}
	secured, err := s.secure(l, o)
	if err == nil && !configs.Loopback(host) {
		o.public = &public{hostsOf(o.certificate, l.Addr().(*net.TCPAddr)), sha256.Sum256(o.certificate.Raw)}
	}
	return secured, err
}

// hostsOf are the HOST:PORT by which other devices can ask for what is served at an address with a certificate.
func hostsOf(c *x509.Certificate, at *net.TCPAddr) []string {
	var hosts []string
	add := func(name string) { hosts = append(hosts, net.JoinHostPort(name, strconv.Itoa(at.Port))) }
	for _, name := range c.DNSNames {
		if !strings.Contains(name, "*") && !configs.Loopback(name) {
			add(name)
		}
	}
	for _, ip := range c.IPAddresses {
		if !ip.IsLoopback() && (at.IP.IsUnspecified() || at.IP.Equal(ip)) {
			add(ip.String())
		}
	}
	return hosts
}

// listenAt listens at a port; in place of any port (0) at the first that is free of
// those preferred.
func listenAt(host, port string, prefer []string) (net.Listener, error) {
	if port == "0" {
		for _, p := range prefer {
			if l, err := net.Listen("tcp", net.JoinHostPort(host, p)); err == nil {
				return l, nil
			}
		}
	}
	return net.Listen("tcp", net.JoinHostPort(host, port))
}

// reachable is where programs on this machine find a listener.
func reachable(a *net.TCPAddr) string {
	here := *a
	if a.IP.IsUnspecified() {
		here.IP = net.IPv4(127, 0, 0, 1)
	}
	return here.String()
}

func (s *Server) secure(l net.Listener, o *Options) (net.Listener, error) {
	pair, err := tls.LoadX509KeyPair(o.Certificate, o.Key)
	if err != nil {
		l.Close()
		return nil, api.Errorf(api.Invalid, "the API's certificate cannot be used: %v", err).
			WithHint("tls in %s names two PEM files, a certificate and its key; paths are relative to the node's folder", configs.File)
	}
	o.certificate = pair.Leaf
	sum := sha256.Sum256(pair.Certificate[0])
	s.access.Certificate = hex.EncodeToString(sum[:])
	s.access.URL = "https://" + s.access.Address
	return tls.NewListener(l, &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
	}), nil
}

// unbound is why the system lets nobody listen at an address, in our words where they are known.
func unbound(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "something else has this port"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine does not have this address now"
	case errors.Is(err, syscall.EACCES):
		return "this user may not have this port: those below 1024 are the system's"
	}
	return err.Error()
}

// listenUnix replaces a socket that a node left behind: the caller has made
// sure that no other node runs in this folder.
func (s *Server) listenUnix(path string) (net.Listener, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.dir, path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, api.Errorf(api.Failed, "serve the API: %v", err)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		if err := os.Remove(path); err != nil {
			return nil, api.Errorf(api.Failed, "remove the old socket: %v", err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, api.Errorf(api.Failed, "serve the API: %v", err).
			WithHint("a socket's path must be short (about 100 bytes) and must not be another file")
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("keep others away from the API's socket: %w", err)
	}
	s.access.Address = "unix:" + path
	return l, nil
}
