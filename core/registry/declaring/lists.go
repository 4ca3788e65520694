package declaring

import (
	"context"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

// This file has the kinds that say what the registry lists, and who receives its events.

func (r *run) views() kind {
	return kind{
		name: "view", member: "views",
		fields: []field{
			{name: "name", required: true, check: checked(view.ParseName)},
			{name: "include", shape: isTexts, check: checked(registry.ParsePattern)},
			{name: "exclude", shape: isTexts, check: checked(registry.ParsePattern)},
			{name: "deprecated", check: checked(view.ParseDeprecated)}, {name: "access", check: checked(view.ParseAccess)},
			{name: "people", shape: isTexts, check: checked(view.ParsePerson)},
			{name: "groups", shape: isTexts, check: checked(view.ParseGroup)},
		},
		decode: func(_ context.Context, v audit.Details) (object, error) {
			draft := view.Draft{
				Name: v.Text("name"), Include: texts(v["include"]), Exclude: texts(v["exclude"]),
				Deprecated: v.Text("deprecated"), Access: v.Text("access"),
				People: texts(v["people"]), Groups: texts(v["groups"]),
			}
			parsed, err := view.New(draft)
			o := r.view(&parsed)
			o.save = func(ctx context.Context, owner string, _ *object) error {
				draft.ManagedBy = owner
				_, _, err := r.ports.Views.Put(ctx, draft, nil)
				return err
			}
			return o, err
		},
		stored: listed(r.ports.Views.List, r.view),
	}
}

func (r *run) view(v *view.View) object {
	name := v.Name
	return object{
		Object: audit.Object{Kind: "view", Key: string(v.Name), Fields: present(audit.Details{
			"name": audit.Text(v.Name), "include": patterns(v.Include), "exclude": patterns(v.Exclude),
			"deprecated": audit.Text(v.Deprecated), "access": audit.Text(v.Access),
			"people": audit.Texts(v.Members.People), "groups": audit.Texts(v.Members.Groups),
		})},
		owner:  v.ManagedBy,
		remove: func(ctx context.Context) error { return r.ports.Views.Remove(ctx, name, nil) },
	}
}

func (r *run) mirrors() kind {
	return kind{
		name: "mirror", member: "mirrors",
		fields: []field{
			{name: "name", required: true, check: checked(mirror.ParseName)}, {name: "url", required: true, check: checked(mirror.ParseURL)},
			{name: "include", shape: isTexts, check: checked(registry.ParsePattern)},
			{name: "exclude", shape: isTexts, check: checked(registry.ParsePattern)},
			{name: "interval", check: checkDuration}, {name: "review", check: checked(mirror.ParseReview)},
			{name: "lenient", shape: isFlag},
		},
		decode: func(ctx context.Context, v audit.Details) (object, error) {
			draft := mirror.Draft{
				Name: v.Text("name"), URL: v.Text("url"), Include: texts(v["include"]), Exclude: texts(v["exclude"]),
				Review: v.Text("review"), Lenient: v["lenient"] == audit.Flag(true),
			}
			draft.Interval, _ = time.ParseDuration(v.Text("interval")) // checkDuration has checked it
			m, err := mirror.New(draft, r.ports.Clock.Now())
			o := r.mirror(&m)
			o.save = func(ctx context.Context, owner string, before *object) error {
				if before == nil && strings.Contains(draft.URL, "/t/***") {
					return fault.In("url",
						fault.New(fault.Invalid, "url has *** in the place of its token, and no mirror has this token"))
				}
				draft.ManagedBy = owner
				_, _, err := r.ports.Mirrors.Put(ctx, draft, nil)
				return err
			}
			return o, err
		},
		stored: listed(r.ports.Mirrors.List, r.mirror),
	}
}

// checkDuration checks a duration; that of a mirror has other bounds.
func checkDuration(s string) error {
	if d, err := time.ParseDuration(s); err != nil || d <= 0 {
		return fault.New(fault.Invalid, "must be a duration, for example 30m")
	}
	return nil
}

// mirror returns the object of a mirror. The secret of its URL is a field of its own: one that is
// shown as *** is left out.
func (r *run) mirror(m *mirror.Mirror) object {
	name, secret := m.Name, ""
	if m.URL.Address() != m.URL.Public() {
		secret = audit.HashSecret(m.URL.Address())
	}
	return object{
		Object: audit.Object{Kind: "mirror", Key: string(m.Name), Fields: present(audit.Details{
			audit.FieldSecret: audit.Text(secret),
			"name":            audit.Text(m.Name), "url": audit.Text(m.URL.Public()), "include": patterns(m.Selection.Include),
			"exclude": patterns(m.Selection.Exclude), "interval": audit.Text(m.Interval.String()),
			"review": audit.Text(m.Review), "lenient": audit.Flag(m.Lenient),
		})},
		owner: m.ManagedBy,
		remove: func(ctx context.Context) error {
			_, err := r.ports.Mirrors.Remove(ctx, name, false, nil)
			return err
		},
	}
}

func (r *run) webhooks() kind {
	return kind{
		name: "webhook", member: "webhooks", alike: true,
		fields: []field{
			{name: "url", required: true, check: checked(event.ParseURL)},
			{name: "events", required: true, shape: isTexts, check: checked(event.ParseType)},
			{name: "pattern", check: checked(registry.ParsePattern)}, {name: audit.FieldSecret, check: checked(event.ParseSecret)},
		},
		decode: func(_ context.Context, v audit.Details) (object, error) {
			draft := event.Draft{
				URL: v.Text("url"), Events: texts(v["events"]), Pattern: v.Text("pattern"),
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
		Object: audit.Object{Kind: "webhook", Key: w.URL.String(), Fields: present(audit.Details{
			"url": audit.Text(w.URL.String()), "events": audit.Texts(w.Events), "pattern": audit.Text(w.Pattern.String()),
			audit.FieldSecret: audit.Text(audit.HashSecret(secret)),
		})},
		id: string(w.ID), owner: w.ManagedBy,
		remove: func(ctx context.Context) error { return r.ports.Webhooks.Remove(ctx, id, nil) },
	}
}
