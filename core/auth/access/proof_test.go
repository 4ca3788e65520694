package access_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/authtest"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/ports/signals/signalstest"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestFullTrustNeedsAProof runs random calls of an owner and of a thief who knows the password, the
// fields of every device, and all identifiers, but has no delivered code, no code of an
// authenticator that the owner or an operator enrolled, and no device token. It checks that each
// session at FULL_TRUST has shown one of these proofs, and that its device was not marked UNTRUSTED
// afterwards.
func TestFullTrustNeedsAProof(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		newProofFixture(t).runCalls(t)
	})
}

// TestProofsRaise checks that the runs of the test above reach FULL_TRUST in each of the three
// ways. Otherwise that test would prove nothing. The runs are the same each time.
func TestProofsRaise(t *testing.T) {
	ways := []string{"delivered code", "authenticator", "device token"}
	reached := map[string]bool{}
	run := rapid.Custom(func(t *rapid.T) bool {
		fx := newProofFixture(t)
		fx.reached = reached
		fx.runCalls(t)
		return true
	})
	missing := func(way string) bool { return !reached[way] }
	for seed := 1; seed <= 10_000 && slices.ContainsFunc(ways, missing); seed++ {
		run.Example(seed)
	}
	if slices.ContainsFunc(ways, missing) {
		t.Errorf("runs reached FULL_TRUST only in the ways %v, want all of %q", reached, ways)
	}
}

// runCalls makes random calls, five times as many as the default of rapid, because reaching
// FULL_TRUST takes many steps.
func (fx *proofFixture) runCalls(t *rapid.T) {
	for range 5 {
		t.Repeat(map[string]func(*rapid.T){
			"":                       fx.checkFullTrust,
			"time passes":            fx.passTime,
			"login":                  fx.login,
			"login again":            fx.login,
			"login once more":        fx.login,
			"second step":            fx.secondStep,
			"refresh":                fx.refresh,
			"climb":                  fx.climbToFull,
			"climb more":             fx.climbToFull,
			"climb once more":        fx.climbToFull,
			"step up":                fx.stepUp,
			"answer a challenge":     fx.answerChallenge,
			"resend":                 fx.resend,
			"enrol":                  fx.enrol,
			"activate":               fx.activate,
			"disable":                fx.disable,
			"change the password":    fx.changePassword,
			"mark a device":          fx.mark,
			"mark another device":    fx.mark,
			"revoke a device":        fx.revoke,
			"end a session":          fx.end,
			"operator's enrolment":   fx.operatorEnrols,
			"operator's other acts":  fx.operatorActs,
			"old pending enrolments": fx.oldEnrolment,
		})
	}
}

// holder is the owner or the thief, with the secrets and sessions that they have.
type holder struct {
	sessions   []auth.SessionID
	refresh    map[auth.SessionID]auth.RefreshSecret
	challenges []auth.ChallengeID
	secrets    []auth.TOTPSecret // of authenticators
	tokens     []auth.DeviceSecret
	proofs     bool // reads delivered codes and keeps device tokens
}

// proofFixture is the use cases of authentication over one database, one account, and two who use
// it.
type proofFixture struct {
	clock       *clocktest.Manual
	sessions    *fakedb.Sessions
	devices     *fakedb.Devices
	accounts    *fakedb.Accounts
	tokens      *fakedb.DeviceTokens
	checker     *access.Checker
	signIn      *signin.Service
	stepUps     *stepup.Service
	credentials *credentials.Service
	marks       *devices.Service
	people      *people.Service

	user     auth.UserID
	password auth.Password
	mail     map[auth.ChallengeID]auth.OTP // the last code of each challenge, which the thief cannot read
	sent     auth.OTP
	owner    *holder
	thief    *holder
	proved   map[auth.SessionID]bool
	reached  map[string]bool
}

const owned auth.Email = "anna@example.com"

// Deliver implements ports/courier.
func (fx *proofFixture) Deliver(_ context.Context, m courier.Message) error {
	fx.sent = auth.OTP(m.Code)
	return nil
}

// plainHasher returns the password as its hash.
type plainHasher struct{}

func (plainHasher) Hash(_ context.Context, p auth.Password) (auth.PasswordHash, error) {
	return auth.PasswordHash(p.Reveal()), nil
}

