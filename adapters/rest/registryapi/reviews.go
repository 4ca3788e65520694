package registryapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

const (
	reviewsPath = "/x/dev.tollgate/reviews"
	reviewParam = "id"
)

// Reviews is the part of the API with what was submitted for review and the decisions of reviewers
// (contract C-12, C-13). The use case decides who may see and decide what.
type Reviews struct {
	part
	callers
	reviews *reviewing.Service
}

// NewReviews returns the reviewers' part of the API.
func NewReviews(a authority.Authority, r Resource, s *reviewing.Service) *Reviews {
	return &Reviews{part{"reviews", []string{reviewsPath}, r}, callers{a}, s}
}

// Mount adds the routes of contract C-12 and C-13.
func (a *Reviews) Mount(r fiber.Router) {
	for _, prefix := range prefixes() {
		one := prefix + reviewsPath + "/:" + reviewParam
		r.Get(prefix+reviewsPath, a.known(a.listReviews))
		r.Get(one, a.known(a.getReview))
		r.Post(one+"/approve", a.only(authority.Caller.Person, a.decideReview(a.reviews.Approve)))
		r.Post(one+"/reject", a.only(authority.Caller.Person, a.decideReview(a.reviews.Reject)))
		r.Post(one+"/request-changes", a.only(authority.Caller.Person, a.decideReview(a.reviews.RequestChanges)))
	}
}

func (a *Reviews) listReviews(c *fiber.Ctx, who authority.Caller) error {
	q := reviewing.Query{
		State: c.Query("state"), Server: c.Query("server"), Cursor: c.Query("cursor"), Limit: c.Query("limit"),
	}
	p, err := a.reviews.List(c.UserContext(), who, q)
	if err != nil {
		return err
	}
	emails, err := a.reviews.Submitters(c.UserContext(), p.Reviews...)
	if err != nil {
		return err
	}
	response := reviewList{
		Reviews: make([]reviewResponse, len(p.Reviews)), Metadata: metadata{p.NextCursor, len(p.Reviews)},
	}
	for i := range p.Reviews {
		response.Reviews[i] = newReviewResponse(&p.Reviews[i], emails)
	}
	return sendUncached(c, http.StatusOK, response)
}

func (a *Reviews) getReview(c *fiber.Ctx, who authority.Caller) error {
	shown, err := a.reviews.Get(c.UserContext(), who, readID(c))
	return a.sendReview(c, shown, err)
}

// decideReview returns the handler that decides a review. An empty body has no comment.
func (a *Reviews) decideReview(
	decide func(ctx context.Context, who authority.Caller, id registry.ReviewID, comment string) (review.Shown, error),
) handler {
	return func(c *fiber.Ctx, who authority.Caller) error {
		comment, err := readComment(c)
		if err != nil {
			return err
		}
		shown, err := decide(c.UserContext(), who, readID(c), comment)
		return a.sendReview(c, shown, err)
	}
}

func readComment(c *fiber.Ctx) (string, error) {
	if len(c.Body()) == 0 {
		return "", nil
	}
	body, err := jsonbody.Read(c)
	if err != nil {
		return "", err
	}
	comment := body.OptionalText("comment")
	return comment, body.Err()
}

// readID returns a copy of the ID in the path.
func readID(c *fiber.Ctx) registry.ReviewID {
	return registry.ReviewID(strings.ToLower(strings.Clone(c.Params(reviewParam))))
}

// sendReview sends a review, or returns err.
func (a *Reviews) sendReview(c *fiber.Ctx, s review.Shown, err error) error {
	var emails map[string]string
	if err == nil {
		emails, err = a.reviews.Submitters(c.UserContext(), s)
	}
	if err != nil {
		return err
	}
	return sendUncached(c, http.StatusOK, newReviewResponse(&s, emails))
}

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
	Email       string          `json:"submitterEmail,omitempty"` // of a person; not in an event
	SubmittedAt string          `json:"submittedAt"`
	Policy      *string         `json:"policy"`
	DecidedBy   *string         `json:"decidedBy"`
	DecidedAt   *string         `json:"decidedAt"`
	Comment     *string         `json:"comment"`
	Rule        *string         `json:"rule"`
	Danger      bool            `json:"danger"`
	Two         bool            `json:"twoApprovals,omitempty"` // two people must approve it
	First       *approval       `json:"firstApproval"`          // of two; null without one
	Reason      *string         `json:"reason"`                 // of a request; null for other documents
	Source      *string         `json:"source"`
	ToolLists   []toolList      `json:"toolLists"`
}

