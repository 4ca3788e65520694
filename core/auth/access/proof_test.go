package access_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/memory/records"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/signals"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// TestFullTrustNeedsAProof runs random calls of an owner and of a thief who knows the password, the fields of every device, and all
// identifiers, but has no code that was delivered, no code of an authenticator that the owner or an operator enrolled, and no device
// token. No session is ever at FULL_TRUST that showed no such proof, or whose device was marked UNTRUSTED after it did.
func TestFullTrustNeedsAProof(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		newProofWorld(t).run(t)
	})
}

// TestProofsRaise wants the runs of the test above to reach FULL_TRUST in each of the three ways: else it would hold whatever the
// service did.
func TestProofsRaise(t *testing.T) {
	reached := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		w := newProofWorld(t)
		w.reached = reached
		w.run(t)
	})
	for _, way := range []string{"delivered code", "authenticator", "device token"} {
		if !reached[way] {
			t.Errorf("no run reached FULL_TRUST by a %s", way)
		}
	}
}

// run makes random calls; five times as many as rapid makes by itself, since ways up are long.
func (w *proofWorld) run(t *rapid.T) {
	for range 5 {
		t.Repeat(map[string]func(*rapid.T){
			"":                       w.check,
			"time passes":            w.pass,
			"login":                  w.login,
			"login again":            w.login,
			"login once more":        w.login,
			"second step":            w.secondStep,
			"refresh":                w.refresh,
			"climb":                  w.climb,
			"climb more":             w.climb,
			"climb once more":        w.climb,
			"step up":                w.stepUp,
			"answer a challenge":     w.answer,
			"resend":                 w.resend,
			"enrol":                  w.enrol,
			"activate":               w.activate,
			"disable":                w.disable,
			"change the password":    w.changePassword,
			"mark a device":          w.mark,
			"mark another device":    w.mark,
			"revoke a device":        w.revoke,
			"end a session":          w.end,
			"operator's enrolment":   w.operatorEnrols,
			"operator's other acts":  w.operatorActs,
			"old pending enrolments": w.oldEnrolment,
		})
	}
}

// holder is the owner or the thief, and what they hold.
type holder struct {
	sessions   []auth.SessionID
	refresh    map[auth.SessionID]auth.RefreshSecret
	challenges []auth.ChallengeID
	secrets    []auth.TOTPSecret // of authenticators
	tokens     []auth.DeviceSecret
	proofs     bool // reads delivered codes and keeps device tokens
}

// proofWorld is the use cases of authentication over one database, one account, and two who use it.
type proofWorld struct {
	clock       *clock
	sessions    *records.Sessions
	devices     *records.Devices
	accounts    *records.Accounts
	tokens      *records.DeviceTokens
	checker     *access.Checker
	signIn      *signin.Service
	stepUps     *stepup.Service
	credentials *credentials.Service
	marks       *devices.Service
	people      *people.Service

	user     auth.UserID
	password auth.Password
	mail     map[auth.ChallengeID]auth.OTP // the last code of each challenge; the thief reads none
	sent     auth.OTP
	owner    *holder
	thief    *holder
	proved   map[auth.SessionID]bool
	reached  map[string]bool
}

const owned auth.Email = "anna@example.com"

// Deliver implements ports/courier.
func (w *proofWorld) Deliver(_ context.Context, m courier.Message) error {
	w.sent = auth.OTP(m.Code)
	return nil
}

// countingDice gives bytes that never repeat.
type countingDice struct{ n uint64 }

func (d *countingDice) Fill(p []byte) {
	for len(p) > 0 {
		d.n++
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, d.n))
		p = p[copy(p, sum[:]):]
	}
}

// plainHasher stores passwords as they are.
type plainHasher struct{}

func (plainHasher) Hash(_ context.Context, p auth.Password) (auth.PasswordHash, error) {
	return auth.PasswordHash(p.Reveal()), nil
}

func (plainHasher) Verify(_ context.Context, h auth.PasswordHash, p auth.Password) (match, stale bool, err error) {
	return string(h) == p.Reveal(), false, nil
}

func (plainHasher) VerifyNone(context.Context, auth.Password) error { return nil }

// plainSigner signs tokens that are the id of their session; verifier reads them.
type plainSigner struct{}

func (plainSigner) Sign(_ context.Context, c secrets.TokenClaims) (auth.AccessToken, error) {
	return auth.AccessToken(c.SessionID), nil
}

// open lets every try pass.
type open struct{}