func (plainHasher) Verify(_ context.Context, h auth.PasswordHash, p auth.Password) (match, stale bool, err error) {
	return string(h) == p.Reveal(), false, nil
}

func (plainHasher) VerifyNone(context.Context, auth.Password) error { return nil }

// plainSigner returns the session ID as token. testVerifier reads it.
type plainSigner struct{}

func (plainSigner) Sign(_ context.Context, c secrets.TokenClaims) (auth.AccessToken, error) {
	return auth.AccessToken(c.SessionID), nil
}

// openThrottle allows every try.
type openThrottle struct{}

func (openThrottle) Try(context.Context, throttle.Scope, string) (throttle.Verdict, error) {
	return throttle.Verdict{Allowed: true, Unlimited: true}, nil
}
func (openThrottle) GiveBack(context.Context, throttle.Scope, string, throttle.Verdict) error {
	return nil
}

func newProofFixture(t *rapid.T) *proofFixture {
	db, dice, root := fakedb.New(), &secretstest.Entropy{}, auth.RootSecret(strings.Repeat("r", 32))
	fx := &proofFixture{
		clock:    clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)),
		accounts: fakedb.NewAccounts(db),
		sessions: fakedb.NewSessions(db), devices: fakedb.NewDevices(db), tokens: fakedb.NewDeviceTokens(db),
		mail: map[auth.ChallengeID]auth.OTP{}, proved: map[auth.SessionID]bool{}, reached: map[string]bool{},
		owner: &holder{refresh: map[auth.SessionID]auth.RefreshSecret{}, proofs: true},
		thief: &holder{refresh: map[auth.SessionID]auth.RefreshSecret{}},
	}
	ok := func(err error) {
		must.Succeed(t, err)
	}
	var err error
	fx.password, err = auth.NewPassword("password", "Right Horse 9!")
	ok(err)
	cache := memory.NewSessions(fx.clock, memory.Config{MaxSessions: 100})
	trail := auditing.New(fakedb.NewAuditLog(db), fx.clock, dice)
	lockouts, pending := fakedb.NewLockouts(db), fakedb.NewPendingLogins(db)
	policy := auth.LockoutPolicy{Threshold: auth.MaxLockoutThreshold, Window: time.Minute, Duration: time.Minute}

	fx.people, err = people.New(people.Config{InvitationTTL: time.Hour}, people.Ports{
		Accounts: fx.accounts, Devices: fx.devices, Sessions: fx.sessions, Lockouts: lockouts, Pending: pending,
		Operators: fakedb.NewDirectory(db), Links: fakedb.NewLinks(db), Directory: fakedb.NewDirectory(db),
		Transaction: db,
		Passwords:   plainHasher{}, Cache: cache, Trail: trail, Clock: fx.clock, Entropy: dice, Root: root,
	})
	ok(err)
	account, err := fx.people.Add(t.Context(), people.Person{
		Email: owned, Name: "Anna", Password: fx.password, Phone: "+441632960961",
	})
	ok(err)
	fx.user = account.ID
	fx.checker = access.NewChecker(testVerifier{user: fx.user}, fx.sessions, cache, nil, fx.clock, func() uint64 { return 0 }, nil)

	config := authtest.SignIn()
	// only devices cap levels
	config.Lockout, config.Bounds = policy, trust.Bounds{Full: 100, Limited: 100, Unverified: 100}
	config.MFAPolicy = rapid.SampledFrom([]signin.MFAPolicy{signin.MFAAlways, signin.MFARisk}).Draw(t, "MFA policy")
	config.DeviceBinding = rapid.SampledFrom([]trust.Binding{trust.BindingPreferred, trust.BindingRequired}).
		Draw(t, "binding")
	fx.signIn, err = signin.New(config, signin.Ports{
		Accounts: fx.accounts, Devices: fx.devices, DeviceTokens: fx.tokens, Sessions: fx.sessions,
		RefreshTokens: fakedb.NewRefreshTokens(db), History: fx.sessions, Lockouts: lockouts, Pending: pending,
		Transaction: db,
		Counts:      fakedb.NewHistory(db), Deferrals: fakedb.NewHistory(db),
		Providers: fakedb.NewProviders(db), Logins: fakedb.NewLogins(db),
		Passwords: plainHasher{}, Tokens: plainSigner{}, Root: root,
		Geography: signalstest.None{}, Reputation: signalstest.None{}, Cache: cache, Trail: trail, Clock: fx.clock,
		Entropy: dice,
	})
	ok(err)
	fx.stepUps, err = stepup.New(authtest.StepUp(), stepup.Ports{
		Accounts: fx.accounts, Sessions: fx.sessions, Devices: fx.devices, DeviceTokens: fx.tokens,
		Challenges: fakedb.NewChallenges(db), Transaction: db,
		Root: root, Tokens: plainSigner{},
		Couriers: stepup.Couriers{Email: fx, SMS: fx}, Throttle: openThrottle{}, Cache: cache, Trail: trail,
		Clock: fx.clock, Entropy: dice,
	})
	ok(err)
	fx.credentials, err = credentials.New(credentials.Config{
		Lockout: policy, Issuer: "Tollgate", ReauthenticationMaxAge: 24 * time.Hour,
	}, credentials.Ports{
		Accounts: fx.accounts, Sessions: fx.sessions, Pending: pending, Lockouts: lockouts, Transaction: db,
		Links:     fakedb.NewLinks(db),
		Passwords: plainHasher{}, Cache: cache, Trail: trail, Clock: fx.clock, Entropy: dice, Root: root,
	})
	ok(err)
	fx.marks = devices.New(devices.Ports{
		Devices: fx.devices, DeviceTokens: fx.tokens, Sessions: fx.sessions, Levels: fx.sessions, Transaction: db,
		Cache: cache, Trail: trail, Clock: fx.clock,
	})
	return fx
}

