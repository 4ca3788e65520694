// Package authority is the port through which the registry and the catalogue use authentication:
// who a caller is, whether the caller's session is trusted enough to change the registry, and the
// audit log.
package authority

import (
	"context"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/scope"
)

// Act is one attempt of a caller to change the registry, for the audit log (contract R-38).
type Act struct {
	Caller     Caller
	Action     audit.Action // publish, request, owner, edit, delete, status, approve, approve_first, reject, request_changes, review_mail, quarantine, release, tools_record, tools_change, tools_ask
	ServerName string
	Version    string // empty for all versions
	Reason     string // why it was refused; empty if it succeeded
	Warning    string // what was accepted with a warning (contract R-56); empty for nothing
	// Review is the review that the act submitted or decided; otherwise empty. Rule is the rule
	// that approved it without a person.
	Review registry.ReviewID
	Rule   review.RuleID
	Note   string // why the caller made it, in the caller's words; empty for nothing
	// Status and StatusMessage are what an act with the action status set; empty if it was refused.
	Status, StatusMessage string
	Changed               registry.StatusChange // of an act that changed a status
	// Part is of which remote or package an act with the action tools_record or tools_change has brought a
	// tool list, and ToolState what state it got; empty if it was refused.
	Part, ToolState string
}

// Acts records what callers do to the registry. It is safe for concurrent use.
type Acts interface {
	// Record writes an act to the audit log, in the transaction that the context carries, if any.
	Record(ctx context.Context, a Act) error
}

// Publishers issues the tokens of publishers and of workloads, and records and reports what they do. It is safe for
// concurrent use.
type Publishers interface {
	// IssueToken returns an access token for a publisher, which expires after publisher.TokenTTL.
	// Authority.Identify accepts it.
	IssueToken(ctx context.Context, p Publisher) (token string, expiresAt time.Time, err error)
	// IssueServiceToken returns a token of a service account with scopes for one of its workloads.
	// It is good for ten minutes, and ends when the account is changed, disabled or removed. It
	// returns fault.NotFound if there is no such account.
	IssueServiceToken(ctx context.Context, service string, s scope.Set) (token string, expiresAt time.Time, err error)
	// RecordProof writes an attempt to prove something to the audit log, in the transaction that
	// the context carries, if any.
	RecordProof(ctx context.Context, a ProofAttempt) error
	// NotifyMaker sends a notice to the maker of a policy, some time later.
	NotifyMaker(n PublisherNotice)
}

// Makers knows the people who created policies. It is safe for concurrent use.
type Makers interface {
	// IsActive reports whether the account of a person, or a service account, exists and is not
	// disabled. It returns fault.Unavailable when the database is not available.
	IsActive(ctx context.Context, userID string) (bool, error)
	// EmailOf returns the e-mail address of a person, and the empty string for who is no person, or has
	// no account any more. It returns fault.Unavailable when the database is not available.
	EmailOf(ctx context.Context, userID string) (string, error)
}

// EmailAddresses returns the e-mail addresses of all people by their user ids. It is safe for
// concurrent use, and returns fault.Unavailable when the database is not available.
type EmailAddresses func(ctx context.Context) (map[registry.Holder]string, error)

