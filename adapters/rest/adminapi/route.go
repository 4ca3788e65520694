package adminapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// handler reads a request and returns the act that it wants. It must not act: what is wrong with
// the request is refused after it has read everything, and then whom the route does not permit.
type handler func(q *request) act

// act does what a request wants. Its context names the caller as the actor of changes.
type act func(ctx context.Context) (answer, error)

// answer is the response to a request that succeeded.
type answer struct {
	status int
	body   any                      // nil for no body
	tag    string                   // the ETag; empty for no object
	stream func(c *fiber.Ctx) error // sends the response instead; optional
}

// The scopes that a token must have for routes of operators. Sessions have all scopes.
const (
	adminRead  = scope.AdminRead
	adminWrite = scope.Admin // includes adminRead
	auditRead  = scope.Audit
)

// permission decides whether a caller may use a route. The refusals are those of
// permit.Operators.Permit.
type permission func(ctx context.Context, who authority.Caller) error

// operator permits operators: sessions at FULL_TRUST, and tokens with the scope, of people and of
// service accounts with the grant operate.
func (a *API) operator(needed scope.Scope) permission {
	return func(ctx context.Context, who authority.Caller) error {
		_, err := a.use.Operators.Permit(ctx, who, needed)
		return err
	}
}

// change names what a write does in the event of one that is refused. Its category is that of the
// events of the subject.
type change struct {
	category audit.Category
	action   audit.Action
	kind     string // of the object
}

// read returns the handler of a route that changes nothing.
func (a *API) read(need permission, handle handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		who, err := a.identify(c)
		if err != nil {
			return err
		}
		return a.serve(&request{Ctx: c, api: a, who: who}, need, handle)
	}
}

// write returns the handler of a route that changes something. It records the writes of known
// callers that are refused, with the key of the object as far as the request names it.
func (a *API) write(what change, need permission, handle handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		who, err := a.identify(c)
		if err != nil {
			return err
		}
		q := &request{Ctx: c, api: a, who: who}
		if err = a.serve(q, need, handle); err != nil {
			return a.recordRefusal(q, what, err)
		}
		return nil
	}
}

// serve keeps the order of the checks that the listener does not make.
func (a *API) serve(q *request, need permission, handle handler) error {
	do := handle(q)
	if err := q.problem(); err != nil {
		return err
	}
	ctx := authority.GivenBy(auditing.By(q.UserContext(), q.who.Actor()), q.who)
	if q.who.Granted() != nil { // no application administers
		return scope.Insufficient(adminRead, adminWrite)
	}
	if err := need(ctx, q.who); err != nil {
		return err
	}
	got, err := do(ctx)
	if err != nil {
		return err
	}
	return q.send(got)
}

// recordRefusal records that a write was refused, and returns the cause. It does not record what
// failed for another reason than the request or the caller, and what was refused to a command.
func (a *API) recordRefusal(q *request, what change, cause error) error {
	if !q.who.IsRemote() {
		return cause
	}
	reason := permit.PublicReason(cause)
	var protocol *fiber.Error
	if errors.As(cause, &protocol) { // the type of the content
		reason = protocol.Message
	} else if k := fault.KindOf(cause); k == fault.Unavailable || k == fault.Internal {
		return cause
	}
	ctx := auditing.By(context.WithoutCancel(q.UserContext()), q.who.Actor())
	refused := q.who.Refused(what.category, cmp.Or(q.action, what.action), audit.Object{Kind: what.kind, Key: q.key(ctx)}, reason)
	if err := a.use.Recorder.RecordChanges(ctx, refused); err != nil && !fault.Is(err, fault.Unavailable) {
		return err
	}
	return cause
}

// callerKey is the key of the caller of a request.
type callerKey struct{}

// identify returns the caller of a request by its bearer token.
func (a *API) identify(c *fiber.Ctx) (authority.Caller, error) {
	who, err := a.use.Callers.Identify(c.UserContext(), rest.BearerToken(c), rest.Address(c))
	if err == nil {
		c.Locals(callerKey{}, who)
	}
	return who, err
}

func (q *request) send(got answer) error {
	q.Set(fiber.HeaderCacheControl, "no-store")
	if got.stream != nil {
		return got.stream(q.Ctx)
	}
	if got.tag != "" {
		q.Set(fiber.HeaderETag, got.tag)
	}
	q.Status(got.status)
	if got.body == nil {
		return nil
	}
	return q.JSON(got.body)
}

// noContent is the answer to a request that removed something.
func noContent() answer { return answer{status: http.StatusNoContent} }

// hashOf returns the hash of the ETag of an object: of its JSON, without what changes while no one
// changes the object, such as the time of its last use. A shape that has those has the method
// stable, which returns the shape without them.
func hashOf(shape any) uint64 {
	if s, ok := shape.(interface{ stable() any }); ok {
		shape = s.stable()
	}
	text, _ := json.Marshal(shape) // no error: shapes have texts, numbers and flags only
	return responsebody.Hash(text)
}

// object is the answer with an object, as its JSON shape.
func object(status int, shape any) answer {
	return answer{status: status, body: shape, tag: responsebody.Tag(hashOf(shape))}
}

// answerWith is the answer with an object that a use case has returned, or the error of the use case.
func answerWith[T, J any](status int, one T, err error, shape func(*T) J) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return object(status, shape(&one)), nil
}

// oneOf returns the act that answers with the object of a list that is the wanted one.
func oneOf[T, J any](
	list func(context.Context) ([]T, error), is func(*T) bool, shape func(*T) J, missing string,
) act {
	return func(ctx context.Context) (answer, error) {
		all, err := list(ctx)
		one := registry.FindIn(all, is)
		if err == nil && one == nil {
			err = fault.New(fault.NotFound, missing)
		}
		if err != nil {
			return answer{}, err
		}
		return object(http.StatusOK, shape(one)), nil
	}
}

// putObject is the answer to a PUT that made or replaced an object.
func putObject(created bool, shape any) answer {
	if created {
		return object(http.StatusCreated, shape)
	}
	return object(http.StatusOK, shape)
}

// ownedBy is the member of the shapes of objects that a file may manage.
type ownedBy struct {
	ManagedBy string `json:"managedBy"` // the owner of the file; empty without one
}

func (m ownedBy) manager() string { return m.ManagedBy }

// conditionOf returns the check of a write for the use case that changes an object, which calls it
// in its transaction with the stored object, or nil without one: the condition of If-Match and
// If-None-Match, and that no file manages the object, unless the query has force=true. shape
// returns the JSON shape of an object.
func conditionOf[T any, J interface{ manager() string }](q *request, shape func(*T) J) func(current *T) error {
	condition, _ := responsebody.ReadConditions(q.Ctx)
	force := q.flag("force")
	return func(current *T) error {
		if current == nil {
			return checkCondition(condition)
		}
		shown := shape(current)
		if err := checkCondition(condition, hashOf(shown)); err != nil {
			return err
		}
		if force {
			return nil
		}
		return registry.CheckByHand(shown.manager(), ", or send force=true (--managed of a command)")
	}
}

// checkCondition returns fault.Stale unless a condition holds for a stored object with a hash, or for
// none.
func checkCondition(c responsebody.Condition, stored ...uint64) error {
	if c.Holds(stored...) {
		return nil
	}
	return fault.New(fault.Stale, "the condition of If-Match or If-None-Match does not hold")
}
