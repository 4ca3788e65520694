package wiring

import (
	"context"

	"github.com/google/wire"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/clientdocs"
	"github.com/tollgate-dev/tollgate/adapters/decideapi"
	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/iplists"
	"github.com/tollgate-dev/tollgate/adapters/jwt"
	"github.com/tollgate-dev/tollgate/adapters/keysources"
	"github.com/tollgate-dev/tollgate/adapters/maxmind"
	"github.com/tollgate-dev/tollgate/adapters/oidc"
	"github.com/tollgate-dev/tollgate/adapters/otlp"
	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/adapters/prometheus"
	"github.com/tollgate-dev/tollgate/adapters/registryjson"
	"github.com/tollgate-dev/tollgate/adapters/relational"
	"github.com/tollgate-dev/tollgate/adapters/relational/authrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/adapters/relational/kindrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/methodrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/adminapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/apidocs"
	"github.com/tollgate-dev/tollgate/adapters/rest/authapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/console"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/account"
	consoleauthorizing "github.com/tollgate-dev/tollgate/adapters/rest/console/authorizing"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/catalogue"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/operating"
	consolepublishing "github.com/tollgate-dev/tollgate/adapters/rest/console/publishing"
	consolereviewing "github.com/tollgate-dev/tollgate/adapters/rest/console/reviewing"
	consolesignin "github.com/tollgate-dev/tollgate/adapters/rest/console/signin"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/adapters/rest/methodsapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/overview"
	"github.com/tollgate-dev/tollgate/adapters/rest/readcache"
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/tokenapi"
	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/adapters/toollist"
	"github.com/tollgate-dev/tollgate/adapters/webauthn"
	"github.com/tollgate-dev/tollgate/adapters/webhook"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/access/ruling"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/cookies"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/joining"
	"github.com/tollgate-dev/tollgate/core/auth/learning"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/pairing"
	"github.com/tollgate-dev/tollgate/core/auth/passkeys"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/auth/registering"
	"github.com/tollgate-dev/tollgate/core/auth/retention"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/auth/tokens"
	"github.com/tollgate-dev/tollgate/core/catalogue/manage"
	"github.com/tollgate-dev/tollgate/core/catalogue/usage"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fitness"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/declaring"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/core/registry/receiving"
	"github.com/tollgate-dev/tollgate/core/registry/requesting"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/core/registry/watching"
	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// serviceSet is everything that runs in the service. What differs by environment is chosen by
// functions of choose.go:
//
//	                         embedded                  production
//	relational.Open          a SQLite file             PostgreSQL if DATABASE_URL is set, else a SQLite file
//	chooseCounters           in the process            memcached if BACKEND_TYPE is memstore, Valkey if KVSTORE_URL
//	                                                   is set, else in the process
//	chooseSessionCache       in the process            Valkey if KVSTORE_URL is set, else in the process
//	chooseCouriers           the configured plugins,   the configured plugins
//	                         else otp-log
//	chooseRules              files, or a management server, as CONFIG_TYPE says
//
// Embedded is the default. Settings that name a server make production the default (package
// settings).
var serviceSet = wire.NewSet(
	settingsSet,      // the settings of each part
	system.Set,       // clock and randomness of the operating system
	metricsSet,       // metrics, and the decorators that count what use cases and stores do
	recordsSet,       // accounts, sessions, servers, methods and the rest, in one database
	rateLimitSet,     // rate limit decisions, their rules, counters and statistics
	throttleSet,      // the limits of the API itself
	authSet,          // sign-in, step-up, devices, credentials and the audit log
	authorizationSet, // tokens for approved tool servers
	noticesSet,       // one-time codes and notices, delivered by plugins
	registrySet,      // publishing and browsing of servers
	publisherSet,     // publishing without a person: proofs and policies
	reviewSet,        // review before listing
	curationSet,      // what an organisation hides
	deliverySet,      // events and their delivery to webhooks
	mirrorSet,        // reads of other registries
	watchSet,         // questions to remotes for their tools
	methodsSet,       // the methods listing
	consoleSet,       // the pages for people
	adminSet,         // administration by API
	retentionSet,     // the removal of old records

	wire.Struct(new(rateLimitParts), "*"), wire.Struct(new(apiParts), "*"), newService,
)

// settingsSet provides each part's own settings.
var settingsSet = wire.NewSet(
	wire.FieldsOf(new(settings.Settings),
		"Service", "Tracing", "REST", "Answers", "Bodies", "ReadCache", "Serving", "Methods", "Servers", "DomainKeys", "IDTokens",
		"Publishing", "Reviewing", "Mirroring", "Watching", "ToolServers", "Reading", "WriteTrust", "Delegating", "Recheck", "Access", "Proxies", "Deliveries", "Receivers", "Console", "Administration",
		"SignIn", "People", "Companies", "OAuth", "ClientDocuments", "Passkeys", "StepUp", "Credentials", "Cookies", "Couriers", "Retention", "Decide", "Rules", "Statistics",
		"Places", "IPLists", "Passwords", "Tokens", "Plugins", "Brand", "Records", "Valkey",
		"PerSecond", "Memcached", "Memory", "RateLimit", "Record", "RuleFiles", "RuleServer", "RateLimitAPI", "Debug",
		"Prometheus", "Statsd"),
	wire.FieldsOf(new(settings.Service), "SecretKey"),
)

// recordsSet provides the stores, and what is derived from the root secret.
var recordsSet = wire.NewSet(
	relational.Open, otlp.NewQueries, kindrecords.Set, authrecords.Set, registryrecords.Set, methodrecords.Set, inprocess.NewCursors,
)

// authSet provides the use cases of authentication and their API.
var authSet = wire.NewSet(
	authapi.New, wire.Struct(new(authapi.UseCases), "*"),
	signin.New, wire.Struct(new(signin.Ports), "*"),
	stepup.New, wire.Struct(new(stepup.Ports), "*"), credentials.New, wire.Struct(new(credentials.Ports), "*"),
	devices.New, wire.Struct(new(devices.Ports), "*"), access.NewChecker, inprocess.TrailSet, auditing.NewRefusals,
	jwt.Set, // access tokens
	chooseSessionCache, wire.Struct(new(sessionCacheSettings), "*"),
	learning.NewRunner, wire.Struct(new(learning.RunnerPorts), "*"),
	federating.New, wire.Struct(new(federating.Ports), "*"),
	passkeys.New, wire.Struct(new(passkeys.Ports), "*"), webauthn.Set,
	pairing.New, wire.Struct(new(pairing.Ports), "*"),
	maxmind.Set, iplists.Set, // where an address is, and whether it is on a list
)

// authorizationSet provides the authorization server and its API.
var authorizationSet = wire.NewSet(
	authorizing.New, wire.Struct(new(authorizing.Ports), "*"), newAdmit, newIssued,
	wire.Struct(new(access.IssuedPorts), "Families", "Clients", "Resources", "Accounts", "Clock", "Changes"),
	inprocess.NewGate, wire.Struct(new(inprocess.GatePorts), "*"), newTokenAPI, clientdocs.New,
	wire.Struct(new(registering.Ports), "*"),
)

// newAdmit returns what admits the people of assertions of companies.
func newAdmit(s *federating.Service) authorizing.Admit { return s.AdmitAsserted }

// newIssued returns what tokens of the authorization server came of; nil while it is off.
func newIssued(c authorizing.Config, p access.IssuedPorts) *access.Issued {
	if !c.On {
		return nil
	}
	p.Issuer, p.AllListed, p.Admits = c.Issuer, c.AllListed, c.Admits
	return access.NewIssued(p)
}

func newTokenAPI(c authorizing.Config, s *authorizing.Service, who authority.Authority) *tokenapi.API {
	return tokenapi.New(tokenapi.UseCases{
		Token: s.Token, Revoke: s.Revoke, Introspect: s.Introspect, Metadata: s.Metadata, Authority: who, Issuer: c.Issuer,
	})
}

// noticesSet provides the plugins and what they deliver.
var noticesSet = wire.NewSet(
	openPlugins, chooseCouriers,
	chooseNotifier, wire.Struct(new(notices.Ports), "Accounts", "Devices", "Throttle", "Reporter", "Waiter"),
)

// registrySet provides the use cases of the registry and their API.
var registrySet = wire.NewSet(
	apidocs.New, newResource, newRegistryAPI, wire.Struct(new(registryAPIPorts), "*"),
	wire.Struct(new(registryapi.Config), "Bodies", "Cache", "Serving"), wire.Struct(new(readcache.Ports), "*"), browsing.New,
	browsing.NewFinder, browsing.NewTools, wire.Struct(new(browsing.ToolsPorts), "*"), wire.Struct(new(browsing.FinderPorts), "*"), wire.Bind(new(browsing.Views), new(*viewing.Gate)),
	allowlist.NewSource,
	wire.Struct(new(registryapi.Reads), "*"), viewing.NewGate, wire.Struct(new(viewing.GatePorts), "*"),
	publishing.New, wire.Struct(new(publishing.Ports), "*"), choosePackageChecks,
	inprocess.AuthoritySet, access.NewMemberships, wire.Struct(new(access.MembershipPorts), "*"),
)

// publisherSet provides the use cases of publishers and their API.
var publisherSet = wire.NewSet(
	registryapi.NewPublishers,
	wire.Struct(new(delegating.ProverPorts), "*"), delegating.NewProver, policySet,
	delegating.NewRechecker, wire.Struct(new(delegating.RecheckPorts), "*"),
	keysources.New, oidc.Set, newUsedProofs,
	inprocess.PublishersSet, wire.Struct(new(inprocess.PublishersPorts), "*"),
)

// reviewSet provides the use cases of reviewers and their API.
var reviewSet = wire.NewSet(
	registryapi.NewReviews, operatorReviewSet,
	reviewing.NewReminder, wire.Struct(new(reviewing.ReminderPorts), "*"), newHidden, newShow,
)

func newReviewed(c publishing.Config) receiving.Reviewed { return receiving.Reviewed(c.Review) }

func newShow(s *reviewing.Service) reviewing.Show { return s.Show }

func newHidden(q *quarantining.Service) reviewing.Hidden { return q.ByOperators }

// operatorReviewSet provides what the service and operator commands do with reviews.
var operatorReviewSet = wire.NewSet(
	reviewing.New, wire.Struct(new(reviewing.Ports), "*"), wire.Struct(new(reviewing.MirrorEnder), "*"), wire.Struct(new(reviewing.Approver), "*"),
	inprocess.ReviewNotifierSet,
)

// policySet provides what the service and operator commands do with policies of publishers.
var policySet = wire.NewSet(
	permit.NewChecker, wire.Struct(new(permit.CheckerPorts), "*"), inprocess.MakersSet,
	delegating.NewPolicies, wire.Struct(new(delegating.PolicyPorts), "*"), inprocess.ActsSet,
)

// curationSet provides the use cases of curation and their API.
var curationSet = wire.NewSet(
	registryapi.NewQuarantine, quarantineSet,
)

// quarantineSet provides what the service and operator commands do with quarantine, and what every
// change of a server needs. The record of acts comes from policySet.
var quarantineSet = wire.NewSet(
	quarantining.New, wire.Struct(new(quarantining.Ports), "*"), wire.Struct(new(change.Ports), "*"),
	receiving.New, wire.Struct(new(receiving.Ports), "*"), newReviewed,
)

// deliverySet provides the delivery of events to webhooks.
var deliverySet = wire.NewSet(
	eventsSet, notifying.NewRunner, wire.Struct(new(notifying.RunnerPorts), "*"),
)

// eventsSet provides what the service and operator commands do with events.
var eventsSet = wire.NewSet(
	announce.New, wire.Struct(new(announce.Ports), "*"), registryapi.EventSet,
	inprocess.NewSealer, wire.Bind(new(secrets.Sealer), new(*inprocess.Sealer)), webhook.Set,
)

// mirrorSet provides the reads of other registries for mirrors.
var mirrorSet = wire.NewSet(mirrorsSet, mirroring.NewRunner)

// watchSet provides the questions to remotes for their tools.
var watchSet = wire.NewSet(watching.New, wire.Struct(new(watching.Ports), "*"), toollist.Set)

// mirrorsSet provides what the service and operator commands do with mirrors.
var mirrorsSet = wire.NewSet(
	mirroring.NewOperator, wire.Struct(new(mirroring.Ports), "*"),
	registryjson.NewMirrorSource, wire.Bind(new(recordsource.Registries), new(*registryjson.MirrorSource)),
)

// methodsSet provides the methods listing.
var methodsSet = wire.NewSet(methodsapi.New, newUsageCounter)

// consoleSet provides the pages of the console and the use cases that they call.
var consoleSet = wire.NewSet(
	newConsole, newPublicURL, newMCP, wire.Struct(new(console.AuthPorts), "Site", "SignIn", "Account", "Publishing", "Reviewing", "Operating"),
	wire.Struct(new(console.Ports), "Servers", "Finder", "Hidden", "Views", "Tools", "Owners", "Public", "MCP", "Reading"), wire.Struct(new(site.Ports), "*"),
	wire.Struct(new(account.Ports), "SignIn", "Devices", "Credentials", "Trail", "Tokens", "Companies", "Passkeys", "Access", "Reviews"),
	wire.Struct(new(consolesignin.Ports), "StepUp", "Joining", "Trail", "Companies", "Passkeys", "Pairing"),
	wire.Struct(new(consolepublishing.Ports), "Reviews", "Reader", "Own", "Hidden", "Policies", "Requests", "Rights", "Owners"),
	requesting.New, wire.Struct(new(requesting.Ports), "*"), registryjson.NewDocuments,
	wire.Struct(new(consolereviewing.Ports), "*"), wire.Struct(new(operating.Ports), "*"), newConsoleLimits,
	newPluginStates, newFacts, newInstance, newInstances, wire.Struct(new(overview.Source), "*"),
	cookies.New, wire.Struct(new(cookies.Ports), "*"), browsing.NewOwn, permit.NewOperators,
	peopleSet, newMail, joining.New, wire.Struct(new(joining.Ports), "*"), devices.NewOperator, delegating.NewGrantOperator,
	wire.Struct(new(delegating.GrantPorts), "*"), delegating.NewRights, wire.Struct(new(delegating.RightPorts), "*"),
	viewing.NewOperator, wire.Struct(new(viewing.OperatorPorts), "*"), notifying.NewOperator,
	wire.Struct(new(notifying.OperatorPorts), "*"),
	wire.Struct(new(rest.Health)),
)

// adminSet provides the API of administration. Its use cases come from consoleSet.
var adminSet = wire.NewSet(
	adminapi.New, wire.Struct(new(adminapi.UseCases), "*"), manage.New, wire.Struct(new(manage.Ports), "*"), stateSet,
	tokens.New, wire.Struct(new(tokens.Ports), "*"),
	tokens.NewReminder, wire.Struct(new(tokens.ReminderPorts), "*"),
	deciding.New, wire.Struct(new(deciding.Ports), "*"), newCallLog, newDecisions,
	inprocess.DecisionsSet,
)

// newDecisions returns what answers proxies.
func newDecisions(c decideapi.Config, who authority.Authority, s *deciding.Service, log *logrus.Entry) *decideapi.API {
	return decideapi.New(c, decideapi.Ports{Authority: who, Decide: s.Decide, Denied: s.Denied, Permit: s.Permit, Named: s.Named, Log: log})
}

// stateSet provides what the service and operator commands do with the state in a file.
var stateSet = wire.NewSet(
	declaring.New, wire.Struct(new(declaring.Ports), "*"), inprocess.NewEmailAddresses, providerSet,
	delegating.NewServices, wire.Struct(new(delegating.ServicePorts), "*"),
)

// providerSet provides what the service and operator commands do with providers of company sign-in.
var providerSet = wire.NewSet(
	federating.NewProviders, wire.Struct(new(federating.ProviderPorts), "*"), oidc.ProvidersSet, inprocess.NewKinds,
	ruling.New, wire.Struct(new(ruling.Ports), "*"), registering.NewClients, registering.NewResources,
	watching.NewSources, wire.Struct(new(watching.SourcePorts), "*"), viewing.NewCollections,
)

// peopleSet provides what the service and operator commands do with accounts.
var peopleSet = wire.NewSet(people.New, wire.Struct(new(people.Ports), "*"), inprocess.GranterSet)

// newFacts returns what settings and host settle.
func newFacts(s settings.Settings) overview.Facts {
	return func() fitness.Facts { return findFacts(s) }
}

// findFacts returns what is known before the service is opened.
func findFacts(s settings.Settings) fitness.Facts {
	email, sms := s.Couriers.Email, s.Couriers.SMS
	mail := email != "" && email != pluginhost.DevelopmentCourier
	return fitness.Facts{
		Courier: mail || sms != "" && sms != pluginhost.DevelopmentCourier, Mail: mail, PublicURL: s.IDTokens.PublicURL != "",
		DebugHost: s.Debug.Host, RootInDatabase: s.Service.SecretKey == "", Postgres: !s.Records.InFile(), LastBackup: s.Records.LastBackup(),
	}
}

func newInstance(build registryapi.Build, c clock.Clock) overview.Instance {
	return overview.Instance{Version: build.Version, Started: c.Now()}
}

// newInstances returns the instances that are connected to the database.
func newInstances(db *database.DB) overview.Instances {
	return func(ctx context.Context) ([]overview.Instance, error) {
		found, err := db.Instances(ctx)
		return each.Map(found, func(i database.Instance) overview.Instance {
			return overview.Instance{Version: i.Version, Started: i.Since, Host: i.Host, Process: i.Process}
		}), err
	}
}

func newPublicURL(c oidc.Config) catalogue.PublicURL { return catalogue.PublicURL(c.PublicURL) }

func newMCP(c registryapi.Serving) catalogue.MCP { return catalogue.MCP(c.MCP) }

func newMail(c stepup.Couriers) people.Mail { return people.Mail{Courier: c.Email} }

//nolint:revive // Wire gives each of them
func newConsole(
	parts settings.Parts, all console.Ports, p console.AuthPorts, s *prometheus.SignIn, w *prometheus.Publisher,
	brand couriersettings.Brand, build registryapi.Build, o authorizing.Config, server *authorizing.Service,
) *console.Console {
	all.Brand = site.Brand{Product: brand.Name, Version: build.Version}
	if o.On {
		p.Authorizing = consoleauthorizing.Ports{Begin: server.Begin, Continue: server.Continue, Decide: server.Decide, GiveUp: server.GiveUp}
		p.Account.Applications = account.Applications{List: server.Applications, Remove: server.Remove}
	}
	if parts.Auth {
		p.SignIn.SignIn, p.Publishing.Writer = s, w
		all.Auth = &p
	}
	return console.New(all)
}

func newConsoleLimits(parts settings.Parts, r *reload.Rules, d *decide.Decider) *operating.Limits {
	if !parts.RateLimit {
		return nil
	}
	return &operating.Limits{Rules: r, Decisions: d}
}

func newPluginStates(h *pluginhost.Host) overview.PluginStates {
	return func() (all []overview.Plugin) {
		for _, s := range h.Status() {
			all = append(all, overview.Plugin{
				Name: s.Name, Kind: s.Kind, Version: s.Version, State: string(s.State), LastError: s.LastError,
				Restarts: s.Restarts,
			})
		}
		return all
	}
}

// retentionSet provides the removal of old records.
var retentionSet = wire.NewSet(
	retention.New, wire.Struct(new(retention.Ports), "*"),
	retention.NewRunner, wire.Struct(new(retention.RunnerPorts), "*"),
)

// throttleSet provides the limits of the API, which the rate limit hexagon decides.
var throttleSet = wire.NewSet(
	settings.ThrottleConfig, chooseOwnStore, chooseThrottle, wire.Struct(new(throttleParts), "*"),
)

// metricsSet provides the registry of metrics and the decorators of metrics.go.
var metricsSet = wire.NewSet(newRegisterer, newPartMetrics, newReporter, countedSet)

// registryAPIPorts are what the API of the registry needs, with its metrics.
type registryAPIPorts struct {
	Build   registryapi.Build
	Log     *logrus.Entry
	Callers authority.Authority
	Writer  *prometheus.Publisher
	Watcher *watching.Watcher
	Docs    *apidocs.Docs
	Reads   registryapi.Reads
	Reading viewing.Config
	OAuth   registryapi.Resource
	Kept    readcache.Ports
	Metrics prometheus.Registerers
}

// newResource returns what OAuth clients learn of the registry.
func newResource(
	c oidc.Config, b couriersettings.Brand, p decideapi.Config, o authorizing.Config, i *access.Issued,
) registryapi.Resource {
	r := registryapi.Resource{URL: c.PublicURL, Name: b.Name, Servers: c.AuthorizationServers, Decides: p.On}
	if i != nil {
		r.Issuer, r.Find = o.Issuer, i.FindResource
	}
	return r
}

func newRegistryAPI(c registryapi.Config, p registryAPIPorts) (*registryapi.API, func()) {
	c.Private, c.Resource, c.RecordTools = p.Reading.Private, p.OAuth, p.Writer.RecordTools
	c.AskTools, c.SetOwner = p.Watcher.Ask, p.Writer.SetOwner
	c.Build, c.Log, c.Docs, c.WritesOff = p.Build, p.Log, p.Docs, p.Writer.WritesOff()
	api, end := registryapi.New(c, p.Callers, p.Reads, p.Writer, p.Kept)
	api.Measure(p.Metrics.Registry)
	return api, end
}

func newUsageCounter(store inprocess.OwnStore, c clock.Clock, r decide.Config) *usage.Counter {
	return usage.New(store, c, r.Prefix)
}
