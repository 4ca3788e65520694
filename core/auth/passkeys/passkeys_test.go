package passkeys_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	adapter "github.com/tollgate-dev/tollgate/adapters/webauthn"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/authtest"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/passkeys"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/ports/singleuse"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/ports/webauthn"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/softkey"
)

const (
	ada auth.UserID = "11111111-2222-4333-8444-555555555555"
	bea auth.UserID = "22222222-2222-4333-8444-555555555555"
)

// party is the relying party of the tests.
var party = webauthn.Party{ID: "example.com", Origin: "https://tollgate.example.com", Name: "Tollgate"}

// claims remembers what was used.
type claims struct {
	singleuse.Store // for its other methods

	mu   sync.Mutex
	used map[string]bool
}

func (c *claims) Claim(_ context.Context, key string, _ time.Duration) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.used[key]
	c.used[key] = true
	return first, nil
}

type signer struct{}

func (signer) Sign(_ context.Context, c secrets.TokenClaims) (auth.AccessToken, error) {
	return auth.AccessToken("access " + c.ID), nil
}

type noSignals struct{}

func (noSignals) Locate(context.Context, netip.Addr) risk.Location { return risk.Location{} }
func (noSignals) Rate(context.Context, netip.Addr) risk.Reputation { return risk.Reputation{} }

type noCache struct{}

func (noCache) Get(context.Context, auth.SessionID) (auth.Session, bool) {
	return auth.Session{}, false
}
func (noCache) Put(context.Context, auth.Session, time.Time) {}
func (noCache) Drop(context.Context, ...auth.SessionID)      {}

type unlimited struct{}

func (unlimited) Try(context.Context, throttle.Scope, string) (throttle.Verdict, error) {
	return throttle.Verdict{Allowed: true, Unlimited: true}, nil
}
func (unlimited) GiveBack(context.Context, throttle.Scope, string, throttle.Verdict) error {
	return nil
}

// runner runs transactions and fails after them while err is set.
type runner struct {
	*fakedb.Database
	err error
}

func (r *runner) Atomically(ctx context.Context, do func(context.Context) error) error {
	return r.Database.Atomically(ctx, func(ctx context.Context) error { return errors.Join(do(ctx), r.err) })
}

// reauthentication is how long a password or a code counts.
const reauthentication = time.Hour

type fixture struct {
	t       *testing.T
	service *passkeys.Service
	logins  *signin.Service
	stepUp  *stepup.Service
	clock   *clocktest.Manual
	log     *fakedb.AuditLog
	notices *notices.Notifier
	runner  *runner
	ports   passkeys.Ports
	signIn  signin.Ports
	caller  auth.Session
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db, entropy := fakedb.New(), &secretstest.Entropy{}
	fx := &fixture{
		t: t, clock: clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)),
		log: fakedb.NewAuditLog(db), notices: notices.New("Tollgate", "", notices.Ports{}), runner: &runner{Database: db},
	}
	trail, root := auditing.New(fx.log, fx.clock, entropy), auth.RootSecret(strings.Repeat("r", 32))
	fx.signIn = signin.Ports{
		Accounts: fakedb.NewAccounts(db), Devices: fakedb.NewDevices(db), DeviceTokens: fakedb.NewDeviceTokens(db),
		Sessions: fakedb.NewSessions(db), RefreshTokens: fakedb.NewRefreshTokens(db), History: fakedb.NewSessions(db),
		Lockouts: fakedb.NewLockouts(db), Pending: fakedb.NewPendingLogins(db), Transaction: fx.runner,
		Counts: fakedb.NewHistory(db), Deferrals: fakedb.NewHistory(db), Providers: fakedb.NewProviders(db),
		Identities: fakedb.NewIdentities(db), Logins: fakedb.NewLogins(db), Tokens: signer{}, Root: root,
		Geography: noSignals{}, Reputation: noSignals{}, Cache: noCache{}, Trail: trail, Notices: fx.notices,
		Clock: fx.clock, Entropy: entropy,
	}
	fx.ports = passkeys.Ports{
		Passkeys: fakedb.NewPasskeys(db), Accounts: fx.signIn.Accounts, Identities: fx.signIn.Identities,
		Providers: fx.signIn.Providers, Sessions: fx.signIn.Sessions, Pending: fx.signIn.Pending, Cache: noCache{}, Transaction: fx.runner, Verifier: adapter.New(),
		Used: &claims{used: map[string]bool{}}, Trail: trail, Notices: fx.notices, Clock: fx.clock, Entropy: entropy,
		Root: root,
	}
	var err error
	fx.service, err = passkeys.New(passkeys.Config{ReauthenticationMaxAge: reauthentication}, fx.ports)
	fx.must(err)
	fx.signIn.Passkeys = fx.service
	fx.logins, err = signin.New(authtest.SignIn(), fx.signIn)
	fx.must(err)
	fx.stepUp, err = stepup.New(authtest.StepUp(), stepup.Ports{
		Accounts: fx.signIn.Accounts, Sessions: fx.signIn.Sessions, Devices: fx.signIn.Devices,
		DeviceTokens: fx.signIn.DeviceTokens, Challenges: fakedb.NewChallenges(db), Deferrals: fakedb.NewHistory(db),
		Transaction: fx.runner, Throttle: unlimited{}, Cache: noCache{}, Tokens: signer{}, Trail: trail, Clock: fx.clock,
		Entropy: entropy, Passkeys: fx.service, Root: root,
	})
	fx.must(err)
	for id, email := range map[auth.UserID]auth.Email{ada: "ada@example.com", bea: "bea@example.com"} {
		fx.must(fx.signIn.Accounts.Create(t.Context(), auth.Account{
			ID: id, Email: email, Name: "Ada", State: auth.AccountActive, PasswordHash: "hash",
		}))
	}
	fx.caller = fx.begin(ada, "33333333-2222-4333-8444-555555555555")
	return fx
}

