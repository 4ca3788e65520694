package authstoretest

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

// Companies are the stores of company sign-in.
type Companies struct {
	Providers  authstore.Providers
	Identities authstore.Identities
	Logins     authstore.Logins
}

// runCompanies tests the stores of company sign-in.
func runCompanies(t *testing.T, open func(t *testing.T) Stores) {
	t.Helper()
	testCases(t, func(t *testing.T) Stores {
		s := open(t)
		createParents(t, s)
		return s
	}, map[string]func(t *testing.T, s Stores){
		"a stored provider has the value of every field":                 providerKeepsEveryField,
		"a provider is replaced, and keeps its condition":                providerIsReplaced,
		"a domain belongs to one provider":                               domainHasOneProvider,
		"a removed provider is gone, with its domains":                   providerIsRemoved,
		"a stored identity has the value of every field":                 identityKeepsEveryField,
		"a subject of an issuer is linked once":                          linksSubjectOnce,
		"the use and the confirmation of an identity are stored":         storesUse,
		"an identity is removed for its person only":                     removesOwnIdentity,
		"a stored login has the value of every field":                    loginKeepsEveryField,
		"a login without a session gets one, once":                       bindsOnce,
		"logins of active sessions are found by what a query names":      findsLogins,
		"of parallel checks of a login, one is stored":                   renewsOnce,
		"old logins without a session are deleted":                       removesAbandoned,
		"a failed transaction stores no provider, no identity, no login": companiesRollBack,
	})
}

func providerSample(n int) company.Provider {
	made := recordtest.Epoch().Add(time.Duration(n) * time.Minute)
	letter := string(rune('a' + n))
	return company.Provider{
		Name: company.Name("p" + letter), DisplayName: "Provider é " + letter, Issuer: "https://login.example/" + letter,
		ClientID: "tollgate", Secret: auth.SealedSecret{0, 1, 0xff}, Scopes: []string{"openid", "email"},
		Domains: []string{letter + ".example", letter + ".test"}, Create: true, Enforce: true, IDJAG: true, EmailClaim: "upn",
		GroupsClaim: "roles", ScopeClaim: "scp", Audiences: []string{"api://a", "https://b.example/"}, RequiredGroups: []string{"staff"},
		GroupGrants: []company.GroupGrant{{Group: "g'\"", Action: "publish", Resource: "com.example/*"}},
		ACR:         []string{"urn:mfa"}, AMR: []string{"hwk"}, Recheck: time.Minute, MaxSession: time.Hour,
		Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, ManagedBy: "team-a", CreatedAt: made,
		Condition: company.Condition{
			SucceededAt: made.Add(time.Second), Problem: "it was away", Claims: "groups sub", ProblemAt: made.Add(2 * time.Second),
		},
	}
}

func saveProviders(t *testing.T, s Stores, all ...company.Provider) {
	t.Helper()
	for _, p := range all {
		recordtest.OK(t, s.Companies.Providers.Save(t.Context(), p))
		recordtest.OK(t, s.Companies.Providers.Note(t.Context(), p.Name, p.Condition))
	}
}

func wantProviders(t *testing.T, s Stores, all ...company.Provider) {
	t.Helper()
	found := recordtest.Must(s.Companies.Providers.List(t.Context()))(t)
	if len(found) != len(all) {
		t.Fatalf("there are %d providers, want %d", len(found), len(all))
	}
	for i := range all {
		recordtest.Equal(t, found[i], all[i])
	}
}

func providerKeepsEveryField(t *testing.T, s Stores) {
	first, second := providerSample(0), providerSample(1)
	recordtest.Whole(t, first)
	second.Secret, second.Domains, second.Enforce = nil, nil, false
	second.Condition = company.Condition{}
	saveProviders(t, s, second, first)
	wantProviders(t, s, first, second)
}

func providerIsReplaced(t *testing.T, s Stores) {
	p := providerSample(0)
	saveProviders(t, s, p)
	next := providerSample(1)
	next.Name, next.Condition = p.Name, company.Condition{}
	recordtest.OK(t, s.Companies.Providers.Save(t.Context(), next))
	next.CreatedAt, next.Condition = p.CreatedAt, p.Condition
	wantProviders(t, s, next)
	recordtest.OK(t, s.Companies.Providers.Note(t.Context(), "unknown", p.Condition))
}

