package notices_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory/records"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

const (
	anna     auth.UserID   = "11111111-2222-4333-8444-555555555555"
	disabled auth.UserID   = "22222222-2222-4333-8444-555555555555"
	nobody   auth.UserID   = "33333333-2222-4333-8444-555555555555"
	laptop   auth.DeviceID = "44444444-2222-4333-8444-555555555555"
)

var at = time.Date(2026, time.November, 21, 22, 10, 5, 0, time.FixedZone("CET", 3600))

// courierOf keeps messages, after it has failed with each of some errors.
type courierOf struct {
	mu       sync.Mutex
	tries    []time.Time
	failures []error
	messages []courier.Message
	hangs    bool
}

func (c *courierOf) Deliver(ctx context.Context, m courier.Message) error {
	if c.hangs {
		<-ctx.Done()
		return fault.Wrap(fault.Unavailable, "", "away", ctx.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tries = append(c.tries, time.Now())
	if err := m.Validate(); err != nil {
		return err
	}
	if len(c.failures) > 0 {
		err := c.failures[0]
		c.failures = c.failures[1:]
		return err
	}
	c.messages = append(c.messages, m)
	return nil
}

// limiter allows so many tries of a key.
type limiter struct {
	mu    sync.Mutex
	limit int
	away  int // how often it fails first
	tries map[string]int
}

func (l *limiter) Try(_ context.Context, scope throttle.Scope, key string) (throttle.Verdict, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away > 0 {
		l.away--
		return throttle.Verdict{}, fault.New(fault.Unavailable, "", "counters are away")
	}
	l.tries[string(scope)+"/"+key]++
	return throttle.Verdict{Allowed: l.tries[string(scope)+"/"+key] <= l.limit}, nil
}

func (*limiter) GiveBack(context.Context, throttle.Scope, string, throttle.Verdict) error { return nil }

// journal keeps what became of notices.
type journal struct {
	mu             sync.Mutex
	sent, withheld int
	failed         []error
	dropped        uint64
}

func (j *journal) Sent(notices.Kind) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sent++
}

func (j *journal) Withheld(notices.Kind) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.withheld++
}

func (j *journal) Failed(_ notices.Kind, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failed = append(j.failed, err)
}

func (j *journal) Dropped(n uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.dropped += n
}

type world struct {
	mail, phone *courierOf
	limiter     *limiter
	journal     *journal
	desk        *notices.Desk
}

// newWorld returns a desk with the couriers of some channels.
func newWorld(t *testing.T, phone string, channels ...courier.Channel) *world {
	t.Helper()
	db := records.New()
	accounts, devices := records.NewAccounts(db), records.NewDevices(db)
	for id, state := range map[auth.UserID]auth.AccountState{anna: auth.AccountActive, disabled: auth.AccountDisabled} {
		err := accounts.Create(t.Context(), auth.Account{ID: id, Email: auth.Email(id + "@example.com"), Phone: phone, State: state})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := devices.Ensure(t.Context(), auth.Device{
		ID: laptop, UserID: anna, Identity: "x", Browser: "Safari", OS: "macOS", TrustStatus: auth.DevicePending,
	}); err != nil {
		t.Fatal(err)
	}
	w := &world{mail: &courierOf{}, phone: &courierOf{}, limiter: &limiter{limit: 5, tries: map[string]int{}}, journal: &journal{}}
	var couriers notices.Couriers
	for _, channel := range channels {
		if channel == courier.Email {
			couriers.Email = w.mail
		} else {
			couriers.SMS = w.phone
		}
	}
	w.desk = notices.New("Example Tools", notices.Ports{
		Accounts: accounts, Devices: devices, Couriers: couriers, Throttle: w.limiter, Reporter: w.journal,
		Wait: func(ctx context.Context, d time.Duration) {
			select {
			case <-ctx.Done():
			case <-time.After(d):
			}
		},
	})
	return w
}

// run sends out what is told, until nothing is under way any more. It is called in a bubble, whose clock jumps.
func (w *world) run(t *testing.T, told ...notices.Happening) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { w.desk.Run(ctx) })
	for _, h := range told {
		w.desk.Tell(h)
	}
	time.Sleep(time.Hour)
	stop()
	group.Wait()
}

func happening(k notices.Kind) notices.Happening {
	return notices.Happening{
		Kind: k, UserID: anna, At: at, Address: netip.MustParseAddr("203.0.113.7"), Browser: "Firefox", OS: "Linux",
	}
}