func (open) Try(context.Context, throttle.Scope, string) (throttle.Verdict, error) {
	return throttle.Verdict{Allowed: true, Unlimited: true}, nil
}
func (open) GiveBack(context.Context, throttle.Scope, string, throttle.Verdict) error { return nil }

func newProofWorld(t *rapid.T) *proofWorld {
	db, dice, root := records.New(), &countingDice{}, auth.RootSecret(strings.Repeat("r", 32))
	w := &proofWorld{
		clock: &clock{time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)}, accounts: records.NewAccounts(db),
		sessions: records.NewSessions(db), devices: records.NewDevices(db), tokens: records.NewDeviceTokens(db),
		mail: map[auth.ChallengeID]auth.OTP{}, proved: map[auth.SessionID]bool{}, reached: map[string]bool{},
		owner: &holder{refresh: map[auth.SessionID]auth.RefreshSecret{}, proofs: true},
		thief: &holder{refresh: map[auth.SessionID]auth.RefreshSecret{}},
	}
	ok := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	w.password, err = auth.NewPassword("password", "Right Horse 9!")
	ok(err)
	cache := memory.NewSessions(w.clock, memory.Config{MaxSessions: 100})
	trail := audit.New(records.NewAuditLog(db), w.clock, dice)
	lockouts, pending := records.NewLockouts(db), records.NewPendingLogins(db)
	policy := auth.LockoutPolicy{Threshold: auth.MaxLockoutThreshold, Window: time.Minute, Duration: time.Minute}

	w.people, err = people.New(people.Ports{
		Accounts: w.accounts, Devices: w.devices, Sessions: w.sessions, Lockouts: lockouts, Pending: pending, Transaction: db,
		Passwords: plainHasher{}, Cache: cache, Trail: trail, Clock: w.clock, Entropy: dice, Root: root,
	})
	ok(err)
	account, err := w.people.Add(t.Context(), people.Person{Email: owned, Name: "Anna", Password: w.password, Phone: "+441632960961"})
	ok(err)
	w.user = account.ID
	w.checker = access.NewChecker(verifier{w.user}, w.sessions, cache, w.clock)

	config := signin.Defaults()
	config.Lockout, config.Bounds = policy, trust.Bounds{Full: 1000, Limited: 1001, Unverified: 1002} // only devices cap levels
	config.MFAPolicy = rapid.SampledFrom([]signin.MFAPolicy{signin.MFAAlways, signin.MFARisk}).Draw(t, "MFA policy")
	config.DeviceBinding = rapid.SampledFrom([]trust.Binding{trust.BindingPreferred, trust.BindingRequired}).Draw(t, "binding")
	w.signIn, err = signin.New(config, signin.Ports{
		Accounts: w.accounts, Devices: w.devices, DeviceTokens: w.tokens, Sessions: w.sessions,
		RefreshTokens: records.NewRefreshTokens(db), History: w.sessions, Lockouts: lockouts, Pending: pending, Transaction: db,
		Passwords: plainHasher{}, Tokens: plainSigner{}, Root: root,
		Geography: signals.None{}, Reputation: signals.None{}, Cache: cache, Trail: trail, Clock: w.clock, Entropy: dice,
	})
	ok(err)
	w.stepUps, err = stepup.New(stepup.Defaults(), stepup.Ports{
		Accounts: w.accounts, Sessions: w.sessions, Devices: w.devices, DeviceTokens: w.tokens,
		Challenges: records.NewChallenges(db), Transaction: db,
		Root:     root,
		Couriers: stepup.Couriers{Email: w, SMS: w}, Throttle: open{}, Cache: cache, Trail: trail, Clock: w.clock, Entropy: dice,
	})
	ok(err)
	w.credentials, err = credentials.New(credentials.Config{Lockout: policy, Issuer: "Tollgate"}, credentials.Ports{
		Accounts: w.accounts, Sessions: w.sessions, Pending: pending, Lockouts: lockouts, Transaction: db,
		Passwords: plainHasher{}, Cache: cache, Trail: trail, Clock: w.clock, Entropy: dice, Root: root,
	})
	ok(err)
	w.marks = devices.New(devices.Ports{
		Devices: w.devices, DeviceTokens: w.tokens, Sessions: w.sessions, Levels: w.sessions, Transaction: db,
		Cache: cache, Trail: trail, Clock: w.clock,
	})
	return w
}