func domainHasOneProvider(t *testing.T, s Stores) {
	first, second := providerSample(0), providerSample(1)
	saveProviders(t, s, first)
	second.Domains = append(second.Domains, first.Domains[1])
	if err := s.Companies.Providers.Save(t.Context(), second); !fault.Is(err, fault.Conflict) {
		t.Errorf("Save returned %v, want fault.Conflict", err)
	}
	wantProviders(t, s, first)
	second.Domains = second.Domains[:2]
	first.Domains = first.Domains[:1]
	saveProviders(t, s, first, second)
	wantProviders(t, s, first, second)
}

func providerIsRemoved(t *testing.T, s Stores) {
	first, second := providerSample(0), providerSample(1)
	saveProviders(t, s, first)
	recordtest.OK(t, s.Companies.Providers.Remove(t.Context(), first.Name))
	recordtest.WantNotFound(t, map[string]func() error{
		"Remove": func() error { return s.Companies.Providers.Remove(t.Context(), first.Name) },
	})
	second.Domains = first.Domains
	saveProviders(t, s, second)
	wantProviders(t, s, second)
}

// identitySample returns one of a person with every field set.
func identitySample(person, n int) company.Identity {
	at := recordtest.Epoch().Add(time.Duration(n) * time.Minute)
	return company.Identity{
		ID: recordtest.UUID[company.IdentityID](100*(person+1) + n), UserID: Account(person).ID, Issuer: "https://login.example",
		Subject: "subject é " + string(rune('a'+10*person+n)), Email: "a@example.com", LinkedAt: at, LastUsedAt: at.Add(time.Hour),
		ConfirmedAt: at.Add(2 * time.Hour), Membership: company.Membership{Provider: "acme", Groups: []string{"b é/\"", "a"}},
	}
}

func addIdentities(t *testing.T, s Stores, all ...company.Identity) {
	t.Helper()
	for _, i := range all {
		recordtest.OK(t, s.Companies.Identities.Add(t.Context(), i))
	}
}

func identityKeepsEveryField(t *testing.T, s Stores) {
	first, second, others := identitySample(0, 1), identitySample(0, 2), identitySample(1, 1)
	recordtest.Whole(t, first)
	addIdentities(t, s, second, others, first)
	recordtest.Equal(t, recordtest.Must(s.Companies.Identities.Of(t.Context(), first.UserID))(t),
		[]company.Identity{first, second})
	recordtest.Equal(t, recordtest.Must(s.Companies.Identities.Find(t.Context(), others.Issuer, others.Subject))(t), others)
	recordtest.WantNotFound(t, map[string]func() error{
		"Find of another issuer": func() error {
			_, err := s.Companies.Identities.Find(t.Context(), "https://login.example/", first.Subject)
			return err
		},
		"Find of another subject": func() error {
			_, err := s.Companies.Identities.Find(t.Context(), first.Issuer, "SUBJECT é a")
			return err
		},
	})
}

func linksSubjectOnce(t *testing.T, s Stores) {
	recordtest.WantOne(t, recordtest.Parallel(10, func(n int) error {
		i := identitySample(n%2, n)
		i.Subject = "one"
		return s.Companies.Identities.Add(t.Context(), i)
	}), fault.Conflict)
}

func storesUse(t *testing.T, s Stores) {
	i := identitySample(0, 1)
	addIdentities(t, s, i, identitySample(0, 2), identitySample(0, 3))
	recordtest.OK(t, s.Companies.Identities.Confirm(t.Context(), identitySample(0, 3).ID, i.LastUsedAt, &company.Membership{Provider: "acme", Groups: []string{"a"}}))
	recordtest.Equal(t, recordtest.Must(s.Directory.Groups(t.Context()))(t), []string{"acme/a", "acme/b é/\""})
	i.Email, i.LastUsedAt = "new@example.com", i.LastUsedAt.Add(3*time.Hour)
	i.ConfirmedAt, i.Membership = i.LastUsedAt, company.Membership{Provider: "other", Groups: []string{"c"}}
	recordtest.OK(t, s.Companies.Identities.Use(t.Context(), i.ID, i.Email, i.Membership, i.LastUsedAt))
	recordtest.OK(t, s.Companies.Identities.Use(t.Context(), identitySample(1, 1).ID, i.Email, i.Membership, i.LastUsedAt))
	recordtest.Equal(t, recordtest.Must(s.Companies.Identities.Find(t.Context(), i.Issuer, i.Subject))(t), i)
	for _, at := range []time.Time{i.LastUsedAt.Add(time.Hour), {}} {
		i.ConfirmedAt = at
		recordtest.OK(t, s.Companies.Identities.Confirm(t.Context(), i.ID, at, nil))
		recordtest.Equal(t, recordtest.Must(s.Companies.Identities.Find(t.Context(), i.Issuer, i.Subject))(t), i)
	}
	recordtest.OK(t, s.Companies.Identities.Confirm(t.Context(), identitySample(1, 1).ID, i.LastUsedAt, nil))
	i.ConfirmedAt, i.Membership = i.LastUsedAt, company.Membership{Provider: "other"}
	recordtest.OK(t, s.Companies.Identities.Confirm(t.Context(), i.ID, i.ConfirmedAt, &i.Membership))
	recordtest.Equal(t, recordtest.Must(s.Companies.Identities.Find(t.Context(), i.Issuer, i.Subject))(t), i)
}

