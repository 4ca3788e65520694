// Package keysources reads the public keys that domains have published: TXT reads TXT records from
// a DNS server, and Pages reads a page of the domain over https. Neither parses a key.
package keysources

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
)

// The bounds of TXT records (contract P-6). A record with keys is much shorter, and a domain has
// other records too.
const (
	txtDeadline = 5 * time.Second
	maxTexts    = 64
	maxText     = 4096 // bytes
)

// TXT reads the TXT records of domains. It implements
// [github.com/tollgate-dev/tollgate/ports/domainkeys.Source].
type TXT struct {
	resolver *net.Resolver
	shared   sharedRead
}

// NewTXT returns a source that calls the DNS server of the settings.
func NewTXT(c Config) *TXT { return txtWithin(c, txtDeadline, attemptTimeout) }

func txtWithin(c Config, deadline, attempt time.Duration) *TXT {
	t := &TXT{resolver: newResolver(c.Resolver, attempt)}
	t.shared.flight.Deadline, t.shared.read = deadline, t.lookup
	return t
}

// Texts returns the TXT records of the domain: at most 64, without those of more than 4096 bytes.
// It returns an empty list if the domain does not exist or has no TXT records, and
// fault.Unavailable after any other failure.
func (t *TXT) Texts(ctx context.Context, d publisher.Domain) ([]string, error) {
	texts, err := t.shared.join(ctx, d)
	switch {
	case err == nil:
		return texts, nil
	case isNotFound(err):
		return nil, nil
	}
	reason := "the DNS lookup failed"
	if isTimeout(err) {
		reason = "the DNS server did not answer in time"
	}
	return nil, fault.Wrap(fault.Unavailable,
		fmt.Sprintf("the TXT records of %s cannot be read now: %s; try again later", d, reason), err)
}

func (t *TXT) lookup(ctx context.Context, d publisher.Domain) ([]string, error) {
	records, err := t.resolver.LookupTXT(ctx, absoluteName(d.String()))
	if err != nil {
		return nil, fmt.Errorf("look up TXT records: %w", err)
	}
	var texts []string
	for _, record := range records {
		if len(record) <= maxText && len(texts) < maxTexts {
			texts = append(texts, record)
		}
	}
	return texts, nil
}
