package registrystore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// Reviews stores the documents that were submitted for review. Its methods join the transaction
// that the context carries. A change is visible to the next call on every instance. Times are kept
// in UTC with microseconds.
type Reviews interface {
	// Add stores a review. It returns fault.Conflict if it is pending and its version has a pending
	// one, of a tool list one of the same part and source. If it is pending, it returns fault.Exhausted when its submitter has limit pending ones,
	// of which requests count for requests only, and other documents for these; parallel calls
	// never exceed the limit. It must be called inside a transaction, which must end
	// with the error after one.
	Add(ctx context.Context, r review.Review, limit int) error
	// Decide stores the state of a review that was pending, with the fields from Replaced to First, and
	// deletes the tool lists that waited with it. Of one that is still pending it stores First alone. It
	// returns fault.Conflict if the stored one is not pending, or is missing; if it is approved with a First
	// that is not the stored one, or by the same person; and if it is pending with the stored First.
	Decide(ctx context.Context, r review.Review) error
	// Get returns a review, or fault.NotFound.
	Get(ctx context.Context, id registry.ReviewID) (review.Review, error)
	// PendingOf returns the pending review of the document of a version, or fault.NotFound.
	PendingOf(ctx context.Context, name registry.Name, version registry.Version) (review.Review, error)
	// List returns a page of the reviews that a query selects, the oldest submission first, and of
	// equal times by ID; in the other direction with q.Newest.
	List(ctx context.Context, q ReviewQuery) (ReviewPage, error)
	// Compared returns the documents with which stored reviews that are pending are compared, in
	// the order of the reviews: for a replacement the document of its version, for a new version
	// that of the latest version of its server, deleted ones too, for a tool list the approved one of
	// its part and source; otherwise nil. There are at most
	// MaxCompared reviews.
	Compared(ctx context.Context, pending []review.Review) ([][]byte, error)
}

// MaxCompared is the greatest number of reviews in one call of Reviews.Compared. It bounds the
// documents in memory.
const MaxCompared = 20

// ReviewBacklog reads what was submitted for review, for counts, notices and metrics.
type ReviewBacklog interface {
	// Count returns how many reviews a query selects by its filters, in each state.
	Count(ctx context.Context, q ReviewQuery) (map[review.State]int, error)
	// PendingTools returns the pending review of the tool list of a part and source of a version, or
	// fault.NotFound. It reads no other field of l.
	PendingTools(ctx context.Context, l tools.Stored) (review.Review, error)
	// CountPending returns how many reviews are pending.
	CountPending(ctx context.Context) (int, error)
	// DecidedByOperator returns the reviews that operators decided after one time and not after
	// another one, without documents, the oldest decision first, and of equal times by ID; at most
	// limit.
	DecidedByOperator(ctx context.Context, after, until time.Time, limit int) ([]review.Review, error)
}

// ReviewRules stores the rules that approve without a person. Its methods join the transaction that
// the context carries. A change is visible to the next call on every instance.
type ReviewRules interface {
	// Add stores a rule.
	Add(ctx context.Context, r review.Rule) error
	// Remove removes a rule, or returns fault.NotFound.
	Remove(ctx context.Context, id review.RuleID) error
	// All returns all rules, the oldest first, and of equal times by ID.
	All(ctx context.Context) ([]review.Rule, error)
}

// ReviewNotices stores when reviewers were notified of pending reviews, and as that of
// review.Operator, until when submitters were notified of what operators decided.
type ReviewNotices interface {
	// Last returns when a reviewer was last notified, and what the reviewer has chosen; review.AtOnce by default.
	Last(ctx context.Context, reviewer registry.Holder) (review.Notified, error)
	// Choose stores how a reviewer wants to be notified. One who was never notified counts as notified now.
	Choose(ctx context.Context, reviewer registry.Holder, m review.Mail, now time.Time) error
	// Record stores that a reviewer is notified now. It returns fault.Conflict if the last time is
	// not last any more. Of parallel calls, one succeeds.
	Record(ctx context.Context, reviewer registry.Holder, last, now time.Time) error
}

