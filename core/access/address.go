package access

import (
	"net/url"
	"strings"
)

// Address is where a request goes: scheme, host and path, as a proxy states them.
type Address struct{ Scheme, Host, Path string }

// maxPath is the greatest length of a path that is looked for, in bytes.
const maxPath = 8 << 10

// remotes finds servers by their remote URLs (contract Z-5). Proxies and servers read an address in
// different ways, so that one which two of them could take for two places leads nowhere: it is disputed.
type remotes struct {
	places map[place]*origin
	names  map[string]bool // of the hosts, without a port
}

// place is a scheme and a host.
type place struct{ scheme, host string }

// origin has the servers of a scheme and a host.
type origin struct {
	paths   map[string][]remote // by a path without a slash at its end
	longest int                 // of the paths
	odd     bool                // there are URLs whose path is disputed
}

// remote is a server that has a URL, or that had it in versions that are in quarantine or deleted.
type remote struct {
	of        int32
	withdrawn bool
}

// add adds a server by one of its URLs. A URL that is a template, or cannot be read, is never found.
func (r *remotes) add(text string, of remote) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || strings.ContainsAny(text, "{}") {
		return
	}
	at, ok := readPlace(u.Scheme, u.Host)
	if !ok {
		return
	}
	o := r.places[at]
	if o == nil {
		o = &origin{paths: map[string][]remote{}}
		r.places[at] = o
		r.names[hostName(at.host)] = true
	}
	path, ok := readPath(u.EscapedPath())
	if !ok {
		o.odd = true
		return
	}
	if known := o.paths[path]; len(known) == 0 || known[len(known)-1].of != of.of {
		o.paths[path] = append(known, of)
	}
	o.longest = max(o.longest, len(path))
}

// find calls each with the servers of all paths that the address begins with, at a slash, those of the
// longest first. Without servers, disputed says that programs may disagree whether the address leads to
// one: the host cannot be read, or it is that of a server and the path cannot be read or scheme and port
// differ.
func (r *remotes) find(a Address, each func(remote)) (disputed bool) {
	at, ok := readPlace(a.Scheme, a.Host)
	if !ok {
		return true
	}
	o := r.places[at]
	if o == nil {
		return r.names[hostName(at.host)]
	}
	path, ok := readPath(a.Path)
	if !ok {
		return true
	}
	o.covering(path, each)
	return o.odd
}

// covering calls each with the servers of a path and of those above it.
func (o *origin) covering(path string, each func(remote)) {
	for {
		if len(path) <= o.longest {
			for _, one := range o.paths[path] {
				each(one)
			}
		}
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return
		}
		path = path[:i]
	}
}

// readPlace returns the scheme and the host, with a port only if it is not that of the scheme. ok is false
// for a host that programs may read in two ways, also one with a dot at its end.
func readPlace(scheme, host string) (at place, ok bool) {
	host = strings.ToLower(host)
	name := hostName(host)
	port := host[len(name):]
	at = place{strings.ToLower(scheme), host}
	if at.scheme == "https" && port == ":443" || at.scheme == "http" && port == ":80" {
		at.host, port = name, ""
	}
	return at, at.scheme != "" && isHostName(name) &&
		(port == "" || len(port) > 1 && port[1] != '0' && strings.Trim(port[1:], "0123456789") == "")
}

// hostName returns a host without its port.
func hostName(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		return host[:i]
	}
	return host
}

func isHostName(name string) bool {
	if inner, six := strings.CutPrefix(name, "["); six {
		inner, six = strings.CutSuffix(inner, "]")
		return six && inner != "" && strings.Trim(inner, "0123456789abcdef:.") == ""
	}
	return name != "" && name[0] != '.' && name[len(name)-1] != '.' && !strings.Contains(name, "..") &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-._") == ""
}

// readPath returns a path without its query and without a slash at its end. ok is false for a path of which
// programs disagree where it leads: some resolve dot segments and join slashes, decode what need not be
// encoded, take a semicolon or an encoded separator for one, or encode what is not.
func readPath(path string) (read string, ok bool) {
	path, _, _ = strings.Cut(path, "?")
	if len(path) > maxPath || path != "" && path[0] != '/' || strings.Contains(path, "//") || hasDotSegment(path) {
		return "", false
	}
	path = strings.TrimSuffix(path, "/")
	lower := false
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '%':
			if i+2 >= len(path) || !isOnlyEncoded(path[i:i+3]) {
				return "", false
			}
			lower = lower || path[i+1] >= 'a' || path[i+2] >= 'a'
			i += 2
		case !isPlain(c):
			return "", false
		}
	}
	if lower {
		return upperCodes(path), true
	}
	return path, true
}

// hasDotSegment reports whether a segment is one or two dots.
func hasDotSegment(path string) bool {
	return strings.Contains(path, "/./") || strings.Contains(path, "/../") || strings.HasSuffix(path, "/.") || strings.HasSuffix(path, "/..")
}

// isPlain reports whether a path may have a character as it is (RFC 3986, section 3.3). It may also
// have a semicolon, which begins parameters for some programs.
func isPlain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("/-._~!$&'()*+,=:@", c) >= 0
}

// isOnlyEncoded reports whether a code is that of a character which cannot stand in a path as it is, and
// which separates nothing.
func isOnlyEncoded(code string) bool {
	text, err := url.PathUnescape(code)
	return err == nil && (text[0] >= 0x80 || strings.IndexByte(` "<>^`+"`"+`{|}`, text[0]) >= 0)
}

// upperCodes returns a path whose codes are in upper case.
func upperCodes(path string) string {
	b := []byte(path)
	for i := range b {
		if b[i] == '%' {
			copy(b[i+1:], strings.ToUpper(path[i+1:i+3]))
		}
	}
	return string(b)
}
