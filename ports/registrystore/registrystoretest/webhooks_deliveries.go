package registrystoretest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
)

func deliversInOrder(t *testing.T, s WebhookStores) {
	t.Helper()
	s.addWebhook(t, "a", 0)
	s.addDeliveries(t, newDelivery(t, "a", "x1", "com.example/x", 0), newDelivery(t, "a", "y1", "com.example/y", 5))
	s.addDeliveries(t, newDelivery(t, "a", "x2", "com.example/x", 0), newDelivery(t, "a", "z1", "com.example/z", 0))
	s.wantDue(t, "a", 0, "x1", "z1")
	s.wantDue(t, "a", 5, "x1", "y1", "z1")
	if got := s.due(t, "a", 5, 2); len(got) != 2 || got[1].Event != "y1" {
		t.Errorf("two due deliveries are %+v", got)
	}
	s.update(t, s.due(t, "a", 5, 1)[0], 6, "no answer", false)
	s.wantDue(t, "a", 10, "y1", "z1") // x2 waits for x1
	s.wantDue(t, "a", 66, "x1", "y1", "z1")
	s.update(t, s.due(t, "a", 66, 1)[0], 66, "", false)
	s.wantDue(t, "a", 66, "y1", "x2", "z1")
}

// purgesFirst checks that a purge waits for no event of its server, no event waits for a purge, and
// an urgent one is the first.
func purgesFirst(t *testing.T, s WebhookStores) {
	t.Helper()
	s.addWebhook(t, "a", 0)
	purge := func(id, server string, n int, urgent bool) event.Delivery {
		d := newDelivery(t, "a", id, "com.example/x", n)
		d.Type, d.Version, d.Urgent = event.Purge, registry.Version{}, urgent
		if server == "" {
			d.Name = registry.Name{}
		}
		return d
	}
	s.addDeliveries(t, newDelivery(t, "a", "x1", "com.example/x", 0), purge("p1", "com.example/x", 0, false),
		purge("p2", "", 0, false), newDelivery(t, "a", "y1", "com.example/y", 0), purge("p3", "com.example/x", 9, true),
		purge("p4", "com.example/x", 0, true))
	s.wantDue(t, "a", 0, "p4", "x1", "p1", "p2", "y1")
	s.wantDue(t, "a", 9, "p3", "p4", "x1", "p1", "p2", "y1")
	first := s.due(t, "a", 9, 1)
	if len(first) != 1 || first[0].Event != "p3" || !first[0].Urgent || len(s.due(t, "a", 9, 3)) != 3 {
		t.Errorf("the first is %+v", first)
	}
}

func keepsDelivery(t *testing.T, s WebhookStores) {
	t.Helper()
	s.addWebhook(t, "a", 0)
	whole := newDelivery(t, "a", "e1", "com.example/x", 0)
	whole.Urgent = true
	whole.Version, whole.Type, whole.Body = registry.Version{}, event.Status, []byte("\x00\xff'\\?")
	one := newDelivery(t, "a", "e2", "com.example/y", 1)
	s.addDeliveries(t, whole, one)
	got := s.due(t, "a", 1, 10)
	if len(got) != 2 || got[0].Sequence >= got[1].Sequence {
		t.Fatalf("due: %+v", got)
	}
	whole.Sequence, one.Sequence = got[0].Sequence, got[1].Sequence
	if !reflect.DeepEqual(got, []event.Delivery{whole, one}) {
		t.Errorf("due: %+v, want %+v", got, []event.Delivery{whole, one})
	}
}

func leavesDeliveryOut(t *testing.T, s WebhookStores) {
	t.Helper()
	s.addWebhook(t, "a", 0)
	s.addDeliveries(t, newDelivery(t, "gone", "e1", "com.example/x", 0), newDelivery(t, "a", "e1", "com.example/x", 0))
	s.wantDue(t, "gone", 9)
	s.wantDue(t, "a", 9, "e1")
	s.wantWaiting(t, 9, "a")
}

