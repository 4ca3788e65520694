package access

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// Address is where a request goes: scheme, host and path, as a proxy states them.
type Address struct{ Scheme, Host, Path string }

// maxPath is the greatest length of a path that is looked for, in bytes.
const maxPath = 8 << 10

// remotes finds servers by their remote URLs (contract Z-5). Proxies and servers read an address in
// different ways, so that one which two of them could take for two places leads nowhere: it is disputed.
// Keys are host, scheme and port, each with ending after it, and a path in lower case without a slash at
// its end, or odd in place of a path that is disputed. So all keys of a host are next to each other.
type remotes struct{ ordered[[]remote] }

const (
	ending = "\x00"
	odd    = "?" // is in no path
)

// place is a scheme and a host.
type place struct{ scheme, host string }

// prefix returns what the keys of a place begin with, and what those of its host do.
func (p place) prefix() (own, all string) {
	name := hostName(p.host)
	all = name + ending
	return all + p.scheme + ending + p.host[len(name):] + ending, all
}

// remote is a server that has a URL, or that had it in versions that are in quarantine or deleted.
type remote struct {
	of        *knownServer
	withdrawn bool
	path      string // as the URL has it
	// misspelled says that the address has the path in other case. Routers of Express and ASP.NET Core
	// ignore case, and proxies do not, so that the two may take it to different servers.
	misspelled bool
}

// placeOf returns the place of a URL; that of one with a variable in its path is all that is below the
// last slash before it. ok is false for a variable in the host and for what cannot be read: it is never
// found.
func placeOf(text string) (p placed, ok bool) {
	text, _, _ = strings.Cut(text, "?")
	if variable := strings.IndexByte(text, '{'); variable >= 0 {
		text = text[:strings.LastIndexByte(text[:variable], '/')+1]
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return placed{}, false
	}
	at, ok := readPlace(u.Scheme, u.Host)
	if !ok {
		return placed{}, false
	}
	if p.path, ok = readPath(u.EscapedPath()); !ok {
		p.path = odd
	}
	p.key, _ = at.prefix()
	p.key += strings.ToLower(p.path)
	return p, true
}

// step adds a server under a key, or removes it.
type step struct {
	key string
	remote
	gone bool
}

func appendSteps(steps []step, k *knownServer, gone bool) []step {
	if k == nil {
		return steps
	}
	for _, p := range k.places {
		steps = append(steps, step{p.key, remote{of: k, withdrawn: p.withdrawn, path: p.path}, gone})
	}
	return steps
}

// with returns the servers after steps. Those at one place are in the order of their names.
func (r remotes) with(steps []step) remotes {
	slices.SortStableFunc(steps, func(a, b step) int { return strings.Compare(a.key, b.key) })
	var changes []entry[[]remote]
	for len(steps) > 0 {
		key := steps[0].key
		before, _ := r.get(key)
		all := slices.Clone(before)
		for ; len(steps) > 0 && steps[0].key == key; steps = steps[1:] {
			at, found := slices.BinarySearchFunc(all, steps[0].remote, func(one, other remote) int {
				return cmp.Or(strings.Compare(one.of.Name.String(), other.of.Name.String()), strings.Compare(one.path, other.path))
			})
			if found {
				all = slices.Delete(all, at, at+1)
			}
			if !steps[0].gone {
				all = slices.Insert(all, at, steps[0].remote)
			}
		}
		changes = append(changes, entry[[]remote]{key, all, len(all) == 0})
	}
	return remotes{r.ordered.with(changes)}
}

// find calls each with the servers of all paths that the address begins with, at a slash and in any case,
// those of the longest first. Without servers, disputed says that programs may disagree whether the address leads to
// one: the host cannot be read, or it is that of a server and the path cannot be read or scheme and port
// differ.
func (r remotes) find(a Address, each func(remote)) (disputed bool) {
	at, ok := readPlace(a.Scheme, a.Host)
	if !ok {
		return true
	}
	own, all := at.prefix()
	if !r.has(own) {
		return r.has(all)
	}
	path, ok := readPath(a.Path)
	if !ok {
		return true
	}
	r.covering(own+strings.ToLower(path), len(own), func(all []remote) {
		isExact := func(one remote) bool { return strings.HasPrefix(path, one.path) }
		for _, one := range all {
			one.misspelled = !isExact(one)
			if !one.misspelled || !slices.ContainsFunc(all, func(other remote) bool { return other.of == one.of && isExact(other) }) {
				each(one)
			}
		}
	})
	return r.has(own + odd)
}

// covering calls each with the servers of a key and of those of the paths above its own, which begins at
// an offset. It passes over all that are longer than what the key shares with the one before it: there
// is none.
func (r remotes) covering(key string, begin int, each func([]remote)) {
	for {
		before := r.floor(key)
		if before == nil {
			return
		}
		end := len(key)
		if before.key == key {
			each(before.value)
		} else {
			for end = 0; end < len(before.key) && before.key[end] == key[end]; end++ {
			}
			end++
		}
		i := -1
		if begin < end {
			i = strings.LastIndexByte(key[begin:end], '/')
		}
		if i < 0 {
			return
		}
		key = key[:begin+i]
	}
}

// readPlace returns the scheme and the host, with a port only if it is not that of the scheme. ok is false
// for a host that programs may read in two ways, also one with a dot at its end.
func readPlace(scheme, host string) (at place, ok bool) {
	if strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 }) { // also what has a lower case in ASCII
		return place{}, false
	}
	host = strings.ToLower(host)
	name := hostName(host)
	port := host[len(name):]
	at = place{strings.ToLower(scheme), host}
	if at.scheme == "https" && port == ":443" || at.scheme == "http" && port == ":80" {
		at.host, port = name, ""
	}
	return at, at.scheme != "" && strings.Trim(at.scheme, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == "" && isHostName(name) &&
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

// maxResource is the greatest length of a resource, in bytes. Proxies refuse answers with longer headers than
// a few KiB, and a resource is in one, with every character encoded.
const maxResource = 1 << 10

// Resource returns the address as OAuth names what it protects (RFC 8707, section 2; RFC 9728, section 1.2):
// scheme and host in lower case, without the port of the scheme, a query, and the slash of an empty path. The
// rest of the path is as it was called. ok is false for an address that is too long, is neither http nor
// https, or which programs may read in two ways (contract Z-5).
func (a Address) Resource() (resource string, ok bool) {
	at, ok := readPlace(a.Scheme, a.Host)
	path, _, _ := strings.Cut(a.Path, "?")
	if _, readable := readPath(path); !ok || !readable || at.scheme != "https" && at.scheme != "http" {
		return "", false
	}
	if path == "/" {
		path = ""
	}
	resource = at.scheme + "://" + at.host + path
	return resource, len(resource) <= maxResource
}
