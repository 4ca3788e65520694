// Package urlorigin returns the origin of a URL. The service and its client use it for the audience of
// ID tokens, which must be the same text on both sides.
package urlorigin

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Of returns the origin of a URL (RFC 6454): its scheme, its host in lower case, and its port
// if that is not the default of the scheme. It returns an error for anything but an http or https
// URL with a host.
func Of(address string) (string, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "", fmt.Errorf("%q must be a URL, for example https://tools.example.com", address)
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%q must begin with https:// or http://", address)
	case u.User != nil:
		return "", errors.New("the URL must not have a user")
	}
	host, err := originHost(u.Hostname())
	if err != nil {
		return "", fmt.Errorf("%q %w", address, err)
	}
	port, err := originPort(u)
	if err != nil {
		return "", fmt.Errorf("%q %w", address, err)
	}
	return u.Scheme + "://" + host + port, nil
}

// originHost returns the host of an origin: an IPv6 address in its short form and in brackets, any
// other host in lower case.
func originHost(host string) (string, error) {
	if host == "" {
		return "", errors.New("must have a host")
	}
	if !strings.Contains(host, ":") {
		return strings.ToLower(host), nil
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.Zone() != "" {
		return "", errors.New("must have an IPv6 address without a zone in its brackets")
	}
	return "[" + ip.String() + "]", nil
}

// originPort returns the port of an origin with a colon; empty for the default of the scheme.
func originPort(u *url.URL) (string, error) {
	if u.Port() == "" {
		return "", nil
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil || port == 0 {
		return "", errors.New("must have a port from 1 to 65535")
	}
	if u.Scheme == "https" && port == 443 || u.Scheme == "http" && port == 80 {
		return "", nil
	}
	return ":" + strconv.FormatUint(port, 10), nil
}
