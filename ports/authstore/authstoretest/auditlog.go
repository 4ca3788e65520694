package authstoretest

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

// RunAuditLog runs the suite of the audit log alone; it uses only AuditLog and Runner of the
// stores.
func RunAuditLog(t *testing.T, open func(t *testing.T) Stores) {
	t.Helper()
	testCases(t, open, map[string]func(t *testing.T, s Stores){
		"a stored event has the value of every field":                      auditKeepsEveryField,
		"any event is returned as it was appended":                         auditRoundTrips,
		"a search without matching events returns none and the total 0":    findsNothing,
		"a search returns the events of the person, the type and the time": findsWhatMatches,
		"a search leaves out the parts of runs, or returns those of one":   findsRuns,
		"events at the bounds of the time are not in the result":           excludesBounds,
		"pages list every event once, newest first":                        pagesToTheEnd,
		"a page with a wrong limit or offset is refused":                   refusesPage,
		"pages in either order follow a place, and select what matches":    readsPlaces,
		"a reader who continues gets each event of slow writers once":      followsWriters,
		"a reader finds the event to continue after, also the last one":    followsFromEvent,
		"events of parallel writers are all stored":                        storesParallelEvents,
		"an append with a broken event stores none of its events":          allOrNothing,
		"deletion removes the events before a time":                        deletesOldest,
		"a failed transaction stores no event":                             auditRollsBack,
		"totals stay correct while hours are counted":                      keepsTotalsWhileCounting,
		"parallel counts add each hour once":                               countsEachHourOnce,
		"a call with a cancelled context fails":                            auditHeedsCancel,
	})
}

// all selects every event of a log that is no longer than a page.
var all = authstore.AuditQuery{Limit: auth.MaxPage}

// event returns a sample with every field set. Greater numbers are newer.
func event(n int) audit.Event {
	return audit.Event{
		ID: recordtest.UUID[audit.EventID](n), Time: recordtest.Epoch().Add(time.Duration(n) * time.Microsecond),
		Category: audit.LoginAttempt, Subject: recordtest.UUID[audit.Subject](7), Success: true,
		Details: audit.Details{
			"ipAddress": audit.Text("192.0.2.7"), "riskScore": audit.Number(12.5), "mfaRequired": audit.Flag(true),
			"factors": audit.Details{"x": audit.Number(1)},
		},
	}
}

func events(numbers ...int) (list []audit.Event) {
	for _, n := range numbers {
		list = append(list, event(n))
	}
	return list
}

func wantFound(t *testing.T, s Stores, q authstore.AuditQuery, want []audit.Event, wantTotal int) {
	t.Helper()
	got, total, err := s.AuditLog.Search(t.Context(), q)
	recordtest.OK(t, err)
	if total != wantTotal {
		t.Errorf("Search of %+v returned a total of %d, want %d", q, total, wantTotal)
	}
	if len(got) == 0 && len(want) == 0 {
		return
	}
	recordtest.Equal(t, got, want)
}

func auditKeepsEveryField(t *testing.T, s Stores) {
	e := event(1)
	recordtest.Whole(t, e)
	recordtest.OK(t, s.AuditLog.Append(t.Context(), e))
	wantFound(t, s, all, []audit.Event{e}, 1)
}

func auditRoundTrips(t *testing.T, s Stores) {
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		e := event(n)
		e.Time = recordtest.Instant().Draw(r, "time")
		e.Category = rapid.SampledFrom([]audit.Category{audit.RiskEvaluation, audit.RegistryChange}).Draw(r, "type")
		e.Subject = rapid.SampledFrom([]audit.Subject{"", recordtest.UUID[audit.Subject](7)}).Draw(r, "user")
		e.Success = rapid.Bool().Draw(r, "success")
		e.Details = details(2).Draw(r, "details")
		recordtest.OK(r, s.AuditLog.Append(t.Context(), e))
		found, _, err := s.AuditLog.Search(t.Context(), authstore.AuditQuery{
			After: e.Time.Add(-time.Microsecond), Before: e.Time.Add(time.Microsecond), Limit: auth.MaxPage,
		})
		recordtest.OK(r, err)
		i := slices.IndexFunc(found, func(f audit.Event) bool { return f.ID == e.ID })
		if i < 0 {
			r.Fatal("the event was not found")
		}
		recordtest.Equal(r, found[i], e)
	})
}