func updatesDelivery(t *testing.T, s WebhookStores) {
	t.Helper()
	s.addWebhook(t, "a", 0)
	s.addDeliveries(t, newDelivery(t, "a", "e1", "com.example/x", 0), newDelivery(t, "a", "e2", "com.example/y", 0))
	first := s.due(t, "a", 0, 1)[0]
	s.update(t, first, 1, "no answer", false)
	s.wantDue(t, "a", 60, "e2")
	again := s.due(t, "a", 61, 1)[0]
	if again.Attempts != 1 || again.Problem != "no answer" || !again.NextAt.Equal(epoch.Add(61*time.Second)) ||
		!again.Since.Equal(epoch) {
		t.Errorf("after a failure: %+v", again)
	}
	s.update(t, again, 70, "no answer again", true)
	s.wantDue(t, "a", 7000, "e2")
	s.update(t, again, 80, "", false) // it is dead: the outcome does not count
	c := s.condition(t, "a")
	if c.Dead != 1 || c.Pending != 1 || c.LastProblem != "no answer again" ||
		!c.LastFailure.Equal(epoch.Add(70*time.Second)) || !c.LastSuccess.IsZero() {
		t.Errorf("after a dead one: %+v", c)
	}
	s.update(t, s.due(t, "a", 90, 1)[0], 90, "", false)
	if c = s.condition(t, "a"); c.Pending != 0 || !c.LastSuccess.Equal(epoch.Add(90*time.Second)) {
		t.Errorf("after a success: %+v", c)
	}
	s.wantWaiting(t, 9000)
}

func redelivers(t *testing.T, s WebhookStores) {
	t.Helper()
	s.addWebhook(t, "a", 0)
	s.addWebhook(t, "b", 0)
	for i := range 3 {
		s.addDeliveries(t, newDelivery(t, "a", fmt.Sprintf("e%d", i), fmt.Sprintf("com.example/x%d", i), 0))
	}
	s.addDeliveries(t, newDelivery(t, "b", "e0", "com.example/x0", 0))
	list := s.due(t, "a", 0, 10)
	s.update(t, list[0], 1, "away", true)
	s.update(t, list[1], 1, "away", true)
	s.update(t, list[2], 1, "", false)
	s.wantDue(t, "a", 500)
	redeliver := func(of event.ID, n int, want int) {
		t.Helper()
		if got, err := s.Deliveries.Redeliver(t.Context(), "a", of,
			epoch.Add(time.Duration(n)*time.Second)); got != want || err != nil {
			t.Errorf("Redeliver(%q) = %d, %v, want %d", of, got, err, want)
		}
	}
	redeliver("missing", 9, 0)
	redeliver("", 10, 2)
	s.wantDue(t, "a", 9)
	s.wantDue(t, "a", 10, "e0", "e1")
	if d := s.due(t, "a", 10,
		1)[0]; d.Attempts != 0 || d.Problem != "" || !d.Since.Equal(epoch.Add(10*time.Second)) ||
		d.State != event.Pending || !d.EndedAt.IsZero() {
		t.Errorf("delivered again: %+v", d)
	}
	redeliver("e2", 20, 1)
	redeliver("", 20, 0)
	s.wantDue(t, "a", 20, "e0", "e1", "e2")
	s.wantDue(t, "b", 20, "e0")
}

