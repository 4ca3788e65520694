package notifying_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/eventsender"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

var deliveryEpoch = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// receiver accepts requests, except those whose body begins with a text that it refuses.
type receiver struct {
	mu       sync.Mutex
	got      []string
	refuses  string
	during   func() // is called in each request; optional
	respond  func(ctx context.Context) (int, error)
	requests []eventsender.Request
}

func (*receiver) Check(context.Context, event.URL) error { return nil }

func (r *receiver) Send(ctx context.Context, q eventsender.Request) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, q)
	if r.during != nil {
		r.during()
	}
	if r.respond != nil {
		return r.respond(ctx)
	}
	if r.refuses != "" && strings.HasPrefix(string(q.Body), r.refuses) {
		return 500, nil
	}
	r.got = append(r.got, string(q.Body))
	return 204, nil
}

func (r *receiver) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	slices.Sort(got)
	r.got = nil
	return got
}

// reports keeps what a runner reports.
type reports struct {
	mu        sync.Mutex
	attempted []event.State
	failed    []error
	pending   int
	dead      int
	during    func(attempts int) // is called after each attempt; optional
}

func (r *reports) Report(e any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e := e.(type) {
	case notifying.Attempted:
		r.attempted = append(r.attempted, e.State)
		if r.during != nil {
			r.during(len(r.attempted))
		}
	case notifying.Counted:
		r.pending, r.dead = e.Pending, e.Dead
	case notifying.DeliveryFailed:
		r.failed = append(r.failed, e.Err)
	}
}

// patience waits until the context ends.
type patience struct{}

func (patience) Wait(ctx context.Context, _ time.Duration) bool {
	<-ctx.Done()
	return false
}

// deliveryFixture is a store with the webhook w.
type deliveryFixture struct {
	*notifying.Runner

	t          *testing.T
	webhooks   *fakedb.Webhooks
	deliveries *fakedb.Deliveries
	clock      *clocktest.Manual
	receiver   *receiver
	reports    *reports
	ports      notifying.RunnerPorts
}

func newDeliveryFixture(t *testing.T) *deliveryFixture {
	t.Helper()
	db := fakedb.New()
	fx := &deliveryFixture{
		t: t, webhooks: fakedb.NewWebhooks(db), deliveries: fakedb.NewDeliveries(db),
		clock:    clocktest.NewManual(deliveryEpoch),
		receiver: &receiver{}, reports: &reports{},
	}
	fx.ports = notifying.RunnerPorts{
		Webhooks: fx.webhooks, Deliveries: fx.deliveries, Sealer: &plainSealer{}, Sender: fx.receiver, Clock: fx.clock,
		Waiter: patience{}, Entropy: &secretstest.Entropy{}, Reporter: fx.reports,
	}
	fx.Runner = notifying.NewRunner(event.Schedule{First: 5 * time.Second, For: time.Hour}, fx.ports)
	w, err := event.New(event.Draft{URL: "https://example.com/hook", Events: []string{"status"}})
	must.Succeed(t, err)
	w.ID = "w"
	if w.Secret, err = (&plainSealer{}).Seal([]byte("secret"), notifying.SealedSecret("w")); err != nil {
		t.Fatal(err)
	}
	must.Succeed(t, fx.webhooks.Put(t.Context(), w))
	return fx
}

// add adds events "NUMBER of SERVER" of servers, in this order.
func (fx *deliveryFixture) add(servers ...string) {
	fx.t.Helper()
	var list []event.Delivery
	for i, s := range servers {
		name, err := registry.ParseName("com.example/" + s)
		must.Succeed(fx.t, err)
		body := fmt.Sprintf("%s %d", s, i)
		list = append(list,
			event.NewDelivery("w", event.Event{
				ID: event.ID(body), Type: event.Status, Time: fx.clock.Now(), Name: name,
			}, []byte(body)))
	}
	must.Succeed(fx.t, fx.deliveries.Add(fx.t.Context(), list))
}

// deliver delivers after a time, and checks what arrives.
func (fx *deliveryFixture) deliver(after time.Duration, want ...string) {
	fx.t.Helper()
	fx.clock.Advance(after)
	must.Succeed(fx.t, fx.Deliver(fx.t.Context(), "w"))
	if got := fx.receiver.take(); !slices.Equal(got, want) {
		fx.t.Errorf("delivered %q, want %q", got, want)
	}
}

