// Package publicdial connects to servers whose names other people have chosen. It connects only to
// public addresses and to those that the operator allows, so that no one can make the service call
// the internal network. The plugin SDK and the proofs of publishers use it. It does not use a proxy
// and does not encrypt.
package publicdial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// Config configures a dial function. The zero value allows public addresses only, uses the resolver
// of the system and has no time limit of its own.
type Config struct {
	// Allowed are networks whose addresses are allowed although they may not be public.
	Allowed []netip.Prefix
	// Resolver resolves names; nil means [net.DefaultResolver].
	Resolver *net.Resolver
	// Timeout is the time limit of one call: resolving the name and connecting.
	Timeout time.Duration
}

// RefusedError is the error of a call for which no address is allowed.
type RefusedError struct{ Address string }

// Error returns a sentence with the address.
func (e *RefusedError) Error() string { return fmt.Sprintf("address %s is not public", e.Address) }

// New returns a dial function for [net/http.Transport]. The function resolves a name once and
// checks each address immediately before it connects to it, so that a name whose address changes
// between two lookups cannot bypass the check. It skips addresses that are not allowed. It returns
// a [RefusedError] if none is allowed, and another error if an allowed address cannot be reached.
func New(c Config) func(ctx context.Context, network, address string) (net.Conn, error) {
	allowed := make([]netip.Prefix, len(c.Allowed))
	for i, network := range c.Allowed {
		allowed[i] = unmapPrefix(network)
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		var tried atomic.Bool // two addresses may be tried at the same time
		dialer := &net.Dialer{Timeout: c.Timeout, Resolver: c.Resolver,
			Control: func(_, at string, _ syscall.RawConn) error {
				if !isAllowed(at, allowed) {
					return &RefusedError{Address: at}
				}
				tried.Store(true)
				return nil
			}}
		conn, err := dialer.DialContext(ctx, network, address)
		if refused := (*RefusedError)(nil); errors.As(err, &refused) && tried.Load() {
			// The dialer returns the error of the first address, which is not the important one.
			return nil, fmt.Errorf("no allowed address of %s accepts a connection", address)
		}
		return conn, err
	}
}

// isAllowed reports whether the function may connect to a resolved address with a port.
func isAllowed(resolved string, allowed []netip.Prefix) bool {
	at, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return false
	}
	a := at.Addr()
	return IsPublic(a) || slices.ContainsFunc(allowed, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}

// unmapPrefix returns the IPv4 network of a network that is mapped into IPv6, and other networks
// unchanged.
func unmapPrefix(p netip.Prefix) netip.Prefix {
	const mappedBits = 96
	if !p.Addr().Is4In6() || p.Bits() < mappedBits {
		return p
	}
	return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mappedBits)
}
