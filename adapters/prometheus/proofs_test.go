package prometheus

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
)

// TestProofs counts calls of a prover that is switched off, which refuses every call.
func TestProofs(t *testing.T) {
	registry := prometheus.NewRegistry()
	p := NewProver(delegating.NewProver(permit.Config{Mode: publisher.Off}, delegating.ProverPorts{}), everywhere(registry))
	for _, method := range []publisher.Method{publisher.DNS, publisher.HTTP} {
		if _, err := p.ProveDomain(t.Context(), delegating.DomainRequest{Method: method}); !fault.Is(err,
			fault.NotFound) {
			t.Errorf("%s: %v", method, err)
		}
	}
	for _, method := range []publisher.Method{publisher.OIDC, publisher.GitHubOIDC} {
		if _, err := p.ProveIdentity(t.Context(), delegating.IdentityRequest{Method: method}); !fault.Is(err,
			fault.NotFound) {
			t.Errorf("%s: %v", method, err)
		}
	}
	if err := p.Switched(); !fault.Is(err, fault.NotFound) {
		t.Errorf("Switched: %v", err)
	}
	checkMetrics(t, registry, map[string]float64{
		"tollgate_publisher_proofs_total dns invalid": 1, "tollgate_publisher_proofs_total http invalid": 1,
		"tollgate_publisher_proofs_total oidc invalid": 1, "tollgate_publisher_proofs_total github-oidc invalid": 1,
	})
}

func TestProofOutcomes(t *testing.T) {
	for _, method := range []publisher.Method{publisher.DNS, publisher.HTTP, publisher.OIDC, publisher.GitHubOIDC} {
		for outcome, err := range map[string]error{
			"accepted": nil, "refused": codedError(fault.Unauthenticated, ""),
			"limited": codedError(fault.Exhausted, ""),
			"invalid": codedError(fault.Invalid, ""), "unavailable": codedError(fault.Unavailable, ""),
			"failed": errDefect,
		} {
			registry := prometheus.NewRegistry()
			NewProver(nil, everywhere(registry)).countOutcome(method, err)
			checkMetrics(t, registry, map[string]float64{
				"tollgate_publisher_proofs_total " + string(method) + " " + outcome: 1,
			})
		}
	}
}
