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
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	anna     auth.UserID   = "11111111-2222-4333-8444-555555555555"
	disabled auth.UserID   = "22222222-2222-4333-8444-555555555555"
	nobody   auth.UserID   = "33333333-2222-4333-8444-555555555555"
	laptop   auth.DeviceID = "44444444-2222-4333-8444-555555555555"
)

var at = time.Date(2026, time.November, 21, 22, 10, 5, 0, time.FixedZone("CET", 3600))

// failingCourier returns each of some errors once and then keeps the messages.
type failingCourier struct {
	mu       sync.Mutex
	tries    []time.Time
	failures []error
	messages []courier.Message
	hangs    bool
}

func (c *failingCourier) Deliver(ctx context.Context, m courier.Message) error {
	if c.hangs {
		<-ctx.Done()
		return fault.Wrap(fault.Unavailable, "away", ctx.Err())
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

// testThrottle allows a number of tries of each key.
type testThrottle struct {
	mu    sync.Mutex
	limit int
	away  int // how often it fails first
	tries map[string]int
}

func (l *testThrottle) Try(_ context.Context, scope throttle.Scope, key string) (throttle.Verdict, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away > 0 {
		l.away--
		return throttle.Verdict{}, fault.New(fault.Unavailable, "counters are away")
	}
	l.tries[string(scope)+"/"+key]++
	return throttle.Verdict{Allowed: l.tries[string(scope)+"/"+key] <= l.limit}, nil
}

func (*testThrottle) GiveBack(context.Context, throttle.Scope, string, throttle.Verdict) error {
	return nil
}

// testReporter counts the outcomes of notices.
type testReporter struct {
	mu             sync.Mutex
	sent, withheld int
	failed         []error
	dropped        uint64
}

func (j *testReporter) Report(event any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch e := event.(type) {
	case notices.Sent:
		j.sent++
	case notices.Withheld:
		j.withheld++
	case notices.Failed:
		j.failed = append(j.failed, e.Err)
	case notices.Dropped:
		j.dropped += e.Count
	}
}

type fixture struct {
	mail, phone *failingCourier
	throttle    *testThrottle
	reporter    *testReporter
	notifier    *notices.Notifier
}

// newFixture returns a Notifier with couriers for the given channels.
func newFixture(t *testing.T, phone string, channels ...courier.Channel) *fixture {
	t.Helper()
	db := fakedb.New()
	accounts, devices := fakedb.NewAccounts(db), fakedb.NewDevices(db)
	for id, state := range map[auth.UserID]auth.AccountState{anna: auth.AccountActive, disabled: auth.AccountDisabled} {
		err := accounts.Create(t.Context(), auth.Account{
			ID: id, Email: auth.Email(id + "@example.com"), Phone: phone, State: state,
		})
		must.Succeed(t, err)
	}
	if _, _, err := devices.Ensure(t.Context(), auth.Device{
		ID: laptop, UserID: anna, Identity: "x", Browser: "Safari", OS: "macOS", TrustStatus: auth.DevicePending,
	}); err != nil {
		t.Fatal(err)
	}
	f := &fixture{
		mail: &failingCourier{}, phone: &failingCourier{}, throttle: &testThrottle{limit: 5, tries: map[string]int{}},
		reporter: &testReporter{},
	}
	var couriers notices.Couriers
	for _, channel := range channels {
		if channel == courier.Email {
			couriers.Email = f.mail
		} else {
			couriers.SMS = f.phone
		}
	}
	f.notifier = notices.New("Example Tools", "https://tools.example.com/", notices.Ports{
		Accounts: accounts, Devices: devices, Couriers: couriers, Throttle: f.throttle, Reporter: f.reporter,
		Waiter: system.Clock{},
	})
	return f
}

// runUntilIdle sends notices of events until no delivery is running. It must be called in a
// synctest bubble.
func (f *fixture) runUntilIdle(t *testing.T, told ...notices.Event) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { f.notifier.Run(ctx) })
	for _, h := range told {
		f.notifier.Notify(h)
	}
	time.Sleep(time.Hour)
	stop()
	group.Wait()
}

func newEvent(k notices.Kind) notices.Event {
	return notices.Event{
		Kind: k, UserID: anna, At: at, Address: netip.MustParseAddr("203.0.113.7"), Browser: "Firefox", OS: "Linux",
	}
}