func (fx *fixture) must(err error) {
	fx.t.Helper()
	must.Succeed(fx.t, err)
}

func (fx *fixture) want(err error, kind fault.Kind, what string) {
	fx.t.Helper()
	if !fault.Is(err, kind) {
		fx.t.Errorf("%s: %v, want %v", what, err, kind)
	}
}

// begin stores a session at FULL_TRUST, with its device.
func (fx *fixture) begin(user auth.UserID, id auth.SessionID) auth.Session {
	fx.t.Helper()
	now := fx.clock.Now()
	_, _, err := fx.signIn.Devices.Ensure(fx.t.Context(), auth.Device{
		ID: auth.DeviceID(id), UserID: user, Identity: auth.DeviceIdentity(id), TrustStatus: auth.DevicePending,
		FirstSeen: now, LastSeen: now,
	})
	fx.must(err)
	s := auth.Session{
		ID: id, UserID: user, DeviceID: auth.DeviceID(id), DeviceIdentity: auth.DeviceIdentity(id),
		TrustLevel: auth.FullTrust, CreatedAt: now, LastActivity: now, ExpiresAt: now.Add(24 * time.Hour),
		MaxExpiresAt: now.Add(24 * time.Hour),
	}
	fx.must(fx.signIn.Sessions.Create(fx.t.Context(), s))
	return s
}

func (fx *fixture) setState(state auth.AccountState) {
	fx.must(fx.signIn.Accounts.Update(fx.t.Context(), ada, func(a *auth.Account) error { a.State = state; return nil }))
}

func respond(challenge [32]byte) softkey.Response {
	return softkey.Response{Challenge: challenge[:], Party: party.ID, Origin: party.Origin}
}

// register registers a key for the caller.
func (fx *fixture) register(k *softkey.Key) (auth.Passkey, error) {
	fx.t.Helper()
	s, err := fx.service.BeginRegistration(fx.t.Context(), fx.caller, party)
	if err != nil {
		return auth.Passkey{}, err
	}
	k.Handle = s.Handle[:]
	return fx.service.Register(fx.t.Context(), fx.caller, passkeys.Answer{
		Party: party, Ceremony: s.ID, Response: k.Register(respond(s.Challenge)),
	}, "Key")
}

func (fx *fixture) newKey() *softkey.Key {
	fx.t.Helper()
	k := softkey.New(softkey.ES256)
	k.Count = 1
	_, err := fx.register(k)
	fx.must(err)
	return k
}

// signInWith signs in with a key whose response is changed.
func (fx *fixture) signInWith(k *softkey.Key, spoil func(*softkey.Response)) (signin.Result, error) {
	fx.t.Helper()
	s, err := fx.service.BeginSignIn(party, auth.DeviceFields{UserAgent: "new"})
	fx.must(err)
	r := respond(s.Challenge)
	if spoil != nil {
		spoil(&r)
	}
	return fx.logins.LoginByPasskey(fx.t.Context(), passkeys.Answer{Party: party, Ceremony: s.ID, Response: k.Sign(r)},
		signin.Origin{Address: netip.MustParseAddr("203.0.113.7")})
}

