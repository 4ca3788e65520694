package decideapi

import (
	"cmp"
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
	Subject  entity `json:"subject"`
	Resource entity `json:"resource"`
	Action   struct {
		Name string `json:"name"`
	} `json:"action"`
	Context properties `json:"context"`
}

// entity is a subject or a resource.
type entity struct {
	Type       string     `json:"type"`
	ID         string     `json:"id"`
	Properties properties `json:"properties"`
}

// properties are what programs add in forms of their own.
type properties map[string]any

// text returns a property that is a text; otherwise it is empty.
func (p properties) text(name string) string {
	text, _ := p[name].(string)
	return text
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
	if err := w.Admit(c); err != nil {
		return err
	}
	media, _, _ := strings.Cut(c.Get(fiber.HeaderContentType), ";")
	if media = strings.TrimSpace(media); media != "" && !strings.EqualFold(media, jsonType) {
		return fields.Invalid(fiber.HeaderContentType, " must be "+jsonType) // 400, by section 10 of the API
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
		return fault.Wrap(fault.Internal, "the decision was made but the response could not be encoded", err)
	}
	return sendJSON(c, body)
}

// withDefaults returns the question with the members that it leaves out, also those of its subject and its
// resource.
func (e *evaluation) withDefaults(d *evaluation) *evaluation {
	e.Subject.setDefaults(&d.Subject)
	e.Resource.setDefaults(&d.Resource)
	e.Action.Name = cmp.Or(e.Action.Name, d.Action.Name)
	if e.Context == nil {
		e.Context = d.Context
	}
	return e
}

func (e *entity) setDefaults(d *entity) {
	e.Type, e.ID = cmp.Or(e.Type, d.Type), cmp.Or(e.ID, d.ID)
	if e.Properties == nil {
		e.Properties = d.Properties
	}
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
	kind, id, err := e.Subject.named()
	if err != nil {
		return verdict{}, err
	}
	subject, err := s.subject(kind, id)
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
	r := &e.Resource
	switch {
	case e.Subject.ID == "":
		return q, fields.Invalid("subject.id", " is missing")
	case e.Action.Name == "":
		return q, fields.Invalid("action.name", " is missing: it is the method of MCP, for example tools/call")
	case r.ID == "":
		return q, fields.Invalid("resource.id", " is missing")
	}
	server, name := cmp.Or(r.Properties.text("server"), e.Context.text("server")), r.ID
	switch r.Type {
	case "mcp_server":
		server, name = r.ID, ""
	case "mcp_tool", "tool", "prompt", "resource", "task":
	default:
		return q, fields.Invalid("resource.type", " must be mcp_server, mcp_tool, tool, prompt, resource or task")
	}
	if server == "" {
		return q, fields.Invalid("resource.properties.server", " is missing: it is the name of the server, or a URL of it; context.server may have it, too")
	}
	if calls := e.Action.Name == string(access.CallsTools); calls != strings.HasSuffix(r.Type, "tool") {
		return q, fields.Invalid("resource.type", " must be mcp_tool or tool for tools/call, and another one for other methods")
	}
	var isURL bool
	if q.Address, isURL = splitURL(server); !isURL {
		q.Server = server
	}
	q.Call = access.NewCall(e.Action.Name, name)
	return q, nil
}

// named returns the type and the id by which deciding.Service.Named finds a subject. A gateway sends an
// identity, the subject of the token that it has verified (OpenID's binding COAZ-MCP, draft 1): with the
// issuer in properties.iss, or a space before it, that of a foreign token; an e-mail address is a person.
func (e *entity) named() (kind, id string, err error) {
	issuer := e.Properties.text("iss")
	switch {
	case e.Type != "identity":
		return e.Type, e.ID, nil
	case issuer != "":
		return "jwt", issuer + " " + e.ID, nil
	case strings.Contains(e.ID, " "):
		return "jwt", e.ID, nil
	case strings.Contains(e.ID, "@"):
		return string(access.SelectPerson), e.ID, nil
	}
	return "", "", fields.Invalid("subject.properties.iss", " is missing: it is the issuer of the token whose subject the identity is")
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
