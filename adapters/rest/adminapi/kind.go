package adminapi

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/adapters/rest/accessjson"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/managing"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/identity"
	"github.com/tollgate-dev/tollgate/ports/management"
)

// kindRoutes are the routes of the objects of a kind: their list, and each by its name.
type kindRoutes struct {
	management.Objects

	kind *kinds.Kind
}

func newKindRoutes(o management.Objects) kindRoutes { return kindRoutes{o, o.Kind()} }

func (a *API) mountKind(r fiber.Router, k kindRoutes) {
	list, reader, writer := root+"/"+k.kind.Path(), a.operator(adminRead), a.operator(adminWrite)
	one := list + "/:name"
	r.Get(list, a.read(reader, k.list))
	r.Get(one, a.read(reader, k.get))
	r.Put(one, a.write(change{k.kind.Category, k.kind.Put, k.kind.Name}, writer, k.put))
	r.Delete(one, a.write(change{k.kind.Category, k.kind.Remove, k.kind.Name}, writer, k.remove))
}

// objectResponse is an object: its fields, also those that are empty, and what else is known of it.
type objectResponse struct {
	members, state audit.Details
	ownedBy
}

func (k kindRoutes) newResponse(o *management.Object) objectResponse {
	members := kinds.Complete(k.kind.Fields, o.Fields)
	maps.Copy(members, o.Fixed)
	members["managedBy"] = audit.Text(o.Owner)
	return objectResponse{members, o.State, ownedBy{o.Owner}}
}

// stable returns the object without its state.
func (r objectResponse) stable() any { return r.members }

// MarshalJSON writes the members in the order of their names.
func (r objectResponse) MarshalJSON() ([]byte, error) {
	all := maps.Clone(r.members)
	maps.Copy(all, r.state)
	return json.Marshal(all)
}

func (k kindRoutes) list(q *request) act {
	return listing[management.Object, objectResponse]{
		name: k.kind.List, key: func(o *management.Object) string { return o.Key }, shape: k.newResponse, fetch: k.List,
	}.handle(q)
}

func (k kindRoutes) get(q *request) act {
	key := q.param("name")
	return func(ctx context.Context) (answer, error) {
		o, err := k.Get(ctx, key)
		return answerWith(http.StatusOK, o, err, k.newResponse)
	}
}

func (k kindRoutes) put(q *request) act {
	given := q.body().Fields(k.kind.Fields[1:])
	given[k.kind.Fields[0].Name] = audit.Text(q.param("name"))
	_, err := k.Parse(given)
	q.check("", err)
	c := management.Change{Fields: given, Force: q.flag("force"), Check: conditionOf(q, k.newResponse)}
	return func(ctx context.Context) (answer, error) {
		o, created, err := k.Put(ctx, c)
		if err != nil {
			return answer{}, err
		}
		return putObject(created, k.newResponse(&o)), nil
	}
}

func (k kindRoutes) remove(q *request) act {
	key, c := q.param("name"), management.Change{Force: q.flag("purge"), Check: conditionOf(q, k.newResponse)}
	return func(ctx context.Context) (answer, error) { return noContent(), k.Remove(ctx, key, c) }
}

const mirrorPath = root + "/mirrors/:name"

func (a *API) mountMirrors(r fiber.Router) {
	read, write := a.operator(adminRead), a.operator(adminWrite)
	of := func(action audit.Action) change { return change{audit.RegistryChange, action, "mirror"} }
	r.Post(mirrorPath+"/sync", a.write(of("mirror_sync"), write, a.syncMirror))
	r.Get(mirrorPath+"/diff", a.read(read, a.diffMirror))
}

func (a *API) syncMirror(q *request) act {
	name, mirrors := mirror.Name(q.param("name")), newKindRoutes(a.use.Kinds[mirror.Kind.List])
	return func(ctx context.Context) (answer, error) {
		if err := a.use.Mirrors.Schedule(ctx, name); err != nil {
			return answer{}, err
		}
		m, err := mirrors.Get(ctx, string(name))
		return answerWith(http.StatusAccepted, m, err, mirrors.newResponse)
	}
}

// maxOutcomes is how many changes an answer shows of those that a read of a mirror would make.
const maxOutcomes = 1000

