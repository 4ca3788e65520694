package registryapi

import (
	"encoding/json"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/registry/review"
)

// reviewList is a page of reviews.
type reviewList struct {
	Reviews  []reviewResponse `json:"reviews"`
	Metadata metadata         `json:"metadata"`
}

// reviewResponse is a review as the API shows it (contract C-12).
type reviewResponse struct {
	ID          string          `json:"id"`
	ServerName  string          `json:"serverName"`
	Version     string          `json:"version"`
	State       string          `json:"state"`
	Kind        string          `json:"kind"`
	Document    json.RawMessage `json:"document"`
	Replaces    json.RawMessage `json:"replaces"` // null if it does not exist
	Diff        []difference    `json:"diff"`
	Checks      []check         `json:"checks"`
	SubmittedBy string          `json:"submittedBy"`
	SubmittedAt string          `json:"submittedAt"`
	Policy      *string         `json:"policy"`
	DecidedBy   *string         `json:"decidedBy"`
	DecidedAt   *string         `json:"decidedAt"`
	Comment     *string         `json:"comment"`
	Rule        *string         `json:"rule"`
	Reason      *string         `json:"reason"` // of a request; null for other documents
	Source      *string         `json:"source"`
}

type difference struct {
	Path   string          `json:"path"`
	Before jsonvalue.Value `json:"before"` // null if it is not there
	After  jsonvalue.Value `json:"after"`
}

type check struct {
	RegistryType string `json:"registryType"`
	Identifier   string `json:"identifier"`
	State        string `json:"state"`
	Message      string `json:"message"`
}

func newReviewResponse(s *review.Shown) reviewResponse {
	r := reviewResponse{
		ID: string(s.ID), ServerName: s.Name.String(), Version: s.Version.String(), State: string(s.State),
		Kind:     string(s.Kind),
		Document: s.Document, Replaces: s.Replaces, Diff: make([]difference, len(s.Diff)),
		Checks:      make([]check, len(s.Checks)),
		SubmittedBy: s.Submitter.Key, SubmittedAt: jsonstring.FormatTime(s.SubmittedAt),
		Policy:    jsonstring.TextOrNull(string(s.Submitter.Policy)),
		DecidedBy: jsonstring.TextOrNull(s.DecidedBy), DecidedAt: jsonstring.TimeOrNull(s.DecidedAt), Comment: jsonstring.TextOrNull(s.Comment),
		Rule: jsonstring.TextOrNull(string(s.Rule)), Reason: jsonstring.TextOrNull(s.Request.Reason), Source: jsonstring.TextOrNull(s.Request.Source),
	}
	for i, d := range s.Diff {
		r.Diff[i] = difference(d)
	}
	for i, c := range s.Checks {
		r.Checks[i] = check{c.RegistryType, c.Identifier, string(c.State), c.Message}
	}
	return r
}
