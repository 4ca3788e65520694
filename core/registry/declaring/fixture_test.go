package declaring_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/managing"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/declaring"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/eventdata/eventdatatest"
	"github.com/tollgate-dev/tollgate/ports/eventsender"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
)

var epoch = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// people are those who have accounts, by their ids.
var people = map[registry.Holder]string{"p1": "ana@example.com", "p2": "bo@example.com"}

// recorder keeps the changes of transactions that were stored.
type recorder struct{ changes []audit.Change }

func (r *recorder) RecordChanges(_ context.Context, changes ...audit.Change) error {
	r.changes = append(r.changes, changes...)
	return nil
}

// active are makers of policies that are all active.
type active struct{}

func (active) IsActive(context.Context, string) (bool, error) { return true, nil }

func (active) EmailOf(context.Context, string) (string, error) { return "", nil }

// sealer seals nothing.
type sealer struct{}

func (sealer) Seal(secret []byte, _ string) ([]byte, error) { return secret, nil }
func (sealer) Open(sealed []byte, _ string) ([]byte, error) { return sealed, nil }

// sender sends nothing.
type sender struct{}

func (sender) Check(context.Context, event.URL) error                 { return nil }
func (sender) Send(context.Context, eventsender.Request) (int, error) { return 200, nil }

type fixture struct {
	*declaring.Service

	t     *testing.T
	ports declaring.Ports
	log   *recorder
	clock *clocktest.Manual

	services *delegating.Services
	views    *viewing.Operator
	mirrors  *mirroring.Operator
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db, log, now := fakedb.New(), &recorder{}, clocktest.NewManual(epoch)
	grants, policies, entropy := fakedb.NewGrants(db), fakedb.NewPolicies(db), &secretstest.Entropy{}
	config := permit.Config{Rules: publisher.Rules{
		Issuers: []string{"https://ci.example.com"}, GitHubIssuer: "https://token.actions.githubusercontent.com",
	}}
	checker := permit.NewChecker(config, permit.CheckerPorts{
		Policies: policies, Grants: grants, Makers: active{}, Clock: now,
	})
	services := delegating.NewServices(config, delegating.ServicePorts{
		Transactions: db, Services: fakedb.NewServices(db), Recorder: log, Clock: now,
	})
	views := viewing.NewOperator(viewing.OperatorPorts{
		Transactions: db, Views: fakedb.NewViews(db), Recorder: log, Clock: now, Entropy: entropy,
		Events: announce.New(announce.Ports{
			Webhooks: fakedb.NewWebhooks(db), Deliveries: fakedb.NewDeliveries(db), Encoder: eventdatatest.Encoder{},
			Clock: now, Entropy: entropy,
		}),
	})
	mirrors := mirroring.NewOperator(mirroring.Config{}, mirroring.Ports{
		Transactions: db, Mirrors: fakedb.NewMirrors(db), Mirrored: fakedb.NewMirroredVersions(db), Recorder: log,
		Clock: now, Entropy: entropy,
	})
	p := declaring.Ports{
		Transactions: db, States: fakedb.NewAppliedStates(db), Clock: now, Entropy: entropy, Sealer: sealer{},
		People: func(context.Context) (map[registry.Holder]string, error) { return people, nil },
		Grants: grants, Managed: management.NewKinds(
			newObjects(&company.Kind), newObjects(&access.RuleKind), services.Objects(), views.Objects(), mirrors.Objects(),
		),
		GrantChanges: delegating.NewGrantOperator(delegating.GrantPorts{
			Transactions: db, Grants: grants, Operators: fakedb.NewDirectory(db), Recorder: log,
		}),
		Policies: delegating.NewPolicies(config, delegating.PolicyPorts{
			Transactions: db, Policies: policies, Checker: checker, Grants: grants, Recorder: log, Clock: now, Entropy: entropy,
		}),
		Webhooks: notifying.NewOperator(notifying.OperatorPorts{
			Transactions: db, Webhooks: fakedb.NewWebhooks(db), Recorder: log, Sealer: sealer{}, Sender: sender{}, Clock: now,
			Entropy: entropy,
		}),
		Reviews: reviewing.New(reviewing.Config{}, reviewing.Ports{
			Ports: change.Ports{Transactions: db}, Rules: fakedb.NewReviewRules(db), Recorder: log, Clock: now, Entropy: entropy,
		}),
	}
	return &fixture{declaring.New(p), t, p, log, now, services, views, mirrors}
}