func ignoresOldOutcome(t *testing.T, s WebhookStores) {
	t.Helper()
	s.addWebhook(t, "a", 0)
	s.addDeliveries(t, newDelivery(t, "a", "e1", "com.example/x", 0))
	running := s.due(t, "a", 0, 1)[0]
	if n, err := s.Deliveries.Redeliver(t.Context(), "a", "e1", epoch.Add(time.Second)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	s.update(t, running, 2, "", false)
	s.wantDue(t, "a", 2, "e1")
	if c := s.condition(t, "a"); !c.LastSuccess.IsZero() {
		t.Errorf("the condition is %+v", c)
	}
}

func removesEnded(t *testing.T, s WebhookStores) {
	t.Helper()
	s.addWebhook(t, "a", 0)
	s.addWebhook(t, "b", 0)
	for _, w := range []event.WebhookID{"a", "b"} {
		for i := range 6 {
			s.addDeliveries(t, newDelivery(t, w, fmt.Sprintf("e%d", i), fmt.Sprintf("com.example/x%d", i), 0))
		}
		for i, d := range s.due(t, w, 0, 5) {
			problem := ""
			if i == 4 {
				problem = "away"
			}
			s.update(t, d, 10+i, problem, true)
		}
	}
	remove := func(state event.State, before, keep, want int) {
		t.Helper()
		if n, err := s.Deliveries.RemoveEnded(t.Context(), state, epoch.Add(time.Duration(before)*time.Second),
			keep); n != want || err != nil {
			t.Errorf("RemoveEnded(%s, %d, %d) = %d, %v, want %d", state, before, keep, n, err, want)
		}
	}
	remove(event.Delivered, 10, 4, 0)
	remove(event.Delivered, 11, 4, 2) // the oldest of each
	remove(event.Delivered, 0, 2, 2)  // the oldest beyond two of each
	remove(event.Delivered, 99, 9, 4)
	remove(event.Dead, 0, 1, 0)
	remove(event.Dead, 99, 9, 2)
	s.wantDue(t, "a", 99, "e5")
	s.wantDue(t, "b", 99, "e5")
}

func countsDeliveries(t *testing.T, s WebhookStores) {
	t.Helper()
	s.addWebhook(t, "a", 0)
	s.addWebhook(t, "b", 0)
	for i := range 4 {
		s.addDeliveries(t, newDelivery(t, "a", fmt.Sprintf("e%d", i), fmt.Sprintf("com.example/x%d", i), 0))
	}
	list := s.due(t, "a", 0, 10)
	s.update(t, list[0], 1, "", false)
	s.update(t, list[1], 2, "away", true)
	if c := s.condition(t, "a"); c.Pending != 2 || c.Dead != 1 {
		t.Errorf("the condition of a is %+v", c)
	}
	if c := s.condition(t, "b"); c.Pending != 0 || c.Dead != 0 {
		t.Errorf("the condition of b is %+v", c)
	}
}

func listsNewestDead(t *testing.T, s WebhookStores) {
	t.Helper()
	s.addWebhook(t, "a", 0)
	const all = event.MaxListed + 5
	for i := range all {
		s.addDeliveries(t, newDelivery(t, "a", fmt.Sprintf("e%d", i), fmt.Sprintf("com.example/x%d", i), 0))
	}
	for i, d := range s.due(t, "a", 0, all) {
		s.update(t, d, 1+i, "away", true)
	}
	c := s.condition(t, "a")
	if c.Dead != all || len(c.Newest) != event.MaxListed {
		t.Fatalf("%d dead, %d are listed", c.Dead, len(c.Newest))
	}
	for i, d := range c.Newest {
		if d.Event != event.ID(fmt.Sprintf("e%d", all-1-i)) || d.Body != nil || d.State != event.Dead ||
			d.Problem != "away" {
			t.Fatalf("the dead one %d is %+v", i, d)
		}
	}
}

// addsDeliveriesInParallel checks that parallel transactions of different servers do not disturb
// each other, and that no instance loses an event.
func addsDeliveriesInParallel(t *testing.T, s WebhookStores) {
	t.Helper()
	s.addWebhook(t, "a", 0)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 5 {
				d := newDelivery(t, "a", fmt.Sprintf("e%d-%d", i, j), fmt.Sprintf("com.example/x%d", i), 0)
				if err := s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
					return s.Deliveries.Add(ctx, []event.Delivery{d})
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got := map[string][]string{}
	for range 5 {
		for _, d := range s.due(t, "a", 0, 10) {
			got[d.Name.String()] = append(got[d.Name.String()], string(d.Event))
			s.update(t, d, 1, "", false)
		}
	}
	for i := range 8 {
		want := []string{
			fmt.Sprintf("e%d-0", i), fmt.Sprintf("e%d-1", i), fmt.Sprintf("e%d-2", i), fmt.Sprintf("e%d-3", i),
			fmt.Sprintf("e%d-4", i),
		}
		if server := fmt.Sprintf("com.example/x%d", i); !slices.Equal(got[server], want) {
			t.Errorf("%s has %v, want %v", server, got[server], want)
		}
	}
}

func listsAttempts(t *testing.T, s WebhookStores) {
	t.Helper()
	s.addWebhook(t, "a", 0)
	s.addDeliveries(t, newDelivery(t, "a", "e1", "com.example/x", 0), newDelivery(t, "a", "e2", "com.example/y", 0),
		newDelivery(t, "a", "e3", "com.example/z", 0))
	attempts := map[event.ID]event.Attempt{
		"e1": {At: epoch.Add(2 * time.Second), Status: 204, Took: 1500 * time.Microsecond},
		"e2": {At: epoch.Add(time.Second), Took: time.Second},
	}
	for _, d := range s.due(t, "a", 0, 2) {
		d.Last = attempts[d.Event]
		s.update(t, d, 2, map[event.ID]string{"e2": "no answer"}[d.Event], false)
	}
	got, err := s.Deliveries.Attempted(t.Context(), "a", 10)
	if err != nil || len(got) != 2 || got[0].Event != "e1" || got[1].Event != "e2" {
		t.Fatalf("attempted are %+v, %v, want e1 and e2", got, err)
	}
	for _, d := range got {
		if d.Last != attempts[d.Event] || d.Body != nil {
			t.Errorf("%s is %+v, want the attempt %+v", d.Event, d, attempts[d.Event])
		}
	}
	if got, err = s.Deliveries.Attempted(t.Context(), "a", 1); err != nil || len(got) != 1 || got[0].Event != "e1" {
		t.Errorf("the last one is %+v, %v, want e1", got, err)
	}
}

func keepsTests(t *testing.T, s WebhookStores) {
	t.Helper()
	w := s.addWebhook(t, "a", 0)
	s.addWebhook(t, "b", 0)
	test := func(n int) event.Delivery {
		last := event.Attempt{At: epoch.Add(time.Duration(n) * time.Second), Status: 200 + n, Took: 1500 * time.Microsecond}
		return event.NewTest(w.ID, last, map[int]string{3: "no answer"}[n])
	}
	want := []event.Delivery{}
	for n := range event.MaxTests + 2 {
		if err := s.Deliveries.AddTest(t.Context(), test(n)); err != nil {
			t.Fatal(err)
		}
		want = append([]event.Delivery{test(n)}, want...)
	}
	if got, err := s.Deliveries.Tests(t.Context(), "a"); err != nil || !reflect.DeepEqual(got, want[:event.MaxTests]) {
		t.Errorf("the tests are %+v, %v, want %+v", got, err, want[:event.MaxTests])
	}
	if err := s.Webhooks.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := s.Deliveries.AddTest(t.Context(), test(0)); err != nil {
		t.Errorf("a test of a webhook that is gone: %v", err)
	}
	for _, id := range []event.WebhookID{"a", "b"} {
		if got, err := s.Deliveries.Tests(t.Context(), id); err != nil || len(got) != 0 {
			t.Errorf("the tests of %s are %+v, %v", id, got, err)
		}
	}
}

func replacesWebhook(t *testing.T, s WebhookStores) {
	t.Helper()
	w := s.addWebhook(t, "a", 0)
	s.addDeliveries(t, newDelivery(t, "a", "e1", "com.example/x", 0))
	second, err := event.New(event.Draft{
		URL: "https://other.example.com/", Events: []string{"replaced"}, Pattern: "com.example/a", ManagedBy: "platform",
	})
	if err != nil {
		t.Fatal(err)
	}
	second.ID, second.Secret, second.CreatedAt = w.ID, []byte{1}, epoch.Add(time.Hour)
	if err := s.Webhooks.Put(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	second.CreatedAt = w.CreatedAt
	if list, err := s.Webhooks.List(t.Context()); err != nil || !reflect.DeepEqual(list, []event.Webhook{second}) {
		t.Errorf("listed is %+v, %v, want %+v", list, err, second)
	}
	s.wantDue(t, "a", 0, "e1")
}