// details generates details as they come back: nothing at all is an empty object.
func details(depth int) *rapid.Generator[audit.Details] {
	text := rapid.StringOf(rapid.Rune().Filter(func(c rune) bool { return c != 0xfffd }))
	values := []*rapid.Generator[audit.Value]{
		rapid.Just[audit.Value](nil),
		rapid.Map(text, func(s string) audit.Value { return audit.Text(s) }),
		rapid.Map(rapid.Bool(), func(b bool) audit.Value { return audit.Flag(b) }),
		rapid.Map(rapid.Float64Range(-1e12, 1e12), func(n float64) audit.Value { return audit.Number(n) }),
	}
	if depth > 0 {
		inner := rapid.Map(details(depth-1), func(d audit.Details) audit.Value { return d })
		values = append(values, inner,
			rapid.Map(rapid.SliceOfN(inner, 0, 3), func(l []audit.Value) audit.Value { return audit.List(l) }))
	}
	return rapid.Map(rapid.MapOfN(text, rapid.OneOf(values...), 0, 5), func(m map[string]audit.Value) audit.Details {
		return m
	})
}

func findsNothing(t *testing.T, s Stores) {
	wantFound(t, s, all, nil, 0)
	recordtest.OK(t, s.AuditLog.Append(t.Context()))
	bare := event(1)
	bare.Details = nil
	recordtest.OK(t, s.AuditLog.Append(t.Context(), bare))
	bare.Details = audit.Details{}
	wantFound(t, s, all, []audit.Event{bare}, 1)
	wantFound(t, s, authstore.AuditQuery{Subject: recordtest.UUID[audit.Subject](8), Limit: 10}, nil, 0)
	wantFound(t, s, authstore.AuditQuery{Category: audit.DeviceChange, Limit: 10}, nil, 0)
	wantFound(t, s, authstore.AuditQuery{ID: bare.ID, Limit: 10}, []audit.Event{bare}, 1)
	wantFound(t, s, authstore.AuditQuery{ID: event(2).ID, Limit: 10}, nil, 0)
	wantFound(t, s, authstore.AuditQuery{ID: bare.ID, Subject: bare.Subject, Limit: 10}, []audit.Event{bare}, 1)
	wantFound(t, s, authstore.AuditQuery{Limit: 10, Offset: 1}, nil, 1)
}

func findsWhatMatches(t *testing.T, s Stores) {
	var stored []audit.Event
	for n := range 60 {
		e := event(n)
		e.Time = recordtest.Epoch().Add(time.Duration(n/4) * time.Hour) // ties
		e.Subject = []audit.Subject{"", recordtest.UUID[audit.Subject](1), recordtest.UUID[audit.Subject](2)}[n%3]
		e.Category = []audit.Category{audit.LoginAttempt, audit.DeviceChange}[n/3%2]
		stored = append(stored, e)
	}
	recordtest.OK(t, s.AuditLog.Append(t.Context(), stored...))
	slices.SortFunc(stored, func(a, b audit.Event) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.ID, a.ID))
	})
	rapid.Check(t, func(r *rapid.T) {
		hour := rapid.Map(rapid.IntRange(-1, 16), func(h int) time.Time {
			return recordtest.Epoch().Add(time.Duration(h) * time.Hour)
		})
		q := authstore.AuditQuery{
			Subject:  rapid.SampledFrom([]audit.Subject{"", recordtest.UUID[audit.Subject](1)}).Draw(r, "user"),
			Category: rapid.SampledFrom([]audit.Category{"", audit.LoginAttempt}).Draw(r, "type"),
			After:    recordtest.Optional(hour).Draw(r, "after"), Before: recordtest.Optional(hour).Draw(r, "before"),
			Limit: rapid.IntRange(1, 70).Draw(r, "limit"), Offset: rapid.IntRange(0, 70).Draw(r, "offset"),
		}
		wantPage(t, r, s, stored, q)
	})
}

