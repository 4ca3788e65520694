package authstoretest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

// Followed follows a log in pages until it returns no more events, and returns the events and the
// place after them.
func Followed(
	t testing.TB, log authstore.AuditLog, q authstore.AuditQuery, after authstore.AuditPlace,
) (got []audit.Event, _ authstore.AuditPlace) {
	t.Helper()
	for {
		page, next, err := log.Follow(t.Context(), q, after)
		recordtest.OK(t, err)
		if after = next; len(page) == 0 {
			return got, after
		}
		got = append(got, page...)
	}
}

// readsPlaces reads pages of events, some of which have one time, newest first and in the order in
// which they were added.
func readsPlaces(t *testing.T, s Stores) {
	t.Helper()
	list := events(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	for i := 7; i < len(list); i++ { // changes of the registry before they named their actors, and one that does
		list[i].Category = audit.RegistryChange
	}
	list[10].Category = audit.PublisherProof
	list[2].Time = list[1].Time
	no := false
	list[3].Success = no
	long := strings.Repeat("<ä>", 200)
	for i, details := range []audit.Details{
		{audit.DetailActor: audit.Text("person:a")}, {audit.DetailActor: audit.Text("a")},
		{audit.DetailActor: audit.Text("person:A"), audit.DetailServer: audit.Text("com.example/<x>")},
		{"reason": audit.Text(`"actor":"person:a"`)}, {audit.DetailActor: audit.Text("service:a")},
		{audit.DetailServer: audit.Text("com.example/<X>"), "about": audit.Details{
			audit.DetailActor: audit.Text("person:a"), audit.DetailServer: audit.Text("com.example/<x>"),
		}},
		{audit.DetailActor: audit.Text(long + "b"), audit.DetailServer: audit.Text(long + "\x00")},
		{"userId": audit.Text("a")}, {"service": audit.Text("ci")},
		{"service": audit.Text("ci"), "userId": audit.Text("a"), audit.DetailActor: audit.Text("person:ci")},
		{"service": audit.Text("ci")},
	} {
		list[i].Details = details
	}
	added := slices.Clone(list)
	added[1], added[4] = added[4], added[1] // the stream has them in this order, whatever their times
	recordtest.OK(t, s.AuditLog.Append(t.Context(), added[:3]...))
	recordtest.OK(t, s.AuditLog.Append(t.Context(), added[3:]...))
	read := func(q authstore.AuditQuery) (got []audit.Event) {
		t.Helper()
		var place authstore.AuditPlace
		for {
			page, err := s.AuditLog.Page(t.Context(), q, place)
			recordtest.OK(t, err)
			if len(page) == 0 {
				return got
			}
			got = append(got, page...)
			place = authstore.AuditPlace{Time: page[len(page)-1].Time, ID: page[len(page)-1].ID}
		}
	}
	backwards := slices.Clone(list)
	slices.Reverse(backwards)
	for limit := 1; limit <= len(list)+1; limit++ {
		stream, _ := Followed(t, s.AuditLog, authstore.AuditQuery{Limit: limit}, authstore.AuditPlace{})
		recordtest.Equal(t, stream, added)
		recordtest.Equal(t, read(authstore.AuditQuery{Limit: limit}), backwards)
	}
	for _, c := range []struct {
		q    authstore.AuditQuery
		want []audit.Event
	}{
		{authstore.AuditQuery{Actor: "person:a"}, append(slices.Clone(list[:2]), list[7])},
		{authstore.AuditQuery{Actor: "person:ci"}, list[9:10]},
		{authstore.AuditQuery{Actor: "service:a"}, list[4:5]}, {authstore.AuditQuery{Actor: "service:ci"}, list[8:9]}, {authstore.AuditQuery{Actor: long + "b"}, list[6:7]},
		{authstore.AuditQuery{Actor: long}, nil},
		{authstore.AuditQuery{Server: "com.example/<x>"}, list[2:3]},
		{authstore.AuditQuery{Server: long + "\x00"}, list[6:7]},
		{authstore.AuditQuery{Success: &no}, list[3:4]},
		{authstore.AuditQuery{After: list[3].Time}, list[4:]}, {authstore.AuditQuery{Before: list[1].Time}, list[:1]},
	} {
		c.q.Limit = 2
		want := slices.Clone(c.want)
		slices.Reverse(want)
		recordtest.Equal(t, read(c.q), want)
		slices.SortFunc(want, func(a, b audit.Event) int {
			at := func(e audit.Event) int {
				return slices.IndexFunc(added, func(o audit.Event) bool { return o.ID == e.ID })
			}
			return at(a) - at(b)
		})
		stream, _ := Followed(t, s.AuditLog, c.q, authstore.AuditPlace{})
		recordtest.Equal(t, stream, want)
	}
	person, yes := list[0].Subject, true // with the counts of days, which are not by server and outcome
	_ = recordtest.Must(s.AuditLog.CountHour(t.Context(), list[6].Time.Add(48*time.Hour)))(t)
	for _, c := range []struct {
		q    authstore.AuditQuery
		want []audit.Event
	}{
		{authstore.AuditQuery{Subject: person, Server: "com.example/<x>"}, list[2:3]},
		{authstore.AuditQuery{Subject: person, Success: &no}, list[3:4]},
		{authstore.AuditQuery{Subject: person, Success: &yes, Before: list[2].Time}, list[:1]},
		{authstore.AuditQuery{Subject: person, Actor: "service:a"}, list[4:5]},
	} {
		c.q.Limit = 1
		wantFound(t, s, c.q, c.want, 1)
	}
}

func followsFromEvent(t *testing.T, s Stores) {
	list := events(5, 3, 4)
	recordtest.OK(t, s.AuditLog.Append(t.Context(), list...))
	q := authstore.AuditQuery{Limit: 10}
	for i := range list {
		got, last := Followed(t, s.AuditLog, q, authstore.AuditPlace{ID: list[i].ID})
		if len(got) != len(list)-1-i || last.ID != list[2].ID {
			t.Errorf("%d events follow the one at %d, the last is %v", len(got), i, last)
		}
	}
	_, _, err := s.AuditLog.Follow(t.Context(), q, authstore.AuditPlace{ID: event(9).ID})
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("Follow after an event that does not exist returned %v", err)
	}
	if n := recordtest.Must(s.AuditLog.DeleteBefore(t.Context(), event(4).Time, 10))(t); n != 1 {
		t.Fatalf("%d events are removed", n)
	}
	recordtest.OK(t, s.AuditLog.Append(t.Context(), event(1)))
	got, _ := Followed(t, s.AuditLog, q, authstore.AuditPlace{ID: list[0].ID})
	recordtest.Equal(t, got, []audit.Event{list[2], event(1)})
}

