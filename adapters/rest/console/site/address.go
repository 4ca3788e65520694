package site

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
)

// Address returns the address of the console on a listener, in a browser on this machine.
func Address(listener net.Addr, tls bool) string {
	u := url.URL{Scheme: "http", Host: listener.String(), Path: Home}
	if tls {
		u.Scheme = "https"
	}
	if a, err := netip.ParseAddrPort(u.Host); err == nil && (a.Addr().IsUnspecified() || a.Addr().IsLoopback()) {
		u.Host = net.JoinHostPort("localhost", strconv.Itoa(int(a.Port())))
	}
	return u.String()
}
