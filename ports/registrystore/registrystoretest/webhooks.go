package registrystoretest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// WebhookStores are empty stores of webhooks and their deliveries, with their transactions.
type WebhookStores struct {
	Webhooks   registrystore.Webhooks
	Deliveries registrystore.Deliveries
	Runner     transaction.Runner
}

// RunWebhooks runs the tests of the stores of webhooks and deliveries. open is called for each
// test.
func RunWebhooks(t *testing.T, open func(t *testing.T) WebhookStores) {
	t.Helper()
	parts := map[string]func(t *testing.T, s WebhookStores){
		"an empty store has no webhooks":                                  hasNoWebhooks,
		"stored webhooks have the values of all fields and are ordered":   keepsWebhooks,
		"a removed webhook is not found, and its deliveries are removed":  removesWebhook,
		"a lease has one holder until it ends or is released":             leasesToOne,
		"one of several parallel requests for a lease succeeds":           leasesInParallel,
		"events of a server are delivered in their order":                 deliversInOrder,
		"purges wait for nothing, and urgent ones are first":              purgesFirst,
		"a stored delivery has the value of every field":                  keepsDelivery,
		"a delivery to a webhook that does not exist is left out":         leavesDeliveryOut,
		"the outcome of an attempt is stored":                             updatesDelivery,
		"a dead delivery can be sent again":                               redelivers,
		"the outcome of an attempt from before a new delivery is ignored": ignoresOldOutcome,
		"deletion removes deliveries that ended before a time":            removesEnded,
		"pending and dead deliveries are counted for each webhook":        countsDeliveries,
		"the newest dead deliveries are listed first":                     listsNewestDead,
		"deliveries of parallel events are all stored":                    addsDeliveriesInParallel,
		"the last attempts are listed first":                              listsAttempts,
		"the last tests of a webhook are kept":                            keepsTests,
		"a webhook replaces the one with its ID, whose deliveries stay":   replacesWebhook,
		"a failed transaction stores no delivery":                         rollsDeliveriesBack,
		"a call with a cancelled context fails":                           refusesCanceledWebhooks,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(t, open(t)) })
	}
}

// newWebhook returns a webhook that was created n seconds after the epoch.
func newWebhook(t *testing.T, id event.WebhookID, n int) event.Webhook {
	t.Helper()
	w, err := event.New(event.Draft{
		URL: "https://example.com/hook?a=1", Events: []string{"status", "published"}, Pattern: "com.example/*",
	})
	if err != nil {
		t.Fatal(err)
	}
	w.ID, w.Secret, w.CreatedAt = id, []byte{0, 1, 255, '\\', '\''}, epoch.Add(time.Duration(n)*time.Second)
	return w
}

