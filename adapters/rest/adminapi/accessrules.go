package adminapi

import (
	"context"
	"net/http"

	"github.com/tollgate-dev/tollgate/adapters/rest/accessjson"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/fields"
)

// explainAccess says why a call would be allowed or denied. It changes nothing.
func (a *API) explainAccess(q *request) act {
	b := q.body()
	who, question, err := deciding.ParseQuestion(deciding.Draft{
		Subject: b.Text("subject"), Trust: b.OptionalText("trust"), Server: b.OptionalText("server"),
		URL: b.OptionalText("url"), Method: b.OptionalText("method"), Name: b.OptionalText("tool"),
		Address: b.OptionalText("address"), Client: b.OptionalText("client"), Resource: b.OptionalText("resource"),
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
