// Package publishing holds the use cases that change the registry: publish, replace, delete, change
// status and record tool lists, with the order of their checks, the audit of every attempt and the check of
// package ownership. It knows neither HTTP nor a database; the rules of documents and versions are
// in package registry.
package publishing

import (
	"context"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/receiving"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/ownership"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Config are the settings of a Publisher. The zero value allows writes and enforces package checks.
type Config struct {
	// WritesOff makes Publish, Replace and Delete return fault.Unsupported (contract R-24). Changes
	// of status stay possible.
	WritesOff bool
	// Reserved are the names that no one may publish or replace (contract P-21).
	Reserved []registry.Pattern
	// Checks says what happens to a document whose packages do not claim its server.
	Checks Checks
	// Review makes documents wait until a second person or a rule approves them (contract C-10).
	Review bool
	// PendingMax is the greatest number of documents of one submitter that wait for review.
	PendingMax int
}

// Validate returns an error that begins with the name of the first field that is out of range.
func (c Config) Validate() error {
	if c.PendingMax < 1 {
		return fmt.Errorf("PendingMax: %d is less than one", c.PendingMax)
	}
	return nil
}

// Ports are the dependencies of a Publisher. All fields are required, except Ownership: nil is a
// checker that supports no registry type.
type Ports struct {
	change.Ports

	Reader    registrystore.ServerReader
	Grants    registrystore.Grants
	Policies  *permit.Checker
	Reviews   registrystore.Reviews
	Approver  reviewing.Approver
	ToolLists *receiving.Receiver
	Ender     reviewing.MirrorEnder
	Events    *announce.Recorder
	Ownership ownership.Checker
	Clock     clock.Clock
	Entropy   secrets.Entropy
	Owners    registrystore.Owners
}

// Publisher changes the registry. It is safe for concurrent use.
type Publisher struct {
	config Config
	ports  Ports
}

// New returns a publisher.
func New(c Config, p Ports) *Publisher { return &Publisher{c, p} }

// WritesOff reports whether Publish, Replace and Delete are switched off.
func (p *Publisher) WritesOff() bool { return p.config.WritesOff }

// Operation is a kind of change.
type Operation string

// The kinds of changes.
const (
	OpPublish Operation = "publish"
	OpReplace Operation = "replace"
	OpDelete  Operation = "delete"
	OpStatus  Operation = "status" // of one version, or of all versions of a server together
	OpTools   Operation = "tools"
)

// Request is the input of a change.
type Request struct {
	Body []byte // limited by the transport; not used by Delete
	// Condition must hold for what is stored, otherwise the change is refused with fault.Stale; nil
	// for no condition. A missing version is reported before the condition, a broken rule after it.
	// The condition is checked again in the transaction of the change.
	Condition Condition
}

// Condition is what a caller requires of the versions before a change of them (RFC 9110,
// section 13).
type Condition interface {
	// HoldsFor reports whether the condition holds for one version.
	HoldsFor(current registry.Record) bool
	// HoldsForAll reports whether the condition holds for all versions of a server. Readers get its
	// history with or without the deleted versions, so the arguments are both, or only the first if
	// all versions are deleted.
	HoldsForAll(histories ...history.History) bool
}

// Target identifies a version by the texts of the request path, decoded but not validated.
type Target struct {
	Name    string
	Version string
}

// The names of actions in the audit log (contract R-38).
const (
	actPublish audit.Action = "publish"
	actEdit    audit.Action = "edit"
	actDelete  audit.Action = "delete"
	actStatus  audit.Action = "status"
	actRequest audit.Action = "request"
	actTools   audit.Action = "tools_record"
	actOwner   audit.Action = "owner"
)

// Publish adds the version of a server that the body describes, or submits it for review.
//
// Errors, in the order of the checks (contract R-6): fault.Unsupported when writes are off,
// fault.Unauthenticated, fault.Invalid for a body that is not a JSON object, fault.Forbidden, also
// for what is in quarantine (contract C-22) or mirrored, unless the caller wins its name over the
// mirror (contract C-64, C-72), fault.Stale when the version was published before and the condition
// does not hold for it, fault.Invalid with code registry.CodeRules, fault.Conflict, fault.Exhausted
// when too many documents of the caller wait for review. At any point the error may be
// fault.Unavailable, when a dependency fails.
func (p *Publisher) Publish(ctx context.Context, who authority.Caller, r Request) (Outcome, error) {
	if p.config.WritesOff {
		return Outcome{}, errWritesOff("publishing")
	}
	act, err := p.begin(ctx, who, authority.Act{Action: actPublish})
	if err != nil {
		return Outcome{}, err
	}
	outcome, err := p.publishDocument(ctx, r, &act)
	return outcome, permit.Refuse(ctx, p.ports.Acts, act, err)
}

// publishDocument publishes the body, and adds the server, the version and a warning to act.
func (p *Publisher) publishDocument(ctx context.Context, r Request, act *authority.Act) (Outcome, error) {
	draft, err := registry.ParseDraft(r.Body)
	if err != nil {
		return Outcome{}, err
	}
	act.ServerName, act.Version = registry.Clip(draft.Name()), registry.Clip(draft.Version())
	if err := p.checkReserved(draft.Name()); err != nil {
		return Outcome{}, err
	}
	if err := p.requirePermission(ctx, act.Caller, draft.Name(), publishPermission()); err != nil {
		return Outcome{}, err
	}
	err = p.checkChangeable(ctx, Target{draft.Name(), draft.Version()}, func(name registry.Name) (bool, error) {
		return p.winsName(ctx, act.Caller, name)
	})
	if err != nil {
		return Outcome{}, err
	}
	if err := p.checkDraftCondition(ctx, r.Condition, draft); err != nil {
		return Outcome{}, err
	}
	s, err := p.verifyDraft(ctx, act, draft)
	if err != nil {
		return Outcome{}, err
	}
	if err := p.checkStillLiving(ctx, act.Caller, s.document); err != nil {
		return Outcome{}, err
	}
	s.condition = r.Condition
	return p.commitDocument(ctx, act, s)
}

// Replace replaces the document of a version, or submits the new one for review. It keeps the
// status and the publication time. It also replaces a document that waits for review.
//
// The errors are those of Publish, without fault.Conflict for an existing version. After the check
// of permission and before the rules, they are fault.Invalid when the body names another server or
// version than the target, fault.NotFound when the target is missing or deleted (contract R-26),
// and fault.Stale.
func (p *Publisher) Replace(ctx context.Context, who authority.Caller, r Request, t Target) (Outcome, error) {
	if p.config.WritesOff {
		return Outcome{}, errWritesOff("updating")
	}
	act, err := p.begin(ctx, who, t.newAct(actEdit))
	if err != nil {
		return Outcome{}, err
	}
	outcome, err := p.replaceDocument(ctx, r, t, &act)
	return outcome, permit.Refuse(ctx, p.ports.Acts, act, err)
}

// replaceDocument replaces the document of the target by the body, and adds a warning to act.
func (p *Publisher) replaceDocument(ctx context.Context, r Request, t Target, act *authority.Act) (Outcome, error) {
	draft, err := registry.ParseDraft(r.Body)
	if err != nil {
		return Outcome{}, err
	}
	if err := p.checkReserved(t.Name); err != nil {
		return Outcome{}, err
	}
	if err := p.requirePermission(ctx, act.Caller, t.Name, editPermission()); err != nil {
		return Outcome{}, err
	}
	if err := p.checkChangeable(ctx, t, nil); err != nil {
		return Outcome{}, err
	}
	if err := t.checkSameVersion(draft); err != nil {
		return Outcome{}, err
	}
	if err := p.checkReplaceable(ctx, r.Condition, t); err != nil {
		return Outcome{}, err
	}
	s, err := p.verifyDraft(ctx, act, draft)
	if err != nil {
		return Outcome{}, err
	}
	s.condition, s.replaces = r.Condition, true
	return p.commitDocument(ctx, act, s)
}

// Delete gives a version the status deleted and returns its new record. It returns fault.NotFound
// when the version is missing or deleted already. The other errors are those of Publish that do not
// concern a body.
func (p *Publisher) Delete(ctx context.Context, who authority.Caller, r Request, t Target) (registry.Record, error) {
	if p.config.WritesOff {
		return registry.Record{}, errWritesOff("deleting")
	}
	act, err := p.begin(ctx, who, t.newAct(actDelete))
	if err != nil {
		return registry.Record{}, err
	}
	record, err := p.deleteVersion(ctx, r, t, &act)
	return record, permit.Refuse(ctx, p.ports.Acts, act, err)
}

// deleteVersion gives the target the status deleted.
func (p *Publisher) deleteVersion(
	ctx context.Context, r Request, t Target, act *authority.Act,
) (registry.Record, error) {
	if err := p.requirePermission(ctx, act.Caller, t.Name, editPermission()); err != nil {
		return registry.Record{}, err
	}
	name, version, err := t.nameAndVersion()
	if err != nil {
		return registry.Record{}, err
	}
	c := target{name: name, version: version, condition: r.Condition}
	return p.commitRelease(ctx, act, c, func(l *registry.Lineage, now time.Time) (registry.Release, error) {
		return l.Delete(version, now)
	})
}

// verifyDraft returns the document of a draft after all rules and the package checks. It adds a
// warning to act when a failed check was allowed.
func (p *Publisher) verifyDraft(ctx context.Context, act *authority.Act, draft registry.Draft) (submission, error) {
	doc, err := draft.Document()
	if err != nil {
		return submission{}, err
	}
	checks, warning, err := p.checkPackages(ctx, doc)
	act.Warning = warning
	return submission{document: doc, checks: checks}, err
}

// checkReplaceable returns fault.NotFound when the target is missing or deleted, and fault.Stale
// when the condition does not hold for it. The transaction checks both again; they are checked here
// too, because these errors come before those of the rules.
func (p *Publisher) checkReplaceable(ctx context.Context, c Condition, t Target) error {
	name, version, err := t.nameAndVersion()
	if err != nil {
		return err
	}
	current, err := p.ports.Reader.Version(ctx, name, version, false)
	switch {
	case fault.Is(err, fault.NotFound):
		return p.requirePending(ctx, name, version)
	case err == nil && c != nil && !c.HoldsFor(current):
		return errStale()
	}
	return err
}

// checkDraftCondition returns fault.Stale when the version of a draft was published before and the
// condition does not hold for it. The transaction checks this again.
func (p *Publisher) checkDraftCondition(ctx context.Context, c Condition, draft registry.Draft) error {
	if c == nil {
		return nil
	}
	if name, version, err := (Target{draft.Name(), draft.Version()}).nameAndVersion(); err == nil {
		return p.checkCondition(ctx, c, registry.Release{Name: name, Version: version})
	}
	return nil // a name or version that breaks a rule is refused with the other rules
}

// checkCondition returns fault.Stale when the condition does not hold for a stored version, deleted
// or not. It returns nil when there is no stored version.
func (p *Publisher) checkCondition(ctx context.Context, c Condition, of registry.Release) error {
	current, err := p.ports.Reader.Version(ctx, of.Name, of.Version, true)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err == nil && !c.HoldsFor(current):
		return errStale()
	}
	return err
}