func TestDeliversInOrderForEachServer(t *testing.T) {
	t.Parallel()
	fx := newDeliveryFixture(t)
	fx.add("a", "b", "a", "b", "c")
	fx.receiver.refuses = "a"
	fx.deliver(0, "b 1", "b 3", "c 4")
	fx.receiver.refuses = ""
	fx.deliver(4 * time.Second)
	fx.deliver(time.Second, "a 0", "a 2")
	var order []string
	for _, q := range fx.receiver.requests {
		if strings.HasPrefix(string(q.Body), "a") {
			order = append(order, string(q.Body))
		}
	}
	if want := []string{"a 0", "a 0", "a 2"}; !slices.Equal(order, want) {
		t.Errorf("the requests are %q, want %q", order, want)
	}
	first := fx.receiver.requests[0]
	if want := event.Sign("secret", deliveryEpoch, first.Body); first.Signature != want ||
		first.URL.String() != "https://example.com/hook" {
		t.Errorf("the first request is %+v, want the signature %s", first, want)
	}
}

func TestGivesUpAndDeliversAgain(t *testing.T) {
	t.Parallel()
	fx := newDeliveryFixture(t)
	fx.add("a", "a")
	fx.receiver.respond = func(context.Context) (int, error) { return 0, fault.New(fault.Unavailable, "no answer") }
	for _, wait := range []time.Duration{0, 5 * time.Second, 10 * time.Second, 20 * time.Second} {
		fx.deliver(wait)
	}
	if n := len(fx.receiver.requests); n != 4 {
		t.Errorf("after 35 seconds there were %d attempts, want 4", n)
	}
	for range 20 {
		fx.deliver(30 * time.Minute)
	}
	all, err := fx.webhooks.Conditions(t.Context())
	if c := all["w"]; err != nil || c.Dead != 2 || c.Pending != 0 || c.LastProblem != "no answer" {
		t.Errorf("after the end: %+v, %v", c, err)
	}
	fx.receiver.respond = nil
	if n, err := fx.deliveries.Redeliver(t.Context(), "w", "", fx.clock.Now()); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	fx.deliver(0, "a 0", "a 1")
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for want, respond := range map[string]func(context.Context) (int, error){
		"the receiver answered with the status 404": func(context.Context) (int, error) {
			return 404, nil
		},
		"the receiver answered with the redirect 302, which is not followed": func(context.Context) (int, error) {
			return 302, nil
		},
		"the name of the host cannot be resolved": func(context.Context) (int, error) {
			return 0, fault.New(fault.Unavailable, "the name of the host cannot be resolved")
		},
	} {
		fx := newDeliveryFixture(t)
		fx.add("a")
		fx.receiver.respond = respond
		fx.deliver(0)
		all, err := fx.webhooks.Conditions(t.Context())
		if err != nil || all["w"].LastProblem != want {
			t.Errorf("the problem is %q, %v, want %q", all["w"].LastProblem, err, want)
		}
	}
}

func TestOneInstanceDeliversAtATime(t *testing.T) {
	t.Parallel()
	fx := newDeliveryFixture(t)
	fx.add("a")
	other := registrystore.Lease{Holder: "other", Now: deliveryEpoch, Until: deliveryEpoch.Add(20 * time.Second)}
	if ok, err := fx.webhooks.Lease(t.Context(), "w", other); !ok || err != nil {
		t.Fatal(ok, err)
	}
	fx.deliver(19 * time.Second)
	fx.deliver(time.Second, "a 0")
	if ok, err := fx.webhooks.Lease(t.Context(), "w", registrystore.Lease{
		Holder: "other", Now: fx.clock.Now(), Until: fx.clock.Now(),
	}); !ok || err != nil {
		t.Errorf("after the delivery another instance gets the lease: %v, %v", ok, err)
	}
}

func TestRemovedWebhookEndsTheWork(t *testing.T) {
	t.Parallel()
	fx := newDeliveryFixture(t)
	fx.add("a", "a", "a")
	fx.receiver.during = func() {
		if err := fx.webhooks.Remove(context.Background(), "w"); err != nil && !fault.Is(err, fault.NotFound) {
			t.Error(err)
		}
	}
	fx.deliver(0, "a 0")
}

func TestEndedContextLeavesTheEvent(t *testing.T) {
	t.Parallel()
	fx := newDeliveryFixture(t)
	fx.add("a")
	ctx, cancel := context.WithCancel(t.Context())
	fx.receiver.respond = func(context.Context) (int, error) {
		cancel()
		return 0, ctx.Err()
	}
	_ = fx.Deliver(ctx, "w") // the context has ended
	if len(fx.reports.attempted) > 0 {
		t.Errorf("an attempt is reported: %v", fx.reports.attempted)
	}
	fx.receiver.respond = nil
	fx.deliver(0, "a 0")
}

// slowFirst is a receiver whose first request ends after two purges have come.
type slowFirst struct {
	receiver

	begun, purges, others chan string
}

