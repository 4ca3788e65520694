// Package authority is the port through which the registry and the catalogue use authentication:
// who a caller is, whether the caller's session is trusted enough to change the registry, and the
// audit log.
package authority

import (
	"context"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

// Act is one attempt of a caller to change the registry, for the audit log (contract R-38).
type Act struct {
	Caller     Caller
	Action     string // publish, edit, delete, status, approve, reject, quarantine, release
	ServerName string
	Version    string // empty for all versions
	Reason     string // why it was refused; empty if it succeeded
	Warning    string // what was accepted with a warning (contract R-56); empty for nothing
	// Review is the review that the act submitted or decided; empty for none. Rule is the rule that
	// approved it without a person.
	Review review.ID
	Rule   review.RuleID
	Note   string // why the caller made it, in the caller's words; empty for nothing
}

// Acts records what callers do to the registry. It is safe for concurrent use.
type Acts interface {
	// Record writes an act to the audit log, in the transaction that the context carries, if any.
	Record(ctx context.Context, a Act) error
}

// Publishers issues the tokens of publishers, and records and reports what they do. It is safe for
// concurrent use.
type Publishers interface {
	// IssueToken returns an access token for a publisher, which expires after publisher.TokenTTL.
	// Authority.Identify accepts it.
	IssueToken(ctx context.Context, p Publisher) (token string, expiresAt time.Time, err error)
	// RecordProof writes an attempt to prove something to the audit log, in the transaction that
	// the context carries, if any.
	RecordProof(ctx context.Context, a ProofAttempt) error
	// NotifyMaker sends a notice to the maker of a policy, some time later.
	NotifyMaker(n PublisherNotice)
}

// Makers knows the people who created policies. It is safe for concurrent use.
type Makers interface {
	// IsActive reports whether the account of a person exists and is not disabled. It returns
	// fault.Unavailable when the database is not available.
	IsActive(ctx context.Context, userID string) (bool, error)
}

// ProofAttempt is one attempt to prove a domain or an identity (contract P-17).
type ProofAttempt struct {
	Method   publisher.Method
	Domain   string // dns, http
	Issuer   string // oidc, github-oidc; as far as the token could be read
	Subject  string // likewise
	Key      string // fingerprint of the key that signed
	Policies []publisher.PolicyID
	Address  netip.Addr
	Reason   string // why it was refused; empty if a token was issued
}

// PublisherNotice is an event that the maker of a policy should know.
type PublisherNotice struct {
	Maker   string // user id
	Failed  bool   // a proof failed; else the policy was used for the first time, or with a new key
	Subject string // what was proved, or was to be proved
	Pattern registry.Pattern
	Address netip.Addr
	At      time.Time
}

// ReviewNotifier notifies people of reviews, some time later. It is safe for concurrent use.
type ReviewNotifier interface {
	// NotifyReviewer sends a notice to a person who may decide reviews.
	NotifyReviewer(n WaitingNotice)
	// NotifySubmitter sends a notice to the people who are responsible for a submission.
	NotifySubmitter(n DecisionNotice)
}

// WaitingNotice is what a reviewer should know: documents wait for a decision.
type WaitingNotice struct {
	Reviewer registry.Holder
	Count    int    // documents that wait
	More     bool   // there are more than Count
	Server   string // the name of one of them
	At       time.Time
}

// DecisionNotice is a decision about a document.
type DecisionNotice struct {
	People     []registry.Holder
	Approved   bool
	ServerName string
	Version    string
	At         time.Time
}

// Change is what an operator did, or a mirror, for the audit log: a GrantChange, an ImportedVersion, a
// MethodChange, a MirrorChange, a MirroredVersion, a QuarantineChange, a ReviewDecision, a ReviewRuleChange, a ViewChange, a
// WebhookChange or a PolicyChange, which a person may also have made.
type Change interface{ isChange() }

// GrantChange is a grant that an operator added or removed.
type GrantChange struct {
	Holder   string // user id
	Given    bool   // false if it was removed
	Action   string // publish, edit
	Resource string // the pattern
}

// ImportedVersion is a version of a server that an operator imported.
type ImportedVersion struct{ ServerName, Version string }

// MethodChange is a method of the listing that an operator changed.
type MethodChange struct {
	Action  string // add, import, remove
	ID      int
	Path    string // after the change; before it if the method was removed
	Service string // name of the service, likewise
}

// PolicyChange is a policy of a publisher that was added or removed.
type PolicyChange struct {
	Actor   string // user id of the person; empty for an operator command
	Given   bool   // false if it was removed
	Policy  publisher.PolicyID
	Method  publisher.Method
	Subject string // the domain, or the issuer and the pattern of the subject
	Pattern string
	Actions []publisher.Action
}

// ReviewDecision is a review that an operator decided.
type ReviewDecision struct {
	Review     review.ID
	ServerName string
	Version    string
	Approved   bool
}

// ReviewRuleChange is a rule for reviews that an operator added or removed.
type ReviewRuleChange struct {
	Given     bool // false if it was removed
	Rule      review.RuleID
	Pattern   string
	Publisher string // empty for all
	When      review.When
}

func (ReviewDecision) isChange()   {}
func (ReviewRuleChange) isChange() {}

// QuarantineChange is a server, or one version of it, that an operator put in quarantine or released.
type QuarantineChange struct {
	ServerName string
	Version    string // empty for the whole server
	Added      bool   // false if it was released
	Reason     string // empty if it was released
}

// ViewChange is a view, or a token of a view, that an operator added or removed.
type ViewChange struct {
	Action string // view_add, view_remove, view_token_add, view_token_remove
	View   view.Name
	Token  view.TokenName // its name; empty for a change of the view
}

// WebhookChange is a webhook that an operator added, removed, or had events delivered to again.
type WebhookChange struct {
	Action  string // webhook_add, webhook_remove, webhook_redeliver
	Webhook event.WebhookID
	Host    string   // of its URL, whose other parts may be secret
	Event   event.ID // that is delivered again; empty for all dead ones, and for the other actions
}

// MirrorChange is a mirror that an operator added or removed.
type MirrorChange struct {
	Given  bool // false if it was removed
	Mirror mirror.Name
	URL    string // without secrets
	Purged bool   // its servers were deleted with it
}

// MirroredVersion is a version that a mirror changed.
type MirroredVersion struct {
	Mirror     mirror.Name
	ServerName string
	Version    string
	Change     string    // added, replaced, status, submitted
	Review     review.ID // to which its document was submitted; empty if it was listed at once
}

func (MirrorChange) isChange()     {}
func (MirroredVersion) isChange()  {}
func (PolicyChange) isChange()     {}
func (ViewChange) isChange()       {}
func (WebhookChange) isChange()    {}
func (GrantChange) isChange()      {}
func (ImportedVersion) isChange()  {}
func (MethodChange) isChange()     {}
func (QuarantineChange) isChange() {}

// Recorder records the changes of operators. It is safe for concurrent use.
type Recorder interface {
	// RecordChanges writes changes to the audit log, in the transaction that the context carries,
	// if any. It returns fault.Unavailable when the database is not available.
	RecordChanges(ctx context.Context, changes ...Change) error
}
