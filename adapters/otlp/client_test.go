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
	"github.com/tollgate-dev/tollgate/adapters/otlp"
	"github.com/tollgate-dev/tollgate/adapters/otlp/otlptest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/counter/countertest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestCountersContract checks that a counter store with spans keeps the contract of the port.
func TestCountersContract(t *testing.T) {
	tracing, cleanup, _ := openTracing(t, enabledConfig(otlptest.Start(t).HTTP))
	defer cleanup()
	countertest.Run(t, func(*testing.T) countertest.Subject {
		clock := clocktest.NewManual(time.Unix(1_900_000_000, 0))
		store := memory.NewCounters(clock, memory.Config{MaxCounters: 100_000})
		return countertest.Subject{
			Store: tracing.Counters(store, "valkey"), Advance: clock.Advance, Now: clock.Now,
			Key: func(name string) string { return name },
		}
	})
}

// unreachableStore is a counter store that returns an error.
type unreachableStore struct{ counter.Store }

func (unreachableStore) Count(context.Context, []counter.Hit, []counter.Result, counter.Mode) error {
	return &fault.Error{Kind: fault.Unavailable, Message: "the counter store is not available", Err: errSecret}
}

func TestCountersHaveSpans(t *testing.T) {
	collector := otlptest.Start(t)
	tracing, cleanup, _ := openTracing(t, enabledConfig(collector.HTTP))
	store := memory.NewCounters(clocktest.NewManual(time.Unix(1_900_000_000, 0)), memory.Config{MaxCounters: 100})
	hits := []counter.Hit{
		{Key: "a", Addend: 1, Window: time.Minute, TTL: time.Minute}, {
			Key: "b", Addend: 1, Window: time.Minute, TTL: time.Minute,
		},
	}
	parent := runInSpan(tracing, func(ctx context.Context) {
		if err := tracing.Counters(store, "valkey").Count(ctx, hits, make([]counter.Result, 2),
			counter.AllOrNone); err != nil {
			t.Error(err)
		}
		if err := tracing.Counters(unreachableStore{store}, "memcached").Count(ctx, hits, make([]counter.Result, 2),
			counter.Each); err == nil {
			t.Error("the decorator does not return the error of the store")
		}
	})
	// A call outside of a sampled trace gets no span.
	if err := tracing.Counters(store, "valkey").Count(t.Context(), hits, make([]counter.Result, 2),
		counter.Each); err != nil {
		t.Error(err)
	}
	cleanup()
	if n := len(collector.Spans()); n != 3 {
		t.Errorf("the collector received %d spans, want 3: one of the call and two of the store", n)
	}
	s := awaitSpan(t, collector, "counters.add_unless_over")
	if s.Attributes["db.system.name"] != "valkey" || s.Attributes["db.operation.batch.size"] != "2" ||
		hex.EncodeToString(s.GetParentSpanId()) != parent.SpanID().String() {
		t.Errorf("span has wrong attributes or the wrong parent: %v", s.Span)
	}
	s = awaitSpan(t, collector, "counters.add")
	if s.Attributes["db.system.name"] != "memcached" || s.Attributes["error.type"] != "unavailable" {
		t.Errorf("span has wrong attributes or the wrong parent: %v", s.Span)
	}
}

func TestQueriesHaveSpans(t *testing.T) {
	collector := otlptest.Start(t)
	tracing, cleanup, _ := openTracing(t, enabledConfig(collector.HTTP))
	pool, err := sql.Open("sqlite", ":memory:")
	must.Succeed(t, err)
	defer pool.Close()
	db := bun.NewDB(pool, sqlitedialect.New()).WithQueryHook(otlp.NewQueries(tracing))
	parent := runInSpan(tracing, func(ctx context.Context) {
		var s string
		if err := db.NewRaw("SELECT ?", "hunter2").Scan(ctx, &s); err != nil {
			t.Error(err)
		}
		if _, err := db.ExecContext(ctx, "DELETE FROM hunter2"); err == nil {
			t.Error("the statement succeeds, but its table does not exist")
		}
	})
	cleanup()
	s := awaitSpan(t, collector, "SELECT")
	if s.Attributes["db.system.name"] != "sqlite" || s.Attributes["db.operation.name"] != "SELECT" ||
		hex.EncodeToString(s.GetParentSpanId()) != parent.SpanID().String() {
		t.Errorf("span has wrong attributes or the wrong parent: %v", s.Span)
	}
	if s := awaitSpan(t, collector, "DELETE"); s.Attributes["error.type"] == "" {
		t.Errorf("span has wrong attributes or the wrong parent: %v", s.Span)
	}
}

func TestPluginCallsHaveSpans(t *testing.T) {
	collector := otlptest.Start(t)
	tracing, cleanup, _ := openTracing(t, enabledConfig(collector.HTTP))
	const method = "/tollgate.plugin.Courier/Deliver"
	var traceparent string
	invoke := func(ctx context.Context, called string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		if called != method {
			t.Errorf("PluginCall invokes %s, want %s", called, method)
		}
		md, _ := metadata.FromOutgoingContext(ctx)
		traceparent = ""
		if v := md.Get("traceparent"); len(v) == 1 {
			traceparent = v[0]
		}
		return status.Error(codes.Unavailable, "hunter2")
	}
	parent := runInSpan(tracing, func(ctx context.Context) {
		if err := tracing.PluginCall(ctx, method, nil, nil, nil, invoke); status.Code(err) != codes.Unavailable {
			t.Errorf("PluginCall returns %v, want the error of the plugin", err)
		}
	})
	if len(traceparent) != 55 || traceparent[3:35] != parent.TraceID().String() {
		t.Errorf("the plugin received traceparent %q, want trace %s", traceparent, parent.TraceID())
	}
	// A call without a trace, for example a health check of the plugin.
	if err := tracing.PluginCall(t.Context(), method, nil, nil, nil, invoke); err == nil || traceparent != "" {
		t.Errorf("outside of a trace: error %v, traceparent %q; want the error of the plugin and no traceparent",
			err, traceparent)
	}
	cleanup()
	if n := len(collector.Spans()); n != 2 {
		t.Errorf("the collector received %d spans, want 2", n)
	}
	s := awaitSpan(t, collector, "tollgate.plugin.Courier/Deliver")
	if s.Attributes["rpc.response.status_code"] != "Unavailable" || s.Attributes["rpc.system.name"] != "grpc" ||
		s.Attributes["error.type"] == "" {
		t.Errorf("span has wrong attributes or the wrong parent: %v", s.Span)
	}
}

var errPlain = errors.New("plain")

// TestErrorTypesOfPluginCalls checks the error type of a call that was canceled, that took too long
// or that failed.
func TestErrorTypesOfPluginCalls(t *testing.T) {
	collector := otlptest.Start(t)
	tracing, cleanup, _ := openTracing(t, enabledConfig(collector.HTTP))
	for _, err := range []error{context.Canceled, context.DeadlineExceeded, errPlain} {
		runInSpan(tracing, func(ctx context.Context) {
			_ = tracing.PluginCall(ctx, "/"+err.Error(), nil, nil, nil, // TestPluginCallsHaveSpans checks the error
				func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return err })
		})
	}
	cleanup()
	for name, want := range map[string]string{
		"context canceled": "canceled", "context deadline exceeded": "deadline exceeded",
		"plain": "*errors.errorString",
	} {
		if got := awaitSpan(t, collector, name).Attributes["error.type"]; got != want {
			t.Errorf("%s: error type is %q, want %q", name, got, want)
		}
	}
}