func (fx *fixture) count(category audit.Category, success bool) (n int) {
	events, _, err := fx.log.Search(fx.t.Context(), authstore.AuditQuery{Category: category, Limit: auth.MaxPage})
	fx.must(err)
	for _, e := range events {
		if e.Success == success {
			n++
		}
	}
	return n
}

func TestRegistration(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	k := softkey.New(softkey.EdDSA)
	p, err := fx.register(k)
	fx.must(err)
	if p.Name != "Key" || p.UserID != ada || fx.notices.QueueLength() != 1 || fx.count(audit.CredentialChange, true) != 1 {
		t.Errorf("%+v, %d notices", p, fx.notices.QueueLength())
	}
	_, err = fx.register(k)
	fx.want(err, fault.Conflict, "a passkey that exists")
	low := fx.begin(ada, "44444444-2222-4333-8444-555555555556")
	fx.must(fx.signIn.Sessions.Update(t.Context(), low.ID, func(s *auth.Session) error {
		s.TrustLevel = auth.LimitedTrust
		return nil
	}))
	_, err = fx.service.BeginRegistration(t.Context(), low, party)
	fx.want(err, fault.Forbidden, "LIMITED_TRUST")
	s, err := fx.service.BeginRegistration(t.Context(), fx.caller, party)
	fx.must(err)
	if len(s.Credentials) != 1 || s.Credentials[0].ID != p.Credential.ID || string(s.Handle[:]) != string(k.Handle) {
		t.Errorf("options %+v", s.Options)
	}
	for range auth.MaxPasskeys - 1 {
		fx.newKey()
	}
	_, err = fx.service.BeginRegistration(t.Context(), fx.caller, party)
	fx.want(err, fault.Conflict, "one too many")
	// A ceremony from before the last one.
	last := softkey.New(softkey.ES256)
	last.Handle = s.Handle[:]
	_, err = fx.service.Register(t.Context(), fx.caller, passkeys.Answer{
		Party: party, Ceremony: s.ID, Response: last.Register(respond(s.Challenge)),
	}, "Key")
	fx.want(err, fault.Conflict, "one too many, begun before")
}

// TestCeremonies checks that a ceremony is good once, for 5 minutes, for its kind and its session
// (contract K-3).
func TestCeremonies(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	other := fx.begin(bea, "44444444-2222-4333-8444-555555555555")
	k := softkey.New(softkey.ES256)
	finish := func(caller auth.Session, s passkeys.Started, r softkey.Response) error {
		_, err := fx.service.Register(t.Context(), caller, passkeys.Answer{
			Party: party, Ceremony: s.ID, Response: k.Register(r),
		}, "Key")
		return err
	}
	begin := func() passkeys.Started {
		s, err := fx.service.BeginRegistration(t.Context(), fx.caller, party)
		fx.must(err)
		return s
	}
	s := begin()
	fx.want(finish(other, s, respond(s.Challenge)), fault.Invalid, "another session")
	fx.clock.Advance(auth.PasskeyTTL)
	fx.want(finish(fx.caller, s, respond(s.Challenge)), fault.Invalid, "too late")
	s = begin()
	fx.want(finish(fx.caller, s, softkey.Response{Challenge: s.Challenge[:]}), fault.Invalid, "a wrong response")
	fx.want(finish(fx.caller, s, respond(s.Challenge)), fault.Invalid, "again after a failure")
	s = begin()
	fx.clock.Advance(auth.PasskeyTTL - time.Second)
	fx.must(finish(fx.caller, s, respond(s.Challenge)))
	k = softkey.New(softkey.ES256)
	fx.want(finish(fx.caller, s, respond(s.Challenge)), fault.Invalid, "again after a success")
	signIn, err := fx.service.BeginSignIn(party, auth.DeviceFields{UserAgent: "new"})
	fx.must(err)
	fx.want(finish(fx.caller, signIn, respond(signIn.Challenge)), fault.Invalid, "that of a sign-in")
	k = fx.newKey()
	s = begin()
	_, err = fx.logins.LoginByPasskey(t.Context(), passkeys.Answer{
		Party: party, Ceremony: s.ID, Response: k.Sign(respond(s.Challenge)),
	}, signin.Origin{})
	fx.want(err, fault.Unauthenticated, "a sign-in by a registration")
}

