package access

import "strings"

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
