// Package publish holds the use cases that change the registry: publish,
// replace, delete and change status, with the order of their checks, the
// audit of every attempt and the proof of package ownership. It knows neither
// HTTP nor a database, and decides nothing that the model decides.
package publish

import (
	"context"
	"net/netip"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browse"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/grantstore"
	"github.com/tollgate-dev/tollgate/ports/ownership"
	"github.com/tollgate-dev/tollgate/ports/serverstore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Config is what an operator decides. The zero value lets people write and
// enforces package checks.
type Config struct {
	// WritesOff answers publish, replace and delete with fault.Unsupported (contract R-24). Changes
	// of status stay possible.
	WritesOff bool
	// Checks tells what becomes of a document whose packages do not claim it.
	Checks Checks
}

// Ports is what publishing asks of the world. All fields are required, except
// that Ownership may be nil where Config.Checks is ChecksOff; anywhere else
// nil is a checker that knows no registry type.
type Ports struct {
	Transactions transaction.Runner
	Writer       serverstore.Writer
	Reader       serverstore.Reader
	Grants       grantstore.Store
	Authority    authority.Authority
	Ownership    ownership.Checker
	Clock        clock.Clock
}

// Publisher changes the registry. It is safe for concurrent use.
type Publisher struct {
	config Config
	ports  Ports
}

// New returns a publisher.
func New(c Config, p Ports) *Publisher { return &Publisher{c, p} }

// Request is who asks, and what with.
type Request struct {
	Token   string     // the access token as it was sent; empty when there is none
	Address netip.Addr // of the client, for the audit log
	Body    []byte     // at most what the transport admits; unused by Delete
	// Condition must hold for what the registry has, or the write is fault.Stale;
	// nil always holds. It is checked in the transaction of the write, after the
	// version was found and before the rules.
	Condition Condition
}

// Condition is what a caller requires of the versions that a write is about, as
// they are before it (RFC 9110, section 13).
type Condition interface {
	// HoldsFor reports whether the condition holds for one version.
	HoldsFor(current registry.Record) bool
	// HoldsForAll reports whether it holds for a server, of which it gets the
	// histories that readers see: with its deleted versions, and without them
	// where there are others.
	HoldsForAll(histories ...browse.History) bool
}

// Target names a version as the request's path does, decoded but not checked.
type Target struct {
	Name    string
	Version string
}

// The names of acts in the audit log (contract R-38).
const (
	actPublish = "publish"
	actEdit    = "edit"
	actDelete  = "delete"
	actStatus  = "status"
)

// Publish adds the version of a server that the body describes.
//
// Errors, in the order of the checks (contract R-6): fault.Unsupported when writes are off,
// fault.Unauthenticated, fault.Invalid for a body that is no JSON object, fault.Forbidden,
// fault.Stale when the version was published before and the condition does not hold for it,
// fault.Invalid with code registry.CodeRules, fault.Conflict. fault.Unavailable when a dependency
// is away.
func (p *Publisher) Publish(ctx context.Context, r Request) (registry.Record, error) {
	if p.config.WritesOff {
		return registry.Record{}, errOff("publishing")
	}
	var record registry.Record
	err := p.attempt(ctx, r, authority.Act{Action: actPublish}, func(act *authority.Act) error {
		draft, err := registry.ParseDraft(r.Body)
		if err != nil {
			return err
		}
		act.ServerName, act.Version = registry.Clip(draft.Name()), registry.Clip(draft.Version())
		if err := p.admit(ctx, act.Caller, draft.Name(), registry.ActionPublish); err != nil {
			return err
		}
		if err := p.unpublished(ctx, r.Condition, draft); err != nil {
			return err
		}
		doc, err := p.verify(ctx, act, draft)
		if err != nil {
			return err
		}
		record, err = p.publish(ctx, act, r.Condition, doc)
		return err
	})
	return record, err
}

// Replace puts another document in the place of a version's; status and
// publication time stay.
//
// Errors as of Publish, and between permission and rules: fault.Invalid when the body names another
// server or version than the target, fault.NotFound when that is missing or deleted
// (contract R-26), then fault.Stale.
func (p *Publisher) Replace(ctx context.Context, r Request, t Target) (registry.Record, error) {
	if p.config.WritesOff {
		return registry.Record{}, errOff("updating")
	}
	var record registry.Record
	err := p.attempt(ctx, r, t.act(actEdit), func(act *authority.Act) error {
		draft, err := registry.ParseDraft(r.Body)
		if err != nil {
			return err
		}
		if err := p.admit(ctx, act.Caller, t.Name, registry.ActionEdit); err != nil {
			return err
		}
		if err := t.isOf(draft); err != nil {
			return err
		}
		if err := p.exists(ctx, r.Condition, t); err != nil {
			return err
		}
		doc, err := p.verify(ctx, act, draft)
		if err != nil {
			return err
		}
		record, err = p.replace(ctx, act, r.Condition, doc)
		return err
	})
	return record, err
}

// Delete gives a version the status deleted and returns it as it then is.
// fault.NotFound when it is missing or deleted already; the other errors are
// those of Publish that need no body.
func (p *Publisher) Delete(ctx context.Context, r Request, t Target) (registry.Record, error) {
	if p.config.WritesOff {
		return registry.Record{}, errOff("deleting")
	}
	var record registry.Record
	err := p.attempt(ctx, r, t.act(actDelete), func(act *authority.Act) error {
		if err := p.admit(ctx, act.Caller, t.Name, registry.ActionEdit); err != nil {
			return err
		}
		name, version, err := t.parse()
		if err != nil {
			return err
		}
		record, err = p.delete(ctx, act, r.Condition, registry.Release{Name: name, Version: version})
		return err
	})
	return record, err
}

// verify returns the document of a draft that keeps all rules and whose
// packages claim it.
func (p *Publisher) verify(ctx context.Context, act *authority.Act, draft registry.Draft) (registry.Document, error) {
	doc, err := draft.Document()
	if err != nil {
		return registry.Document{}, err
	}
	act.Warning, err = p.checkPackages(ctx, doc)
	return doc, err
}

// exists returns fault.NotFound for a target that cannot be replaced, and
// fault.Stale for one that the condition does not hold for. Both are checked
// again in the transaction; here they come before the rules.
func (p *Publisher) exists(ctx context.Context, c Condition, t Target) error {
	name, version, err := t.parse()
	if err != nil {
		return err
	}
	current, err := p.ports.Reader.Version(ctx, name, version, false)
	switch {
	case fault.Is(err, fault.NotFound):
		return errNotFound()
	case err == nil && c != nil && !c.HoldsFor(current):
		return errStale()
	}
	return err
}

// unpublished returns fault.Stale when the version of a draft was published
// before and the condition does not hold for it. It is checked again in the
// transaction.
func (p *Publisher) unpublished(ctx context.Context, c Condition, draft registry.Draft) error {
	if c == nil {
		return nil
	}
	if name, version, err := (Target{draft.Name(), draft.Version()}).parse(); err == nil {
		return p.holdsFor(ctx, c, registry.Release{Name: name, Version: version})
	}
	return nil // a name or version that breaks a rule is refused with the other rules
}

// holdsFor returns fault.Stale when the condition does not hold for a version
// that is there, deleted or not.
func (p *Publisher) holdsFor(ctx context.Context, c Condition, of registry.Release) error {
	current, err := p.ports.Reader.Version(ctx, of.Name, of.Version, true)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err == nil && !c.HoldsFor(current):
		return errStale()
	}
	return err
}

