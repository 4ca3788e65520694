package settings

import (
	"fmt"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Registry holds the settings of the registry.
type Registry struct {
	Writes     string `env:"REGISTRY_WRITES" envDefault:"on" desc:"on, or off: publish, PUT and DELETE return 501"`
	Review     string `env:"REGISTRY_REVIEW" envDefault:"off" desc:"on: what is published is listed after a reviewer or a rule has approved it; or off"`
	PendingMax int    `env:"REVIEW_PENDING_MAX" envDefault:"50" desc:"documents of one publisher that may wait for review at the same time"`
	WriteTrust string `env:"REGISTRY_WRITE_TRUST" envDefault:"FULL_TRUST" desc:"minimum trust level for every write"`
}

// Validate returns an error that begins with the name of the first setting that is wrong.
func (r Registry) Validate() error {
	if r.Writes != "on" && r.Writes != "off" {
		return fmt.Errorf("REGISTRY_WRITES: %q is neither on nor off", r.Writes)
	}
	if r.Review != "on" && r.Review != "off" {
		return fmt.Errorf("REGISTRY_REVIEW: %q is neither on nor off", r.Review)
	}
	if r.PendingMax < 1 {
		return fmt.Errorf("REVIEW_PENDING_MAX: %d is less than one", r.PendingMax)
	}
	if _, err := auth.ParseTrustLevel(r.WriteTrust); err != nil {
		return fmt.Errorf("REGISTRY_WRITE_TRUST: %q is not FULL_TRUST, LIMITED_TRUST, UNVERIFIED or HIGH_RISK", r.WriteTrust)
	}
	return nil
}

// WritesOn reports whether the registry accepts publications.
func (r Registry) WritesOn() bool { return r.Writes == "on" }

// ReviewOn reports whether publications wait for review.
func (r Registry) ReviewOn() bool { return r.Review == "on" }

// Level returns the trust level that every write requires.
func (r Registry) Level() auth.TrustLevel {
	level, _ := auth.ParseTrustLevel(r.WriteTrust) // Validate accepts no other
	return level
}