// approval is the first of two approvals.
type approval struct {
	By   string `json:"by"`
	At   string `json:"at"`
	Text string `json:"text"` // a hash of what was approved
}

// toolList is a tool list about which a review decides (contract W-4).
type toolList struct {
	Remote      *string          `json:"remote"`  // null for that of a package
	Package     *int             `json:"package"` // null for that of a remote
	Source      string           `json:"source"`
	By          string           `json:"by"`
	At          string           `json:"at"`
	Mark        string           `json:"mark"`
	New         []string         `json:"new"`
	Changed     []string         `json:"changed"`
	Removed     []string         `json:"removed"`
	Differences []toolDifference `json:"differences"`
	Hints       []toolHint       `json:"hints"`
}

type toolDifference struct {
	Kind     string `json:"kind"`
	Tool     string `json:"tool"` // empty for what else a model reads
	Danger   string `json:"danger"`
	Sentence string `json:"sentence"`
}

type toolHint struct {
	About  string `json:"about"`
	Tool   string `json:"tool"`
	Where  string `json:"where"`
	Found  string `json:"found"`
	Reason string `json:"reason"`
}

func newToolList(p *tools.Proposal) toolList {
	l := toolList{
		Source: string(p.Source), By: p.By.Key, At: jsonstring.FormatTime(p.At), Mark: string(p.List.Mark),
		New: append([]string{}, p.Added...), Changed: append([]string{}, p.Changed...), Removed: append([]string{}, p.Removed...),
		Differences: make([]toolDifference, len(p.Differences)), Hints: make([]toolHint, len(p.Findings)),
	}
	if l.Remote = jsonstring.TextOrNull(p.Remote); l.Remote == nil {
		l.Package = &p.Package
	}
	for i, d := range p.Differences {
		l.Differences[i] = toolDifference{string(d.Kind), d.Tool, d.Danger.String(), d.Sentence}
	}
	for i, f := range p.Findings {
		l.Hints[i] = toolHint{string(f.Suspicion), f.Tool, f.Where, f.Found, f.Reason}
	}
	return l
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

func newReviewResponse(s *review.Shown, emails map[string]string) reviewResponse {
	r := reviewResponse{
		ID: string(s.ID), ServerName: s.Name.String(), Version: s.Version.String(), State: string(s.State),
		Kind:   string(s.Kind),
		Danger: s.IsDangerous(), Two: s.Two,
		Document: s.Document, Replaces: s.Replaces, ToolLists: each.MapRef(s.Lists, newToolList),
		Diff: each.Map(s.Diff, func(c review.Difference) difference { return difference(c) }),
		Checks: each.Map(s.Checks, func(c review.Check) check {
			return check{c.RegistryType, c.Identifier, string(c.State), c.Message}
		}),
		SubmittedBy: s.Submitter.Key, Email: emails[s.Submitter.Key], SubmittedAt: jsonstring.FormatTime(s.SubmittedAt),
		Policy:    jsonstring.TextOrNull(string(s.Submitter.Policy)),
		DecidedBy: jsonstring.TextOrNull(s.DecidedBy), DecidedAt: jsonstring.TimeOrNull(s.DecidedAt), Comment: jsonstring.TextOrNull(s.Comment),
		Rule: jsonstring.TextOrNull(string(s.Rule)), Reason: jsonstring.TextOrNull(s.Request.Reason), Source: jsonstring.TextOrNull(s.Request.Source),
	}
	if s.First.By != "" {
		r.First = &approval{s.First.By, jsonstring.FormatTime(s.First.At), string(s.First.Text)}
	}
	return r
}
