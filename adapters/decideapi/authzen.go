package decideapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
)

// The paths of the Authorization API 1.0 of OpenID AuthZEN (contract Z-9).
const (
	evaluationPath    = "/access/v1/evaluation"
	evaluationsPath   = "/access/v1/evaluations"
	configurationPath = "/.well-known/authzen-configuration"
)

// maxEvaluations is how many evaluations one request may have.
const maxEvaluations = 100

func (w *Web) mountAuthZEN(r fiber.Router) {
	r.Post(evaluationPath, w.evaluate)
	r.Post(evaluationsPath, w.evaluateAll)
	r.Get(configurationPath, w.showConfiguration)
}

// evaluation is one question: may the subject do the action with the resource.
type evaluation struct {
	Subject *struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	} `json:"subject"`
	Resource *struct {
		Type       string `json:"type"`
		ID         string `json:"id"`
		Properties struct {
			Server string `json:"server"`
		} `json:"properties"`
	} `json:"resource"`
	Action *struct {
		Name string `json:"name"`
	} `json:"action"`
}

// evaluations are several questions. What is next to the list is the default of each of them.
type evaluations struct {
	evaluation

	Evaluations []evaluation `json:"evaluations"`
	Options     struct {
		Semantic string `json:"evaluations_semantic"`
	} `json:"options"`
}

// semantics are how several questions are answered: all, or up to the first with a decision.
var semantics = map[string]struct{ ends, with bool }{
	"": {}, "execute_all": {}, "deny_on_first_deny": {ends: true, with: false}, "permit_on_first_permit": {ends: true, with: true},
}

// verdict is the answer to one question.
type verdict struct {
	Decision bool           `json:"decision"`
	Context  verdictContext `json:"context"`
}

type verdictContext struct {
	Reason     string        `json:"reason,omitempty"`
	Required   string        `json:"requiredTrustLevel,omitempty"`
	DecisionID string        `json:"decisionId,omitempty"`
	Error      *verdictError `json:"error,omitempty"`
}

// verdictError says why a question among several has no answer.
type verdictError struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
}

// evaluate answers one question.
func (w *Web) evaluate(c *fiber.Ctx) error {
	var asked evaluation
	if err := w.readEvaluations(c, &asked); err != nil {
		return err
	}
	return w.sendVerdict(c, &asked)
}

// sendVerdict sends the answer to one question.
func (w *Web) sendVerdict(c *fiber.Ctx, e *evaluation) error {
	v, err := w.newSession(c.UserContext()).evaluate(e)
	if err != nil {
		return err
	}
	return sendObject(c, v)
}

// evaluateAll answers several questions, in their order. Without a list it is evaluate.
func (w *Web) evaluateAll(c *fiber.Ctx) error {
	var asked evaluations
	if err := w.readEvaluations(c, &asked); err != nil {
		return err
	}
	semantic, known := semantics[asked.Options.Semantic]
	if !known {
		return fields.Invalid("options.evaluations_semantic", " must be execute_all, deny_on_first_deny or permit_on_first_permit")
	}
	if len(asked.Evaluations) > maxEvaluations {
		return fields.Invalid("evaluations", " must have at most %d entries", maxEvaluations)
	}
	if len(asked.Evaluations) == 0 {
		return w.sendVerdict(c, &asked.evaluation)
	}
	session := w.newSession(c.UserContext())
	answers := make([]verdict, 0, len(asked.Evaluations))
	for i := range asked.Evaluations {
		v, err := session.evaluate(asked.Evaluations[i].withDefaults(&asked.evaluation))
		if fault.Is(err, fault.Invalid) {
			v, err = verdict{Context: verdictContext{Error: &verdictError{http.StatusBadRequest, err.Error()}}}, nil
		}
		if err != nil {
			return err
		}
		if answers = append(answers, v); semantic.ends && v.Decision == semantic.with {
			break
		}
	}
	return sendObject(c, map[string][]verdict{"evaluations": answers})
}

// readEvaluations reads the body of a request, whose caller must have the scope decide.
func (w *Web) readEvaluations(c *fiber.Ctx, into any) error {
	media, _, _ := strings.Cut(c.Get(fiber.HeaderContentType), ";")
	if media = strings.TrimSpace(media); media != "" && !strings.EqualFold(media, jsonType) {
		return fiber.NewError(http.StatusUnsupportedMediaType, "content type must be "+jsonType)
	}
	if err := w.requireCaller(c); err != nil {
		return err
	}
	if !w.config.On {
		return errOff()
	}
	if err := json.Unmarshal(c.Request().Body(), into); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			return fields.Invalid(wrong.Field, " must not be a JSON %s", wrong.Value)
		}
		return fault.New(fault.Invalid, "the body is not a JSON object")
	}
	return nil
}

