package adminapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/accessjson"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fields"
)

const (
	accessRulesPath = root + "/access-rules"
	accessRulePath  = accessRulesPath + "/:name"
	kindAccessRule  = "accessRule"
)

func (a *API) mountAccessRules(r fiber.Router) {
	reader, writer := a.operator(adminRead), a.operator(adminWrite)
	put := change{audit.RegistryChange, "access_rule_put", kindAccessRule}
	remove := change{audit.RegistryChange, "access_rule_remove", kindAccessRule}
	r.Get(accessRulesPath, a.read(reader, a.listAccessRules))
	r.Get(accessRulePath, a.read(reader, a.getAccessRule))
	r.Put(accessRulePath, a.write(put, writer, a.putAccessRule))
	r.Delete(accessRulePath, a.write(remove, writer, a.removeAccessRule))
	r.Post(root+"/access/explain", a.read(reader, a.explainAccess))
}

// accessRuleResponse is a rule about calls: its fields, as a state in a file has them, without any
// that is missing.
type accessRuleResponse struct {
	fields audit.Details
	managed
}

func newAccessRuleResponse(r *access.Rule) accessRuleResponse {
	fields := r.Fields()
	for _, list := range [...]string{"methods", "tools", "networks"} {
		if fields[list] == nil {
			fields[list] = audit.List{}
		}
	}
	for _, text := range [...]string{"minTrust", "expiresAt"} {
		if _, given := fields[text]; !given {
			fields[text] = nil // null
		}
	}
	fields["managedBy"] = audit.Text(r.ManagedBy)
	return accessRuleResponse{fields, managed{r.ManagedBy}}
}

// MarshalJSON writes the members in the order of their names.
func (r accessRuleResponse) MarshalJSON() ([]byte, error) { return json.Marshal(r.fields) }

func (a *API) listAccessRules(q *request) act {
	return listing[access.Rule, accessRuleResponse]{
		name: "accessRules", shape: newAccessRuleResponse,
		key: func(r *access.Rule) string { return string(r.Name) },
		fetch: func(ctx context.Context, after string, limit int) ([]access.Rule, error) {
			return a.use.AccessRules.List(ctx, access.RuleName(after), limit)
		},
	}.handle(q)
}

func (a *API) getAccessRule(q *request) act {
	name := access.RuleName(q.param("name"))
	return func(ctx context.Context) (answer, error) {
		r, err := a.use.AccessRules.Get(ctx, name)
		if err != nil {
			return answer{}, err
		}
		return object(http.StatusOK, newAccessRuleResponse(&r)), nil
	}
}

func (a *API) putAccessRule(q *request) act {
	wanted, err := access.ParseRule(readAccessRule(q.param("name"), q.body()))
	q.check("", err)
	check := conditionOf(q, newAccessRuleResponse)
	return func(ctx context.Context) (answer, error) {
		r, created, err := a.use.AccessRules.Put(ctx, wanted, check)
		if err != nil {
			return answer{}, err
		}
		return putObject(created, newAccessRuleResponse(&r)), nil
	}
}

// readAccessRule returns the fields of a body.
func readAccessRule(name string, b *jsonbody.Object) audit.Details {
	fields := audit.Details{"name": audit.Text(name), "order": audit.Number(b.Number("order"))}
	fields.Set("effect", b.Text("effect"))
	for _, text := range [...]string{"minTrust", "expiresAt", "mode"} {
		fields.Set(text, b.OptionalText(text))
	}
	for _, list := range [...]string{"subjects", "servers", "methods", "tools", "networks"} {
		fields[list] = audit.Texts(b.OptionalTexts(list))
	}
	return fields
}

func (a *API) removeAccessRule(q *request) act {
	name, check := access.RuleName(q.param("name")), conditionOf(q, newAccessRuleResponse)
	return func(ctx context.Context) (answer, error) {
		return noContent(), a.use.AccessRules.Remove(ctx, name, check)
	}
}

// explainAccess says why a call would be allowed or denied. It changes nothing.
func (a *API) explainAccess(q *request) act {
	b := q.body()
	who, question, err := deciding.ParseQuestion(deciding.Draft{
		Subject: b.Text("subject"), Trust: b.OptionalText("trust"), Server: b.OptionalText("server"),
		URL: b.OptionalText("url"), Method: b.OptionalText("method"), Name: b.OptionalText("tool"),
		Address: b.OptionalText("address"),
	})
	q.check("", err)
	offset, limit := q.numberOf(b, "offset", 0, 0, access.MaxRules), q.numberOf(b, "limit", defaultSteps, 1, access.MaxSteps)
	return func(ctx context.Context) (answer, error) {
		e, err := a.use.Access.Explain(ctx, who, question)
		return answer{status: http.StatusOK, body: accessjson.New(&e, offset, limit)}, err
	}
}

// defaultSteps is how many rules an explanation has that did not decide, if the question has no limit.
const defaultSteps = 100

// numberOf returns a member that is a number from least to most, or otherwise without it.
func (q *request) numberOf(b *jsonbody.Object, name string, otherwise, least, most int) int {
	if !b.Has(name) {
		return otherwise
	}
	n := b.Number(name)
	if n < least || n > most {
		q.check(name, fields.Invalid(name, " must be a number from %d to %d", least, most))
	}
	return n
}
