package otlp_test

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	_ "modernc.org/sqlite" // the driver

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/otlp/otlptest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/counter/countertest"
)

// TestCountersContract counts through the decorator.
func TestCountersContract(t *testing.T) {
	tracing, cleanup, _ := open(t, config(otlptest.Start(t).HTTP))
	defer cleanup()
	countertest.Run(t, func(*testing.T) countertest.Subject {
		clock := clocktest.NewManual(time.Unix(1_900_000_000, 0))
		store := memory.NewCounters(clock, memory.Config{MaxCounters: 100_000})
		return countertest.Subject{Store: tracing.Counters(store, "valkey"), Advance: clock.Advance, Key: func(name string) string { return name }}
	})
}

// unreachableStore is a counter store that returns an error.
type away struct{ counter.Store }

func (away) Add(context.Context, []counter.Hit, []uint64) error {
	return &fault.Error{Kind: fault.Unavailable, Message: "counter store is away", Err: errSecret}
}

func TestCountersHaveSpans(t *testing.T) {
	collector := otlptest.Start(t)
	tracing, cleanup, _ := open(t, config(collector.HTTP))
	store := memory.NewCounters(clocktest.NewManual(time.Unix(1_900_000_000, 0)), memory.Config{MaxCounters: 100})
	hits := []counter.Hit{{Key: "a", Addend: 1, Window: time.Minute, TTL: time.Minute}, {Key: "b", Addend: 1, Window: time.Minute, TTL: time.Minute}}
	parent := call(tracing, func(ctx context.Context) {
		if err := tracing.Counters(store, "valkey").AddUnlessOver(ctx, hits, make([]uint64, 2)); err != nil {
			t.Error(err)
		}
		if err := tracing.Counters(away{store}, "memcached").Add(ctx, hits, make([]uint64, 2)); err == nil {
			t.Error("the store's error is lost")
		}
	})
	// Without a sampled call there is no span.
	if err := tracing.Counters(store, "valkey").Add(t.Context(), hits, make([]uint64, 2)); err != nil {
		t.Error(err)
	}
	cleanup()
	if n := len(collector.Spans()); n != 3 {
		t.Errorf("%d spans, want the call's and two", n)
	}
	s := only(t, collector, "counters.add_unless_over")
	if s.Attributes["db.system.name"] != "valkey" || s.Attributes["db.operation.batch.size"] != "2" || hex.EncodeToString(s.GetParentSpanId()) != parent.SpanID().String() {
		t.Errorf("%v", s.Span)
	}
	s = only(t, collector, "counters.add")
	if s.Attributes["db.system.name"] != "memcached" || s.Attributes["error.type"] != "unavailable" {
		t.Errorf("%v", s.Span)
	}
}

func TestQueriesHaveSpans(t *testing.T) {
	collector := otlptest.Start(t)
	tracing, cleanup, _ := open(t, config(collector.HTTP))
	pool, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	db := bun.NewDB(pool, sqlitedialect.New()).WithQueryHook(tracing.Queries())
	parent := call(tracing, func(ctx context.Context) {
		var s string
		if err := db.NewRaw("SELECT ?", "hunter2").Scan(ctx, &s); err != nil {
			t.Error(err)
		}
		if _, err := db.ExecContext(ctx, "DELETE FROM hunter2"); err == nil {
			t.Error("there is no such table")
		}
	})
	cleanup()
	s := only(t, collector, "SELECT")
	if s.Attributes["db.system.name"] != "sqlite" || s.Attributes["db.operation.name"] != "SELECT" || hex.EncodeToString(s.GetParentSpanId()) != parent.SpanID().String() {
		t.Errorf("%v", s.Span)
	}
	if s := only(t, collector, "DELETE"); s.Attributes["error.type"] == "" {
		t.Errorf("%v", s.Span)
	}
}

func TestPluginCallsHaveSpans(t *testing.T) {
	collector := otlptest.Start(t)
	tracing, cleanup, _ := open(t, config(collector.HTTP))
	const method = "/tollgate.plugin.Courier/Deliver"
	var told string
	invoke := func(ctx context.Context, called string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		if called != method {
			t.Errorf("called %s", called)
		}
		md, _ := metadata.FromOutgoingContext(ctx)
		told = ""
		if v := md.Get("traceparent"); len(v) == 1 {
			told = v[0]
		}
		return status.Error(codes.Unavailable, "hunter2")
	}
	parent := call(tracing, func(ctx context.Context) {
		if err := tracing.PluginCall(ctx, method, nil, nil, nil, invoke); status.Code(err) != codes.Unavailable {
			t.Errorf("the plugin's error is lost: %v", err)
		}
	})
	if len(told) != 55 || told[3:35] != parent.TraceID().String() {
		t.Errorf("the plugin was told %q", told)
	}
	// A call without a trace, for example a health check of the plugin.
	if err := tracing.PluginCall(t.Context(), method, nil, nil, nil, invoke); err == nil || told != "" {
		t.Errorf("%v, told %q", err, told)
	}
	cleanup()
	if n := len(collector.Spans()); n != 2 {
		t.Errorf("%d spans", n)
	}
	s := only(t, collector, "tollgate.plugin.Courier/Deliver")
	if s.Attributes["rpc.response.status_code"] != "Unavailable" || s.Attributes["rpc.system.name"] != "grpc" || s.Attributes["error.type"] == "" {
		t.Errorf("%v", s.Span)
	}
}

var errPlain = errors.New("plain")

func TestEndedCallsAreTold(t *testing.T) {
	collector := otlptest.Start(t)
	tracing, cleanup, _ := open(t, config(collector.HTTP))
	for _, err := range []error{context.Canceled, context.DeadlineExceeded, errPlain} {
		call(tracing, func(ctx context.Context) {
			_ = tracing.PluginCall(ctx, "/"+err.Error(), nil, nil, nil, // what it returns is tested above
				func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return err })
		})
	}
	cleanup()
	for name, want := range map[string]string{"context canceled": "canceled", "context deadline exceeded": "deadline exceeded", "plain": "*errors.errorString"} {
		if got := only(t, collector, name).Attributes["error.type"]; got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