func kinds() []notices.Kind {
	return []notices.Kind{
		notices.NewDevice, notices.SignInLocked, notices.ChangesLocked, notices.Replay,
		notices.AuthenticatorEnrolled, notices.AuthenticatorActivated, notices.AuthenticatorDisabled, notices.PasswordChanged,
		notices.DeviceRevoked, notices.DeviceUntrusted, notices.SessionEnded,
	}
}

// TestWhatIsSaid wants each notice to say what happened, when, from where, on what, and what to do.
func TestWhatIsSaid(t *testing.T) {
	subjects := map[string]bool{}
	for _, channel := range []courier.Channel{courier.Email, courier.SMS} {
		for _, kind := range kinds() {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "+15550100", channel)
				w.run(t, happening(kind))
				messages := append(w.mail.messages, w.phone.messages...)
				if len(messages) != 1 || messages[0].Kind != courier.Notice || messages[0].Channel != channel {
					t.Fatalf("%s by %s: %d messages", kind, channel, len(messages))
				}
				m := messages[0]
				subjects[m.Subject] = true
				for _, part := range []string{"Example Tools", "21 November 2026, 21:10 UTC", "203.0.113.7", "Firefox on Linux"} {
					if !strings.Contains(m.Text, part) {
						t.Errorf("%s by %s lacks %q: %s", kind, channel, part, m.Text)
					}
				}
				if channel == courier.SMS && (len(m.Text) > 300 || strings.Contains(m.Text, "\n")) {
					t.Errorf("%s is %d characters long for a telephone: %s", kind, len(m.Text), m.Text)
				}
			})
		}
	}
	if len(subjects) != len(kinds())+1 { // and none by SMS
		t.Errorf("subjects are %v", subjects)
	}
}

// TestNoWordsOfStrangers wants nothing of a user agent or an address but what is known to be harmless.
func TestNoWordsOfStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "", courier.Email)
		for browser, system := range map[string]string{"Call 555 now": "Linux", "Firefox": "evil.example", "Go to evil.example": "now", "tollgate-cli": "Windows"} {
			h := happening(notices.SignInLocked)
			h.Browser, h.OS, h.Address = browser, system, netip.MustParseAddr("fe80::1%evil.example")
			w.run(t, h)
		}
		all := ""
		for _, m := range w.mail.messages {
			all += m.Text
		}
		if len(w.mail.messages) != 4 || strings.Contains(all, "evil") || strings.Contains(all, "555") {
			t.Errorf("notices are %s", all)
		}
		for _, part := range []string{"Device: Firefox\n", "Device: unknown browser on Linux\n", "Device: unknown\n", "Device: tollgate command line on Windows\n", "fe80::1\n"} {
			if !strings.Contains(all, part) {
				t.Errorf("notices lack %q: %s", part, all)
			}
		}
	})
}

func TestWay(t *testing.T) {
	for name, c := range map[string]struct {
		phone       string
		channels    []courier.Channel
		user        auth.UserID
		mails, text int
	}{
		"e-mail before SMS": {"+15550100", []courier.Channel{courier.Email, courier.SMS}, anna, 1, 0},
		"SMS alone":         {"+15550100", []courier.Channel{courier.SMS}, anna, 0, 1},
		"no number":         {"", []courier.Channel{courier.SMS}, anna, 0, 0},
		"no courier":        {"+15550100", nil, anna, 0, 0},
		"disabled":          {"+15550100", []courier.Channel{courier.Email}, disabled, 0, 0},
		"nobody":            {"+15550100", []courier.Channel{courier.Email}, nobody, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, c.phone, c.channels...)
				h := happening(notices.NewDevice)
				h.UserID = c.user
				w.run(t, h)
				if len(w.mail.messages) != c.mails || len(w.phone.messages) != c.text || len(w.journal.failed) != 0 {
					t.Errorf("%d mails, %d text messages, failures %v", len(w.mail.messages), len(w.phone.messages), w.journal.failed)
				}
			})
		})
	}
}

// TestDeviceOfAReplay wants the device read where only its id is known, and a notice without it where it is gone.
func TestDeviceOfAReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "", courier.Email)
		for _, id := range []auth.DeviceID{laptop, "55555555-2222-4333-8444-555555555555"} {
			h := happening(notices.Replay)
			h.Browser, h.OS, h.DeviceID = "", "", id
			w.run(t, h)
		}
		if len(w.mail.messages) != 2 || !strings.Contains(w.mail.messages[0].Text, "Safari on macOS") ||
			!strings.Contains(w.mail.messages[1].Text, "Device: unknown") {
			t.Errorf("notices are %#v", w.mail.messages)
		}
	})
}

