package adminapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

type eventResponse struct {
	ID      string        `json:"id"`
	Time    string        `json:"time"`
	Type    string        `json:"type"`
	Person  *string       `json:"person"` // in whose log it is; null for an event of operators
	Success bool          `json:"success"`
	Details audit.Details `json:"details"`
}

func newEventResponse(e *audit.Event) eventResponse {
	response := eventResponse{
		ID: string(e.ID), Time: jsonstring.FormatTime(e.Time), Type: string(e.Category), Success: e.Success, Details: e.Details,
	}
	if person := string(e.Subject); person != "" {
		response.Person = &person
	}
	return response
}

const linesType = "application/x-ndjson"

func (a *API) searchAudit(q *request) act {
	filter := q.auditFilter()
	if strings.Contains(q.Get(fiber.HeaderAccept), linesType) {
		return a.streamAudit(q, filter)
	}
	if q.query("after") != "" {
		q.check("after", fault.New(fault.Invalid, "is for streams: send Accept: "+linesType))
	}
	return listing[audit.Event, eventResponse]{
		name: "events", shape: newEventResponse,
		key: func(e *audit.Event) string { return strconv.FormatInt(e.Time.UnixMicro(), 10) + " " + string(e.ID) },
		fetch: func(ctx context.Context, after string, limit int) ([]audit.Event, error) {
			place, err := parsePlace(after)
			if err != nil {
				return nil, err
			}
			filter.Limit = limit
			return a.use.Log.Page(ctx, filter, place)
		},
	}.handle(q)
}

// auditFilter returns the query of the parameters. since is inclusive, until exclusive.
func (q *request) auditFilter() authstore.AuditQuery {
	filter := authstore.AuditQuery{
		Category: audit.Category(q.query("type")), Actor: q.query("actor"), Server: q.query("server"),
		After: q.time("since"), Before: q.time("until"),
	}
	if !filter.After.IsZero() {
		filter.After = filter.After.Add(-time.Microsecond)
	}
	if filter.Category != "" && !slices.Contains(audit.Categories(), filter.Category) {
		q.check("type", fault.New(fault.Invalid, "is not a type of events"))
	}
	switch outcome := q.query("outcome"); outcome {
	case "":
	case "done", "refused":
		done := outcome == "done"
		filter.Success = &done
	default:
		q.check("outcome", fault.New(fault.Invalid, "must be done or refused"))
	}
	if event := q.query("id"); event != "" {
		id, err := auth.ParseUUID[audit.EventID]("id", event)
		q.check("id", err)
		filter.ID = id
	}
	if person := q.query("person"); person != "" {
		id, err := auth.ParseUUID[audit.Subject]("person", person)
		q.check("person", err)
		filter.Subject = id
	}
	return filter
}

func parsePlace(key string) (authstore.AuditPlace, error) {
	if key == "" {
		return authstore.AuditPlace{}, nil
	}
	at, id, _ := strings.Cut(key, " ")
	micros, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return authstore.AuditPlace{}, page.UnknownCursor()
	}
	return authstore.AuditPlace{Time: time.UnixMicro(micros).UTC(), ID: audit.EventID(id)}, nil
}

// streamAudit returns the act that sends all events that a query selects, the oldest first, up to
// the newest one at the end of the stream. A client continues after the last one that it has, and
// gets each event once.
func (a *API) streamAudit(q *request, filter authstore.AuditQuery) act {
	after := q.query("after")
	if after != "" {
		_, err := auth.ParseUUID[audit.EventID]("after", after)
		q.check("after", err)
	}
	filter.Limit = linesAtOnce
	return func(ctx context.Context) (answer, error) {
		place := authstore.AuditPlace{ID: audit.EventID(strings.ToLower(after))}
		return answer{stream: (&eventLines{ctx: ctx, log: a.use.Log, filter: filter, place: place}).send}, nil
	}
}

// linesAtOnce is how many events of a stream are in memory at once.
const linesAtOnce = 200

// eventLines reads events as lines of JSON. An error of the log ends the connection, so that the
// client does not take the stream for whole.
type eventLines struct {
	ctx    context.Context //nolint:containedctx // of the request, whose response is read from it
	log    authstore.AuditLog
	filter authstore.AuditQuery
	place  authstore.AuditPlace
	unread []byte
	ended  bool
}

func (l *eventLines) send(c *fiber.Ctx) error {
	if err := l.fill(); err != nil { // it can still be answered
		if fault.Is(err, fault.NotFound) {
			err = fault.New(fault.NotFound, "there is no event with the id of after, which was removed, or lost by the database: begin again "+
				"with the time of that event as since, and leave out events that you have")
		}
		return err
	}
	c.Set(fiber.HeaderContentType, linesType)
	c.Status(http.StatusOK).Context().SetBodyStream(l, -1)
	return nil
}

// fill reads the next events.
func (l *eventLines) fill() error {
	events, next, err := l.log.Follow(l.ctx, l.filter, l.place)
	if err != nil {
		return err
	}
	l.place = next
	for i := range events {
		line, err := json.Marshal(newEventResponse(&events[i]))
		if err != nil {
			return fmt.Errorf("write an event as JSON: %w", err)
		}
		l.unread = append(append(l.unread, line...), '\n')
	}
	l.ended = len(events) < linesAtOnce
	return nil
}

func (l *eventLines) Read(p []byte) (int, error) {
	for len(l.unread) == 0 {
		if l.ended {
			return 0, io.EOF
		}
		if err := l.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.unread)
	l.unread = l.unread[n:]
	return n, nil
}
