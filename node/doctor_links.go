package node

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/membership"
)

func (k *doctor) checkAddresses(d *diagnosis, partners []membership.Partner) {
	addrs := k.carrier.Addrs()
	switch {
	case len(addrs) == 0:
		d.wrong("addresses", "nobody can reach this node: it has no address"+k.bareInterfaces(),
			"connect it to a network, and check listen in config.yaml")
	case !slices.ContainsFunc(addrs, offMachine) && slices.ContainsFunc(partners, k.isElsewhere):
		d.wrong("addresses", "this node listens on this machine only, and there are partners elsewhere"+
			k.bareInterfaces(), "check listen in config.yaml, or connect the machine to a network")
	case !slices.ContainsFunc(addrs, fromOutside) && slices.ContainsFunc(partners, k.isMissing):
		d.warn("addresses", "all its addresses are of a private network, where partners outside cannot connect to it: "+
			strings.Join(addrs, " "),
			"if partners are outside, name a member that relays (relays in config.yaml), or have the router forward a port and listen on it")
	default:
		d.ok("addresses", "%s", strings.Join(addrs, " "))
	}
}

// bareInterfaces names the network interfaces that are up and have no address, as
// after a failed DHCP.
func (k *doctor) bareInterfaces() string {
	if k.parts.Bare == nil {
		return ""
	}
	names := k.parts.Bare()
	if len(names) == 0 {
		return ""
	}
	return "; up but without an address: " + strings.Join(names, ", ")
}

// isMissing reports whether a partner should be connected and is not.
func (k *doctor) isMissing(p membership.Partner) bool {
	return p.Record.Partner != k.member.ID() && !p.State.Gone() && !k.up(p.Record.Partner)
}

// isElsewhere reports whether a partner is on another machine.
func (k *doctor) isElsewhere(p membership.Partner) bool {
	return p.Record.Partner != k.member.ID() && !p.State.Gone() && slices.ContainsFunc(p.Record.Addresses, offMachine)
}

func (k *doctor) checkLinks(d *diagnosis, partners []membership.Partner) {
	up := k.upPeers()
	connected, others := 0, 0
	for _, p := range partners {
		id := p.Record.Partner
		if id == k.member.ID() || p.State.Gone() {
			continue
		}
		others++
		if slices.Contains(up, id) {
			connected++
			continue
		}
		what, mend := fmt.Sprintf("%s cannot be reached at %s", k.people.label(p.Record.Partner),
			orNowhere(p.Record.Addresses)), "is it running, and on a network that this one reaches?"
		if k.people.HeardOf(id) {
			what, mend = what+", and others hear it",
				"it runs: a firewall or a network between the two keeps them apart. A member that both reach can relay (relays in config.yaml)."
		}
		d.warn("links", what, mend+" Work for it waits, and is handed over when there is a connection")
	}
	switch {
	case others == 0:
		d.ok("links", "there is nobody else to reach")
	case connected == 0:
		d.wrong("links", fmt.Sprintf("none of %d partners can be reached", others),
			"check this machine's network and firewall: mutirao status shows the addresses that it listens on")
	default:
		d.ok("links", "connected with %d of %d partners%s", connected, others, k.roundabout())
	}
}

// roundabout are the partners with which this node is connected by a relay
// only.
func (k *doctor) roundabout() string {
	var names []string
	for _, p := range k.carrier.Relayed() {
		names = append(names, k.people.label(p))
	}
	if len(names) == 0 {
		return ""
	}
	return ", by a relay: " + strings.Join(names, ", ")
}