// TestTries wants what may pass tried again, with longer and longer pauses, counted once, and what may not given up at once.
func TestTries(t *testing.T) {
	away := fault.New(fault.Unavailable, courier.CodeDeliveryFailed, "away")
	refused := fault.New(fault.Unsupported, courier.CodeUnsupportedChannel, "no such channel")
	for name, c := range map[string]struct {
		failures         []error
		countersAway     int
		tries, delivered int
		failed           error
	}{
		"once away":      {[]error{away}, 0, 2, 1, nil},
		"long away":      {[]error{away, away, away}, 0, 4, 1, nil},
		"away for good":  {[]error{away, away, away, away}, 0, 4, 0, away},
		"refused":        {[]error{refused}, 0, 1, 0, refused},
		"counters away":  {nil, 2, 1, 1, nil},
		"counters gone":  {nil, 9, 0, 0, errors.New("any")},
		"both, together": {[]error{away}, 1, 2, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "", courier.Email)
				w.mail.failures, w.limiter.away = c.failures, c.countersAway
				w.run(t, happening(notices.NewDevice))
				if len(w.mail.tries) != c.tries || len(w.mail.messages) != c.delivered || (len(w.journal.failed) > 0) != (c.failed != nil) {
					t.Errorf("%d tries, %d delivered, failures %v", len(w.mail.tries), len(w.mail.messages), w.journal.failed)
				}
				if w.journal.sent != c.delivered || w.journal.withheld != 0 {
					t.Errorf("told of %d sent and %d withheld, want %d and none", w.journal.sent, w.journal.withheld, c.delivered)
				}
				for key, n := range w.limiter.tries {
					if n > 1 {
						t.Errorf("%s was counted %d times", key, n)
					}
				}
				for i := 2; i < len(w.mail.tries); i++ {
					if w.mail.tries[i].Sub(w.mail.tries[i-1]) <= w.mail.tries[i-1].Sub(w.mail.tries[i-2]) {
						t.Errorf("tries at %v do not slow down", w.mail.tries)
					}
				}
			})
		})
	}
}

// TestLimit wants no more of a kind than the limit, whoever causes them, and other kinds all the same.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "", courier.Email)
		for range 20 {
			w.run(t, happening(notices.SignInLocked))
		}
		w.run(t, happening(notices.NewDevice))
		if n := len(w.mail.messages); n != 6 || !strings.Contains(w.mail.messages[5].Subject, "new device") {
			t.Errorf("%d notices, want five locks and the device", n)
		}
		if w.journal.sent != 6 || w.journal.withheld != 15 {
			t.Errorf("told of %d sent and %d withheld, want 6 and 15", w.journal.sent, w.journal.withheld)
		}
	})
}

// TestRoom wants the teller never to wait, whatever becomes of the notices, and what there is no room for to be told of.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "", courier.Email)
		w.limiter.limit = 10_000
		for range 1007 {
			w.desk.Tell(happening(notices.NewDevice)) // nobody takes them
		}
		if n := w.desk.Waiting(); n != 1000 {
			t.Errorf("%d wait, want as many as there is room for", n)
		}
		w.run(t)
		if n := len(w.mail.messages); n != 1000 || w.journal.dropped != 7 {
			t.Errorf("%d delivered, %d dropped", n, w.journal.dropped)
		}
	})
}

// TestStop wants a stop not to wait for a courier that hangs, and what was still to be sent told of.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "", courier.Email)
		w.mail.hangs = true
		for range 10 {
			w.desk.Tell(happening(notices.NewDevice))
		}
		w.run(t)
		if n := uint64(len(w.journal.failed)) + w.journal.dropped; n != 10 {
			t.Errorf("%d failed, %d dropped, want ten in all", len(w.journal.failed), w.journal.dropped)
		}
	})
}

func TestNobodyIsTold(t *testing.T) {
	var desk *notices.Desk
	desk.Tell(happening(notices.NewDevice))
	desk.Run(t.Context())
	if n := desk.Waiting(); n != 0 {
		t.Errorf("%d wait for nobody", n)
	}
}