func allKinds() []notices.Kind {
	return []notices.Kind{
		notices.NewDevice, notices.SignInLocked, notices.ChangesLocked, notices.Replay,
		notices.AuthenticatorEnrolled, notices.AuthenticatorActivated, notices.AuthenticatorDisabled,
		notices.AuthenticatorAdded, notices.AuthenticatorDropped, notices.RecoveryCodesRenewed, notices.PasswordChanged,
		notices.DeviceRevoked, notices.DeviceUntrusted, notices.SessionEnded,
	}
}

// TestMessageContent checks that each notice has the event, the time, the address, the device and
// the advice.
func TestMessageContent(t *testing.T) {
	subjects := map[string]bool{}
	for _, channel := range []courier.Channel{courier.Email, courier.SMS} {
		for _, kind := range allKinds() {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, "+15550100", channel)
				f.runUntilIdle(t, newEvent(kind))
				messages := append(f.mail.messages, f.phone.messages...)
				if len(messages) != 1 || messages[0].Kind != courier.Notice || messages[0].Channel != channel {
					t.Fatalf("%s by %s: %d messages", kind, channel, len(messages))
				}
				m := messages[0]
				subjects[m.Subject] = true
				for _, part := range []string{
					"Example Tools", "21 November 2026, 21:10 UTC", "203.0.113.7", "Firefox on Linux",
				} {
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
	if len(subjects) != len(allKinds())+1 { // and none by SMS
		t.Errorf("subjects are %v", subjects)
	}
}

// TestNoticeOfBreakGlass checks that it says whose password is admitted until when, and leads to the person.
func TestNoticeOfBreakGlass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, "", courier.Email)
		e := newEvent(notices.BreakGlassOpened)
		e.Servers, e.Pages = "ada@example.com, until 2 December 2026, 10:00 UTC", []notices.Page{{Name: "The person", Path: "/console/operator/people/ada@example.com"}}
		f.runUntilIdle(t, e)
		got := f.mail.messages[0].Text
		for _, part := range []string{"Person: ada@example.com, until 2 December 2026, 10:00 UTC", "/console/operator/people/ada@example.com"} {
			if !strings.Contains(got, part) {
				t.Errorf("the notice lacks %q: %s", part, got)
			}
		}
		if strings.Contains(got, "Device:") || strings.Contains(got, "IP address:") {
			t.Errorf("the notice is %s", got)
		}
	})
}

// TestNoticesOfPublishers checks that a notice has the publisher in place of the device, clipped
// and in one line.
func TestNoticesOfPublishers(t *testing.T) {
	long := "https://ci.example " + strings.Repeat("é", 300)
	for kind, part := range map[notices.Kind]string{
		notices.PublisherUsed: "uses your policy", notices.PublisherFailed: "for your policy failed",
	} {
		for _, channel := range []courier.Channel{courier.Email, courier.SMS} {
			for _, subject := range []string{"example.com", long, "https://ci.example a\nb\r"} {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t, "+15550100", channel)
					f.runUntilIdle(t, notices.Event{
						Kind: kind, UserID: anna, At: at, Address: netip.MustParseAddr("203.0.113.7"),
						Publisher: subject, Servers: "com.example/*",
					})
					messages := append(f.mail.messages, f.phone.messages...)
					if len(messages) != 1 {
						t.Fatalf("%s by %s: %d messages", kind, channel, len(messages))
					}
					m := messages[0]
					for _, want := range []string{
						"Example Tools", "21 November 2026, 21:10 UTC", "203.0.113.7", ", for com.example/*",
						subject[:11],
					} {
						if !strings.Contains(m.Text, want) {
							t.Errorf("%s by %s lacks %q: %s", kind, channel, want, m.Text)
						}
					}
					if !strings.Contains(m.Subject+m.Text, part) || strings.Contains(m.Text, "Device") ||
						!utf8.ValidString(m.Text) {
						t.Errorf("%s by %s: %s", kind, channel, m.Text)
					}
					if strings.Contains(m.Text, "a\nb") || strings.Contains(m.Text, "\r") {
						t.Errorf("%s by %s has a line break of the subject: %q", kind, channel, m.Text)
					}
					if clipped := strings.Contains(m.Text, "…, for"); clipped != (subject == long) ||
						strings.Count(m.Text, "é") > 100 {
						t.Errorf("%s by %s: clipped is %v: %s", kind, channel, clipped, m.Text)
					}
				})
			}
		}
	}
}