func (r *slowFirst) Send(ctx context.Context, q eventsender.Request) (int, error) {
	switch body := string(q.Body); {
	case strings.HasPrefix(body, "slow"):
		r.begun <- body
		for range 2 {
			select {
			case <-r.purges:
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
	case strings.HasPrefix(body, "purge"):
		r.purges <- body
	default:
		r.others <- body
	}
	return 204, nil
}

// steps is a waiter each of whose waits ends by a step, or by its context.
type steps chan struct{}

func (s steps) Wait(ctx context.Context, _ time.Duration) bool {
	select {
	case <-s:
		return true
	case <-ctx.Done():
		return false
	}
}

// TestUrgentOnesDoNotWait checks that an urgent delivery is sent while an attempt of the same webhook
// takes long, once, and that one which is not urgent waits for the round.
func TestUrgentOnesDoNotWait(t *testing.T) {
	t.Parallel()
	fx := newDeliveryFixture(t)
	slow, next := &slowFirst{begun: make(chan string), purges: make(chan string), others: make(chan string)}, make(steps)
	fx.ports.Sender, fx.ports.Waiter = slow, next
	runner := notifying.NewRunner(event.Schedule{First: 5 * time.Second, For: time.Hour}, fx.ports)
	urgent := func(body string) {
		t.Helper()
		d := event.NewDelivery("w", event.Event{ID: event.ID(body), Type: event.Purge, Time: fx.clock.Now()}, []byte(body))
		d.Urgent = true
		must.Succeed(t, fx.deliveries.Add(t.Context(), []event.Delivery{d}))
	}
	fx.add("slow")
	delivered := make(chan error, 1)
	go func() { delivered <- runner.Deliver(t.Context(), "w") }()
	await.Receive(t, "the slow request", slow.begun)
	fx.add("patient")
	urgent("purge 1")
	next <- struct{}{}
	next <- struct{}{} // the second look does not send it again
	urgent("purge 2")
	next <- struct{}{}
	if got := await.Receive(t, "the event that is not urgent", slow.others); got != "patient 0" {
		t.Errorf("after the slow request came %q", got)
	}
	must.Succeed(t, await.Receive(t, "the end of the round", delivered))
}

// failingStore fails each update.
type failingStore struct{ *fakedb.Deliveries }

func (failingStore) Update(context.Context, event.Delivery, time.Time) error {
	return fault.New(fault.Unavailable, "the database is away")
}

func TestOutcomesThatAreNotStoredComeAgain(t *testing.T) {
	t.Parallel()
	fx := newDeliveryFixture(t)
	fx.add("a")
	ports := fx.ports
	ports.Deliveries = failingStore{fx.deliveries}
	broken := notifying.NewRunner(event.Schedule{First: time.Second, For: time.Hour}, ports)
	if err := broken.Deliver(t.Context(), "w"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Deliver returned %v", err)
	}
	if got := fx.receiver.take(); !slices.Equal(got, []string{"a 0"}) {
		t.Errorf("sent %q", got)
	}
	fx.deliver(0, "a 0")
}

func TestRun(t *testing.T) {
	t.Parallel()
	fx := newDeliveryFixture(t)
	fx.add("a", "b")
	ctx, cancel := context.WithCancel(t.Context())
	fx.reports.during = func(attempts int) {
		if attempts == 2 {
			cancel()
		}
	}
	ports := fx.ports
	ports.Waiter = patience{}
	notifying.NewRunner(event.Schedule{First: time.Second, For: time.Hour}, ports).Run(ctx)
	if got := fx.receiver.take(); !slices.Equal(got, []string{"a 0", "b 1"}) {
		t.Errorf("Run sent %q", got)
	}
	if len(fx.reports.failed) > 0 {
		t.Errorf("Run reported %v", fx.reports.failed)
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	fx := newDeliveryFixture(t)
	fx.add("a", "b")
	fx.deliver(0, "a 0", "b 1")
	fx.clock.Advance(24*time.Hour - time.Second)
	must.Succeed(t, fx.Sweep(t.Context()))
	if n, err := fx.deliveries.Redeliver(t.Context(), "w", "a 0", fx.clock.Now()); n != 1 || err != nil {
		t.Errorf("after a day an event is kept: %d, %v", n, err)
	}
	fx.clock.Advance(2 * time.Second)
	must.Succeed(t, fx.Sweep(t.Context()))
	if n, err := fx.deliveries.Redeliver(t.Context(), "w", "b 1", fx.clock.Now()); n != 0 || err != nil {
		t.Errorf("after more than a day an event is kept: %d, %v", n, err)
	}
}
