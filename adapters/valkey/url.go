package valkey

import (
	"cmp"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// defaultPort is used if a URL has no port.
const defaultPort = "6379"

// parseURL parses a URL with the scheme redis, rediss, valkey or valkeys, which may contain user,
// password and database number, or with the scheme unix and the path of a socket. The query may
// contain ?username=, ?password= and ?db=; the other parts of the URL take precedence.
func (c Config) parseURL(s string) (target, error) {
	u, err := url.Parse(s)
	if err != nil {
		// the cause would repeat the URL, which may contain a password
		return target{}, c.invalidSetting("URL", "is not a URL")
	}
	query := u.Query()
	t := target{auth: credentials{username: query.Get("username"), password: query.Get("password")}}
	if name := u.User.Username(); name != "" {
		t.auth.username = name
	}
	if password, ok := u.User.Password(); ok {
		t.auth.password = password
	}
	switch u.Scheme {
	case "redis", "valkey":
	case "rediss", "valkeys":
		t.tls = true
	case "unix":
		return c.parseSocket(u, t)
	default:
		return target{}, c.invalidSetting("URL", "has a scheme that is not redis, rediss, valkey, valkeys or unix")
	}
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), defaultPort))
	if !validAddress(address) {
		return target{}, c.invalidSetting("URL", "must name a host, and a port from 1 to 65535")
	}
	t.addresses = []string{address}
	t.database, err = c.parseDatabase(cmp.Or(strings.Trim(u.Path, "/"), query.Get("db")))
	return t, err
}

func (c Config) parseSocket(u *url.URL, t target) (target, error) {
	path := u.Host + u.Path
	if u.User != nil { // unix://user:password@/path
		path = u.Path
	}
	if path == "" {
		return target{}, c.invalidSetting("URL", "must name the socket's path")
	}
	t.addresses, t.unix = []string{path}, true
	var err error
	t.database, err = c.parseDatabase(u.Query().Get("db"))
	return t, err
}

func (c Config) parseDatabase(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0, c.invalidSetting("URL", "must have a number from 0 to 65535 as its database")
	}
	return int(n), nil
}