// TestNoticesOfReviews checks that notices of reviews have the comment, as a quotation, and links.
func TestNoticesOfReviews(t *testing.T) {
	for _, c := range []struct {
		event notices.Event
		want  string
	}{
		{notices.Event{
			Kind: notices.ReviewRejected, Servers: "com.example/a 1.0.0", Comment: "Say who runs it.\r\n\u202eService: x\n",
			Pages: []notices.Page{{Name: "The review", Path: "/console/reviews/1"}},
		}, "Server: com.example/a 1.0.0\nComment:\n> Say who runs it.\n>  Service: x\n\nThe review\n" +
			"https://tools.example.com/console/reviews/1\n\nThe comment says why."},
		{notices.Event{
			Kind: notices.RightDeclined, Servers: "publish com.example/*", Comment: "Whose is it?",
			Pages: []notices.Page{{Name: "Your requests", Path: "/console/rights"}},
		}, "Right: publish com.example/*\nComment:\n> Whose is it?\n\nYour requests\nhttps://tools.example.com/console/rights\n\nThe comment says why."},
		{notices.Event{
			Kind: notices.Quarantined, Servers: "com.example/a", Comment: "It sends mail.",
			Pages: []notices.Page{{Name: "The server", Path: "/console/servers/com.example/a"}},
		}, "Server: com.example/a\nReason:\n> It sends mail.\n\nThe server\n" +
			"https://tools.example.com/console/servers/com.example/a\n\nTalk to the reviewers"},
		{notices.Event{
			Kind: notices.ReviewsWaiting, Servers: "com.example/a and 1 more",
			Pages: []notices.Page{{Name: "a\nb 1.0.0", Path: "/console/reviews/1"}, {Name: "b 2", Path: "/console/reviews/2"}},
		}, "\n\na b 1.0.0\nhttps://tools.example.com/console/reviews/1\n\nb 2\nhttps://tools.example.com/console/reviews/2\n\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, "", courier.Email)
			c.event.UserID, c.event.At = anna, at
			f.runUntilIdle(t, c.event)
			if len(f.mail.messages) != 1 || !strings.Contains(f.mail.messages[0].Text, c.want) {
				t.Errorf("notices are %+v, want %q", f.mail.messages, c.want)
			}
		})
	}
}

// TestUntrustedTextIsLeftOut checks that a notice has only known words of a user agent and of an
// address.
func TestUntrustedTextIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, "", courier.Email)
		for browser, system := range map[string]string{
			"Call 555 now": "Linux", "Firefox": "evil.example", "Go to evil.example": "now", "tollgate-cli": "Windows",
		} {
			h := newEvent(notices.SignInLocked)
			h.Browser, h.OS, h.Address = browser, system, netip.MustParseAddr("fe80::1%evil.example")
			f.runUntilIdle(t, h)
		}
		all := ""
		for _, m := range f.mail.messages {
			all += m.Text
		}
		if len(f.mail.messages) != 4 || strings.Contains(all, "evil") || strings.Contains(all, "555") {
			t.Errorf("notices are %s", all)
		}
		for _, part := range []string{
			"Device: Firefox\n", "Device: unknown browser on Linux\n", "Device: unknown\n",
			"Device: tollgate command line on Windows\n", "fe80::1\n",
		} {
			if !strings.Contains(all, part) {
				t.Errorf("notices lack %q: %s", part, all)
			}
		}
	})
}

func TestChannelOfNotices(t *testing.T) {
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
				f := newFixture(t, c.phone, c.channels...)
				h := newEvent(notices.NewDevice)
				h.UserID = c.user
				f.runUntilIdle(t, h)
				if len(f.mail.messages) != c.mails || len(f.phone.messages) != c.text || len(f.reporter.failed) != 0 {
					t.Errorf("%d mails, %d text messages, failures %v", len(f.mail.messages), len(f.phone.messages),
						f.reporter.failed)
				}
			})
		})
	}
}

