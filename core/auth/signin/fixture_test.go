package signin_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory/records"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

const (
	anna     = auth.Email("anna@example.com")
	password = "Right Horse 9!"
)

var home = netip.MustParseAddr("203.0.113.7")

// clock stands until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// dice gives bytes that never repeat.
type dice struct {
	mu sync.Mutex
	n  uint64
}

func (d *dice) Fill(p []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(p) > 0 {
		d.n++
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, d.n))
		p = p[copy(p, sum[:]):]
	}
}

// hasher stores passwords as "v1:" and their SHA-256, and counts how many it was asked to compare.
type hasher struct {
	mu       sync.Mutex
	present  string
	compared int
	nobody   int
	err      error
	hold     func() // called with each password before it is compared
}

func (h *hasher) hashOf(version string, p auth.Password) auth.PasswordHash {
	sum := sha256.Sum256([]byte(p.Reveal()))
	return auth.PasswordHash(version + ":" + string(auth.NewUUID[auth.UserID]([16]byte(sum[:16]))))
}

func (h *hasher) Hash(_ context.Context, p auth.Password) (auth.PasswordHash, error) {
	return h.hashOf(h.present, p), nil
}

func (h *hasher) Verify(_ context.Context, stored auth.PasswordHash, p auth.Password) (match, stale bool, err error) {
	if h.hold != nil {
		h.hold()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return false, false, h.err
	}
	h.compared++
	version, _, _ := strings.Cut(string(stored), ":")
	match = stored == h.hashOf(version, p)
	return match, match && version != h.present, nil
}

func (h *hasher) VerifyNone(context.Context, auth.Password) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nobody++
	return h.err
}

// signer makes tokens that show what they carry.
type signer struct{}

func (signer) Sign(_ context.Context, c secrets.TokenClaims) (auth.AccessToken, error) {
	return auth.AccessToken("access/" + string(c.SessionID) + "/" + c.ID), nil
}

// cache notes what it is told to forget.
type cache struct {
	mu      sync.Mutex
	dropped []auth.SessionID
}

func (c *cache) Get(context.Context, auth.SessionID) (auth.Session, bool) {
	return auth.Session{}, false
}
func (c *cache) Put(context.Context, auth.Session, time.Time) {}
func (c *cache) Drop(_ context.Context, ids ...auth.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped = append(c.dropped, ids...)
}

// atlas knows a few addresses.
type atlas struct {
	places map[netip.Addr]risk.Location
	rates  map[netip.Addr]risk.Reputation
}

func (a *atlas) Locate(_ context.Context, address netip.Addr) risk.Location { return a.places[address] }
func (a *atlas) Rate(_ context.Context, address netip.Addr) risk.Reputation { return a.rates[address] }

// world is a service with all that it stands on.
type world struct {
	t       *testing.T
	service *signin.Service
	db      *records.Database
	ports   signin.Ports
	clock   *clock
	hasher  *hasher
	cache   *cache
	atlas   *atlas
	trail   *audit.Trail
	log     *records.AuditLog
	dice    *dice
}

func newWorld(t *testing.T, changes ...func(*signin.Config)) *world {
	t.Helper()
	config := signin.Defaults()
	for _, change := range changes {
		change(&config)
	}
	db := records.New()
	w := &world{
		t: t, db: db, clock: &clock{now: time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)},
		hasher: &hasher{present: "v1"}, cache: &cache{}, atlas: &atlas{}, log: records.NewAuditLog(db), dice: &dice{},
		ports: signin.Ports{
			Accounts: records.NewAccounts(db), Devices: records.NewDevices(db), DeviceTokens: records.NewDeviceTokens(db),
			Sessions: records.NewSessions(db), RefreshTokens: records.NewRefreshTokens(db), History: records.NewSessions(db),
			Lockouts: records.NewLockouts(db), Pending: records.NewPendingLogins(db), Transaction: db,
		},
	}
	w.trail = audit.New(w.log, w.clock, w.dice)
	w.start(config)
	w.addAccount(anna)
	return w
}