func (s WebhookStores) addWebhook(t *testing.T, id event.WebhookID, n int) event.Webhook {
	t.Helper()
	w := newWebhook(t, id, n)
	if err := s.Webhooks.Put(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	return w
}

// newDelivery returns the delivery of an event of a server, n seconds after the epoch. Its body
// names the event.
func newDelivery(t *testing.T, w event.WebhookID, id, server string, n int) event.Delivery {
	t.Helper()
	e := event.Event{
		ID: event.ID(id), Type: event.Published, Time: epoch.Add(time.Duration(n) * time.Second),
		Name: name(t, server), Version: version(t, "1.0.0"),
	}
	return event.NewDelivery(w, e, []byte(`{"id":"`+id+`"}`))
}

// addDeliveries stores deliveries in one transaction.
func (s WebhookStores) addDeliveries(t *testing.T, list ...event.Delivery) {
	t.Helper()
	err := s.Runner.Atomically(t.Context(), func(ctx context.Context) error { return s.Deliveries.Add(ctx, list) })
	if err != nil {
		t.Fatal(err)
	}
}

// due returns what is due to a webhook n seconds after the epoch.
func (s WebhookStores) due(t *testing.T, w event.WebhookID, n, limit int) []event.Delivery {
	t.Helper()
	found, err := s.Deliveries.Due(t.Context(), w, epoch.Add(time.Duration(n)*time.Second), limit)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// wantDue checks the events that are due to a webhook n seconds after the epoch.
func (s WebhookStores) wantDue(t *testing.T, w event.WebhookID, n int, want ...string) {
	t.Helper()
	var got []string
	for _, d := range s.due(t, w, n, 10) {
		got = append(got, string(d.Event))
	}
	if !slices.Equal(got, want) {
		t.Errorf("due to %s after %d s: %v, want %v", w, n, got, want)
	}
}

// update stores the outcome of an attempt n seconds after the epoch: delivered without a problem,
// and dead or to be tried a minute later with one.
func (s WebhookStores) update(t *testing.T, d event.Delivery, n int, problem string, dead bool) {
	t.Helper()
	at := epoch.Add(time.Duration(n) * time.Second)
	schedule := event.Schedule{First: time.Minute, For: time.Hour}
	if dead {
		schedule.For = -time.Hour
	}
	if problem == "" {
		d = d.Succeed(at)
	} else {
		d = d.Fail(schedule, problem, at)
	}
	if err := s.Deliveries.Update(t.Context(), d, at); err != nil {
		t.Fatal(err)
	}
}

func (s WebhookStores) condition(t *testing.T, w event.WebhookID) event.Condition {
	t.Helper()
	all, err := s.Webhooks.Conditions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all[w]
}

func (s WebhookStores) wantWaiting(t *testing.T, n int, want ...event.WebhookID) {
	t.Helper()
	got, err := s.Deliveries.Waiting(t.Context(), epoch.Add(time.Duration(n)*time.Second))
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Waiting after %d s = %v, %v, want %v", n, got, err, want)
	}
}

func hasNoWebhooks(t *testing.T, s WebhookStores) {
	t.Helper()
	list, err := s.Webhooks.List(t.Context())
	conditions, err2 := s.Webhooks.Conditions(t.Context())
	if len(list) > 0 || len(conditions) > 0 || err != nil || err2 != nil {
		t.Errorf("an empty store has %v and %v, errors %v, %v", list, conditions, err, err2)
	}
	s.wantWaiting(t, 100)
	s.wantDue(t, "w1", 100)
	if err := s.Webhooks.Remove(t.Context(), "w1"); !fault.Is(err, fault.NotFound) {
		t.Errorf("Remove returned %v, want fault.NotFound", err)
	}
	if ok, err := s.Webhooks.Lease(t.Context(), "w1", registrystore.Lease{
		Holder: "a", Now: epoch, Until: epoch.Add(time.Minute),
	}); ok || err != nil {
		t.Errorf("Lease = %v, %v, want false", ok, err)
	}
	if err := s.Webhooks.Release(t.Context(), "w1", "a"); err != nil {
		t.Errorf("Release returned %v", err)
	}
}

func keepsWebhooks(t *testing.T, s WebhookStores) {
	t.Helper()
	third, first, second := s.addWebhook(t, "a", 2), s.addWebhook(t, "b", 1), s.addWebhook(t, "c", 1)
	list, err := s.Webhooks.List(t.Context())
	if err != nil || !reflect.DeepEqual(list, []event.Webhook{first, second, third}) {
		t.Errorf("List = %+v, %v, want %+v", list, err, []event.Webhook{first, second, third})
	}
	if c := s.condition(t, "a"); !reflect.DeepEqual(c, event.Condition{}) {
		t.Errorf("the condition of a new webhook is %+v", c)
	}
}

func removesWebhook(t *testing.T, s WebhookStores) {
	t.Helper()
	s.addWebhook(t, "a", 0)
	s.addWebhook(t, "b", 1)
	s.addDeliveries(t, newDelivery(t, "a", "e1", "com.example/x", 0), newDelivery(t, "b", "e1", "com.example/x", 0))
	if err := s.Webhooks.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	s.wantDue(t, "a", 9)
	s.wantDue(t, "b", 9, "e1")
	s.wantWaiting(t, 9, "b")
	s.addWebhook(t, "a", 0)
	if c := s.condition(t, "a"); c.Pending != 0 {
		t.Errorf("a webhook that was added again has %+v", c)
	}
}

// firstLease is the lease of the webhook a.
func (s WebhookStores) firstLease() leaseStore {
	return leaseStore{
		lease: func(ctx context.Context, l registrystore.Lease) (bool, error) {
			return s.Webhooks.Lease(ctx, "a", l)
		},
		release: func(ctx context.Context, holder string) error { return s.Webhooks.Release(ctx, "a", holder) },
	}
}

func leasesToOne(t *testing.T, s WebhookStores) {
	t.Helper()
	s.addWebhook(t, "a", 0)
	s.firstLease().testOneHolder(t)
}

func leasesInParallel(t *testing.T, s WebhookStores) {
	t.Helper()
	s.addWebhook(t, "a", 0)
	s.firstLease().testParallelHolders(t)
}

func rollsDeliveriesBack(t *testing.T, s WebhookStores) {
	t.Helper()
	s.addWebhook(t, "a", 0)
	failed := errors.New("failed")
	err := s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		return errors.Join(s.Deliveries.Add(ctx, []event.Delivery{
			newDelivery(t, "a", "e1", "com.example/x", 0),
		}), failed)
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	s.wantDue(t, "a", 9)
	s.wantWaiting(t, 9)
}

func refusesCanceledWebhooks(t *testing.T, s WebhookStores) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err1 := s.Webhooks.List(ctx)
	_, err2 := s.Deliveries.Waiting(ctx, epoch)
	for i, err := range []error{err1, err2, s.Webhooks.Put(ctx, newWebhook(t, "a", 0)), s.Webhooks.Remove(ctx, "a")} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d with a canceled context returned %v", i, err)
		}
	}
}