type diffResponse struct {
	Records  int            `json:"records"`
	Servers  int            `json:"servers"`
	Counts   map[string]int `json:"counts"`
	Outcomes []outcome      `json:"outcomes"` // at most maxOutcomes
}

type outcome struct {
	Verdict string `json:"verdict"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

func (a *API) diffMirror(q *request) act {
	name := mirror.Name(q.param("name"))
	return func(ctx context.Context) (answer, error) {
		response := diffResponse{Counts: map[string]int{}, Outcomes: []outcome{}}
		found, err := a.use.Mirrors.Diff(ctx, name, mirroring.Options{Report: func(o mirroring.Outcome) {
			if len(response.Outcomes) < maxOutcomes {
				response.Outcomes = append(response.Outcomes, outcome{string(o.Verdict), o.Name, o.Version, o.Reason})
			}
		}})
		if err != nil {
			return answer{}, err
		}
		response.Records, response.Servers = found.Records, found.Servers
		for verdict, n := range found.Count {
			response.Counts[string(verdict)] = n
		}
		return answer{status: http.StatusOK, body: response}, nil
	}
}

const viewTokensPath = root + "/views/:name/tokens"

func (a *API) mountViews(r fiber.Router) {
	read, write := a.operator(adminRead), a.operator(adminWrite)
	of := func(action audit.Action, kind string) change { return change{audit.RegistryChange, action, kind} }
	r.Get(viewTokensPath, a.read(read, a.listViewTokens))
	r.Post(viewTokensPath, a.write(of("view_token_add", "viewToken"), write, a.addViewToken))
	r.Delete(viewTokensPath+"/:id", a.write(of("view_token_remove", "viewToken"), write, a.removeViewToken))
}

// viewTokenResponse is a token of a view. Its name identifies it.
type viewTokenResponse struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	CreatedAt string `json:"createdAt,omitempty"`
	Token     string `json:"token,omitempty"` // in the answer that made it only
}

func newViewTokenResponse(t *view.Token) viewTokenResponse {
	return viewTokenResponse{ID: string(t.Name), Name: string(t.Name), CreatedAt: jsonstring.FormatTime(t.CreatedAt)}
}

func (a *API) listViewTokens(q *request) act {
	name, key := view.Name(q.param("name")), func(t *view.Token) string { return string(t.Name) }
	tokens := func(ctx context.Context) ([]view.Token, error) { return a.use.Views.Tokens(ctx, name) }
	return listing[view.Token, viewTokenResponse]{
		name: "tokens", key: key, shape: newViewTokenResponse, fetch: managing.PageOf(tokens, key),
	}.handle(q)
}

func (a *API) addViewToken(q *request) act {
	of, name := view.Name(q.param("name")), q.body().Text("name")
	_, err := view.ParseTokenName(name)
	q.check("name", err)
	q.named = strings.TrimSpace(string(of) + " " + name)
	return func(ctx context.Context) (answer, error) {
		secret, err := a.use.Views.AddToken(ctx, of, name)
		if err != nil {
			return answer{}, err
		}
		return answer{status: http.StatusCreated, body: viewTokenResponse{
			ID: name, Name: name, CreatedAt: jsonstring.FormatTime(a.use.Clock.Now()), Token: string(secret),
		}}, nil
	}
}

func (a *API) removeViewToken(q *request) act {
	of, name := view.Name(q.param("name")), view.TokenName(q.param("id"))
	return func(ctx context.Context) (answer, error) {
		return noContent(), a.use.Views.RemoveToken(ctx, of, name)
	}
}

// providerTest is the result of the test of a provider.
type providerTest struct {
	OK    bool           `json:"ok"`
	Steps []providerStep `json:"steps"`
}

type providerStep struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Message string `json:"message"`
}

func (a *API) testProvider(q *request) act {
	name := q.param("name")
	return func(ctx context.Context) (answer, error) {
		steps, err := a.use.Providers.Test(ctx, name)
		if err != nil {
			return answer{}, err
		}
		return answer{status: http.StatusOK, body: newProviderTest(steps)}, nil
	}
}

func newProviderTest(steps []identity.Step) providerTest {
	t := providerTest{OK: true, Steps: make([]providerStep, len(steps))}
	for i, s := range steps {
		t.OK, t.Steps[i] = t.OK && s.OK, providerStep{s.Name, s.OK, s.Message}
	}
	return t
}

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