func removesOwnIdentity(t *testing.T, s Stores) {
	i, other := identitySample(0, 1), identitySample(0, 2)
	addIdentities(t, s, i, other)
	addLogins(t, s, loginSample(0, i))
	recordtest.WantNotFound(t, map[string]func() error{
		"Remove for another person": func() error {
			return s.Companies.Identities.Remove(t.Context(), Account(1).ID, i.ID)
		},
	})
	recordtest.OK(t, s.Companies.Identities.Remove(t.Context(), i.UserID, i.ID))
	recordtest.Equal(t, recordtest.Must(s.Companies.Identities.Of(t.Context(), i.UserID))(t), []company.Identity{other})
	wantLoginsOf(t, s, authstore.LoginQuery{Identity: i.ID})
}

// loginSample returns the login of a session, which addLogins creates.
func loginSample(n int, i company.Identity) company.Login {
	at := recordtest.Epoch().Add(time.Duration(n) * time.Minute)
	return company.Login{
		ID: recordtest.UUID[company.LoginID](500 + n), SessionID: recordtest.UUID[auth.SessionID](600 + n), IdentityID: i.ID,
		Provider: "pa", SID: "sid é", Refresh: auth.SealedSecret{1, 0}, AnsweredAt: at, RecheckAt: at.Add(time.Hour),
	}
}

// addLogins stores logins with their sessions.
func addLogins(t *testing.T, s Stores, all ...company.Login) {
	t.Helper()
	for _, l := range all {
		if l.SessionID != "" {
			session := Living(0, 1)
			session.ID = l.SessionID
			recordtest.OK(t, s.Sessions.Create(t.Context(), session))
		}
		recordtest.OK(t, s.Companies.Logins.Add(t.Context(), l))
	}
}

func wantLoginsOf(t *testing.T, s Stores, q authstore.LoginQuery, want ...company.Login) {
	t.Helper()
	if q.At.IsZero() {
		q.At = recordtest.Epoch()
	}
	got := recordtest.Must(s.Companies.Logins.Find(t.Context(), q))(t)
	if len(got) != len(want) {
		t.Fatalf("%+v finds %d logins, want %d", q, len(got), len(want))
	}
	for i := range want {
		recordtest.Equal(t, got[i], want[i])
	}
}

func loginKeepsEveryField(t *testing.T, s Stores) {
	i := identitySample(0, 1)
	addIdentities(t, s, i)
	first, second := loginSample(0, i), loginSample(1, i)
	recordtest.Whole(t, first)
	second.Refresh, second.RecheckAt, second.SID = nil, time.Time{}, ""
	addLogins(t, s, first, second)
	wantLoginsOf(t, s, authstore.LoginQuery{Session: first.SessionID}, first)
	wantLoginsOf(t, s, authstore.LoginQuery{Session: second.SessionID}, second)
}

func bindsOnce(t *testing.T, s Stores) {
	i := identitySample(0, 1)
	addIdentities(t, s, i)
	l, other := loginSample(0, i), loginSample(1, i)
	session := l.SessionID
	l.SessionID = ""
	addLogins(t, s, l, other)
	wantLoginsOf(t, s, authstore.LoginQuery{Identity: i.ID}, other)
	l.SessionID = session
	stored := Living(0, 1)
	stored.ID = session
	recordtest.OK(t, s.Sessions.Create(t.Context(), stored))
	recordtest.OK(t, s.Companies.Logins.Bind(t.Context(), l.ID, session))
	wantLoginsOf(t, s, authstore.LoginQuery{Identity: i.ID}, l, other)
	recordtest.WantNotFound(t, map[string]func() error{
		"Bind again":      func() error { return s.Companies.Logins.Bind(t.Context(), l.ID, session) },
		"Bind of unknown": func() error { return s.Companies.Logins.Bind(t.Context(), loginSample(9, i).ID, session) },
	})
}