func followsWriters(t *testing.T, s Stores) { FollowWriters(t, s, s) }

// FollowWriters lets transactions of two instances append events at once, for different times, while a
// reader continues after the last event that it has, at one instance and the other. It fails unless
// the reader gets each event of the transactions that are stored, and gets it once.
func FollowWriters(t *testing.T, instances ...Stores) {
	t.Helper()
	const writers, each = 8, 25
	rolledBack := errors.New("rolled back")
	written := make(chan error, 1)
	go func() {
		written <- errors.Join(recordtest.Parallel(writers, func(w int) error {
			s := instances[w%len(instances)]
			for n := range each {
				first := 10 * (w*each + n)
				err := s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
					for i := range 1 + (w+n)%4 { // each search takes a while
						if err := s.AuditLog.Append(ctx, event(first+i)); err != nil {
							return err
						}
						for range (7*w + 5*n + 3*i) % 6 {
							if _, _, err := s.AuditLog.Search(ctx, authstore.AuditQuery{Limit: 20}); err != nil {
								return err
							}
						}
					}
					if n%5 == 4 {
						return rolledBack
					}
					return nil
				})
				if err != nil && !errors.Is(err, rolledBack) && !fault.Is(err, fault.Unavailable) { // busy
					return err
				}
			}
			return nil
		})...)
	}()
	seen := map[audit.EventID]bool{}
	var place authstore.AuditPlace
	for done, n := false, 0; ; n++ {
		got, next := Followed(t, instances[n%len(instances)].AuditLog, authstore.AuditQuery{Limit: 1 + n%7},
			authstore.AuditPlace{ID: place.ID})
		for _, e := range got {
			if seen[e.ID] {
				t.Fatalf("event %s came twice", e.ID)
			}
			seen[e.ID] = true
		}
		if place = next; done {
			break
		}
		select {
		case err := <-written:
			recordtest.OK(t, err)
			done = true // and read once more
		default:
		}
	}
	stored, total, err := instances[0].AuditLog.Search(t.Context(), all)
	recordtest.OK(t, err)
	for _, e := range stored {
		if !seen[e.ID] {
			t.Errorf("event %s is missing in the stream", e.ID)
		}
	}
	if len(seen) != total || total < writers*each/2 {
		t.Errorf("the stream has %d events, the log %d", len(seen), total)
	}
}
