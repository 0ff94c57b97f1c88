package assemble

import "net"

// bareInterfaces names the network interfaces that are up, lead out of the
// machine, and have no address but those that IPv6 gives itself. Where a system
// forbids to ask there are none.
func bareInterfaces() []string {
	all, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var bare []string
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		if addrs, err := i.Addrs(); err == nil && !leadsOut(addrs) {
			bare = append(bare, i.Name)
		}
	}
	return bare
}

// leadsOut reports whether one of an interface's addresses can be dialled.
func leadsOut(addrs []net.Addr) bool {
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() {
			return true
		}
	}
	return false
}
