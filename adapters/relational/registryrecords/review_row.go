package registryrecords

import (
	"encoding/json"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/review"
)

// reviewRow is a row of the table reviews.
type reviewRow struct {
	bun.BaseModel `bun:"table:reviews"`

	ID          review.ID          `bun:"id,pk"`
	Name        string             `bun:"name"`
	Version     string             `bun:"version"`
	State       string             `bun:"state"`
	Kind        review.Kind        `bun:"kind"`
	Document    []byte             `bun:"document"`
	Replaced    []byte             `bun:"replaced"` // nil if it does not exist
	Checks      string             `bun:"checks"`   // a JSON array
	Submitter   string             `bun:"submitter"`
	Policy      publisher.PolicyID `bun:"policy"`
	Makers      string             `bun:"makers"` // a JSON array
	SubmittedAt database.Instant   `bun:"submitted_at"`
	DecidedBy   string             `bun:"decided_by"`
	DecidedAt   database.Instant   `bun:"decided_at"`
	Comment     string             `bun:"comment"`
	Rule        review.RuleID      `bun:"rule"`
	Reason      string             `bun:"reason"`
	Source      string             `bun:"source"`
}

// reviewColumns are the columns of a reviewRow, in the order of its fields.
const reviewColumns = "id, name, version, state, kind, document, replaced, checks, submitter, policy, makers, submitted_at, " +
	"decided_by, decided_at, comment, rule, reason, source"

// briefColumns are reviewColumns without documents.
var briefColumns = strings.Replace(reviewColumns, "document, replaced", "NULL, NULL", 1)

// fields returns where the values of reviewColumns belong.
func (r *reviewRow) fields() []any {
	return []any{
		&r.ID, &r.Name, &r.Version, &r.State, &r.Kind, &r.Document, &r.Replaced, &r.Checks, &r.Submitter, &r.Policy,
		&r.Makers, &r.SubmittedAt,
		&r.DecidedBy, &r.DecidedAt, &r.Comment, &r.Rule, &r.Reason, &r.Source,
	}
}

func newReviewRow(r review.Review) *reviewRow {
	return &reviewRow{
		ID: r.ID, Name: r.Name.String(), Version: r.Version.String(), State: string(r.State), Kind: r.Kind,
		Document: r.Document, Replaced: r.Replaced, Checks: encodeArray(r.Checks),
		Submitter: r.Submitter.Key, Policy: r.Submitter.Policy, Makers: encodeArray(r.Submitter.Makers),
		SubmittedAt: database.NewInstant(r.SubmittedAt),
		DecidedBy:   r.DecidedBy, DecidedAt: database.NewInstant(r.DecidedAt), Comment: r.Comment, Rule: r.Rule,
		Reason: r.Request.Reason, Source: r.Request.Source,
	}
}

// toReview returns the review of a row. It returns fault.Internal if a value breaks a rule of the
// model.
func (r *reviewRow) toReview() (review.Review, error) {
	v := review.Review{
		ID: r.ID, Kind: r.Kind, Document: r.Document, Replaced: r.Replaced,
		Submitter: review.Submitter{Key: r.Submitter, Policy: r.Policy}, SubmittedAt: r.SubmittedAt.Time,
		DecidedBy: r.DecidedBy, DecidedAt: r.DecidedAt.Time, Comment: r.Comment, Rule: r.Rule,
		Request: review.Request{Reason: r.Reason, Source: r.Source},
	}
	var broken [5]error
	v.Name, broken[0] = registry.ParseName(r.Name)
	v.Version, broken[1] = registry.ParseVersion(r.Version)
	v.State, broken[2] = review.ParseState(r.State)
	broken[3] = json.Unmarshal([]byte(r.Checks), &v.Checks)
	broken[4] = json.Unmarshal([]byte(r.Makers), &v.Submitter.Makers)
	return v, checkRow(broken[:]...)
}

// encodeArray returns a list of texts or structs of texts as a JSON array; null without any.
func encodeArray[T any](list []T) string {
	if len(list) == 0 {
		return "null"
	}
	text, _ := json.Marshal(list) // texts always have a JSON form
	return string(text)
}