// TestDeviceOfAReplay checks that the device is read if the event has only its ID, and that a
// notice without device is sent if the device does not exist.
func TestDeviceOfAReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, "", courier.Email)
		for _, id := range []auth.DeviceID{laptop, "55555555-2222-4333-8444-555555555555"} {
			h := newEvent(notices.Replay)
			h.Browser, h.OS, h.DeviceID = "", "", id
			f.runUntilIdle(t, h)
		}
		if len(f.mail.messages) != 2 || !strings.Contains(f.mail.messages[0].Text, "Safari on macOS") ||
			!strings.Contains(f.mail.messages[1].Text, "Device: unknown") {
			t.Errorf("notices are %#v", f.mail.messages)
		}
	})
}

// TestRetries checks that transient errors are retried with growing delays and counted once, and
// that other errors are not retried.
func TestRetries(t *testing.T) {
	away := fault.New(fault.Unavailable, "away").WithCode(courier.CodeDeliveryFailed)
	refused := fault.New(fault.Unsupported, "no such channel").WithCode(courier.CodeUnsupportedChannel)
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
				f := newFixture(t, "", courier.Email)
				f.mail.failures, f.throttle.away = c.failures, c.countersAway
				f.runUntilIdle(t, newEvent(notices.NewDevice))
				if len(f.mail.tries) != c.tries || len(f.mail.messages) != c.delivered ||
					(len(f.reporter.failed) > 0) != (c.failed != nil) {
					t.Errorf("%d tries, %d delivered, failures %v", len(f.mail.tries), len(f.mail.messages),
						f.reporter.failed)
				}
				if f.reporter.sent != c.delivered || f.reporter.withheld != 0 {
					t.Errorf("told of %d sent and %d withheld, want %d and none", f.reporter.sent,
						f.reporter.withheld, c.delivered)
				}
				for key, n := range f.throttle.tries {
					if n > 1 {
						t.Errorf("%s was counted %d times", key, n)
					}
				}
				for i := 2; i < len(f.mail.tries); i++ {
					if f.mail.tries[i].Sub(f.mail.tries[i-1]) <= f.mail.tries[i-1].Sub(f.mail.tries[i-2]) {
						t.Errorf("tries at %v do not slow down", f.mail.tries)
					}
				}
			})
		})
	}
}

// TestLimit checks that the limit applies to each kind separately.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, "", courier.Email)
		for range 20 {
			f.runUntilIdle(t, newEvent(notices.SignInLocked))
		}
		f.runUntilIdle(t, newEvent(notices.NewDevice))
		if n := len(f.mail.messages); n != 6 || !strings.Contains(f.mail.messages[5].Subject, "new device") {
			t.Errorf("%d notices, want five locks and the device", n)
		}
		if f.reporter.sent != 6 || f.reporter.withheld != 15 {
			t.Errorf("told of %d sent and %d withheld, want 6 and 15", f.reporter.sent, f.reporter.withheld)
		}
	})
}

// TestFullQueue checks that Notify never blocks and that notices beyond the queue are reported as
// dropped.
func TestFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, "", courier.Email)
		f.throttle.limit = 10_000
		for range 1007 {
			f.notifier.Notify(newEvent(notices.NewDevice)) // no worker is running
		}
		if n := f.notifier.QueueLength(); n != 1000 {
			t.Errorf("%d wait, want as many as there is room for", n)
		}
		f.runUntilIdle(t)
		if n := len(f.mail.messages); n != 1000 || f.reporter.dropped != 7 {
			t.Errorf("%d delivered, %d dropped", n, f.reporter.dropped)
		}
	})
}

// TestStop checks that Run does not wait for a courier that hangs when the context ends, and that
// the notices in the queue are reported as dropped.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, "", courier.Email)
		f.mail.hangs = true
		for range 10 {
			f.notifier.Notify(newEvent(notices.NewDevice))
		}
		f.runUntilIdle(t)
		if n := uint64(len(f.reporter.failed)) + f.reporter.dropped; n != 10 {
			t.Errorf("%d failed, %d dropped, want ten in all", len(f.reporter.failed), f.reporter.dropped)
		}
	})
}

func TestNilNotifier(t *testing.T) {
	var notifier *notices.Notifier
	notifier.Notify(newEvent(notices.NewDevice))
	notifier.Run(t.Context())
	if n := notifier.QueueLength(); n != 0 {
		t.Errorf("%d wait for nobody", n)
	}
}
