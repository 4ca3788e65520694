package notifying

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/event"

	"github.com/tollgate-dev/tollgate/ports/eventsender"
)

// receiver is a webhook with its secret in clear.
type receiver struct {
	url    event.URL
	secret event.Secret
}

// openReceiver returns a webhook, or nil if it does not exist any more.
func (r *Runner) openReceiver(ctx context.Context, id event.WebhookID) (*receiver, error) {
	all, err := r.ports.Webhooks.List(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(w event.Webhook) bool { return w.ID == id })
	if i < 0 {
		return nil, nil
	}
	secret, err := r.ports.Sealer.Open(all[i].Secret, SealedSecret(id))
	if err != nil {
		return nil, fmt.Errorf("the secret of webhook %s: %w", id, err)
	}
	return &receiver{all[i].URL, event.Secret(secret)}, nil
}

// attempt sends an event once and stores the outcome. If the context ends meanwhile, because the
// instance or the round does, the event stays as it is and is sent again.
func (r *Runner) attempt(ctx context.Context, to *receiver, d event.Delivery) error {
	began := r.ports.Clock.Now()
	status, err := r.ports.Sender.Send(ctx, eventsender.Request{
		URL: to.url, Type: d.Type, Body: d.Body, Signature: event.Sign(to.secret, r.ports.Clock.Now(), d.Body),
	})
	if err != nil && ctx.Err() != nil {
		return nil //nolint:nilerr // the attempt does not count
	}
	now := r.ports.Clock.Now()
	d.Last = event.Attempt{At: now.UTC().Truncate(time.Microsecond), Status: status, Took: now.Sub(began)}
	if problem := describeProblem(status, err); problem == "" {
		d = d.Succeed(now)
	} else {
		d = d.Fail(r.schedule, problem, now)
	}
	if err := r.ports.Deliveries.Update(ctx, d, now); err != nil {
		return err
	}
	r.ports.Reporter.Report(Attempted{d})
	return nil
}

// describeProblem returns why an attempt failed; empty if it did not.
func describeProblem(status int, err error) string {
	switch {
	case err != nil:
		return fault.PublicMessage(err)
	case status >= 200 && status < 300:
		return ""
	case status >= 300 && status < 400:
		return fmt.Sprintf("the receiver answered with the redirect %d, which is not followed", status)
	}
	return fmt.Sprintf("the receiver answered with the status %d", status)
}