// ProofAttempt is one attempt to prove a domain or an identity (contract P-17).
type ProofAttempt struct {
	Method   publisher.Method
	Domain   string // dns, http
	Issuer   string // oidc, github-oidc; as far as the token could be read
	Subject  string // likewise
	Service  string // the service account of a workload; empty for a publisher
	Key      string // fingerprint of the key that signed
	Policies []registry.PolicyID
	Address  netip.Addr
	Reason   string // why it was refused; empty if a token was issued
	// Holds reports that the proof was refused only because no one had allowed it, and Claims describe
	// the job then.
	Holds  bool
	Claims map[string]string
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

// ReviewNotifier notifies people of reviews and of quarantine, some time later. It is safe for
// concurrent use.
type ReviewNotifier interface {
	// NotifyReviewer sends a notice to a person who may decide reviews.
	NotifyReviewer(n WaitingNotice)
	// NotifySubmitter sends a notice to the people who are responsible for a submission.
	NotifySubmitter(n DecisionNotice)
	// NotifyAsker sends a notice to the person who has asked for a right.
	NotifyAsker(r registry.RightRequest)
	// NotifyPublishers sends a notice to the people who have published what is in quarantine, or what
	// shows other tools, and then to who reviews it.
	NotifyPublishers(n QuarantineNotice)
}

// QuarantineNotice says that a server, or one version of it, is in quarantine, or shows other tools.
type QuarantineNotice struct {
	People     []registry.Holder
	ServerName registry.Name
	Version    registry.Version // the zero value for the whole server
	Reason     string
	At         time.Time
	Tools      bool // it shows other tools
}

// WaitingNotice is what a reviewer should know: documents wait for a decision.
type WaitingNotice struct {
	Reviewer registry.Holder
	Count    int               // documents that wait
	More     bool              // there are more than Count
	First    []WaitingDocument // the first of them
	At       time.Time
}

// WaitingDocument is a document that waits for a decision.
type WaitingDocument struct {
	Review     registry.ReviewID
	ServerName string
	Version    string
	Danger     string // what of it is dangerous, in words; empty for nothing
	Second     bool   // one of two people has approved it
}

// DecisionNotice is a decision about a document, or a tool list.
type DecisionNotice struct {
	People     []registry.Holder
	Approved   bool
	Changes    bool // changes were requested
	Tools      bool // it is about a tool list
	ServerName string
	Version    string
	Review     registry.ReviewID
	Comment    string
	At         time.Time
}

// Recorder records the changes of operators. It is safe for concurrent use.
type Recorder interface {
	// RecordChanges writes changes to the audit log, in the transaction that the context carries,
	// if any. It returns fault.Unavailable when the database is not available.
	RecordChanges(ctx context.Context, changes ...audit.Change) error
}

// Memberships says as whom operators know the people who call. It is safe for concurrent use.
type Memberships interface {
	// MembershipOf returns the membership of a person, from a copy that is at most a second old. It
	// returns fault.NotFound for who is no person, and fault.Unavailable when the database is not
	// available.
	MembershipOf(ctx context.Context, who registry.Holder) (Membership, error)
}

// Membership is by what operators name a person.
type Membership struct {
	Email  string
	Groups []string // PROVIDER/GROUP, of the identities of company sign-in that are linked
}

// Granter gives people of authentication the grants of the registry. Its methods join the
// transaction that the context carries, if any.
type Granter interface {
	// GiveGrants gives a person grants. Grants that the person has stay as they are. It returns
	// fault.Invalid for an unknown action and a wrong resource.
	GiveGrants(ctx context.Context, userID string, grants []GrantText) error
	// CheckGrant returns fault.Invalid for a grant that GiveGrants refuses.
	CheckGrant(g GrantText) error
	// ReplaceGrants makes the grants of a person that come from an origin those in the list, and
	// returns what has changed. Grants of another origin stay as they are, also if they are the same.
	// What the last person who can operate needs stays too.
	ReplaceGrants(ctx context.Context, userID, origin string, grants []GrantText) (GrantChanges, error)
	// RemoveOrigin removes all grants of an origin. It returns fault.Conflict with code last_operator
	// if no one could operate without them.
	RemoveOrigin(ctx context.Context, origin string) error
	// MayOperate reports whether a person has the grant operate.
	MayOperate(ctx context.Context, userID string) (bool, error)
	// Operators returns the people who have the grant operate.
	Operators(ctx context.Context) (userIDs []string, err error)
}

// GrantText is a grant as people write it.
type GrantText struct{ Action, Resource string }

// Words returns the right for a sentence.
func (g GrantText) Words() string {
	if g.Action == string(registry.ActionOperate) {
		return g.Action + " the service"
	}
	return g.Action + " " + g.Resource
}

// TextsOf returns grants as people write them.
func TextsOf(grants []registry.GrantRecord) (texts []GrantText) {
	for _, g := range grants {
		texts = append(texts, GrantText{string(g.Action), g.Pattern.String()})
	}
	return texts
}

// GrantChanges is what ReplaceGrants has changed.
type GrantChanges struct {
	Added, Removed []GrantText
	KeptOperator   bool // the grant operate stays, because the person is the last one who has it
}

// FirstGrants returns the grants of the first person of a service.
func FirstGrants() []GrantText {
	return []GrantText{{"operate", ""}, {"publish", "*"}, {"edit", "*"}, {"review", "*"}}
}

// giverKey is the key of the caller in a context of GivenBy.
type giverKey struct{}

// GivenBy returns a context for what a caller does for others: a token gives no more than it has.
func GivenBy(ctx context.Context, who Caller) context.Context {
	return context.WithValue(ctx, giverKey{}, who)
}

// Giver returns the caller of GivenBy. Without one it is a caller who gives by no token.
func Giver(ctx context.Context) Caller {
	who, _ := ctx.Value(giverKey{}).(Caller)
	return who
}

// CheckGiven returns fault.Forbidden if the caller of GivenBy acts by a token that must not give a grant
// for an action: operate never, and others only if the token has their scope. Sessions at FULL_TRUST and
// the operator commands give every grant.
func CheckGiven(ctx context.Context, action string) error {
	needed := actionScope(registry.Action(action))
	if needed == scope.Admin {
		return RefuseToken(ctx, "give the grant "+action)
	}
	return Giver(ctx).RequireScope(needed)
}

// RefuseToken returns fault.Forbidden if the caller of GivenBy acts by a token, for what tokens cannot do.
func RefuseToken(ctx context.Context, do string) error {
	if Giver(ctx).IsToken() {
		return fault.Newf(fault.Forbidden, "a token cannot %s: sign in", do)
	}
	return nil
}
