package fakedb

import (
	"maps"
	"time"

	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

// registryTables contains the records of the registry and of the methods listing.
type registryTables struct {
	versions map[versionKey]storedVersion
	grants   map[registry.Grant]bool
	policies map[publisher.PolicyID]publisher.Policy
	methods  map[catalogue.MethodID]catalogue.Method
	reviews  map[review.ID]review.Review
	rules    map[review.RuleID]review.Rule
	notices  map[registry.Holder]time.Time // to reviewers

	quarantined   map[versionKey]registry.Quarantined // the zero version is the whole server
	priorStatuses map[versionKey]registry.PriorStatus

	views      map[view.Name]view.View
	viewTokens map[viewTokenKey]view.Token

	webhooks     map[event.WebhookID]storedWebhook
	deliveries   map[int64]event.Delivery // by sequence
	lastDelivery int64

	mirrors map[mirror.Name]storedMirror
	tracked map[trackedKey]mirror.Tracked
}

// versionKey identifies a version.
type versionKey struct {
	name    registry.Name
	version registry.Version
}

// storedVersion is a record with the remote URLs of its document.
type storedVersion struct {
	registry.Record
	remotes []registry.RemoteURL
	people  []registry.Holder // ordered
}

func newRegistryTables() registryTables {
	t := registryTables{
		versions: make(map[versionKey]storedVersion),
		grants:   make(map[registry.Grant]bool),
		policies: make(map[publisher.PolicyID]publisher.Policy),
		methods:  make(map[catalogue.MethodID]catalogue.Method),
		reviews:  make(map[review.ID]review.Review),
		rules:    make(map[review.RuleID]review.Rule),
		notices:  make(map[registry.Holder]time.Time),

		quarantined:   make(map[versionKey]registry.Quarantined),
		priorStatuses: make(map[versionKey]registry.PriorStatus),

		views:      make(map[view.Name]view.View),
		viewTokens: make(map[viewTokenKey]view.Token),

		webhooks:   make(map[event.WebhookID]storedWebhook),
		deliveries: make(map[int64]event.Delivery),

		mirrors: make(map[mirror.Name]storedMirror),
		tracked: make(map[trackedKey]mirror.Tracked),
	}
	for _, m := range documentedMethods() {
		t.methods[m.ID] = m
	}
	return t
}

func (t registryTables) clone() registryTables {
	return registryTables{
		versions: maps.Clone(t.versions), grants: maps.Clone(t.grants),
		policies: maps.Clone(t.policies), methods: maps.Clone(t.methods),
		reviews: maps.Clone(t.reviews), rules: maps.Clone(t.rules), notices: maps.Clone(t.notices),
		quarantined: maps.Clone(t.quarantined), priorStatuses: maps.Clone(t.priorStatuses),
		views: maps.Clone(t.views), viewTokens: maps.Clone(t.viewTokens),
		webhooks: maps.Clone(t.webhooks), deliveries: maps.Clone(t.deliveries), lastDelivery: t.lastDelivery,
		mirrors: maps.Clone(t.mirrors), tracked: maps.Clone(t.tracked),
	}
}