// check wants no session at FULL_TRUST without a proof, in the records and as the checker sees it.
func (w *proofWorld) check(t *rapid.T) {
	for _, h := range []*holder{w.owner, w.thief} {
		for _, id := range h.sessions {
			stored, err := w.sessions.Get(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			seen, err := w.checker.Check(t.Context(), auth.AccessToken(id))
			if full := stored.TrustLevel == auth.FullTrust || err == nil && seen.TrustLevel == auth.FullTrust; full && !w.proved[id] {
				t.Fatalf("session %s of the thief: %t is at FULL_TRUST without a proof", id, h == w.thief)
			}
		}
	}
}

func (w *proofWorld) pass(t *rapid.T) {
	w.clock.now = w.clock.now.Add(rapid.SampledFrom([]time.Duration{
		time.Second, time.Minute, 5 * time.Minute, auth.EnrolmentTTL, time.Hour, 24 * time.Hour,
	}).Draw(t, "duration"))
}

// tick lets a moment pass: no two calls come at the same time.
func (w *proofWorld) tick() { w.clock.now = w.clock.now.Add(time.Millisecond) }

func (w *proofWorld) someone(t *rapid.T) *holder {
	return rapid.SampledFrom([]*holder{w.owner, w.thief}).Draw(t, "who")
}

// caller draws somebody and one of their living sessions; it skips the step where there is none.
func (w *proofWorld) caller(t *rapid.T) (*holder, auth.Session) {
	w.tick()
	h := w.someone(t)
	var living []auth.Session
	for _, id := range h.sessions {
		if s, err := w.checker.Check(t.Context(), auth.AccessToken(id)); err == nil {
			living = append(living, s)
		}
	}
	if len(living) == 0 {
		t.Skip("no session")
	}
	return h, living[rapid.IntRange(0, len(living)-1).Draw(t, "session")]
}

// expect fails on what is no refusal.
func expect(t *rapid.T, err error) bool {
	if err != nil && fault.Is(err, fault.Internal) {
		t.Fatal(err)
	}
	return err == nil
}

// visit draws a device, and a device token of those that the person holds.
func (w *proofWorld) visit(t *rapid.T, h *holder) signin.Origin {
	info, err := auth.NewDeviceInfo(auth.DeviceFields{UserAgent: rapid.SampledFrom([]string{"one", "two"}).Draw(t, "device")})
	if err != nil {
		t.Fatal(err)
	}
	v := signin.Origin{Device: info, Address: netip.MustParseAddr("203.0.113.7")}
	if len(h.tokens) > 0 && rapid.IntRange(0, 3).Draw(t, "shows no token") > 0 {
		v.DeviceToken = h.tokens[len(h.tokens)-1-rapid.IntRange(0, min(2, len(h.tokens)-1)).Draw(t, "token")]
	}
	return v
}

// begun keeps a new session. One on a device whose token was shown has a proof.
func (w *proofWorld) begun(t *rapid.T, h *holder, r signin.Result, shown auth.DeviceSecret) {
	h.sessions, h.refresh[r.SessionID] = append(h.sessions, r.SessionID), r.RefreshToken
	s, err := w.sessions.Get(t.Context(), r.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	w.keep(h, r.DeviceToken)
	token, err := w.tokens.Find(t.Context(), auth.HashSecret(shown))
	if err == nil && token.DeviceID == s.DeviceID {
		w.prove(r.SessionID, "device token", s.TrustLevel)
	}
}

func (w *proofWorld) prove(id auth.SessionID, way string, level auth.TrustLevel) {
	w.proved[id] = true
	w.reached[way] = w.reached[way] || level == auth.FullTrust
}

// keep keeps a device token, which only who gave a proof can get.
func (w *proofWorld) keep(h *holder, token auth.DeviceSecret) {
	if token != "" {
		h.tokens = append(h.tokens, token)
	}
}

func (w *proofWorld) login(t *rapid.T) {
	w.tick()
	h := w.someone(t)
	v := w.visit(t, h)
	r, err := w.signIn.Login(t.Context(), signin.Login{Email: owned, Password: w.password, Origin: v})
	if expect(t, err) && !r.MFARequired {
		w.begun(t, h, r, v.DeviceToken)
	}
}

// code is a code of one of the authenticators that a person holds, or a wrong one.
func (w *proofWorld) code(t *rapid.T, h *holder) auth.OTP {
	if len(h.secrets) == 0 || rapid.IntRange(0, 9).Draw(t, "wrong code") == 0 {
		return "000000"
	}
	return h.secrets[len(h.secrets)-1-rapid.IntRange(0, min(1, len(h.secrets)-1)).Draw(t, "secret")].Code(auth.TOTPStep(w.clock.now))
}

// secondStep also shows a device token in the second step alone: what counts there is what was shown in either step, so the session
// is proved where the device is.
func (w *proofWorld) secondStep(t *rapid.T) {
	w.tick()
	h := w.someone(t)
	v := w.visit(t, h)
	if rapid.Bool().Draw(t, "with the first step") {
		_, err := w.signIn.Login(t.Context(), signin.Login{Email: owned, Password: w.password, Origin: v})
		expect(t, err)
		w.tick()
	}
	r, err := w.signIn.VerifyMFA(t.Context(), signin.Answer{UserID: w.user, Code: w.code(t, h), Origin: v})
	if expect(t, err) {
		w.begun(t, h, r, v.DeviceToken)
		if h.proofs { // it took a code of the authenticator, and the first step may have shown the token
			w.proved[r.SessionID] = true
		}
	}
}

func (w *proofWorld) refresh(t *rapid.T) {
	h, s := w.caller(t)
	before, err := w.sessions.Get(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.signIn.Refresh(t.Context(), h.refresh[s.ID], netip.MustParseAddr("203.0.113.7"))
	if !expect(t, err) {
		return
	}
	h.refresh[s.ID] = r.RefreshToken
	if r.TrustLevel != before.TrustLevel {
		t.Fatalf("a refresh turns %s into %s", before.TrustLevel, r.TrustLevel)
	}
}

// climb tries the whole way up in one session: to enrol and activate an authenticator, then to step up.
func (w *proofWorld) climb(t *rapid.T) {
	h, s := w.caller(t)
	if rapid.Bool().Draw(t, "enrols") {
		if e, err := w.credentials.Enrol(t.Context(), s); expect(t, err) {
			h.secrets = append(h.secrets, e.Secret)
		}
		_, err := w.credentials.Activate(t.Context(), s, w.code(t, h))
		expect(t, err)
		w.clock.now = w.clock.now.Add(time.Minute) // for another code
	}
	if id := w.initiate(t, h, s); id != "" {
		w.verify(t, h, id)
	}
}

func (w *proofWorld) stepUp(t *rapid.T) {
	h, s := w.caller(t)
	w.initiate(t, h, s)
}

func (w *proofWorld) answer(t *rapid.T) {
	w.tick()
	h := w.someone(t)
	if len(h.challenges) == 0 {
		t.Skip("no challenge")
	}
	w.verify(t, h, rapid.SampledFrom(h.challenges).Draw(t, "challenge"))
}

func (w *proofWorld) initiate(t *rapid.T, h *holder, s auth.Session) auth.ChallengeID {
	method := rapid.SampledFrom([]auth.StepUpMethod{auth.EmailOTP, auth.SMSOTP, auth.AuthenticatorApp}).Draw(t, "method")
	w.sent = ""
	p, err := w.stepUps.Initiate(t.Context(), s, method)
	if !expect(t, err) {
		return ""
	}
	h.challenges = append(h.challenges, p.ID)
	w.mail[p.ID] = w.sent
	return p.ID
}

func (w *proofWorld) verify(t *rapid.T, h *holder, id auth.ChallengeID) {
	code, way := w.code(t, h), "authenticator"
	if delivered := w.mail[id]; h.proofs && delivered != "" {
		code, way = delivered, "delivered code"
	}
	before := w.fullSessions(t)
	p, err := w.stepUps.Verify(t.Context(), id, code)
	if !expect(t, err) {
		return
	}
	if !h.proofs {
		t.Fatal("the thief passed a challenge")
	}
	w.keep(h, p.DeviceToken)
	for _, raised := range w.fullSessions(t) {
		if !slices.Contains(before, raised) && slices.Contains(h.sessions, raised) {
			w.prove(raised, way, auth.FullTrust)
		}
	}
}

// fullSessions returns the sessions that are at FULL_TRUST.
func (w *proofWorld) fullSessions(t *rapid.T) (full []auth.SessionID) {
	for _, id := range append(slices.Clone(w.owner.sessions), w.thief.sessions...) {
		if s, err := w.sessions.Get(t.Context(), id); err == nil && s.TrustLevel == auth.FullTrust {
			full = append(full, id)
		}
	}
	return full
}

func (w *proofWorld) resend(t *rapid.T) {
	w.tick()
	h := w.someone(t)
	if len(h.challenges) == 0 {
		t.Skip("no challenge")
	}
	id := rapid.SampledFrom(h.challenges).Draw(t, "challenge")
	if _, err := w.stepUps.Resend(t.Context(), id); expect(t, err) {
		w.mail[id] = w.sent
	}
}

func (w *proofWorld) enrol(t *rapid.T) {
	h, s := w.caller(t)
	if e, err := w.credentials.Enrol(t.Context(), s); expect(t, err) {
		h.secrets = append(h.secrets, e.Secret)
	}
}

func (w *proofWorld) activate(t *rapid.T) {
	h, s := w.caller(t)
	_, err := w.credentials.Activate(t.Context(), s, w.code(t, h))
	expect(t, err)
}

func (w *proofWorld) disable(t *rapid.T) {
	h, s := w.caller(t)
	expect(t, w.credentials.Disable(t.Context(), s, w.code(t, h)))
}

func (w *proofWorld) changePassword(t *rapid.T) {
	_, s := w.caller(t)
	// To another one and back, so that both go on knowing it; the thief, who gets none of it, does not have to be told.
	other, err := auth.NewPassword("password", "Another Horse 8!")
	if err != nil {
		t.Fatal(err)
	}
	if expect(t, w.credentials.ChangePassword(t.Context(), s, w.password, other)) {
		expect(t, w.credentials.ChangePassword(t.Context(), s, other, w.password))
	}
}

func (w *proofWorld) device(t *rapid.T) auth.DeviceID {
	all, _, err := w.devices.List(t.Context(), w.user, auth.PageRequest{Limit: 100})
	if err != nil || len(all) == 0 {
		t.Skip("no device")
	}
	return all[rapid.IntRange(0, len(all)-1).Draw(t, "device")].ID
}

func (w *proofWorld) mark(t *rapid.T) {
	_, s := w.caller(t)
	id := s.DeviceID
	if rapid.Bool().Draw(t, "any device") {
		id = w.device(t)
	}
	status := rapid.SampledFrom([]auth.TrustStatus{
		auth.DeviceTrusted, auth.DeviceTrusted, auth.DeviceUntrusted, auth.DevicePending,
	}).Draw(t, "mark")
	_, err := w.marks.Mark(t.Context(), s, id, status)
	if !expect(t, err) || status != auth.DeviceUntrusted {
		return
	}
	for proved := range w.proved {
		if on, err := w.sessions.Get(t.Context(), proved); err == nil && on.DeviceID == id && on.Active(w.clock.now) {
			delete(w.proved, proved)
		}
	}
}

func (w *proofWorld) revoke(t *rapid.T) {
	_, s := w.caller(t)
	_, err := w.marks.Revoke(t.Context(), s, w.device(t))
	expect(t, err)
}

func (w *proofWorld) end(t *rapid.T) {
	_, s := w.caller(t)
	all := append(slices.Clone(w.owner.sessions), w.thief.sessions...)
	expect(t, w.signIn.Terminate(t.Context(), s, rapid.SampledFrom(all).Draw(t, "ended")))
}

// operatorEnrols gives the owner an authenticator, now and then without activating it.
func (w *proofWorld) operatorEnrols(t *rapid.T) {
	w.tick()
	secret, err := w.people.EnrolMFA(t.Context(), owned)
	if !expect(t, err) {
		return
	}
	w.owner.secrets = append(w.owner.secrets, secret)
	if rapid.Bool().Draw(t, "activated") {
		_, err = w.people.ActivateMFA(t.Context(), owned, secret.Code(auth.TOTPStep(w.clock.now)))
		expect(t, err)
	}
}

func (w *proofWorld) operatorActs(t *rapid.T) {
	w.tick()
	if rapid.IntRange(0, 3).Draw(t, "seldom") > 0 {
		t.Skip("seldom")
	}
	act := rapid.SampledFrom([]func(context.Context, auth.Email) error{
		w.people.Lock, w.people.DisableMFA, w.people.Disable,
	}).Draw(t, "act")
	expect(t, act(t.Context(), owned))
	expect(t, w.people.Unlock(t.Context(), owned)) // so that the run goes on
	expect(t, w.people.Enable(t.Context(), owned))
}

// oldEnrolment is what a thief enrolled at LIMITED_TRUST with a version that allowed it and recorded no enrolments, and has not
// activated.
func (w *proofWorld) oldEnrolment(t *rapid.T) {
	w.tick()
	secret := auth.TOTPSecret([]byte("a thief's own secret"))
	keeper, err := auth.NewSecondFactor(auth.RootSecret(strings.Repeat("r", 32)))
	if err != nil {
		t.Fatal(err)
	}
	err = w.accounts.Update(t.Context(), w.user, func(a *auth.Account) error {
		return keeper.Enrol(a, secret, auth.Nonce{byte(w.clock.now.UnixMilli())}, auth.Enrolment{})
	})
	if expect(t, err) && !slices.Contains(w.thief.secrets, secret) {
		w.thief.secrets = append(w.thief.secrets, secret)
	}
}