// checkFullTrust checks that each session at FULL_TRUST has a proof, in the records and in the
// result of the Checker.
func (fx *proofFixture) checkFullTrust(t *rapid.T) {
	for _, h := range []*holder{fx.owner, fx.thief} {
		for _, id := range h.sessions {
			stored, err := fx.sessions.Get(t.Context(), id)
			must.Succeed(t, err)
			seen, err := fx.checker.Check(t.Context(), auth.AccessToken(id))
			if full := stored.TrustLevel == auth.FullTrust || err == nil && seen.TrustLevel == auth.FullTrust; full &&
				!fx.proved[id] {
				t.Fatalf("session %s of the thief: %t is at FULL_TRUST without a proof", id, h == fx.thief)
			}
		}
	}
}

func (fx *proofFixture) passTime(t *rapid.T) {
	fx.clock.Advance(rapid.SampledFrom([]time.Duration{
		time.Second, time.Minute, 5 * time.Minute, auth.EnrolmentTTL, time.Hour, 24 * time.Hour,
	}).Draw(t, "duration"))
}

// advanceClock advances the clock by a millisecond, so that no two calls have the same time.
func (fx *proofFixture) advanceClock() { fx.clock.Advance(time.Millisecond) }

func (fx *proofFixture) drawHolder(t *rapid.T) *holder {
	return rapid.SampledFrom([]*holder{fx.owner, fx.thief}).Draw(t, "who")
}

// drawCaller draws a holder and one of their active sessions. It skips the step if they have no
// active session.
func (fx *proofFixture) drawCaller(t *rapid.T) (*holder, auth.Session) {
	fx.advanceClock()
	h := fx.drawHolder(t)
	var living []auth.Session
	for _, id := range h.sessions {
		if s, err := fx.checker.Check(t.Context(), auth.AccessToken(id)); err == nil {
			living = append(living, s)
		}
	}
	if len(living) == 0 {
		t.Skip("no session")
	}
	return h, living[rapid.IntRange(0, len(living)-1).Draw(t, "session")]
}

// isAccepted reports whether a call succeeded. It fails the test on an internal error.
func isAccepted(t *rapid.T, err error) bool {
	if err != nil && fault.Is(err, fault.Internal) {
		t.Fatal(err)
	}
	return err == nil
}

// drawOrigin draws a device, and one of the device tokens of the holder.
func (fx *proofFixture) drawOrigin(t *rapid.T, h *holder) signin.Origin {
	info, err := auth.NewDeviceInfo(auth.DeviceFields{
		UserAgent: rapid.SampledFrom([]string{"one", "two"}).Draw(t, "device"),
	})
	must.Succeed(t, err)
	v := signin.Origin{Device: info, Address: netip.MustParseAddr("203.0.113.7")}
	if len(h.tokens) > 0 && rapid.IntRange(0, 3).Draw(t, "shows no token") > 0 {
		v.DeviceToken = h.tokens[len(h.tokens)-1-rapid.IntRange(0, min(2, len(h.tokens)-1)).Draw(t, "token")]
	}
	return v
}

