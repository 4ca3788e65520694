package adminapi

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/managing"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
)

const (
	webhooksPath = root + "/webhooks"
	webhookPath  = webhooksPath + "/:id"
)

func (a *API) mountWebhooks(r fiber.Router) {
	read, write := a.operator(adminRead), a.operator(adminWrite)
	of := func(action audit.Action) change { return change{audit.RegistryChange, action, "webhook"} }
	r.Get(webhooksPath, a.read(read, a.listWebhooks))
	r.Post(webhooksPath, a.write(of("webhook_add"), write, a.addWebhook))
	r.Get(webhookPath, a.read(read, a.getWebhook))
	r.Patch(webhookPath, a.write(of("webhook_change"), write, a.changeWebhook))
	r.Delete(webhookPath, a.write(of("webhook_remove"), write, a.removeWebhook))
	r.Post(webhookPath+"/test", a.write(of("webhook_test"), write, a.testWebhook))
	r.Post(webhookPath+"/redeliver", a.write(of("webhook_redeliver"), write, a.redeliver))
	r.Get(webhookPath+"/deliveries", a.read(read, a.listDeliveries))
}

type webhookResponse struct {
	ID        string        `json:"id"`
	URL       string        `json:"url"`
	Events    []string      `json:"events"`
	Pattern   string        `json:"pattern"`
	CreatedAt string        `json:"createdAt"`
	Secret    string        `json:"secret,omitempty"` // in the answer that made it only
	State     *webhookState `json:"state,omitempty"`
	ownedBy
}

type webhookState struct {
	Pending     int     `json:"pending"`
	Dead        int     `json:"dead"`
	LastSuccess *string `json:"lastSuccess"`
	LastFailure *string `json:"lastFailure"`
	LastProblem string  `json:"lastProblem,omitempty"`
}

// stable returns the webhook without its state and its secret.
func (w webhookResponse) stable() any {
	w.State, w.Secret = nil, ""
	return w
}

func newWebhookResponse(w *event.Webhook) webhookResponse {
	d := w.Draft()
	return webhookResponse{
		ID: string(w.ID), URL: d.URL, Events: d.Events, Pattern: d.Pattern, CreatedAt: jsonstring.FormatTime(w.CreatedAt),
		ownedBy: ownedBy{w.ManagedBy},
	}
}

func newListedWebhook(w *notifying.Listed) webhookResponse {
	response := newWebhookResponse(&w.Webhook)
	response.State = &webhookState{
		w.Pending, w.Dead, jsonstring.TimeOrNull(w.LastSuccess), jsonstring.TimeOrNull(w.LastFailure), w.LastProblem,
	}
	return response
}

func (a *API) listWebhooks(q *request) act {
	key := func(w *notifying.Listed) string { return jsonstring.FormatTime(w.CreatedAt) + " " + string(w.ID) }
	return listing[notifying.Listed, webhookResponse]{
		name: "webhooks", key: key, shape: newListedWebhook, fetch: managing.PageOf(a.use.Webhooks.List, key),
	}.handle(q)
}

func webhookID(q *request) event.WebhookID { return event.WebhookID(strings.ToLower(q.param("id"))) }

func (a *API) getWebhook(q *request) act {
	id := webhookID(q)
	return oneOf(a.use.Webhooks.List, func(w *notifying.Listed) bool { return w.ID == id }, newListedWebhook,
		"there is no webhook with this id")
}

func (a *API) addWebhook(q *request) act {
	b := q.body()
	draft := event.Draft{URL: b.Text("url"), Events: b.Texts("events"), Pattern: b.OptionalText("pattern")}
	_, err := event.New(draft)
	q.check("", err)
	return func(ctx context.Context) (answer, error) {
		w, secret, err := a.use.Webhooks.Add(ctx, draft)
		if err != nil {
			return answer{}, err
		}
		response := newWebhookResponse(&w)
		response.Secret = string(secret)
		return object(http.StatusCreated, response), nil
	}
}