func sendObject(c *fiber.Ctx, o any) error {
	body, err := json.Marshal(o)
	if err != nil {
		return fault.Wrap(fault.Internal, "an answer cannot be written", err)
	}
	return sendJSON(c, body)
}

// withDefaults returns the question with what it leaves out.
func (e *evaluation) withDefaults(d *evaluation) *evaluation {
	if e.Subject == nil {
		e.Subject = d.Subject
	}
	if e.Resource == nil {
		e.Resource = d.Resource
	}
	if e.Action == nil {
		e.Action = d.Action
	}
	return e
}

// evaluator answers the questions of one request. It reads each subject once.
type evaluator struct {
	api      *API
	ctx      context.Context //nolint:containedctx // of the request
	subjects map[string]access.Subject
}

func (w *Web) newSession(ctx context.Context) *evaluator {
	return &evaluator{w.API, ctx, map[string]access.Subject{}}
}

// evaluate answers a question. It returns fault.Invalid for one that is not whole.
func (s *evaluator) evaluate(e *evaluation) (verdict, error) {
	q, err := e.question()
	if err != nil {
		return verdict{}, err
	}
	subject, err := s.subject(e.Subject.Type, e.Subject.ID)
	if err != nil {
		return verdict{}, err
	}
	q.Subject = &subject
	a, err := s.api.ports.Decide(s.ctx, q)
	if err != nil {
		return verdict{}, err
	}
	v := verdict{a.Effect == access.Allow, verdictContext{Reason: string(a.Reason), DecisionID: string(a.ID)}}
	if a.Required != 0 {
		v.Context.Required = a.Required.String()
	}
	return v, nil
}

// question returns what is asked, without the subject.
func (e *evaluation) question() (q deciding.Question, err error) {
	switch {
	case e.Subject == nil || e.Subject.ID == "":
		return q, fields.Invalid("subject.id", " is missing")
	case e.Action == nil || e.Action.Name == "":
		return q, fields.Invalid("action.name", " is missing: it is the method of MCP, for example tools/call")
	case e.Resource == nil || e.Resource.ID == "":
		return q, fields.Invalid("resource.id", " is missing")
	}
	tool := ""
	switch r := e.Resource; r.Type {
	case "mcp_server":
		q.Server = r.ID
	case "mcp_tool":
		q.Server, tool = r.Properties.Server, r.ID
		if q.Server == "" {
			return q, fields.Invalid("resource.properties.server", " is missing: it is the name of the server")
		}
	default:
		return q, fields.Invalid("resource.type", " must be mcp_server or mcp_tool")
	}
	if calls := e.Action.Name == string(access.CallsTools); calls != (tool != "") {
		return q, fields.Invalid("resource.type", " must be mcp_tool for tools/call, and mcp_server for other methods")
	}
	q.Call = access.NewCall(e.Action.Name, tool)
	return q, nil
}

// subject returns a subject by its type and id.
func (s *evaluator) subject(kind, id string) (access.Subject, error) {
	key := strconv.Quote(kind) + id
	if known, ok := s.subjects[key]; ok {
		return known, nil
	}
	found, err := s.api.ports.Named(s.ctx, kind, id)
	if err == nil {
		s.subjects[key] = found
	}
	return found, err
}

// configuration describes the decision point, for clients that look for its addresses.
type configuration struct {
	DecisionPoint string `json:"policy_decision_point"`
	Evaluation    string `json:"access_evaluation_endpoint"`
	Evaluations   string `json:"access_evaluations_endpoint"`
}

// showConfiguration sends the description, which needs to know the address of the service.
func (w *Web) showConfiguration(c *fiber.Ctx) error {
	if !w.config.On || w.config.PublicURL == "" {
		return fault.New(fault.NotFound, "the addresses are known with PUBLIC_URL and DECIDE=on")
	}
	base := strings.TrimRight(w.config.PublicURL, "/")
	return sendObject(c, configuration{base, base + evaluationPath, base + evaluationsPath})
}
