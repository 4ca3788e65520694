package inprocess_test

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/jwt"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// newPublishers returns publishers, the authority for their tokens and the audit log.
func newPublishers(t *testing.T) (*inprocess.Publishers, *inprocess.Authority, *fakedb.AuditLog) {
	t.Helper()
	db, clock := fakedb.New(), clocktest.NewManual(noon)
	log := fakedb.NewAuditLog(db)
	trail := auditing.New(log, clock, randomSource{})
	config := jwt.Config{Issuer: "tollgate", Audience: "tollgate", DataDir: t.TempDir()}
	signer, closeSigner, err := jwt.Open(t.Context(), config, fakedb.NewKeyring(db), clock,
		logrus.NewEntry(logrus.New()))
	must.Succeed(t, err)
	t.Cleanup(closeSigner)
	checker := access.NewChecker(signer, fakedb.NewSessions(db), memory.NewSessions(clock, memory.Config{}), fakedb.NewAPITokens(db), clock, func() uint64 { return 0 }, nil)
	publishers := inprocess.NewPublishers(inprocess.PublishersPorts{
		Signer: signer, Trail: trail, Clock: clock, Entropy: randomSource{},
	})
	return publishers, inprocess.NewAuthority(checker, newForeign(db, noVerifier{}), auth.FullTrust), log
}

func newPublisher(t *testing.T) authority.Publisher {
	t.Helper()
	pattern, err := registry.ParsePattern("com.example/*")
	must.Succeed(t, err)
	both := []publisher.Action{publisher.Publish, publisher.Status}
	return authority.Publisher{Method: publisher.DNS, Subject: "example.com", Permissions: []publisher.Permission{
		{Actions: both, Pattern: pattern}, {Actions: both[:1], Pattern: pattern, Policy: "p1"},
	}}
}

func TestIssuedTokenIdentifiesItsPublisher(t *testing.T) {
	publishers, a, _ := newPublishers(t)
	want := newPublisher(t)
	token, expires, err := publishers.IssueToken(t.Context(), want)
	if err != nil || !expires.Equal(noon.Add(publisher.TokenTTL)) {
		t.Fatalf("token expires %s, error %v", expires, err)
	}
	got, err := a.Identify(t.Context(), token, authoritytest.Address())
	if err != nil || !reflect.DeepEqual(got, authority.NewPublisher(want, authoritytest.Address())) {
		t.Errorf("Identify = %+v, %v, want %+v and no session", got, err, want)
	}
}

// onlyEvent returns the event of a log that has one.
func onlyEvent(t *testing.T, log *fakedb.AuditLog) audit.Event {
	t.Helper()
	events, _, err := log.Search(t.Context(), authstore.AuditQuery{Limit: 10})
	if err != nil || len(events) != 1 {
		t.Fatalf("the events are %+v, error %v, want one", events, err)
	}
	return events[0]
}

func TestRecordProof(t *testing.T) {
	for _, test := range []struct {
		attempt authority.ProofAttempt
		want    audit.Details
	}{
		{
			authority.ProofAttempt{
				Method: publisher.DNS, Domain: "example.com", Key: "ed25519:AAAAAAAA", Policies: []registry.PolicyID{
					"p1", "p2",
				}, Address: netip.MustParseAddr("192.0.2.7"),
			},
			audit.Details{
				"method": audit.Text("dns"), "domain": audit.Text("example.com"),
				"keyFingerprint": audit.Text("ed25519:AAAAAAAA"), "policies": audit.List{
					audit.Text("p1"), audit.Text("p2"),
				}, "ipAddress": audit.Text("192.0.2.7"),
			},
		},
		{
			authority.ProofAttempt{
				Method: publisher.OIDC, Issuer: "https://ci.example", Subject: "job", Reason: "expired",
			},
			audit.Details{
				"method": audit.Text("oidc"), "issuer": audit.Text("https://ci.example"), "subject": audit.Text("job"),
				"reason": audit.Text("expired"),
			},
		},
	} {
		publishers, _, log := newPublishers(t)
		must.Succeed(t, publishers.RecordProof(t.Context(), test.attempt))
		e := onlyEvent(t, log)
		if e.Category != audit.PublisherProof || e.Subject != "" || e.Success != (test.attempt.Reason == "") ||
			!reflect.DeepEqual(e.Details, test.want) {
			t.Errorf("the event is %+v, want %v without a user", e, test.want)
		}
	}
}

func TestActOfAPublisherHasNoUser(t *testing.T) {
	log := fakedb.NewAuditLog(fakedb.New())
	a := inprocess.NewActs(auditing.New(log, clocktest.NewManual(noon), randomSource{}))
	caller := newPublisher(t)
	act := authority.Act{
		Caller: authority.NewPublisher(caller, authoritytest.Address()), Action: "publish", ServerName: "com.example/a",
		Version: "1.0.0",
	}
	err := a.Record(t.Context(), act)
	must.Succeed(t, err)
	e := onlyEvent(t, log)
	want := audit.Details{
		"action": audit.Text("publish"), "serverName": audit.Text("com.example/a"), "version": audit.Text("1.0.0"),
		"publisher": audit.Text("example.com"), "authMethod": audit.Text("dns"), "policies": audit.List{
			audit.Text("p1"),
		}, "ipAddress": audit.Text("192.0.2.7"),
	}
	if e.Subject != "" || !e.Success || e.Category != audit.RegistryChange || !reflect.DeepEqual(e.Details, want) {
		t.Errorf("the event is %+v, want %v without a user", e, want)
	}
}

func TestMakerIsActive(t *testing.T) {
	db := fakedb.New()
	accounts, services := fakedb.NewAccounts(db), fakedb.NewServices(db)
	for name, state := range map[service.Name]service.State{"ci": service.Active, "old": service.Disabled} {
		if err := services.Put(t.Context(), name, func(*service.Account) (service.Account, error) {
			return service.Account{Name: name, State: state}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for id, state := range map[auth.UserID]auth.AccountState{"anna": auth.AccountActive, "ben": auth.AccountDisabled} {
		must.Succeed(t, accounts.Create(t.Context(), auth.Account{ID: id, Email: auth.Email(id), State: state}))
	}
	for id, want := range map[string]bool{
		"anna": true, "ben": false, "nobody": false, "service:ci": true, "service:old": false, "service:x": false,
	} {
		if got, err := inprocess.NewMakers(accounts, services).IsActive(t.Context(), id); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", id, got, err, want)
		}
	}
}

// TestEmailOfMaker checks that people have addresses, and what is no person, or gone, has none.
func TestEmailOfMaker(t *testing.T) {
	db := fakedb.New()
	const anna = "6f1c2b3a-4d5e-4f60-8a7b-9c0d1e2f3a4b"
	accounts := fakedb.NewAccounts(db)
	must.Succeed(t, accounts.Create(t.Context(), auth.Account{ID: anna, Email: "anna@example.com"}))
	for id, want := range map[string]string{
		anna: "anna@example.com", "7f1c2b3a-4d5e-4f60-8a7b-9c0d1e2f3a4b": "", "service:ci": "", "dns:example.com": "", "": "",
	} {
		if got, err := inprocess.NewMakers(accounts, fakedb.NewServices(db)).EmailOf(t.Context(), id); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", id, got, err, want)
		}
	}
}

func TestPublishersWithoutNotices(t *testing.T) {
	publishers, _, _ := newPublishers(t)
	publishers.NotifyMaker(authority.PublisherNotice{Maker: "anna"}) // no notifier is configured
}
