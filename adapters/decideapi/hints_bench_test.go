package decideapi

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	auth "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tollgate-dev/tollgate/adapters/internal/wire"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/test/must"
)

// startHints serves decisions by 10,000 rules, of which each second one, and the one that decides, has hints or not.
func startHints(b *testing.B, hints bool) auth.AuthorizationClient {
	b.Helper()
	name, err := toolserver.ParseName("com.example/weather")
	must.Succeed(b, err)
	var rules []access.Rule
	for i := range 10_000 {
		r := audit.Details{
			"name": audit.Text(fmt.Sprint("r", i)), "order": audit.Number(i), "effect": audit.Text("allow"), "servers": audit.Texts([]string{"*"}),
			"subjects": audit.Texts([]string{fmt.Sprintf("group:acme/g%d", i)}),
		}
		if i == 9_999 || hints && i%2 == 0 {
			r["subjects"] = audit.Texts([]string{"anyone"})
		}
		if hints {
			r["hints"] = audit.Texts([]string{map[bool]string{true: "readOnly", false: "destructive"}[i == 9_999]})
		}
		rule, err := access.ParseRule(r)
		must.Succeed(b, err)
		rules = append(rules, rule)
	}
	var tools []toolserver.Tool
	for i := range 100 {
		tools = append(tools, toolserver.Tool{Name: fmt.Sprintf("tool_%d", i), Traits: toolserver.ReadOnly})
	}
	s := access.Compile(access.Options{}, rules, []access.Listing{{Name: name, Tools: []access.ToolList{{Approved: true, Tools: tools}}}})
	a, _ := newAPI(Config{On: true})
	a.ports.Decide = func(_ context.Context, q deciding.Question) (deciding.Answer, error) {
		d := s.Decide(&access.Question{Subject: &access.Subject{}, Server: "com.example/weather", Call: q.Call, At: time.Now()})
		if d.Rule != "r9999" {
			b.Errorf("%+v", d)
		}
		return deciding.Answer{Decision: d}, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(b, err)
	server := grpc.NewServer(grpc.ForceServerCodecV2(wire.NewCodec()))
	a.Register(server)
	go func() { _ = server.Serve(listener) }() // until Stop
	b.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must.Succeed(b, err)
	b.Cleanup(func() { _ = conn.Close() })
	return auth.NewAuthorizationClient(conn)
}

// BenchmarkHints compares the medians of calls that are decided in turns with hints and without.
func BenchmarkHints(b *testing.B) {
	clients := [...]auth.AuthorizationClient{startHints(b, false), startHints(b, true)}
	m := &auth.CheckRequest{Attributes: &auth.AttributeContext{Request: &auth.AttributeContext_Request{Http: &auth.AttributeContext_HttpRequest{
		Method: "POST", Scheme: "https", Host: "tools.example.com", Path: "/mcp",
		RawBody: []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"tool_77"}}`),
	}}, Source: &auth.AttributeContext_Peer{Address: &core.Address{}}}}
	var took [len(clients)][]time.Duration
	for b.Loop() {
		for i, c := range clients {
			began := time.Now()
			if _, err := c.Check(b.Context(), m); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	median := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)/2])
	}
	b.ReportMetric(median(took[0]), "ns/without")
	b.ReportMetric(median(took[1]), "ns/with")
	b.ReportMetric(median(took[1])/median(took[0]), "ratio")
}
