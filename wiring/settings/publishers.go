package settings

import (
	"fmt"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
)

// Publishers holds the settings of proofs and policies of publishers (contract P-10 to P-21).
type Publishers struct {
	Proofs        string        `env:"PUBLISHER_PROOFS" envDefault:"policies" desc:"what a proof of a domain or of a CI job may publish: policies (what policies allow), open (also the names that it proves), or off (no proofs)"`
	ProofLimit    uint64        `env:"PUBLISHER_PROOF_LIMIT" envDefault:"60" desc:"proofs per minute and address; 0 = no limit"`
	DomainLimit   uint64        `env:"PUBLISHER_DOMAIN_LIMIT" envDefault:"20" desc:"proofs per minute and domain; 0 = no limit"`
	Recheck       time.Duration `env:"PUBLISHER_RECHECK" envDefault:"24h" desc:"time between two searches for the key of a policy by domain"`
	UnprovenAfter time.Duration `env:"PUBLISHER_UNPROVEN_AFTER" envDefault:"168h" desc:"how long the key of a policy may be gone from its domain before the policy gives nothing"`
	Reserved      []string      `env:"RESERVED_NAMESPACES" desc:"names of servers that nobody may publish: patterns as in grants, comma separated"`
}

// proofWindow is the window of PUBLISHER_PROOF_LIMIT and PUBLISHER_DOMAIN_LIMIT.
const proofWindow = time.Minute

// Validate returns an error that begins with the name of the first setting that is wrong.
func (p Publishers) Validate() error {
	if _, err := publisher.ParseMode(p.Proofs); err != nil {
		return fmt.Errorf("PUBLISHER_PROOFS: %q is not policies, open or off", p.Proofs)
	}
	if p.Recheck < time.Second {
		return fmt.Errorf("PUBLISHER_RECHECK: %v is less than one second", p.Recheck)
	}
	if p.UnprovenAfter < 0 {
		return fmt.Errorf("PUBLISHER_UNPROVEN_AFTER: %v is negative", p.UnprovenAfter)
	}
	if _, err := p.reserved(); err != nil {
		return fmt.Errorf("RESERVED_NAMESPACES: %w", err)
	}
	return nil
}

// Mode returns what a proof permits.
func (p Publishers) Mode() publisher.Mode {
	mode, _ := publisher.ParseMode(p.Proofs) // Validate accepts no other
	return mode
}

func (p Publishers) reserved() ([]registry.Pattern, error) {
	list := make([]registry.Pattern, len(p.Reserved))
	for i, s := range p.Reserved {
		pattern, err := registry.ParsePattern(s)
		if err != nil {
			return nil, err
		}
		list[i] = pattern
	}
	return list, nil
}

// warnOfIssuers warns of issuers that are configured and not used, and of an issuer whose jobs have
// two methods: only a policy of the method github-oidc is bound to IDs (contract P-12).
func (s *Settings) warnOfIssuers() {
	if len(s.IDTokens.Issuers) > 0 && s.IDTokens.PublicURL == "" {
		s.Warnings = append(s.Warnings, "OIDC_ISSUERS is set and PUBLIC_URL is not: there are no proofs by ID token")
	}
	if slices.Contains(s.IDTokens.Issuers, s.IDTokens.GitHubIssuer) {
		s.Warnings = append(s.Warnings, fmt.Sprintf("OIDC_ISSUERS contains %s, the issuer of GITHUB_OIDC_ISSUER: a policy of the method oidc is not bound to the IDs of repository and owner; use the method github-oidc", s.IDTokens.GitHubIssuer))
	}
}