func findsRuns(t *testing.T, s Stores) {
	stored := events(1, 2, 3, 4)
	stored[1].Details, stored[2].Details = audit.Details{audit.DetailPart: audit.Text("a")}, audit.Details{audit.DetailPart: audit.Text("b")}
	stored[3].Details = audit.Details{"changes": audit.Details{audit.DetailPart: audit.Text("a")}, "reason": audit.Text(`"partOf":"a"`)}
	recordtest.OK(t, s.AuditLog.Append(t.Context(), stored...))
	wantFound(t, s, authstore.AuditQuery{Whole: true, Limit: 10}, []audit.Event{stored[3], stored[0]}, 2)
	wantFound(t, s, authstore.AuditQuery{Run: "a", Limit: 10}, []audit.Event{stored[1]}, 1)
	wantFound(t, s, all, []audit.Event{stored[3], stored[2], stored[1], stored[0]}, 4)
}

func excludesBounds(t *testing.T, s Stores) {
	recordtest.OK(t, s.AuditLog.Append(t.Context(), events(1, 2, 3)...))
	second := event(2).Time
	for _, c := range []struct {
		after, before time.Time
		want          []audit.Event
	}{
		{second, time.Time{}, events(3)},
		{time.Time{}, second, events(1)},
		{second.Add(-time.Microsecond), second.Add(time.Microsecond), events(2)},
		{second, second, nil},
		{second.In(time.FixedZone("", -7*3600)), time.Time{}, events(3)},
	} {
		wantFound(t, s, authstore.AuditQuery{After: c.after, Before: c.before, Limit: 10}, c.want, len(c.want))
	}
}

func pagesToTheEnd(t *testing.T, s Stores) {
	const stored, limit = 23, 5
	var want []audit.Event
	for n := range stored {
		recordtest.OK(t, s.AuditLog.Append(t.Context(), event(n)))
		want = append(want, event(stored-1-n))
	}
	for offset := 0; offset <= stored+limit; offset += limit {
		page := want[min(offset, stored):min(offset+limit, stored)]
		wantFound(t, s, authstore.AuditQuery{Limit: limit, Offset: offset}, page, stored)
	}
	wantFound(t, s, authstore.AuditQuery{Limit: stored}, want, stored)
	wantFound(t, s, authstore.AuditQuery{Limit: stored, Uncounted: true}, want, 0)
	wantFound(t, s, authstore.AuditQuery{Limit: limit, Uncounted: true}, want[:limit], 0)
	for _, q := range []authstore.AuditQuery{{Most: 1}, {Most: 1, Offset: 1}, {Most: stored - 1}, {Most: stored + 1}} {
		q.Limit = limit
		_, total, err := s.AuditLog.Search(t.Context(), q)
		if least := min(stored, max(q.Most, q.Offset+limit)+1); err != nil || total < least || total > stored {
			t.Errorf("%+v has the total %d, want %d at least; %v", q, total, least, err)
		}
	}
	wantFound(t, s, all, want, stored)
}