// document returns the node of a JSON text, with ' in the place of ". It has a version and a kind.
func document(t *testing.T, lists string) declaring.Node {
	t.Helper()
	return node(t, `{'apiVersion':'tollgate.dev/v1','kind':'State'`+strings.TrimSuffix(","+lists, ",")+`}`)
}

func node(t *testing.T, text string) declaring.Node {
	t.Helper()
	value, err := jsonvalue.Parse([]byte(strings.ReplaceAll(text, "'", `"`)))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return toNode(value)
}

// toNode returns the node of a value of JSON.
func toNode(v jsonvalue.Value) declaring.Node {
	switch v := v.(type) {
	case jsonvalue.Text:
		return declaring.Node{Form: declaring.Text, Text: string(v)}
	case jsonvalue.Flag:
		if v {
			return declaring.Node{Form: declaring.Flag, Text: "true"}
		}
		return declaring.Node{Form: declaring.Flag, Text: "false"}
	case jsonvalue.Exact:
		return declaring.Node{Form: declaring.Number, Text: string(v)}
	case jsonvalue.List:
		n := declaring.Node{Form: declaring.List}
		for _, item := range v {
			n.Items = append(n.Items, toNode(item))
		}
		return n
	case jsonvalue.Object:
		n := declaring.Node{Form: declaring.Object}
		for name, value := range v {
			n.Members = append(n.Members, declaring.Member{Name: name, Value: toNode(value)})
		}
		return n
	}
	return declaring.Node{}
}

// apply applies lists, and returns the changes and the error in words.
func (fx *fixture) apply(q declaring.Request, lists string) (string, error) {
	fx.t.Helper()
	q.Document = document(fx.t, lists)
	return fx.applyDocument(q)
}

func (fx *fixture) applyDocument(q declaring.Request) (string, error) {
	fx.t.Helper()
	q.By, q.Operator, q.ApplyID = authority.Operator(), authority.Operator(), "a1"
	changes, err := fx.Apply(fx.t.Context(), q)
	return describe(fx.t, changes), err
}

// describe returns changes, one a line.
func describe(t *testing.T, changes []declaring.Change) string {
	t.Helper()
	var lines []string
	for _, c := range changes {
		line := string(c.Operation) + " " + c.Kind + " " + c.Key
		if c.Operation != declaring.Keep {
			line += " " + marshal(t, c.Fields)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func (fx *fixture) mustApply(q declaring.Request, lists string) string {
	fx.t.Helper()
	changes, err := fx.apply(q, lists)
	if err != nil {
		fx.t.Fatalf("%s: %v", lists, err)
	}
	return changes
}

// newObjects returns the objects of a kind of another hexagon, which takes all fields.
func newObjects(k *kinds.Kind) management.Objects {
	all := map[string]management.Object{}
	parse := func(fields audit.Details) (management.Object, error) {
		return management.Object{Object: audit.Object{Kind: k.Name, Key: fields.Text("name"), Fields: fields}}, nil
	}
	return managing.Of[management.Object]{
		Of: k, From: parse, Show: func(o *management.Object) management.Object { return *o },
		All: func(context.Context, string, int) (list []management.Object, _ error) {
			for _, name := range slices.Sorted(maps.Keys(all)) {
				list = append(list, all[name])
			}
			return list, nil
		},
		Store: func(_ context.Context, c management.Change, _ func(*management.Object) error) (management.Object, bool, error) {
			o, err := parse(c.Fields)
			o.Owner = c.Owner
			all[o.Key] = o
			return o, true, err
		},
		Drop: func(_ context.Context, key string, _ management.Change, _ func(*management.Object) error) error {
			delete(all, key)
			return nil
		},
	}
}
