package httpapi

import (
	"net"
	"net/http"
	"net/netip"
)

// ListenBy has the page on the network served at something else than the network.
func (o *Options) ListenBy(fn func(netip.Addr) (net.Listener, error)) { o.listen = fn }

// StopLAN closes the page to the network for good, as a server does that is closed.
func StopLAN(h http.Handler) {
	l := h.(*handler).lan
	l.stop()
	l.wait()
}

// PageIn has the certificate for the page on the network kept in a folder.
func (o *Options) PageIn(dir string) { o.dir = dir }

// Words are those in which fingerprints are told.
func Words() []string { return wordList }

// Routes are METHOD and path of all that the interface has.
func Routes() (out []string) {
	for _, rt := range routes {
		out = append(out, rt.method+" "+rt.path)
	}
	return out
}

// Bodiless are METHOD and path of those that take no body.
func Bodiless() (out []string) {
	for _, rt := range routes {
		if rt.body == nil {
			out = append(out, rt.method+" "+rt.path)
		}
	}
	return out
}