// recordSession records a new session. A session on a device whose token was shown has a proof.
func (fx *proofFixture) recordSession(t *rapid.T, h *holder, r signin.Result, shown auth.DeviceSecret) {
	h.sessions, h.refresh[r.SessionID] = append(h.sessions, r.SessionID), r.RefreshToken
	s, err := fx.sessions.Get(t.Context(), r.SessionID)
	must.Succeed(t, err)
	fx.keepToken(h, r.DeviceToken)
	token, err := fx.tokens.Find(t.Context(), auth.HashSecret(shown))
	if err == nil && token.DeviceID == s.DeviceID {
		fx.recordProof(r.SessionID, "device token", s.TrustLevel)
	}
}

func (fx *proofFixture) recordProof(id auth.SessionID, way string, level auth.TrustLevel) {
	fx.proved[id] = true
	fx.reached[way] = fx.reached[way] || level == auth.FullTrust
}

// keepToken records a device token, which only a holder with a proof can get.
func (fx *proofFixture) keepToken(h *holder, token auth.DeviceSecret) {
	if token != "" {
		h.tokens = append(h.tokens, token)
	}
}

func (fx *proofFixture) login(t *rapid.T) {
	fx.advanceClock()
	h := fx.drawHolder(t)
	v := fx.drawOrigin(t, h)
	r, err := fx.signIn.Login(t.Context(), signin.Login{Email: owned, Password: fx.password, Origin: v})
	if isAccepted(t, err) && !r.MFARequired {
		fx.recordSession(t, h, r, v.DeviceToken)
	}
}

// drawCode returns a code of one of the authenticators of a holder, or a wrong one.
func (fx *proofFixture) drawCode(t *rapid.T, h *holder) auth.OTP {
	if len(h.secrets) == 0 || rapid.IntRange(0, 9).Draw(t, "wrong code") == 0 {
		return "000000"
	}
	return h.secrets[len(h.secrets)-1-rapid.IntRange(0, min(1, len(h.secrets)-1)).Draw(t, "secret")].Code(
		auth.TOTPStep(fx.clock.Now()))
}

// secondStep also shows a device token in the second step alone: what counts there is what was
// shown in either step, so the session is proved where the device is.
func (fx *proofFixture) secondStep(t *rapid.T) {
	fx.advanceClock()
	h := fx.drawHolder(t)
	v := fx.drawOrigin(t, h)
	if rapid.Bool().Draw(t, "with the first step") {
		_, err := fx.signIn.Login(t.Context(), signin.Login{Email: owned, Password: fx.password, Origin: v})
		isAccepted(t, err)
		fx.advanceClock()
	}
	r, err := fx.signIn.VerifyMFA(t.Context(), signin.MFAAnswer{
		UserID: fx.user, Code: fx.drawCode(t, h), Origin: v, TrustDevice: rapid.Bool().Draw(t, "trusts the device"),
	})
	if isAccepted(t, err) {
		fx.recordSession(t, h, r, v.DeviceToken)
		if h.proofs { // it took a code of the authenticator, and the first step may have shown the token
			fx.proved[r.SessionID] = true
		}
	}
}

func (fx *proofFixture) refresh(t *rapid.T) {
	h, s := fx.drawCaller(t)
	before, err := fx.sessions.Get(t.Context(), s.ID)
	must.Succeed(t, err)
	r, err := fx.signIn.Refresh(t.Context(), h.refresh[s.ID], netip.MustParseAddr("203.0.113.7"))
	if !isAccepted(t, err) {
		return
	}
	h.refresh[s.ID] = r.RefreshToken
	if r.TrustLevel != before.TrustLevel {
		t.Fatalf("a refresh turns %s into %s", before.TrustLevel, r.TrustLevel)
	}
}