func (a *API) changeWebhook(q *request) act {
	b := q.body()
	url, events, pattern := b.NullableText("url"), b.Texts("events"), b.NullableText("pattern")
	patch := func(d event.Draft) event.Draft {
		if url != "" {
			d.URL = url
		}
		if events != nil {
			d.Events = events
		}
		if pattern != "" {
			d.Pattern = pattern
		}
		return d
	}
	_, err := event.New(patch(event.Draft{URL: "https://example.com", Events: []string{string(event.Published)}}))
	q.check("", err)
	id, check := webhookID(q), conditionOf(q, newWebhookResponse)
	return func(ctx context.Context) (answer, error) {
		w, err := a.use.Webhooks.Change(ctx, id, patch, check)
		return answerWith(http.StatusOK, w, err, newWebhookResponse)
	}
}

func (a *API) removeWebhook(q *request) act {
	id, check := webhookID(q), conditionOf(q, newWebhookResponse)
	return func(ctx context.Context) (answer, error) { return noContent(), a.use.Webhooks.Remove(ctx, id, check) }
}

type testResponse struct {
	Delivered bool   `json:"delivered"`
	Status    int    `json:"status"` // of the response of the receiver; 0 without one
	Problem   string `json:"problem,omitempty"`
}

func (a *API) testWebhook(q *request) act {
	id := webhookID(q)
	return func(ctx context.Context) (answer, error) {
		if _, err := a.use.Webhooks.Attempts(ctx, id); err != nil {
			return answer{}, err
		}
		status, err := a.use.Webhooks.Test(ctx, id)
		response := testResponse{Status: status, Delivered: status >= 200 && status < 300}
		if fault.Is(err, fault.Unavailable) { // there was no response
			response.Problem, err = fault.PublicMessage(err), nil
		}
		return answer{status: http.StatusOK, body: response}, err
	}
}

// redeliver has one event delivered again, or without a body all dead ones.
func (a *API) redeliver(q *request) act {
	id, of := webhookID(q), event.ID("")
	if len(q.Body()) > 0 {
		of = event.ID(strings.ToLower(q.body().OptionalText("event")))
	}
	return func(ctx context.Context) (answer, error) {
		n, err := a.use.Webhooks.Redeliver(ctx, id, of)
		return answer{status: http.StatusOK, body: map[string]int{"redelivered": n}}, err
	}
}

// deliveryResponse is the last attempt to deliver an event.
type deliveryResponse struct {
	ID         string  `json:"id"` // of the event
	Type       string  `json:"type"`
	ServerName string  `json:"serverName"`
	Version    *string `json:"version"`
	State      string  `json:"state"`
	Attempts   int     `json:"attempts"`
	Time       string  `json:"time"`
	Status     int     `json:"status"`   // 0 if there was no response
	Duration   float64 `json:"duration"` // milliseconds
	Problem    string  `json:"problem,omitempty"`
}

func newDeliveryResponse(d *event.Delivery) deliveryResponse {
	response := deliveryResponse{
		ID: string(d.Event), Type: string(d.Type), ServerName: d.Name.String(), State: string(d.State),
		Attempts: d.Attempts, Time: jsonstring.FormatTime(d.Last.At), Status: d.Last.Status,
		Duration: float64(d.Last.Took.Microseconds()) / 1000, Problem: d.Problem,
	}
	if v := d.Version.String(); v != "" {
		response.Version = &v
	}
	return response
}

func (a *API) listDeliveries(q *request) act {
	id := webhookID(q)
	newestFirst := func(d *event.Delivery) string {
		return fmt.Sprintf("%019d %019d", math.MaxInt64-d.Last.At.UnixMicro(), math.MaxInt64-d.Sequence)
	}
	return listing[event.Delivery, deliveryResponse]{
		name: "deliveries", key: newestFirst, shape: newDeliveryResponse,
		fetch: managing.PageOf(func(ctx context.Context) ([]event.Delivery, error) { return a.use.Webhooks.Attempts(ctx, id) },
			newestFirst),
	}.handle(q)
}
