package valkey

import (
	"net"
	"net/url"
	"strconv"
	"strings"
)

// defaultPort is the one that URLs may leave out.
const defaultPort = "6379"

// parseURL reads the URL forms: redis, rediss, valkey and valkeys with user, password and database number, and unix with
// a socket's path. The query may name any of the three as well, as ?username=, ?password= and ?db=; what stands before it
// takes precedence.
func (c Config) parseURL(s string) (target, error) {
	u, err := url.Parse(s)
	if err != nil {
		return target{}, c.wrong("URL", "is not a URL") // the cause would repeat it
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
		return target{}, c.wrong("URL", "has a scheme that is not redis, rediss, valkey, valkeys or unix")
	}
	port := u.Port()
	if port == "" {
		port = defaultPort
	}
	address := net.JoinHostPort(u.Hostname(), port)
	if !validAddress(address) {
		return target{}, c.wrong("URL", "must name a host, and a port from 1 to 65535")
	}
	t.addresses = []string{address}
	database := strings.Trim(u.Path, "/")
	if database == "" {
		database = query.Get("db")
	}
	t.database, err = c.database(database)
	return t, err
}

func (c Config) parseSocket(u *url.URL, t target) (target, error) {
	path := u.Host + u.Path
	if u.User != nil { // unix://user:password@/path
		path = u.Path
	}
	if path == "" {
		return target{}, c.wrong("URL", "must name the socket's path")
	}
	t.addresses, t.unix = []string{path}, true
	var err error
	t.database, err = c.database(u.Query().Get("db"))
	return t, err
}

func (c Config) database(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0, c.wrong("URL", "must have a number from 0 to 65535 as its database")
	}
	return int(n), nil
}
