package access

import (
	"net/url"
	"strings"
)

// Address is where a request goes: scheme, host and path, as a proxy states them.
type Address struct{ Scheme, Host, Path string }

// maxPath is the greatest length of a path that is looked for, in bytes.
const maxPath = 8 << 10

// remotes finds servers by their remote URLs (contract Z-5).
type remotes map[place]*origin

// place is a scheme and a host.
type place struct{ scheme, host string }

// origin has the servers of a scheme and a host.
type origin struct {
	paths   map[string][]int32 // by a normalised path without a slash at its end
	longest int                // of the paths
}

// add adds a server by one of its URLs. A URL that is a template, or cannot be read, is never found.
func (r remotes) add(text string, of int32) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || strings.ContainsAny(text, "{}") {
		return
	}
	at, path, ok := normalise(Address{u.Scheme, u.Host, u.EscapedPath()})
	if !ok {
		return
	}
	o := r[at]
	if o == nil {
		o = &origin{paths: map[string][]int32{}}
		r[at] = o
	}
	if known := o.paths[path]; len(known) == 0 || known[len(known)-1] != of {
		o.paths[path] = append(known, of)
	}
	o.longest = max(o.longest, len(path))
}

// find returns the servers of the longest path that the address begins with, at a slash.
func (r remotes) find(a Address) []int32 {
	at, path, ok := normalise(a)
	if !ok {
		return nil
	}
	o := r[at]
	if o == nil {
		return nil
	}
	for {
		if len(path) <= o.longest {
			if found := o.paths[path]; found != nil {
				return found
			}
		}
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return nil
		}
		path = path[:i]
	}
}

// disputed reports whether programs may disagree if an address leads to a server that is known: the host
// cannot be read, or it is that of a server and the path cannot be read.
func (r remotes) disputed(a Address) bool {
	at, _, ok := normalise(a)
	return !ok && (at == place{} || r[at] != nil)
}

// normalise returns scheme and host, and the path without a slash at its end, in the one
// spelling that all spellings of an address have (RFC 3986, section 6.2). ok is false for a path of
// which programs disagree where it leads: with an encoded slash, a backslash or a control character.
func normalise(a Address) (at place, path string, ok bool) {
	scheme, host := strings.ToLower(a.Scheme), strings.ToLower(a.Host)
	if scheme == "" || host == "" || strings.ContainsAny(host, "/@\\ ") {
		return place{}, "", false
	}
	switch scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	if name, port, ok := strings.Cut(host, ".:"); ok { // a dot at the end of the name
		host = name + ":" + port
	}
	path, ok = normalisePath(a.Path)
	return place{scheme, strings.TrimRight(host, ".:")}, path, ok
}

func normalisePath(path string) (string, bool) {
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	switch {
	case len(path) > maxPath, path != "" && path[0] != '/':
		return "", false
	case !strings.ContainsAny(path, "%\\.") && !strings.Contains(path, "//") && isVisible(path):
		return strings.TrimSuffix(path, "/"), true
	}
	plain, ok := decodePath(path)
	if !ok {
		return "", false
	}
	var kept []string
	for segment := range strings.SplitSeq(plain, "/") {
		switch segment {
		case "", ".":
		case "..":
			kept = kept[:max(0, len(kept)-1)]
		default:
			kept = append(kept, segment)
		}
	}
	if len(kept) == 0 {
		return "", true
	}
	return "/" + strings.Join(kept, "/"), true
}

// decodePath decodes the characters that need no encoding, and writes other codes in upper case.
func decodePath(path string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c != '%' {
			if c == '\\' || c <= ' ' || c == 0x7f {
				return "", false
			}
			b.WriteByte(c)
			continue
		}
		if i+2 >= len(path) {
			return "", false
		}
		text, err := url.PathUnescape(path[i : i+3])
		if err != nil {
			return "", false
		}
		switch c = text[0]; {
		case c == '/' || c == '\\' || c < ' ' || c == 0x7f:
			return "", false
		case isUnreserved(c):
			b.WriteByte(c)
		default:
			b.WriteString(strings.ToUpper(path[i : i+3]))
		}
		i += 2
	}
	return b.String(), true
}

// isUnreserved reports whether a character means the same encoded and as it is (RFC 3986, section
// 2.3).
func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

func isVisible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return false
		}
	}
	return true
}
