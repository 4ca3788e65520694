package declaring

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
)

// This file has the kind that says who receives the events of the registry.

func (r *run) webhooks() kind {
	return kind{
		name: "webhook", member: "webhooks", alike: true,
		fields: []kinds.Field{
			{Name: "url", Required: true, Check: kinds.Checked(event.ParseURL)},
			{Name: "events", Required: true, Shape: kinds.Texts, Check: kinds.Checked(event.ParseType)},
			{Name: "pattern", Check: kinds.Checked(registry.ParsePattern)}, {Name: audit.FieldSecret, Check: kinds.Checked(event.ParseSecret)},
		},
		decode: func(_ context.Context, v audit.Details) (object, error) {
			draft := event.Draft{
				URL: v.Text("url"), Events: v.Texts("events"), Pattern: v.Text("pattern"),
				Secret: event.Secret(v.Text(audit.FieldSecret)),
			}
			w, err := event.New(draft)
			o := r.webhook(&w, draft.Secret)
			o.save = func(ctx context.Context, owner string, before *object) (err error) {
				if draft.ManagedBy = owner; before == nil {
					_, _, err = r.ports.Webhooks.Add(ctx, draft)
					return err
				}
				_, err = r.ports.Webhooks.Change(ctx, event.WebhookID(before.id),
					func(event.Draft) event.Draft { return draft }, nil)
				return err
			}
			return o, err
		},
		stored: listed(r.ports.Webhooks.List, func(w *notifying.Listed) object {
			secret, err := r.ports.Sealer.Open(w.Secret, notifying.SealedSecret(w.ID))
			if err != nil { // of another key: every secret is another one
				secret = w.Secret
			}
			return r.webhook(&w.Webhook, event.Secret(secret))
		}),
	}
}

func (r *run) webhook(w *event.Webhook, secret event.Secret) object {
	id := w.ID
	return object{
		Object: audit.Object{Kind: "webhook", Key: w.URL.String(), Fields: kinds.Present(audit.Details{
			"url": audit.Text(w.URL.String()), "events": audit.Texts(w.Events), "pattern": audit.Text(w.Pattern.String()),
			audit.FieldSecret: audit.Text(audit.HashSecret(secret)),
		})},
		id: string(w.ID), owner: w.ManagedBy,
		remove: func(ctx context.Context) error { return r.ports.Webhooks.Remove(ctx, id, nil) },
	}
}
