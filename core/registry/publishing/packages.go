package publishing

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/ownership"
)

const (
	// maxParallelChecks is the number of packages of one document that are checked at once
	// (contract R-60). Most documents have fewer packages, which are then all checked at once.
	maxParallelChecks = 32
	// checksTimeout limits the time of all checks of one document, however many packages it has.
	// Each check has a limit of its own, a third of this.
	checksTimeout = 30 * time.Second
)

// Checks says what happens to a document whose packages fail their check, or cannot be checked
// (contract R-56).
type Checks uint8

// The zero value enforces.
const (
	ChecksEnforce Checks = iota // the document is refused
	ChecksWarn                  // the document is accepted, with a warning in the audit log
	ChecksOff                   // packages are not checked
)

// ParseChecks returns the value for enforce, warn or off. For any other text it returns
// fault.Invalid.
func ParseChecks(s string) (Checks, error) {
	for checks, known := range [...]string{"enforce", "warn", "off"} {
		if s == known {
			return Checks(checks), nil
		}
	}
	return 0, fault.Newf(fault.Invalid, "package checks must be enforce, warn or off, not %q", s)
}

// failedCheck is the failed check of one package.
type failedCheck struct {
	index int // of the package in the document
	ref   registry.PackageRef
	err   error
}

// checkPackages checks that the packages of a document claim its server, and returns the outcome of
// each package. With ChecksWarn, it returns what failed as a warning for the audit log.
func (p *Publisher) checkPackages(
	ctx context.Context, doc registry.Document,
) (checks []review.Check, warning string, err error) {
	if p.config.Checks == ChecksOff || len(doc.Packages()) == 0 {
		return nil, "", nil
	}
	findings := p.checkEachPackage(ctx, doc)
	if len(findings) == 0 {
		return describeOutcomes(doc, nil), "", nil
	}
	if p.config.Checks == ChecksWarn {
		return describeOutcomes(doc, findings),
			"accepted although the package check failed: " + describeChecks(findings), nil
	}
	return nil, "", packagesError(findings)
}

// describeOutcomes returns the outcome of each package of a document. Equal packages were checked
// once, and have one outcome.
func describeOutcomes(doc registry.Document, findings []failedCheck) []review.Check {
	failed := make(map[registry.PackageRef]error, len(findings))
	for _, f := range findings {
		failed[doc.Packages()[f.index]] = f.err
	}
	checks := make([]review.Check, len(doc.Packages()))
	for i, ref := range doc.Packages() {
		c := review.Check{RegistryType: ref.RegistryType, Identifier: ref.Identifier, State: review.CheckPassed}
		if err := failed[ref]; err != nil {
			c.State, c.Message = review.CheckSkipped, permit.PublicReason(err)
			if fault.Is(err, fault.Invalid) {
				c.State = review.CheckFailed
			}
		}
		checks[i] = c
	}
	return checks
}

// checkEachPackage checks every package, equal ones once, and returns the failed checks in the
// order of the document.
func (p *Publisher) checkEachPackage(ctx context.Context, doc registry.Document) []failedCheck {
	ctx, cancel := context.WithTimeout(ctx, checksTimeout)
	defer cancel()
	var group sync.WaitGroup
	slots := make(chan struct{}, maxParallelChecks)
	errs := make([]error, len(doc.Packages()))
	checked := make(map[registry.PackageRef]bool)
	for i, ref := range doc.Packages() {
		if checked[ref] {
			continue
		}
		checked[ref] = true
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			errs[i] = p.checkPackage(ctx, doc.Name(), ref)
		})
	}
	group.Wait()
	var findings []failedCheck
	for i, err := range errs {
		if err != nil {
			findings = append(findings, failedCheck{i, doc.Packages()[i], err})
		}
	}
	return findings
}

// checkPackage returns nil when the package claims the server, and otherwise the error of the
// checker, or fault.Unsupported without a checker.
func (p *Publisher) checkPackage(ctx context.Context, name registry.Name, ref registry.PackageRef) error {
	if p.ports.Ownership == nil {
		return fault.Newf(fault.Unsupported, "registryType %q cannot be checked: this registry has no checkers",
			ref.RegistryType).WithCode(ownership.CodeUnsupportedType)
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

// packagesError returns the error for failed checks. If a package does not claim the server, it is
// fault.Invalid, as for a broken rule of documents. If the only failures are checks that could not
// be made now, it is fault.Unavailable, because a later attempt may succeed.
func packagesError(findings []failedCheck) error {
	var refused []failedCheck
	var unavailable error
	for _, f := range findings {
		switch fault.KindOf(f.err) {
		case fault.Invalid, fault.Unsupported:
			refused = append(refused, f)
		case fault.Unavailable:
			unavailable = firstOf(unavailable, checkUnavailable(f))
		default:
			return fmt.Errorf("check packages[%d]: %w", f.index, f.err)
		}
	}
	if len(refused) > 0 {
		return fault.New(fault.Invalid, "package check failed: "+describeChecks(refused)).WithCode(registry.CodeRules)
	}
	return unavailable
}

// checkUnavailable returns the fault for a check that could not be made. Its message already
// contains the message of the checker's fault. It therefore wraps the cause of that fault and not
// the fault itself, which would repeat the message.
func checkUnavailable(f failedCheck) error {
	sentence := fmt.Sprintf("packages[%d], the %s package %s, could not be checked now, try again later: %s",
		f.index, f.ref.RegistryType, registry.Clip(f.ref.Identifier), permit.PublicReason(f.err))
	cause, _ := fault.As(f.err) // packagesError knows its kind, so it is a fault
	return fault.Wrap(fault.Unavailable, sentence, cause.Err).WithCode(ownership.CodeCheckFailed).
		After(cause.RetryAfter)
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// describeChecks returns the path and the reason of each failed check, cut to 4*permit.MaxReason
// characters.
func describeChecks(findings []failedCheck) string {
	parts := make([]string, 0, len(findings))
	for _, f := range findings {
		parts = append(parts, fmt.Sprintf("packages[%d] %s", f.index, permit.PublicReason(f.err)))
	}
	text := strings.Join(parts, "; ")
	if runes := []rune(text); len(runes) > 4*permit.MaxReason {
		return string(runes[:4*permit.MaxReason]) + "…"
	}
	return text
}