// climbToFull enrols and activates an authenticator and then steps up, in one session.
func (fx *proofFixture) climbToFull(t *rapid.T) {
	h, s := fx.drawCaller(t)
	if rapid.Bool().Draw(t, "enrols") {
		if e, err := fx.credentials.Enrol(t.Context(), s, auth.Password{}); isAccepted(t, err) {
			h.secrets = append(h.secrets, e.Secret)
		}
		_, err := fx.credentials.Activate(t.Context(), s, fx.drawCode(t, h))
		isAccepted(t, err)
		fx.clock.Advance(time.Minute) // for another code
	}
	if id := fx.initiateStepUp(t, h, s); id != "" {
		fx.verifyChallenge(t, h, id)
	}
}

func (fx *proofFixture) stepUp(t *rapid.T) {
	h, s := fx.drawCaller(t)
	fx.initiateStepUp(t, h, s)
}

func (fx *proofFixture) answerChallenge(t *rapid.T) {
	fx.advanceClock()
	h := fx.drawHolder(t)
	if len(h.challenges) == 0 {
		t.Skip("no challenge")
	}
	fx.verifyChallenge(t, h, rapid.SampledFrom(h.challenges).Draw(t, "challenge"))
}

func (fx *proofFixture) initiateStepUp(t *rapid.T, h *holder, s auth.Session) auth.ChallengeID {
	method := rapid.SampledFrom([]auth.StepUpMethod{auth.EmailOTP, auth.SMSOTP, auth.AuthenticatorApp}).
		Draw(t, "method")
	fx.sent = ""
	p, err := fx.stepUps.Initiate(t.Context(), s, method)
	if !isAccepted(t, err) {
		return ""
	}
	h.challenges = append(h.challenges, p.ID)
	fx.mail[p.ID] = fx.sent
	return p.ID
}

func (fx *proofFixture) verifyChallenge(t *rapid.T, h *holder, id auth.ChallengeID) {
	code, way := fx.drawCode(t, h), "authenticator"
	if delivered := fx.mail[id]; h.proofs && delivered != "" {
		code, way = delivered, "delivered code"
	}
	before := fx.fullSessions(t)
	p, err := fx.stepUps.Verify(t.Context(), stepup.Answer{
		ID: id, Code: code, TrustDevice: rapid.Bool().Draw(t, "trusts the device"),
	})
	if !isAccepted(t, err) {
		return
	}
	if !h.proofs {
		t.Fatal("the thief passed a challenge")
	}
	fx.keepToken(h, p.DeviceToken)
	for _, raised := range fx.fullSessions(t) {
		if !slices.Contains(before, raised) && slices.Contains(h.sessions, raised) {
			fx.recordProof(raised, way, auth.FullTrust)
		}
	}
}

// fullSessions returns the sessions that are at FULL_TRUST.
func (fx *proofFixture) fullSessions(t *rapid.T) (full []auth.SessionID) {
	for _, id := range append(slices.Clone(fx.owner.sessions), fx.thief.sessions...) {
		if s, err := fx.sessions.Get(t.Context(), id); err == nil && s.TrustLevel == auth.FullTrust {
			full = append(full, id)
		}
	}
	return full
}

func (fx *proofFixture) resend(t *rapid.T) {
	fx.advanceClock()
	h := fx.drawHolder(t)
	if len(h.challenges) == 0 {
		t.Skip("no challenge")
	}
	id := rapid.SampledFrom(h.challenges).Draw(t, "challenge")
	if _, err := fx.stepUps.Resend(t.Context(), id); isAccepted(t, err) {
		fx.mail[id] = fx.sent
	}
}

func (fx *proofFixture) enrol(t *rapid.T) {
	h, s := fx.drawCaller(t)
	if e, err := fx.credentials.Enrol(t.Context(), s, auth.Password{}); isAccepted(t, err) {
		h.secrets = append(h.secrets, e.Secret)
	}
}

func (fx *proofFixture) activate(t *rapid.T) {
	h, s := fx.drawCaller(t)
	_, err := fx.credentials.Activate(t.Context(), s, fx.drawCode(t, h))
	isAccepted(t, err)
}

func (fx *proofFixture) disable(t *rapid.T) {
	h, s := fx.drawCaller(t)
	isAccepted(t, fx.credentials.Disable(t.Context(), s, fx.drawCode(t, h)))
}