// keepsTotalsWhileCounting compares searches with a list, while hours are counted, events are added
// and old ones are removed in any order.
func keepsTotalsWhileCounting(t *testing.T, s Stores) {
	people := []audit.Subject{"", recordtest.UUID[audit.Subject](1), recordtest.UUID[audit.Subject](2)}
	types := []audit.Category{audit.LoginAttempt, audit.DeviceChange}
	n, stored := 0, []audit.Event(nil)
	counted := recordtest.Epoch().Add(-time.Hour)
	rapid.Check(t, func(r *rapid.T) {
		span := rapid.Map(rapid.IntRange(0, 6*24*60), func(m int) time.Time {
			return recordtest.Epoch().Add(time.Duration(m) * time.Minute)
		})
		for range rapid.IntRange(1, 20).Draw(r, "added") {
			n++
			e := event(n)
			e.Time = span.Draw(r, "time")
			if e.Time.Before(counted) {
				e.Time = counted.Add(time.Duration(rapid.IntRange(0, 60).Draw(r, "later")) * time.Minute)
			}
			e.Subject, e.Category = rapid.SampledFrom(people).Draw(r, "user"), rapid.SampledFrom(types).Draw(r, "type")
			stored = append(stored, e)
			recordtest.OK(r, s.AuditLog.Append(t.Context(), e))
		}
		if until := span.Draw(r, "until"); rapid.Bool().Draw(r, "count") && until.After(counted) {
			counted = until
			for more := true; more; {
				more = recordtest.Must(s.AuditLog.CountHour(t.Context(), until))(t)
			}
		}
		if before := span.Draw(r, "before"); rapid.IntRange(0, 9).Draw(r, "remove") == 0 {
			_ = recordtest.Must(s.AuditLog.DeleteBefore(t.Context(), before, len(stored)))(t)
			stored = slices.DeleteFunc(stored, func(e audit.Event) bool { return e.Time.Before(before) })
		}
		slices.SortFunc(stored, func(a, b audit.Event) int {
			return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.ID, a.ID))
		})
		for range 10 {
			wantPage(t, r, s, stored, authstore.AuditQuery{
				Subject:  rapid.SampledFrom(people).Draw(r, "of"),
				Category: rapid.SampledFrom([]audit.Category{"", types[0]}).Draw(r, "only"),
				After:    recordtest.Optional(span).Draw(r, "after"),
				Before:   recordtest.Optional(span).Draw(r, "before"),
				Limit:    rapid.IntRange(1, 40).Draw(r, "limit"),
				Offset:   rapid.IntRange(0, len(stored)+1).Draw(r, "offset"),
			})
		}
	})
}

func countsEachHourOnce(t *testing.T, s Stores) {
	user := recordtest.UUID[audit.Subject](7)
	for hour := range 30 {
		e := event(hour)
		e.Time = recordtest.Epoch().Add(time.Duration(hour) * time.Hour)
		recordtest.OK(t, s.AuditLog.Append(t.Context(), e))
	}
	until := recordtest.Epoch().Add(40 * time.Hour)
	recordtest.OK(t, errors.Join(recordtest.Parallel(8, func(int) error {
		for {
			if more, err := s.AuditLog.CountHour(t.Context(), until); err != nil || !more {
				return err
			}
		}
	})...))
	_, total, err := s.AuditLog.Search(t.Context(), authstore.AuditQuery{Subject: user, Limit: 1})
	recordtest.OK(t, err)
	if total != 30 {
		t.Errorf("total = %d, want 30", total)
	}
}

// wantPage fails unless a search returns what the query selects from the stored events, which are
// sorted newest first.
func wantPage(t *testing.T, r *rapid.T, s Stores, stored []audit.Event, q authstore.AuditQuery) {
	t.Helper()
	var want []audit.Event
	for _, e := range stored {
		if (q.Subject == "" || e.Subject == q.Subject) && (q.Category == "" || e.Category == q.Category) &&
			(q.After.IsZero() || e.Time.After(q.After)) && (q.Before.IsZero() || e.Time.Before(q.Before)) {
			want = append(want, e)
		}
	}
	page := want[min(q.Offset, len(want)):]
	page = page[:min(q.Limit, len(page))]
	got, total, err := s.AuditLog.Search(t.Context(), q)
	recordtest.OK(r, err)
	if total != len(want) || len(got) != len(page) {
		r.Fatalf("Search of %+v found %d of %d, want %d of %d", q, len(got), total, len(page), len(want))
	}
	for i := range page {
		recordtest.Equal(r, got[i], page[i])
	}
}

