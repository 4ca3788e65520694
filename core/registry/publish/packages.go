package publish

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/ownership"
)

const (
	// maxChecks is how many packages of one document are checked at once (contract R-60). Real
	// documents have fewer, so theirs are checked all at once.
	maxChecks = 32
	// checksTime bounds the checks of one document together, however many
	// packages it lists. Each has a bound of its own, a third of this.
	checksTime = 30 * time.Second
)

// Checks says what happens to a document whose packages fail their check, or cannot be checked
// (contract R-56).
type Checks uint8

// The zero value enforces.
const (
	ChecksEnforce Checks = iota // it is refused
	ChecksWarn                  // it is kept, and the audit log tells
	ChecksOff                   // nothing is checked
)

// ParseChecks returns what enforce, warn or off mean; any other word is
// fault.Invalid.
func ParseChecks(s string) (Checks, error) {
	switch s {
	case "enforce":
		return ChecksEnforce, nil
	case "warn":
		return ChecksWarn, nil
	case "off":
		return ChecksOff, nil
	}
	return 0, fault.Newf(fault.Invalid, "", "package checks must be enforce, warn or off, not %q", s)
}

// finding is a check that failed.
type finding struct {
	index int // of the package in the document
	err   error
}

// checkPackages asks whether the packages of a document claim its server. It
// returns what was let pass all the same, for the audit log.
func (p *Publisher) checkPackages(ctx context.Context, doc registry.Document) (string, error) {
	if p.config.Checks == ChecksOff || len(doc.Packages()) == 0 {
		return "", nil
	}
	findings := p.askAll(ctx, doc)
	if len(findings) == 0 {
		return "", nil
	}
	if p.config.Checks == ChecksWarn {
		return "packages not checked out: " + told(findings), nil
	}
	return "", verdict(findings)
}

// askAll checks every package, equal ones once, and returns what failed in the
// order of the document.
func (p *Publisher) askAll(ctx context.Context, doc registry.Document) []finding {
	ctx, cancel := context.WithTimeout(ctx, checksTime)
	defer cancel()
	var group sync.WaitGroup
	slots := make(chan struct{}, maxChecks)
	errs := make([]error, len(doc.Packages()))
	asked := make(map[registry.PackageRef]bool)
	for i, ref := range doc.Packages() {
		if asked[ref] {
			continue
		}
		asked[ref] = true
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			errs[i] = p.ask(ctx, doc.Name(), ref)
		})
	}
	group.Wait()
	var findings []finding
	for i, err := range errs {
		if err != nil {
			findings = append(findings, finding{i, err})
		}
	}
	return findings
}

func (p *Publisher) ask(ctx context.Context, name registry.Name, ref registry.PackageRef) error {
	if p.ports.Ownership == nil {
		return fault.Newf(fault.Unsupported, ownership.CodeUnsupportedType, "registryType %q cannot be checked: this registry has no checkers", ref.RegistryType)
	}
	return p.ports.Ownership.Check(ctx, ownership.Claim{
		ServerName:      name.String(),
		RegistryType:    ref.RegistryType,
		RegistryBaseURL: ref.RegistryBaseURL,
		Identifier:      ref.Identifier,
		Version:         ref.Version,
		FileSHA256:      ref.FileSHA256,
	})
}

// verdict is the refusal that follows from failed checks. A claim that is not
// borne out breaks a rule of the document; where there is no such, but a check
// that could not be made, a later try may succeed.
func verdict(findings []finding) error {
	var refused []finding
	var away error
	for _, f := range findings {
		switch fault.KindOf(f.err) {
		case fault.Invalid, fault.Unsupported:
			refused = append(refused, f)
		case fault.Unavailable:
			away = firstOf(away, unavailable(f))
		default:
			return fmt.Errorf("check packages[%d]: %w", f.index, f.err)
		}
	}
	if len(refused) > 0 {
		return fault.New(fault.Invalid, registry.CodeRules, "document is not borne out by its packages: "+told(refused))
	}
	return away
}

// unavailable returns the fault for a check that could not be made. The
// checker's own sentence stands in it, so only what is behind that is its
// cause.
func unavailable(f finding) error {
	sentence := fmt.Sprintf("packages[%d] could not be checked now, try again later: %s", f.index, reason(f.err))
	cause, _ := fault.As(f.err) // verdict knows its kind, so it is a fault
	return fault.Wrap(fault.Unavailable, ownership.CodeCheckFailed, sentence, cause.Err).After(cause.RetryAfter)
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// told names each package by its path, with what was found.
func told(findings []finding) string {
	parts := make([]string, 0, len(findings))
	for _, f := range findings {
		parts = append(parts, fmt.Sprintf("packages[%d] %s", f.index, reason(f.err)))
	}
	text := strings.Join(parts, "; ")
	if runes := []rune(text); len(runes) > 4*maxReason {
		return string(runes[:4*maxReason]) + "…"
	}
	return text
}