// TestSignIn checks what a passkey is worth (contract K-6), and each refusal of contract K-4.
func TestSignIn(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	k := fx.newKey()
	r, err := fx.signInWith(k, nil)
	if err != nil || r.TrustLevel != auth.FullTrust || r.DeviceToken == "" || r.UserID != ada {
		t.Fatalf("%+v, %v", r, err)
	}
	refusals := map[string]func(*softkey.Response){
		"type":             func(r *softkey.Response) { r.Type = "webauthn.create" },
		"challenge":        func(r *softkey.Response) { r.Challenge = make([]byte, 32) },
		"origin":           func(r *softkey.Response) { r.Origin = "https://example.com" },
		"cross origin":     func(r *softkey.Response) { r.CrossOrigin = true },
		"relying party":    func(r *softkey.Response) { r.Party = "tollgate.example.com" },
		"user not present": func(r *softkey.Response) { r.Flags = softkey.UserVerified },
		"user not verified": func(r *softkey.Response) {
			r.Flags = softkey.UserPresent
		},
		"signature":      func(r *softkey.Response) { r.Alter = true },
		"unknown handle": func(r *softkey.Response) { r.Handle = make([]byte, 64) },
		"without handle": func(r *softkey.Response) { r.Handle = []byte{} },
	}
	for what, spoil := range refusals {
		_, err := fx.signInWith(k, spoil)
		if f, ok := fault.As(err); !ok || f.Code != auth.CodeInvalidCredentials {
			t.Errorf("%s: %v", what, err)
		}
	}
	unknown := softkey.New(softkey.ES256)
	unknown.Handle = k.Handle
	_, err = fx.signInWith(unknown, nil)
	fx.want(err, fault.Unauthenticated, "an unknown credential")
	if failed := fx.count(audit.LoginAttempt, false); failed != len(refusals)+1 {
		t.Errorf("%d refusals are recorded", failed)
	}
	for state, good := range map[auth.AccountState]bool{
		auth.AccountDisabled: false, auth.AccountLocked: false, auth.AccountInvited: false, auth.AccountActive: true,
	} {
		fx.setState(state)
		if _, err := fx.signInWith(k, nil); (err == nil) != good || err != nil && !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("%s: %v", state, err)
		}
	}
}

// TestLongResponses checks that a response has at most 16 KiB (contract K-4).
func TestLongResponses(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	pad := func(r []byte, length int) []byte { return append(r, bytes.Repeat([]byte(" "), length-len(r))...) }
	for length, good := range map[int]bool{auth.MaxCredential: true, auth.MaxCredential + 1: false} {
		k := softkey.New(softkey.ES256)
		s, err := fx.service.BeginRegistration(t.Context(), fx.caller, party)
		fx.must(err)
		k.Handle = s.Handle[:]
		_, err = fx.service.Register(t.Context(), fx.caller, passkeys.Answer{
			Party: party, Ceremony: s.ID, Response: pad(k.Register(respond(s.Challenge)), length),
		}, "Key")
		if f, _ := fault.As(err); (err == nil) != good || !good && f.Code != auth.CodeValidation {
			t.Errorf("a registration of %d bytes: %v", length, err)
		}
		k = fx.newKey()
		s, err = fx.service.BeginSignIn(party, auth.DeviceFields{UserAgent: "new"})
		fx.must(err)
		_, err = fx.logins.LoginByPasskey(t.Context(), passkeys.Answer{
			Party: party, Ceremony: s.ID, Response: pad(k.Sign(respond(s.Challenge)), length),
		}, signin.Origin{})
		if f, _ := fault.As(err); (err == nil) != good || !good && f.Code != auth.CodeInvalidCredentials {
			t.Errorf("a sign-in of %d bytes: %v", length, err)
		}
	}
}

// TestCopiedKey checks that a passkey whose sign count goes back is suspended at once, with an event,
// and with a notice only if that is stored (contract K-5).
func TestCopiedKey(t *testing.T) {
	t.Parallel()
	for _, stepUp := range []bool{false, true} {
		fx := newFixture(t)
		k := fx.newKey()
		use := func() error {
			if !stepUp {
				_, err := fx.signInWith(k, nil)
				return err
			}
			return fx.stepUpWith(k, fx.caller.ID)
		}
		fx.must(use())
		queued := fx.notices.QueueLength()
		k.Count = 1
		fx.runner.err = fault.New(fault.Unavailable, "the database is away")
		if err := use(); !fault.Is(err, fault.Unavailable) && !stepUp {
			t.Errorf("%v", err)
		}
		if fx.notices.QueueLength() != queued {
			t.Error("a notice of what is not stored")
		}
		fx.runner.err, k.Count = nil, 1
		fx.want(use(), fault.Unauthenticated, "a count that goes back")
		if n := fx.count(audit.SuspiciousActivity, false); n == 0 || fx.notices.QueueLength() != queued+1 {
			t.Errorf("%d events, %d notices", n, fx.notices.QueueLength()-queued)
		}
		k.Count = 100
		if err := use(); err == nil {
			t.Error("a suspended passkey is accepted")
		}
	}
}

