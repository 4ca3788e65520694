package fakedb

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// versionKey identifies a version of a server.
type versionKey struct {
	name    registry.Name
	version registry.Version
}

// versionRow is a record with the remote URLs of its document and the people who published it, in
// order.
type versionRow struct {
	registry.Record
	Remotes []registry.RemoteURL
	People  []registry.Holder
}

// priorRow is the status of a version before it was in quarantine.
type priorRow struct {
	Name  registry.Name
	Prior registry.PriorStatus
}

// noticeRow is the time of the last notice to a reviewer.
type noticeRow struct {
	Reviewer registry.Holder
	Last     time.Time
	Mail     review.Mail
}

// viewTokenKey identifies a token of a view.
type viewTokenKey struct {
	view view.Name
	name view.TokenName
}

// webhookRow is a webhook with its lease and the outcome of the last attempts.
type webhookRow struct {
	Webhook           event.Webhook
	Lease             registrystore.Lease
	Succeeded, Failed time.Time
	Problem           string
	Tests             []event.Delivery // the last one first
}

// mirrorRow is a mirror with its lease.
type mirrorRow struct {
	Mirror mirror.Mirror
	Lease  registrystore.Lease
}

// trackedKey identifies a version that a mirror tracks.
type trackedKey struct {
	mirror mirror.Name
	versionKey
}

// trackedRow is a version that a mirror tracks.
type trackedRow struct {
	Mirror  mirror.Name
	Tracked mirror.Tracked
}

func (d *Database) addRegistryTables() {
	d.versions = newTable(d, "version of the server", func(v versionRow) versionKey {
		return versionKey{v.Name, v.Version}
	})
	d.grants = newTable(d, "grant", keyOfGrant)
	d.policies = newTable(d, "policy", func(p publisher.Policy) registry.PolicyID { return p.ID })
	d.methods = newTable(d, "method", func(m catalogue.Method) catalogue.MethodID { return m.ID },
		func(m catalogue.Method) any { return m.Path })
	for _, m := range documentedMethods() {
		d.methods.rows[m.ID] = m
	}
	d.reviews = newTable(d, "review", func(r review.Review) registry.ReviewID { return r.ID }, func(r review.Review) any {
		if r.State != review.Pending {
			return nil
		}
		return toolListKey{versionKey{r.Name, r.Version}, r.Part, r.Source, "", false}
	})
	d.rules = newTable(d, "rule", func(r review.Rule) review.RuleID { return r.ID })
	d.notices = newTable(d, "notice", func(n noticeRow) registry.Holder { return n.Reviewer })
	d.quarantined = newTable(d, "quarantine", func(q registry.Quarantined) versionKey {
		return versionKey{q.Name, q.Version}
	})
	d.priors = newTable(d, "prior status", func(p priorRow) versionKey { return versionKey{p.Name, p.Prior.Version} })
	d.toolLists = newTable(d, "tool list", keyOfToolList)
	d.toolLists.refers = func(l tools.Stored) error { return d.versions.refer(versionKey{l.Name, l.Version}) }
	d.toolWatches = newTable(d, "watch", keyOfWatch)
	d.toolSources = newTable(d, "tool source", func(s tools.RemoteSource) tools.RemoteSourceName { return s.Name })
	d.accessRules = newTable(d, "access rule", func(r access.Rule) access.RuleName { return r.Name })
	d.clients = newTable(d, "client", func(c oauth.Client) oauth.ClientID { return c.ID })
	d.resources = newTable(d, "resource", func(r oauth.Resource) oauth.ResourceName { return r.Name })
	d.views = newTable(d, "view", func(v view.View) view.Name { return v.Name })
	d.viewTokens = newTable(d, "token", func(t view.Token) viewTokenKey { return viewTokenKey{t.View, t.Name} },
		func(t view.Token) any { return t.Hash })
	d.webhooks = newTable(d, "webhook", func(w webhookRow) event.WebhookID { return w.Webhook.ID })
	d.deliveries = newTable(d, "delivery", func(e event.Delivery) int64 { return e.Sequence })
	d.mirrors = newTable(d, "mirror", func(m mirrorRow) mirror.Name { return m.Mirror.Name })
	d.applied = newTable(d, "state", func(a registry.AppliedState) string { return a.Owner })
	d.tracked = newTable(d, "tracked version", func(t trackedRow) trackedKey {
		return trackedKey{t.Mirror, versionKey{t.Tracked.Name, t.Tracked.Version}}
	})
	d.services = newTable(d, "service account", func(a service.Account) service.Name { return a.Name })
}
