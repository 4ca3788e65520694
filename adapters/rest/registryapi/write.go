package registryapi

import (
	"context"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/representation"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browse"
	"github.com/tollgate-dev/tollgate/core/registry/publish"
)

// Writer changes the registry. *publish.Publisher is one; the errors are
// documented there.
type Writer interface {
	Publish(ctx context.Context, r publish.Request) (registry.Record, error)
	Replace(ctx context.Context, r publish.Request, t publish.Target) (registry.Record, error)
	Delete(ctx context.Context, r publish.Request, t publish.Target) (registry.Record, error)
	SetStatus(ctx context.Context, r publish.Request, t publish.Target) (registry.Record, error)
	SetStatusAll(ctx context.Context, r publish.Request, serverName string, room publish.SizeCheck) (browse.History, error)
}

func (a *API) publish(c *fiber.Ctx) error {
	r, err := a.optional(c)
	if err != nil {
		return err
	}
	r.Condition = condition(representation.IfNoneMatch(c))
	record, err := a.writer.Publish(c.UserContext(), r)
	return answerWrite(c, record, err)
}

func (a *API) replace(c *fiber.Ctx) error {
	r, err := a.optional(c)
	if err != nil {
		return err
	}
	t, err := a.optionalTarget(c)
	if err != nil {
		return err
	}
	r.Condition = condition(representation.IfMatch(c))
	record, err := a.writer.Replace(c.UserContext(), r, t)
	return answerWrite(c, record, err)
}

func (a *API) delete(c *fiber.Ctx) error {
	t, err := a.optionalTarget(c)
	if err != nil {
		return err
	}
	r := request(c)
	r.Condition = condition(representation.IfMatch(c))
	record, err := a.writer.Delete(c.UserContext(), r, t)
	return answerWrite(c, record, err)
}

func (a *API) setStatus(c *fiber.Ctx) error {
	r, err := withBody(c)
	if err != nil {
		return err
	}
	t, err := target(c)
	if err != nil {
		return err
	}
	r.Condition = condition(representation.IfMatch(c))
	record, err := a.writer.SetStatus(c.UserContext(), r, t)
	return answerWrite(c, record, err)
}

func (a *API) setStatusAll(c *fiber.Ctx) error {
	r, err := withBody(c)
	if err != nil {
		return err
	}
	name, err := pathValue(c, nameParam)
	if err != nil {
		return err
	}
	r.Condition = condition(representation.IfMatch(c))
	var room *representation.Room
	changed, err := a.writer.SetStatusAll(c.UserContext(), r, name, func(changed browse.History) error {
		if changed.Long == nil || room != nil {
			return nil
		}
		taken, err := a.forms.Room()
		if err == nil {
			room = taken
		}
		return err
	})
	if err == nil && changed.Long != nil {
		a.sendLongChange(c, room, changed.Long)
		return nil
	}
	room.Release() // a repeated transaction may have changed less than the first time
	if err != nil {
		return err
	}
	return send(c, func(b []byte) []byte { return appendChanged(b, changed.Records) })
}

// required is publish.Condition: the entity tags that a caller requires.
type required struct{ representation.Condition }

// condition returns what the headers of a write require; nil = nothing.
func condition(c representation.Condition, any bool) publish.Condition {
	if !any {
		return nil
	}
	return required{c}
}

// HoldsFor implements publish.Condition.
func (r required) HoldsFor(current registry.Record) bool {
	return r.Holds(representation.Sum(appendRecord(nil, &current)))
}

// HoldsForAll implements publish.Condition.
func (r required) HoldsForAll(histories ...browse.History) bool {
	sums := make([]uint64, len(histories))
	for i, h := range histories {
		if h.Long != nil {
			sums[i], _ = outline(h.Long.Editions())
		} else {
			sums[i] = representation.Sum(appendList(nil, h.Records, ""))
		}
	}
	return r.Holds(sums...)
}

// optional reads a write that may be switched off: then 501 comes before all other checks
// (contract R-6).
func (a *API) optional(c *fiber.Ctx) (publish.Request, error) {
	if a.config.WritesOff {
		return publish.Request{}, nil
	}
	return withBody(c)
}

// optionalTarget is target for such a write.
func (a *API) optionalTarget(c *fiber.Ctx) (publish.Target, error) {
	if a.config.WritesOff {
		return publish.Target{}, nil
	}
	return target(c)
}

// withBody reads a request with its JSON body.
func withBody(c *fiber.Ctx) (publish.Request, error) {
	r := request(c)
	var err error
	r.Body, err = rest.JSONBody(c)
	return r, err
}

func request(c *fiber.Ctx) publish.Request {
	return publish.Request{Token: rest.BearerToken(c), Address: rest.Address(c)}
}

// target returns the version that the path names.
func target(c *fiber.Ctx) (publish.Target, error) {
	name, err := pathValue(c, nameParam)
	if err != nil {
		return publish.Target{}, err
	}
	version, err := pathValue(c, versionParam)
	return publish.Target{Name: name, Version: version}, err
}

// answerWrite is answer with the tag that the next read of the version has.
func answerWrite(c *fiber.Ctx, r registry.Record, err error) error {
	if err := answer(c, r, err); err != nil {
		return err
	}
	representation.SetTag(c)
	return nil
}

func answer(c *fiber.Ctx, r registry.Record, err error) error {
	if err != nil {
		return err
	}
	return send(c, func(b []byte) []byte { return appendRecord(b, &r) })
}

// validation is the answer of validate (contract R-55).
type validation struct {
	Valid  bool    `json:"valid"`
	Issues []issue `json:"issues"`
}

type issue struct {
	Type      registry.IssueType `json:"type"`
	Path      string             `json:"path"`
	Message   string             `json:"message"`
	Severity  registry.Severity  `json:"severity"`
	Reference string             `json:"reference"`
}

// validate tells what publish would refuse, without a token and without
// storing anything.
func (a *API) validate(c *fiber.Ctx) error {
	body, err := rest.JSONBody(c)
	if err != nil {
		return err
	}
	draft, err := registry.ParseDraft(body)
	if err != nil {
		return err
	}
	result := validation{Valid: true, Issues: []issue{}}
	for _, i := range draft.Issues() {
		result.Valid = result.Valid && i.Severity != registry.SeverityError
		result.Issues = append(result.Issues, issue(i))
	}
	return c.Status(http.StatusOK).JSON(result)
}