// holdsForAll is holdsFor for all versions of a server.
func (p *Publisher) holdsForAll(ctx context.Context, c Condition, name registry.Name) error {
	var histories []browse.History
	for _, deleted := range []bool{true, false} {
		h, err := browse.AllVersions(ctx, p.ports.Reader, name, deleted)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		if err == nil {
			histories = append(histories, h)
		}
	}
	if !c.HoldsForAll(histories...) {
		return errStale()
	}
	return nil
}

func (t Target) act(action string) authority.Act {
	return authority.Act{Action: action, ServerName: registry.Clip(t.Name), Version: registry.Clip(t.Version)}
}

// parse returns what the target names. A name or version that none can have is
// not found, rather than invalid.
func (t Target) parse() (registry.Name, registry.Version, error) {
	name, err := registry.ParseName(t.Name)
	if err != nil {
		return registry.Name{}, registry.Version{}, errNotFound()
	}
	version, err := registry.ParseVersion(t.Version)
	if err != nil {
		return registry.Name{}, registry.Version{}, errNotFound()
	}
	return name, version, nil
}

// isOf tells whether the draft is of the target.
func (t Target) isOf(draft registry.Draft) error {
	switch {
	case draft.Name() != t.Name:
		return fault.New(fault.Invalid, "", "name in the body must equal the server name in the path")
	case draft.Version() != t.Version:
		return fault.New(fault.Invalid, "", "version in the body must equal the version in the path")
	}
	return nil
}

func errOff(what string) error {
	return fault.Newf(fault.Unsupported, "", "%s is switched off on this registry", what)
}

func errStale() error {
	return fault.New(fault.Stale, "", "the precondition does not hold: what the registry has is not what If-Match or If-None-Match asks for; read it again")
}

func errNotFound() error { return fault.New(fault.NotFound, "", "server version not found") }
