// Package domainkeys is the port through which the core reads the public keys that a domain has
// published: in its TXT records, or on a page. It does not verify anything.
//
// [github.com/tollgate-dev/tollgate/ports/domainkeys/domainkeystest] has the contract tests.
package domainkeys

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/registry/publisher"
)

// Source reads what domains have published. It is safe for concurrent use. Calls for one domain at
// the same time are answered by one question to the domain.
type Source interface {
	// Texts returns the published texts of exactly this domain: its TXT records, each joined from
	// its strings, or the lines of its page. Most of them may be no records of keys. A domain
	// that does not exist or has no key yields an empty list or fault.Unauthenticated with the
	// reason, as does anything else that is the domain's own doing: a page that is missing,
	// redirects, is too long or is at an address that the service does not connect to.
	//
	// It returns fault.Unavailable when it could not find out: no answer within the adapter's
	// deadline or that of the context, a failure of a server, a connection that is refused, a
	// certificate that is not valid. The sentence says so, and does not say that there is no
	// record.
	Texts(ctx context.Context, d publisher.Domain) ([]string, error)
}

// Sources are the sources for each method that proves a domain.
type Sources struct {
	DNS  Source
	HTTP Source
}

// Of returns the source for a method, which must be DNS or HTTP.
func (s Sources) Of(m publisher.Method) Source {
	if m == publisher.DNS {
		return s.DNS
	}
	return s.HTTP
}