// ReviewQuery selects a page of reviews. Zero fields do not narrow it.
type ReviewQuery struct {
	State   review.State
	Decided bool          // those that are not pending
	Refused bool          // those that were rejected, or whose changes were requested
	Name    registry.Name // of the server
	Within  registry.Pattern
	Kind    review.Kind
	Until   time.Time // they were submitted before it
	// FirstAfter and FirstUntil select what a first of two people approved after the one time, and not after the other.
	FirstAfter, FirstUntil time.Time
	// By selects what one submitter has submitted, also through policies that this person made, of
	// what Patterns and Submitter select.
	By string
	// For selects what this person has neither submitted, also through policies, nor approved first.
	For registry.Holder
	// Patterns selects reviews of servers that one of the patterns selects, and Submitter those of
	// one submitter (review.Submitter.Key) and of the policies that this person made
	// (review.Submitter.Makers). With both, a review needs one of the two.
	Patterns  []registry.Pattern
	Submitter string
	// After and AfterID are the end of the page before.
	After   time.Time
	AfterID registry.ReviewID
	Newest  bool // the newest submission first
	Limit   int  // maximum number of reviews, at least 1
	Bytes   int  // maximum size of the documents, which the last one may exceed; 0 for no maximum
	Brief   bool // without Document and Replaced
}

// ReviewPage is a part of a list of reviews. It has at least one if the query selects any.
type ReviewPage struct {
	Reviews []review.Review
	More    bool // there are reviews after the page
}

// Quarantine stores what is in quarantine, and the statuses that versions had before. It does not
// change the versions themselves, but while there is an entry, the store refuses every status other
// than deleted of what the entry covers (ServerWriter.Save), whichever program writes it. Its
// methods join the transaction that the context carries; Add, SetPrior and Remove must be called in
// one that has locked the server (ServerWriter.Lock), and change only what that server has. A
// change is visible to the next call on every instance.
type Quarantine interface {
	// Entries returns what is in quarantine of one server, ordered by version; the entry of the
	// whole server is the first.
	Entries(ctx context.Context, name registry.Name) ([]registry.Quarantined, error)
	// PriorStatuses returns the statuses that versions of a server had before their quarantine,
	// ordered by version.
	PriorStatuses(ctx context.Context, name registry.Name) ([]registry.PriorStatus, error)
	// Add stores an entry, and prior statuses of versions of its server. A prior status that is
	// stored already does not change. It returns fault.Conflict, and stores nothing, if the entry
	// exists.
	Add(ctx context.Context, q registry.Quarantined, prior []registry.PriorStatus) error
	// SetPrior stores prior statuses of versions of a server, in place of those that are stored.
	SetPrior(ctx context.Context, name registry.Name, prior []registry.PriorStatus) error
	// Remove deletes the entry of a version, or that of the whole server for the zero version, and
	// the prior statuses of the released versions. It returns fault.NotFound, and deletes nothing,
	// if there is no such entry.
	Remove(ctx context.Context, name registry.Name, version registry.Version, released []registry.Version) error
	// List returns the entries that the query selects, ordered by the bytes of the name and then of
	// the version.
	List(ctx context.Context, q QuarantineQuery) ([]registry.Quarantined, error)
}

// MaxQuarantinePatterns is the greatest number of patterns of a QuarantineQuery.
const MaxQuarantinePatterns = 100

// QuarantineQuery selects entries.
type QuarantineQuery struct {
	Patterns     []registry.Pattern // one of these selects the name; an empty list selects nothing
	AfterName    string             // the entries come after this name and version
	AfterVersion string
	Since        time.Time // the entries were made after this time; zero for any
	Limit        int       // maximum number of entries, at least 1
}