// checkConditionForAll returns fault.Stale when the condition does not hold for all versions of a
// server.
func (p *Publisher) checkConditionForAll(ctx context.Context, c Condition, name registry.Name) error {
	var histories []history.History
	for _, deleted := range []bool{true, false} {
		h, err := history.AllVersions(ctx, p.ports.Reader, name, deleted)
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

// newAct returns an audit act for a change of the target. Its caller is not set.
func (t Target) newAct(action audit.Action) authority.Act {
	return authority.Act{Action: action, ServerName: registry.Clip(t.Name), Version: registry.Clip(t.Version)}
}

// nameAndVersion returns the name and the version of the target. It returns fault.NotFound, rather
// than fault.Invalid, when one of them is not valid.
func (t Target) nameAndVersion() (registry.Name, registry.Version, error) {
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

// checkSameVersion returns fault.Invalid when the draft names another server or version.
func (t Target) checkSameVersion(draft registry.Draft) error {
	switch {
	case draft.Name() != t.Name:
		return fault.New(fault.Invalid, "name in the body must equal the server name in the path")
	case draft.Version() != t.Version:
		return fault.New(fault.Invalid, "version in the body must equal the version in the path")
	}
	return nil
}

func errWritesOff(what string) error {
	return fault.Newf(fault.Unsupported, "%s is switched off on this registry", what)
}

func errStale() error {
	return fault.New(fault.Stale,
		"the precondition in If-Match or If-None-Match failed: the version or list in the registry has changed; read it again")
}

func errNotFound() error { return fault.New(fault.NotFound, "server version not found") }