func (fx *proofFixture) changePassword(t *rapid.T) {
	_, s := fx.drawCaller(t)
	// Changed and changed back, so that both holders still know the password.
	other, err := auth.NewPassword("password", "Another Horse 8!")
	must.Succeed(t, err)
	if isAccepted(t, fx.credentials.ChangePassword(t.Context(), s, fx.password, other)) {
		isAccepted(t, fx.credentials.ChangePassword(t.Context(), s, other, fx.password))
	}
}

func (fx *proofFixture) drawDevice(t *rapid.T) auth.DeviceID {
	all, _, err := fx.devices.List(t.Context(), fx.user, auth.PageRequest{Limit: 100})
	if err != nil || len(all) == 0 {
		t.Skip("no device")
	}
	return all[rapid.IntRange(0, len(all)-1).Draw(t, "device")].ID
}

func (fx *proofFixture) mark(t *rapid.T) {
	_, s := fx.drawCaller(t)
	id := s.DeviceID
	if rapid.Bool().Draw(t, "any device") {
		id = fx.drawDevice(t)
	}
	status := rapid.SampledFrom([]auth.TrustStatus{
		auth.DeviceTrusted, auth.DeviceTrusted, auth.DeviceUntrusted, auth.DevicePending,
	}).Draw(t, "mark")
	_, err := fx.marks.SetTrust(t.Context(), s, id, status)
	if !isAccepted(t, err) || status != auth.DeviceUntrusted {
		return
	}
	for proved := range fx.proved {
		if on, err := fx.sessions.Get(t.Context(), proved); err == nil && on.DeviceID == id &&
			on.Active(fx.clock.Now()) {
			delete(fx.proved, proved)
		}
	}
}

func (fx *proofFixture) revoke(t *rapid.T) {
	_, s := fx.drawCaller(t)
	_, err := fx.marks.Revoke(t.Context(), s, fx.drawDevice(t))
	isAccepted(t, err)
}

func (fx *proofFixture) end(t *rapid.T) {
	_, s := fx.drawCaller(t)
	all := append(slices.Clone(fx.owner.sessions), fx.thief.sessions...)
	isAccepted(t, fx.signIn.Terminate(t.Context(), s, rapid.SampledFrom(all).Draw(t, "ended")))
}

// operatorEnrols gives the owner an authenticator, now and then without activating it.
func (fx *proofFixture) operatorEnrols(t *rapid.T) {
	fx.advanceClock()
	secret, err := fx.people.EnrolMFA(t.Context(), owned)
	if !isAccepted(t, err) {
		return
	}
	fx.owner.secrets = append(fx.owner.secrets, secret)
	if rapid.Bool().Draw(t, "activated") {
		_, err = fx.people.ActivateMFA(t.Context(), owned, secret.Code(auth.TOTPStep(fx.clock.Now())))
		isAccepted(t, err)
	}
}

func (fx *proofFixture) operatorActs(t *rapid.T) {
	fx.advanceClock()
	if rapid.IntRange(0, 3).Draw(t, "seldom") > 0 {
		t.Skip("seldom")
	}
	act := rapid.SampledFrom([]func(context.Context, auth.Email) error{
		fx.people.Lock, fx.people.DisableMFA, fx.people.Disable,
	}).Draw(t, "act")
	isAccepted(t, act(t.Context(), owned))
	isAccepted(t, fx.people.Unlock(t.Context(), owned)) // so that the run goes on
	isAccepted(t, fx.people.Enable(t.Context(), owned))
}

// oldEnrolment is what a thief enrolled at LIMITED_TRUST with a version that allowed it and
// recorded no enrolments, and has not activated.
func (fx *proofFixture) oldEnrolment(t *rapid.T) {
	fx.advanceClock()
	secret := auth.TOTPSecret([]byte("a thief's own secret"))
	keeper, err := auth.NewSecondFactor(auth.RootSecret(strings.Repeat("r", 32)))
	must.Succeed(t, err)
	err = fx.accounts.Update(t.Context(), fx.user, func(a *auth.Account) error {
		return keeper.Enrol(a, secret, auth.Nonce{byte(fx.clock.Now().UnixMilli())}, auth.Enrolment{})
	})
	if isAccepted(t, err) && !slices.Contains(fx.thief.secrets, secret) {
		fx.thief.secrets = append(fx.thief.secrets, secret)
	}
}