func findsLogins(t *testing.T, s Stores) {
	i, j := identitySample(0, 1), identitySample(1, 1)
	addIdentities(t, s, i, j)
	a, b, c := loginSample(0, i), loginSample(1, i), loginSample(2, j)
	b.SID, c.Provider = "other", "pb"
	addLogins(t, s, c, b, a)
	wantLoginsOf(t, s, authstore.LoginQuery{}, a, b, c)
	wantLoginsOf(t, s, authstore.LoginQuery{Limit: 2}, a, b)
	wantLoginsOf(t, s, authstore.LoginQuery{Identity: i.ID}, a, b)
	wantLoginsOf(t, s, authstore.LoginQuery{Provider: "pb"}, c)
	wantLoginsOf(t, s, authstore.LoginQuery{Without: []company.Name{"pb", "pc"}}, a, b)
	wantLoginsOf(t, s, authstore.LoginQuery{Without: []company.Name{"pa", "pb"}})
	wantLoginsOf(t, s, authstore.LoginQuery{Provider: "pa", SID: "other"}, b)
	wantLoginsOf(t, s, authstore.LoginQuery{Due: b.RecheckAt}, a, b)
	wantLoginsOf(t, s, authstore.LoginQuery{Due: a.RecheckAt.Add(-time.Microsecond)})
	wantLoginsOf(t, s, authstore.LoginQuery{At: Living(0, 1).ExpiresAt})
	recordtest.OK(t, s.Sessions.Update(t.Context(), a.SessionID, func(session *auth.Session) error {
		session.EndedAt, session.EndReason = recordtest.Epoch(), auth.EndOperator
		return nil
	}))
	wantLoginsOf(t, s, authstore.LoginQuery{Identity: i.ID}, b)
}

func renewsOnce(t *testing.T, s Stores) {
	i := identitySample(0, 1)
	addIdentities(t, s, i)
	l := loginSample(0, i)
	addLogins(t, s, l)
	next := l
	next.Refresh, next.AnsweredAt, next.RecheckAt = auth.SealedSecret{2}, l.AnsweredAt.Add(time.Hour), l.RecheckAt.Add(time.Hour)
	recordtest.WantOne(t, recordtest.Parallel(10, func(int) error {
		return s.Companies.Logins.Renew(t.Context(), next, l.RecheckAt)
	}), fault.Conflict)
	wantLoginsOf(t, s, authstore.LoginQuery{Identity: i.ID}, next)
}

func removesAbandoned(t *testing.T, s Stores) {
	i := identitySample(0, 1)
	addIdentities(t, s, i)
	old, late, bound := loginSample(0, i), loginSample(1, i), loginSample(2, i)
	sessions := []auth.SessionID{old.SessionID, late.SessionID}
	old.SessionID, late.SessionID, bound.AnsweredAt = "", "", old.AnsweredAt
	addLogins(t, s, old, late, bound)
	if n := recordtest.Must(s.Companies.Logins.DeleteAbandoned(t.Context(), late.AnsweredAt))(t); n != 1 {
		t.Errorf("%d logins are deleted, want 1", n)
	}
	for _, id := range sessions {
		session := Living(0, 1)
		session.ID = id
		recordtest.OK(t, s.Sessions.Create(t.Context(), session))
	}
	recordtest.WantNotFound(t, map[string]func() error{
		"Bind": func() error { return s.Companies.Logins.Bind(t.Context(), old.ID, sessions[0]) },
	})
	recordtest.OK(t, s.Companies.Logins.Bind(t.Context(), late.ID, sessions[1]))
	late.SessionID = sessions[1]
	wantLoginsOf(t, s, authstore.LoginQuery{Identity: i.ID}, late, bound)
}

func companiesRollBack(t *testing.T, s Stores) {
	p, i := providerSample(0), identitySample(0, 1)
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error {
		recordtest.OK(t, s.Companies.Providers.Save(ctx, p))
		recordtest.OK(t, s.Companies.Identities.Add(ctx, i))
		l := loginSample(0, i)
		l.SessionID = ""
		return s.Companies.Logins.Add(ctx, l)
	})
	wantProviders(t, s)
	if got := recordtest.Must(s.Companies.Identities.Of(t.Context(), i.UserID))(t); len(got) != 0 {
		t.Errorf("there are the identities %+v", got)
	}
}
