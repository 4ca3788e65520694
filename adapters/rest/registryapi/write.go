package registryapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// Writer changes the registry, and counts what it could not. *prometheus.Publisher implements it;
// publishing.Publisher documents the errors.
type Writer interface {
	Refuse(of publishing.Operation, err error) error
	Publish(ctx context.Context, who authority.Caller, r publishing.Request) (publishing.Outcome, error)
	Replace(
		ctx context.Context, who authority.Caller, r publishing.Request, t publishing.Target,
	) (publishing.Outcome, error)
	Delete(
		ctx context.Context, who authority.Caller, r publishing.Request, t publishing.Target,
	) (registry.Record, error)
	SetStatus(
		ctx context.Context, who authority.Caller, r publishing.Request, t publishing.Target,
	) (registry.Record, error)
	SetStatusAll(
		ctx context.Context, who authority.Caller, r publishing.Request, serverName string, room publishing.SizeCheck,
	) (history.History, error)
}

// write is a change as it was sent, and who sent it.
type write struct {
	who     authority.Caller
	request publishing.Request
	target  publishing.Target
}

func (a *API) publishVersion(c *fiber.Ctx, w write) error {
	w.request.Condition = newCondition(responsebody.ReadIfNoneMatch(c))
	outcome, err := a.writer.Publish(c.UserContext(), w.who, w.request)
	return sendOutcome(c, outcome, err)
}

func (a *API) replaceVersion(c *fiber.Ctx, w write) error {
	outcome, err := a.writer.Replace(c.UserContext(), w.who, w.request, w.target)
	return sendOutcome(c, outcome, err)
}

func (a *API) deleteVersion(c *fiber.Ctx, w write) error {
	record, err := a.writer.Delete(c.UserContext(), w.who, w.request, w.target)
	return sendWritten(c, record, err)
}

func (a *API) setStatus(c *fiber.Ctx, w write) error {
	record, err := a.writer.SetStatus(c.UserContext(), w.who, w.request, w.target)
	return sendWritten(c, record, err)
}

func (a *API) setStatusAll(c *fiber.Ctx, w write) error {
	var room *responsebody.Reservation
	changed, err := a.writer.SetStatusAll(c.UserContext(), w.who, w.request, w.target.Name,
		func(changed history.History) error {
			if changed.Long == nil || room != nil {
				return nil
			}
			reserved, err := a.bodies.ReserveStream()
			if err == nil {
				room = reserved
			}
			return err
		})
	if err == nil && changed.Long != nil {
		a.streamChanged(c, room, changed.Long)
		return nil
	}
	room.Release() // a repeated transaction may have changed fewer versions than the first attempt
	if err != nil {
		return err
	}
	sendJSON(c, func(b []byte) []byte { return appendChanged(b, changed.Records) })
	return nil
}

// condition implements publish.Condition for the entity tags of a request.
type condition struct{ tags responsebody.Condition }

// newCondition returns the condition of a write; nil without a header that sets one.
func newCondition(tags responsebody.Condition, ok bool) publishing.Condition {
	if !ok {
		return nil
	}
	return condition{tags}
}

func (c condition) HoldsFor(current registry.Record) bool {
	return c.tags.Holds(responsebody.Hash(appendRecord(nil, &current)))
}

func (c condition) HoldsForAll(histories ...history.History) bool {
	hashes := make([]uint64, len(histories))
	for i, h := range histories {
		if h.Long != nil {
			hashes[i], _ = summarize(h.Long.Editions())
		} else {
			hashes[i] = responsebody.Hash(appendList(nil, h.Records, ""))
		}
	}
	return c.tags.Holds(hashes...)
}

// change returns the handler of a change.
func (a *API) change(of publishing.Operation, handle func(*fiber.Ctx, write) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		w, err := a.readWrite(c, of)
		if err != nil {
			return err
		}
		return handle(c, w)
	}
}

// readWrite reads a request with its condition and body and the version in the path, and then
// identifies its caller. While writes are off, it returns nothing and no error, so that the writer
// responds with 501 before any other check (contract R-6). A request to delete has no body.
func (a *API) readWrite(c *fiber.Ctx, of publishing.Operation) (w write, err error) {
	if a.isOff(c) {
		return w, nil
	}
	w.request.Condition = newCondition(responsebody.ReadConditions(c))
	if of != publishing.OpDelete {
		if w.request.Body, err = rest.JSONBody(c); err != nil {
			return w, err
		}
	}
	if w.target, err = readTarget(c); err != nil {
		return w, err
	}
	w.who, err = a.identify(c)
	return w, a.writer.Refuse(of, err)
}

// readTarget returns the server and the version in the path; otherwise empty.
func readTarget(c *fiber.Ctx) (publishing.Target, error) {
	name, err := pathValue(c, nameParam)
	if err != nil {
		return publishing.Target{}, err
	}
	version, err := pathValue(c, versionParam)
	return publishing.Target{Name: strings.Clone(name), Version: strings.Clone(version)}, err
}

// sendOutcome sends what became of a document, or returns err. What waits for review has no entity
// tag, because the next read does not get it.
func sendOutcome(c *fiber.Ctx, o publishing.Outcome, err error) error {
	if err != nil || o.Pending == "" {
		return sendWritten(c, o.Record, err)
	}
	sendJSON(c, func(b []byte) []byte { return appendPending(b, &o) })
	return nil
}

// sendWritten sends the record of a write with the entity tag of the next read, or returns err.
func sendWritten(c *fiber.Ctx, r registry.Record, err error) error {
	if err != nil {
		return err
	}
	sendJSON(c, func(b []byte) []byte { return appendRecord(b, &r) })
	responsebody.SetTag(c)
	return nil
}

// validationResult is the response of validate (contract R-55).
type validationResult struct {
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

// validateDocument reports the rules of publish that a document breaks. It needs no token and
// stores nothing.
func (a *API) validateDocument(c *fiber.Ctx) error {
	body, err := rest.JSONBody(c)
	if err != nil {
		return err
	}
	draft, err := registry.ParseDraft(body)
	if err != nil {
		return err
	}
	result := validationResult{Valid: true, Issues: []issue{}}
	for _, i := range draft.Issues() {
		result.Valid = result.Valid && i.Severity != registry.SeverityError
		result.Issues = append(result.Issues, issue(i))
	}
	return c.Status(http.StatusOK).JSON(result)
}
