package adminapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/adapters/rest/authapi"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/managing"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

const rulesPath = root + "/review-rules"

func (a *API) mountReviews(r fiber.Router) {
	read, write := a.operator(adminRead), a.operator(adminWrite)
	of := func(action audit.Action, kind string) change { return change{audit.RegistryChange, action, kind} }
	// A token needs the scope of reviewers too.
	decide := func(ctx context.Context, who authority.Caller) error {
		return cmp.Or(who.RequireAction(registry.ActionReview), write(ctx, who))
	}
	r.Get(rulesPath, a.read(read, a.listRules))
	r.Post(rulesPath, a.write(of("review_rule_add", "reviewRule"), write, a.addRule))
	r.Delete(rulesPath+"/:id", a.write(of("review_rule_remove", "reviewRule"), write, a.removeRule))
	r.Post(root+"/reviews/approve", a.write(of("approve", "review"), decide, a.decide(a.use.Reviews.ApproveOfMany, "approved")))
	r.Post(root+"/reviews/reject", a.write(of("reject", "review"), decide, a.decide(a.use.Reviews.Reject, "rejected")))
}

type ruleResponse struct {
	ID        string `json:"id"`
	Pattern   string `json:"pattern"`
	Publisher string `json:"publisher"` // a person, or a policy; empty for all
	When      string `json:"when"`
	CreatedAt string `json:"createdAt"`
	ownedBy
}

func newRuleResponse(r *review.Rule) ruleResponse {
	return ruleResponse{
		string(r.ID), r.Pattern.String(), r.Publisher, string(r.When), jsonstring.FormatTime(r.CreatedAt), ownedBy{r.ManagedBy},
	}
}

func (a *API) listRules(q *request) act {
	key := func(r *review.Rule) string { return jsonstring.FormatTime(r.CreatedAt) + " " + string(r.ID) }
	return listing[review.Rule, ruleResponse]{
		name: "reviewRules", key: key, shape: newRuleResponse, fetch: managing.PageOf(a.use.Reviews.Rules, key),
	}.handle(q)
}

func (a *API) addRule(q *request) act {
	b := q.body()
	draft := reviewing.RuleDraft{
		Pattern: b.Text("pattern"), Publisher: b.OptionalText("publisher"), When: b.Text("when"),
	}
	_, err := draft.Rule()
	q.check("", err)
	return func(ctx context.Context) (answer, error) {
		rule, err := a.use.Reviews.AddRule(ctx, draft)
		return answerWith(http.StatusCreated, rule, err, newRuleResponse)
	}
}

func (a *API) removeRule(q *request) act {
	id, check := review.RuleID(strings.ToLower(q.param("id"))), conditionOf(q, newRuleResponse)
	return func(ctx context.Context) (answer, error) {
		return noContent(), a.use.Reviews.RemoveRule(ctx, id, check)
	}
}

// maxDecided is how many reviews one request may decide.
const maxDecided = 100

// decided is the outcome of one review of a batch: approved, rejected, or why not.
type decided struct {
	ID      string     `json:"id"`
	Outcome string     `json:"outcome"`         // approved, rejected, or refused
	Error   fault.Code `json:"error,omitempty"` // of a refusal
	Message string     `json:"message,omitempty"`
}

// decide returns the handler that decides several reviews, each as its caller: the grant for its
// server and four eyes are required for each.
func (a *API) decide(
	do func(ctx context.Context, who authority.Caller, id registry.ReviewID, comment string) (review.Shown, error), outcome string,
) handler {
	return func(q *request) act {
		ids, comment := q.body().Texts("ids"), q.body().OptionalText("comment")
		if n := len(ids); q.body().Has("ids") && n > maxDecided || !q.body().Has("ids") {
			q.check("ids", fault.New(fault.Invalid, fmt.Sprintf("must have 1 to %d ids", maxDecided)))
		}
		comment, err := review.ParseComment(comment, outcome == "rejected")
		q.check("comment", err)
		return func(ctx context.Context) (answer, error) {
			results := make([]decided, len(ids))
			for i, id := range ids {
				_, err := do(ctx, q.who, registry.ReviewID(strings.ToLower(id)), comment)
				results[i] = newDecided(id, outcome, err)
			}
			return answer{status: http.StatusOK, body: map[string][]decided{"results": results}}, nil
		}
	}
}

func newDecided(id, outcome string, err error) decided {
	if err == nil {
		return decided{ID: id, Outcome: outcome}
	}
	f, ok := fault.As(err)
	if !ok {
		f = fault.New(fault.Internal, "")
	}
	return decided{id, "refused", authapi.CodeOf(f, 0), fault.PublicMessage(err)}
}
