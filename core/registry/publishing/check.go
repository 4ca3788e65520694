package publishing

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// Finding is the result of one of the checks of Publish.
type Finding struct {
	Subject string // what was checked
	Err     error  // why Publish would refuse the document; nil if this check would not
	Open    string // why it could not be checked; empty if it was
}

// Check makes the checks of Publish for a document that keeps the rules, changes nothing and records
// nothing. It does not require the trust of Publish. It returns the error of a document that breaks a
// rule, or of a caller who may not read.
func (p *Publisher) Check(ctx context.Context, who authority.Caller, body []byte) ([]Finding, error) {
	if _, err := who.RequireReader(); err != nil {
		return nil, err
	}
	draft, err := registry.ParseDraft(body)
	if err != nil {
		return nil, err
	}
	doc, err := draft.Document()
	if err != nil {
		return nil, err
	}
	name := doc.Name()
	target := Target{draft.Name(), draft.Version()}
	all := []Finding{
		newFinding("your permission", p.checkMayPublish(ctx, who, draft.Name())),
		newFinding("quarantine and mirrors", p.checkChangeable(ctx, target, func(name registry.Name) (bool, error) {
			return p.winsName(ctx, who, name)
		})),
		newFinding("the version is new", p.checkNewVersion(ctx, doc)),
	}
	if len(doc.Remotes()) > 0 {
		all = append(all, newFinding("remote addresses", p.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
			return p.ports.Writer.CheckRemotes(ctx, name, doc.Remotes())
		})))
	}
	return append(all, p.findPackages(ctx, doc)...), nil
}

// newFinding returns the finding of a check with its error. What a dependency could not answer is
// open.
func newFinding(subject string, err error) Finding {
	if fault.Is(err, fault.Unavailable) {
		return Finding{Subject: subject, Open: fault.PublicMessage(err)}
	}
	return Finding{Subject: subject, Err: err}
}

// checkMayPublish returns the error of a caller who may not publish a server, whatever the trust.
func (p *Publisher) checkMayPublish(ctx context.Context, who authority.Caller, serverName string) error {
	if p.config.WritesOff {
		return errWritesOff("publishing")
	}
	err := p.checkReserved(serverName)
	if err == nil {
		err = p.requirePermission(ctx, who, serverName, publishPermission())
	}
	if _, low := who.RequireWriter(); low != nil && err != nil && fault.PublicMessage(err) == fault.PublicMessage(low) {
		return nil // the permission is there
	}
	return err
}

// checkNewVersion returns fault.Conflict if the version of a document was published before.
func (p *Publisher) checkNewVersion(ctx context.Context, doc registry.Document) error {
	_, err := p.ports.Reader.Version(ctx, doc.Name(), doc.Version(), true)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	}
	return fault.Newf(fault.Conflict, "version %s of %s already exists, and a published version cannot be published again",
		doc.Version(), doc.Name())
}

// findPackages returns the findings of the packages.
func (p *Publisher) findPackages(ctx context.Context, doc registry.Document) []Finding {
	failed := map[int]error{}
	if p.config.Checks != ChecksOff {
		for _, f := range p.checkEachPackage(ctx, doc) {
			failed[f.index] = f.err
		}
	}
	all := make([]Finding, len(doc.Packages()))
	for i, ref := range doc.Packages() {
		all[i] = newFinding("package "+ref.RegistryType+" "+ref.Identifier, failed[i])
		switch {
		case p.config.Checks == ChecksOff:
			all[i].Open = "package checks are off in this registry"
		case p.config.Checks == ChecksWarn && all[i].Err != nil: // it is accepted
			all[i].Open, all[i].Err = fault.PublicMessage(all[i].Err), nil
		}
	}
	return all
}

// checkChangeable returns fault.Forbidden when a version is in quarantine, with the reason
// (contract C-22), or when a mirror has the server, with its name (contract C-64). The transaction
// checks this again; it is checked here too, because this error comes before those of the rules.
// wins reports whether the caller wins the name over the mirror; nil if no caller does.
func (p *Publisher) checkChangeable(ctx context.Context, t Target, wins func(registry.Name) (bool, error)) error {
	name, version, err := t.nameAndVersion()
	if err != nil {
		return nil //nolint:nilerr // a bad name or version has its own error, which comes later
	}
	entries, err := p.ports.Quarantine.Entries(ctx, name)
	if err != nil {
		return err
	}
	if err := registry.CheckQuarantine(entries, version); err != nil {
		return err
	}
	latest, err := p.ports.Reader.Latest(ctx, name, true)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil || latest.Origin == registry.Origin{}:
		return err
	case wins == nil:
		return latest.Origin.Forbid(name)
	}
	if won, err := wins(name); won || err != nil {
		return err
	}
	return latest.Origin.Forbid(name)
}

// winsName reports whether a caller who publishes a server takes its name from a mirror.
func (p *Publisher) winsName(ctx context.Context, c authority.Caller, name registry.Name) (bool, error) {
	if c.Publisher() != nil {
		return false, nil
	}
	grants, err := p.grantsOf(ctx, c)
	return registry.WinsName(grants, name), err
}