func (fx *fixture) stepUpWith(k *softkey.Key, session auth.SessionID) error {
	fx.t.Helper()
	p, err := fx.stepUp.Initiate(fx.t.Context(), fx.caller, auth.PasskeyMethod)
	if err != nil {
		return err
	}
	o, err := fx.service.StepUpOptions(fx.t.Context(), party, ada, p.ID)
	fx.must(err)
	in := stepup.Answer{ID: p.ID, Session: session, Party: party, Response: k.Sign(respond(o.Challenge))}
	_, err = fx.stepUp.Verify(fx.t.Context(), in)
	if _, again := fx.stepUp.Verify(fx.t.Context(), in); session == fx.caller.ID && again == nil {
		fx.t.Error("a challenge is good twice")
	}
	return err
}

func TestStepUp(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	_, err := fx.stepUp.Initiate(t.Context(), fx.caller, auth.PasskeyMethod)
	fx.want(err, fault.Invalid, "without a passkey")
	k := fx.newKey()
	fx.must(fx.stepUpWith(k, fx.caller.ID))
	fx.want(fx.stepUpWith(k, "44444444-2222-4333-8444-555555555555"), fault.Invalid, "another session")
	stranger := softkey.New(softkey.ES256)
	before := fx.count(audit.SuspiciousActivity, false)
	err = fx.stepUpWith(stranger, fx.caller.ID)
	if f, ok := fault.As(err); !ok || f.Code != auth.CodeInvalidOTP {
		t.Errorf("an unknown passkey: %v", err)
	}
	if used := fx.count(audit.SuspiciousActivity, false) - before; used != 1 {
		t.Errorf("%d events that the attempts are used up", used)
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	p, err := fx.register(softkey.New(softkey.RS256))
	fx.must(err)
	fx.caller.UserID = bea // somebody else's session
	_, err = fx.service.Rename(t.Context(), fx.begin(bea, "44444444-2222-4333-8444-555555555555"), p.ID, "Other")
	fx.want(err, fault.NotFound, "rename of another person's")
	fx.caller.UserID = ada
	for name, good := range map[string]bool{"Desk": true, "": false, strings.Repeat("é", 64): true, strings.Repeat("a", 65): false} {
		if _, err := fx.service.Rename(t.Context(), fx.caller, p.ID, name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
	withoutPassword := func(a *auth.Account) error { a.PasswordHash = ""; return nil }
	fx.must(fx.signIn.Accounts.Update(t.Context(), ada, withoutPassword))
	fx.want(fx.remove(p.ID), fault.Conflict, "the only way in")
	second := fx.newKey()
	fx.must(fx.remove(p.ID))
	fx.want(fx.remove(p.ID), fault.NotFound, "again")
	all, err := fx.service.List(t.Context(), ada)
	fx.must(err)
	fx.want(fx.remove(all[0].ID), fault.Conflict, "the last one")
	fx.link(time.Hour)
	fx.must(fx.remove(all[0].ID))
	_, err = fx.signInWith(second, nil)
	fx.want(err, fault.Unauthenticated, "a removed passkey")
}

func (fx *fixture) remove(id auth.PasskeyID) error {
	fx.t.Helper()
	_, err := fx.service.Remove(fx.t.Context(), fx.caller, id)
	return err
}

// TestNewPasskeyNeedsProof checks that an old session makes no passkey, neither with options from before
// nor with new ones (contract A-64), and that a removed passkey ends the other sessions.
func TestNewPasskeyNeedsProof(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	p, err := fx.register(softkey.New(softkey.ES256))
	fx.must(err)
	other := fx.begin(ada, "44444444-2222-4333-8444-555555555555")
	fx.clock.Advance(reauthentication - time.Second)
	begun, err := fx.service.BeginRegistration(t.Context(), fx.caller, party)
	fx.must(err)
	fx.clock.Advance(2 * time.Second)
	_, err = fx.service.BeginRegistration(t.Context(), fx.caller, party)
	fx.want(err, fault.Forbidden, "old session")
	if f, _ := fault.As(err); f.Code != auth.CodeInsufficientTrust || f.Details["maxAge"] == nil {
		t.Errorf("the error is %+v", f)
	}
	key := softkey.New(softkey.ES256)
	key.Handle = begun.Handle[:]
	_, err = fx.service.Register(t.Context(), fx.caller, passkeys.Answer{
		Party: party, Ceremony: begun.ID, Response: key.Register(respond(begun.Challenge)),
	}, "Phone")
	fx.must(err) // what the beginning needed counts for the end too
	fx.must(fx.remove(p.ID))
	for id, active := range map[auth.SessionID]bool{fx.caller.ID: true, other.ID: false} {
		s, err := fx.signIn.Sessions.Get(t.Context(), id)
		if err != nil || s.Active(fx.clock.Now()) != active {
			t.Errorf("session %s after the removal: %+v, %v", id, s, err)
		}
	}
}

// link links an identity of a provider with a longest session.
func (fx *fixture) link(maxSession time.Duration) company.Identity {
	fx.t.Helper()
	now := fx.clock.Now()
	i := company.Identity{
		ID: "55555555-2222-4333-8444-555555555555", UserID: ada, Issuer: "https://login.example", Subject: "ada",
		LinkedAt: now, LastUsedAt: now, ConfirmedAt: now,
	}
	fx.must(fx.signIn.Identities.Add(fx.t.Context(), i))
	fx.must(fx.signIn.Providers.Save(fx.t.Context(), company.Provider{
		Name: "corp", Issuer: i.Issuer, MaxSession: maxSession,
	}))
	return i
}

// TestPasskeysOfACompany checks that a passkey is good only while the person's company has lately
// confirmed them, and that the session ends with the others (contract K-9).
func TestPasskeysOfACompany(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	k := fx.newKey()
	i := fx.link(time.Hour)
	fx.clock.Advance(time.Hour - time.Minute)
	r, err := fx.signInWith(k, nil)
	fx.must(err)
	session, err := fx.signIn.Sessions.Get(t.Context(), r.SessionID)
	if want := i.ConfirmedAt.Add(time.Hour); err != nil || !session.MaxExpiresAt.Equal(want) || !session.ExpiresAt.Equal(want) {
		t.Errorf("the session ends at %v and %v, %v", session.ExpiresAt, session.MaxExpiresAt, err)
	}
	fx.clock.Advance(time.Minute)
	_, err = fx.signInWith(k, nil)
	fx.want(err, fault.Unauthenticated, "not confirmed for too long")
	fx.must(fx.signIn.Identities.Confirm(t.Context(), i.ID, fx.clock.Now(), nil))
	_, err = fx.signInWith(k, nil)
	fx.must(err)
	fx.must(fx.signIn.Identities.Confirm(t.Context(), i.ID, time.Time{}, nil))
	_, err = fx.signInWith(k, nil)
	fx.want(err, fault.Unauthenticated, "refused by the company")
	fx.must(fx.signIn.Providers.Remove(t.Context(), "corp"))
	_, err = fx.signInWith(k, nil)
	fx.must(err)
}

func TestParty(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ public, id, address, party, origin string }{
		{"https://tollgate.example.com", "", "http://10.0.0.1:8080", "tollgate.example.com", "https://tollgate.example.com"},
		{"https://tollgate.example.com:8443", "example.com", "", "example.com", "https://tollgate.example.com:8443"},
		{"", "", "http://localhost:8080", "localhost", "http://localhost:8080"},
		{"", "", "http://127.0.0.1:8080", "", ""},
		{"", "", "https://tollgate.example.com", "", ""},
		{"http://tollgate.example.com", "", "", "", ""},
	} {
		p, err := passkeys.Config{PublicURL: c.public, RPID: c.id}.Party(c.address)
		if p.ID != c.party || p.Origin != c.origin || fault.Is(err, fault.Unsupported) != (c.party == "") {
			t.Errorf("%+v: %+v, %v", c, p, err)
		}
	}
	for _, c := range []struct {
		public, id string
		good       bool
	}{
		{"https://tollgate.example.com", "", true}, {"https://tollgate.example.com", "tollgate.example.com", true},
		{"https://tollgate.example.com", "example.com", true}, {"https://tollgate.example.com", "com", false},
		{"https://tollgate.example.com", "ample.com", false}, {"https://tollgate.example.com", "example.org", false},
		{"", "example.com", false},
	} {
		if err := (passkeys.Config{PublicURL: c.public, RPID: c.id}).Validate(); (err == nil) != c.good {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