func refusesPage(t *testing.T, s Stores) {
	for _, q := range []authstore.AuditQuery{{}, {Limit: -1}, {Limit: auth.MaxPage + 1}, {Limit: 1, Offset: -1}} {
		if _, _, err := s.AuditLog.Search(t.Context(), q); !fault.Is(err, fault.Invalid) {
			t.Errorf("Search of %+v returned %v", q, err)
		}
	}
}

func storesParallelEvents(t *testing.T, s Stores) {
	const calls, each = 20, 3
	recordtest.OK(t, errors.Join(recordtest.Parallel(calls, func(i int) error {
		return s.AuditLog.Append(t.Context(), events(each*i, each*i+1, each*i+2)...)
	})...))
	found, total, err := s.AuditLog.Search(t.Context(), all)
	recordtest.OK(t, err)
	if total != calls*each || len(found) != total {
		t.Errorf("%d events of %d are found, want %d", len(found), total, calls*each)
	}
}

func allOrNothing(t *testing.T, s Stores) {
	recordtest.OK(t, s.AuditLog.Append(t.Context(), event(1)))
	if err := s.AuditLog.Append(t.Context(), events(2, 1)...); !fault.Is(err, fault.Conflict) {
		t.Errorf("Append of a taken id returned %v", err)
	}
	broken := event(3)
	broken.Details = audit.Details{"number": audit.Number(math.NaN())}
	if err := s.AuditLog.Append(t.Context(), event(2), broken); err == nil {
		t.Error("Append of what JSON cannot write returned no error")
	}
	wantFound(t, s, all, events(1), 1)
}

func deletesOldest(t *testing.T, s Stores) {
	recordtest.OK(t, s.AuditLog.Append(t.Context(), events(3, 1, 5, 2, 4)...))
	for _, c := range []struct {
		before, limit, want int
		left                []audit.Event
	}{
		{4, 0, 0, events(5, 4, 3, 2, 1)},
		{1, 10, 0, events(5, 4, 3, 2, 1)},
		{4, 2, 2, events(5, 4, 3)},
		{4, 2, 1, events(5, 4)},
		{4, 2, 0, events(5, 4)},
	} {
		if n := recordtest.Must(s.AuditLog.DeleteBefore(t.Context(), event(c.before).Time, c.limit))(t); n != c.want {
			t.Errorf("DeleteBefore(%d, limit %d) = %d, want %d", c.before, c.limit, n, c.want)
		}
		wantFound(t, s, all, c.left, len(c.left))
	}
}

func auditRollsBack(t *testing.T, s Stores) {
	recordtest.OK(t, s.AuditLog.Append(t.Context(), event(1)))
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error {
		if err := s.AuditLog.Append(ctx, event(2)); err != nil {
			return err
		}
		if n, err := s.AuditLog.DeleteBefore(ctx, event(9).Time, 10); err != nil || n != 2 {
			t.Errorf("DeleteBefore = %d, %v, want both events", n, err)
		}
		return nil
	})
	wantFound(t, s, all, events(1), 1)
}

func auditHeedsCancel(t *testing.T, s Stores) {
	recordtest.OK(t, s.AuditLog.Append(t.Context(), event(1)))
	recordtest.WantCancelled(t, map[string]func(ctx context.Context) error{
		"Append": func(ctx context.Context) error { return s.AuditLog.Append(ctx, event(2)) },
		"Search": func(ctx context.Context) error { _, _, err := s.AuditLog.Search(ctx, all); return err },
		"CountHour": func(ctx context.Context) error {
			_, err := s.AuditLog.CountHour(ctx, event(9).Time)
			return err
		},
		"DeleteBefore": func(ctx context.Context) error {
			_, err := s.AuditLog.DeleteBefore(ctx, event(9).Time, 10)
			return err
		},
	})
	wantFound(t, s, all, events(1), 1)
}