// start makes the service anew, on the world's records as they are now.
func (w *world) start(config signin.Config) {
	w.t.Helper()
	var err error
	p := w.ports
	p.Passwords, p.Tokens, p.Root = w.hasher, signer{}, root()
	p.Geography, p.Reputation, p.Cache, p.Trail, p.Clock, p.Entropy = w.atlas, w.atlas, w.cache, w.trail, w.clock, w.dice
	w.service, err = signin.New(config, p)
	if err != nil {
		w.t.Fatal(err)
	}
}

func root() auth.RootSecret { return auth.RootSecret(strings.Repeat("r", 32)) }

func (w *world) addAccount(email auth.Email) auth.UserID {
	w.t.Helper()
	var random [16]byte
	w.dice.Fill(random[:])
	a := auth.Account{
		ID: auth.NewUUID[auth.UserID](random), Email: email, Name: "Anna", State: auth.AccountActive,
		PasswordHash: w.hasher.hashOf("v1", secret(w.t, password)),
	}
	if err := w.ports.Accounts.Create(context.Background(), a); err != nil {
		w.t.Fatal(err)
	}
	return a.ID
}

func secret(t *testing.T, s string) auth.Password {
	t.Helper()
	p, err := auth.NewPassword("password", s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func laptop(t *testing.T) auth.DeviceInfo {
	t.Helper()
	d, err := auth.NewDeviceInfo(auth.DeviceFields{
		UserAgent:        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
		ScreenResolution: "1920x1080", Timezone: "Europe/Berlin", Language: "de-DE",
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// attempt is a login from the laptop at home.
func (w *world) attempt(word string, changes ...func(*signin.Login)) (signin.Result, error) {
	in := signin.Login{Email: anna, Password: secret(w.t, word), Visit: signin.Visit{Device: laptop(w.t), Address: home}}
	for _, change := range changes {
		change(&in)
	}
	return w.service.Login(context.Background(), in)
}

func (w *world) login(changes ...func(*signin.Login)) signin.Result {
	w.t.Helper()
	r, err := w.attempt(password, changes...)
	if err != nil {
		w.t.Fatalf("login: %v", err)
	}
	return r
}

// refresh is a refresh from home.
func (w *world) refresh(s auth.RefreshSecret) (signin.Result, error) {
	return w.service.Refresh(context.Background(), s, home)
}

func (w *world) session(id auth.SessionID) auth.Session {
	w.t.Helper()
	s, err := w.ports.Sessions.Get(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// events returns the events of a type, newest first; of all types when it is empty.
func (w *world) events(kind auth.EventType) []auth.Event {
	w.t.Helper()
	events, _, err := w.log.Search(context.Background(), authstore.AuditQuery{Type: kind, Limit: auth.MaxPage})
	if err != nil {
		w.t.Fatal(err)
	}
	return events
}

// factors returns the factors of the latest risk evaluation.
func (w *world) factors() map[string]any {
	w.t.Helper()
	factors, ok := w.events(auth.RiskEvaluation)[0].Details["factors"].(map[string]any)
	if !ok {
		w.t.Fatal("the event has no factors")
	}
	return factors
}

// confirm does what a step-up does to the device of a session, and returns the device's token.
func (w *world) confirm(id auth.SessionID, marks ...auth.TrustStatus) auth.DeviceSecret {
	w.t.Helper()
	ctx := context.Background()
	device := w.session(id).DeviceID
	err := w.ports.Devices.Update(ctx, device, func(d *auth.Device) error {
		d.Confirmed = true
		for _, mark := range marks {
			d.TrustStatus = mark
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	var random [32]byte
	w.dice.Fill(random[:])
	token := auth.NewSecret[auth.DeviceSecret](random)
	err = w.ports.DeviceTokens.Add(ctx, auth.DeviceToken{
		Hash: auth.HashSecret(token), DeviceID: device, IssuedAt: w.clock.Now(),
	}, 5)
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

func shows(token auth.DeviceSecret) func(*signin.Login) {
	return func(in *signin.Login) { in.DeviceToken = token }
}

func wantFault(t *testing.T, what string, err error, kind fault.Kind, code fault.Code) {
	t.Helper()
	if f, ok := fault.As(err); !ok || f.Kind != kind || f.Code != code {
		t.Errorf("%s: %v, want a fault of kind %s and code %q", what, err, kind, code)
	}
}

// text is all that the audit log holds, for searching.
func (w *world) text() string {
	w.t.Helper()
	text, err := json.Marshal(w.events(""))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}
