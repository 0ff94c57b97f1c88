package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/addresses"
)

func (k *Doctor) checkAddresses(d *Diagnosis, partners []membership.Partner) {
	addrs := k.Links.Addrs()
	switch {
	case len(addrs) == 0:
		d.Wrong("addresses", "nobody can reach this node: it has no address"+k.bareInterfaces(),
			"connect it to a network, and check listen in config.yaml")
	case !slices.ContainsFunc(addrs, addresses.OffMachine) && slices.ContainsFunc(partners, k.isElsewhere):
		d.Wrong("addresses", "this node listens on this machine only, and there are partners elsewhere"+
			k.bareInterfaces(), "check listen in config.yaml, or connect the machine to a network")
	case !slices.ContainsFunc(addrs, addresses.FromOutside) && slices.ContainsFunc(partners, k.isMissing):
		d.Warn("addresses", "all its addresses are of a private network, where partners outside cannot connect to it: "+
			strings.Join(addrs, " "),
			"if partners are outside, name a member that relays (relays in config.yaml), or have the router forward a port and listen on it")
	default:
		d.OK("addresses", "%s", strings.Join(addrs, " "))
	}
}

// bareInterfaces names the network interfaces that are up and have no address, as
// after a failed DHCP.
func (k *Doctor) bareInterfaces() string {
	if k.Machine.Bare == nil {
		return ""
	}
	names := k.Machine.Bare()
	if len(names) == 0 {
		return ""
	}
	return "; up but without an address: " + strings.Join(names, ", ")
}

// isMissing reports whether a partner should be connected and is not.
func (k *Doctor) isMissing(p membership.Partner) bool {
	return p.Record.Partner != k.Self && !p.State.Gone() && !p.Absent() && !k.Links.Up(p.Record.Partner)
}

// isElsewhere reports whether a partner is on another machine.
func (k *Doctor) isElsewhere(p membership.Partner) bool {
	return p.Record.Partner != k.Self && !p.State.Gone() && slices.ContainsFunc(p.Record.Addresses, addresses.OffMachine)
}

func (k *Doctor) checkLinks(d *Diagnosis, partners []membership.Partner) {
	up := k.Links.UpPeers()
	connected, others := 0, 0
	for _, p := range partners {
		id := p.Record.Partner
		if id == k.Self || p.State.Gone() || p.Absent() { // that it cannot be reached is as it announced
			continue
		}
		others++
		if slices.Contains(up, id) {
			connected++
			continue
		}
		what, mend := fmt.Sprintf("%s cannot be reached at %s", k.Members.Label(p.Record.Partner),
			addresses.InWords(p.Record.Addresses)), "is it running, and on a network that this one reaches?"
		if k.Members.HeardOf(id) {
			what, mend = what+", and others hear it",
				"it runs: a firewall or a network between the two keeps them apart. A member that both reach can relay (relays in config.yaml)."
		}
		d.Warn("links", what, mend+" Work for it waits, and is handed over when there is a connection")
	}
	switch {
	case others == 0:
		d.OK("links", "there is nobody else to reach")
	case connected == 0:
		d.Wrong("links", fmt.Sprintf("none of %d partners can be reached", others),
			"check this machine's network and firewall: mutirao status shows the addresses that it listens on")
	default:
		d.OK("links", "connected with %d of %d partners%s", connected, others, k.roundabout())
	}
}

// roundabout are the partners with which this node is connected by a relay
// only.
func (k *Doctor) roundabout() string {
	var names []string
	for _, p := range k.Links.Relayed() {
		names = append(names, k.Members.Label(p))
	}
	if len(names) == 0 {
		return ""
	}
	return ", by a relay: " + strings.Join(names, ", ")
}
