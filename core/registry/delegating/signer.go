package delegating

import (
	"context"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
)

// findSigner returns the published key of a domain that made the signature of a timestamp. It
// returns fault.Unauthenticated if it does not exist, with the reason, and the error of the source.
func (p *Prover) findSigner(
	ctx context.Context, m publisher.Method, d publisher.Domain, timestamp string, s publisher.Signature,
) (publisher.Key, error) {
	texts, err := p.ports.Keys.Of(m).Texts(ctx, d)
	if err != nil {
		return publisher.Key{}, err
	}
	keys, problems := publisher.ParseRecords(texts)
	for _, key := range keys {
		if key.Verify([]byte(timestamp), s) {
			return key, nil
		}
	}
	switch {
	case len(keys) > 0:
		return publisher.Key{}, fault.Newf(fault.Unauthenticated,
			"the signature was made with none of the keys %s: %s; "+
				"if you have changed the key, an old record may still be served", place(m, d), joinFingerprints(keys))
	case len(problems) > 0:
		reason, _ := fault.As(problems[0])
		return publisher.Key{}, fault.Newf(fault.Unauthenticated, "the record %s cannot be used: %s", place(m, d),
			reason.Message)
	}
	return publisher.Key{}, fault.Newf(fault.Unauthenticated,
		"there is no record \"v=MCPv1; k=ALGORITHM; p=KEY\" %s", place(m, d))
}

// place returns where a domain publishes its keys, with a preposition.
func place(m publisher.Method, d publisher.Domain) string {
	if m == publisher.HTTP {
		return "at https://" + d.String() + "/.well-known/mcp-registry-auth"
	}
	return "in the TXT records of " + d.String()
}

func joinFingerprints(keys []publisher.Key) string {
	words := make([]string, len(keys))
	for i, k := range keys {
		words[i] = k.Fingerprint()
	}
	return strings.Join(words, ", ")
}
