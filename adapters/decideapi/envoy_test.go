package decideapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/netip"
	"strings"
	"testing"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authpb "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

const toolCall = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"forecast"}}`

// newAttributes returns a request with a body.
func newAttributes(body string) *authpb.AttributeContext {
	return &authpb.AttributeContext{
		Source: &authpb.AttributeContext_Peer{Address: &corepb.Address{Address: &corepb.Address_SocketAddress{
			SocketAddress: &corepb.SocketAddress{Address: "192.0.2.9"},
		}}},
		Request: &authpb.AttributeContext_Request{Http: &authpb.AttributeContext_HttpRequest{
			Method: "POST", Scheme: "https", Host: "tools.example.com", Path: "/mcp?x=1", RawBody: []byte(body),
			Headers: map[string]string{"authorization": "Bearer ada"},
		}},
	}
}

// TestAttributes checks what is read of the description of a request.
func TestAttributes(t *testing.T) {
	t.Parallel()
	m := newAttributes(toolCall)
	m.ContextExtensions = map[string]string{"tollgate.server": "com.example/weather"}
	r := readAttributes(t, m)
	if r.server != "com.example/weather" || r.from != netip.MustParseAddr("192.0.2.9") || len(r.authorization) != 1 ||
		r.address != (access.Address{Scheme: "https", Host: "tools.example.com", Path: "/mcp?x=1"}) {
		t.Errorf("%+v", r)
	}
	http := m.GetRequest().GetHttp()
	http.Body, http.RawBody = toolCall, nil
	if c := access.ReadCall(&readAttributes(t, m).call); c.Tool() != "forecast" || string(c.ID) != "7" {
		t.Errorf("a body that is text: %+v", c)
	}
	for name, change := range map[string]func(h map[string]string){
		"the mark of Envoy": func(h map[string]string) { h["x-envoy-auth-partial-body"] = "true" },
		"a greater length":  func(h map[string]string) { h["content-length"] = "1000" },
		"two lengths":       func(h map[string]string) { h["content-length"] = "77,77" },
	} {
		http.Headers = map[string]string{"x-envoy-auth-partial-body": "false", "content-length": "3"}
		if readAttributes(t, m).call.Cut {
			t.Errorf("%s: a whole body is cut", name)
		}
		if change(http.Headers); !readAttributes(t, m).call.Cut {
			t.Errorf("%s: the body is not cut", name)
		}
	}
}

// readAttributes returns the request that is read of the bytes of a description.
func readAttributes(t testing.TB, m *authpb.AttributeContext) *request {
	t.Helper()
	data, err := proto.Marshal(&authpb.CheckRequest{Attributes: m})
	must.Succeed(t, err)
	var c checkRequest
	err = c.UnmarshalBinary(data)
	clear(data) // it may change then
	if err != nil || !c.isHTTP {
		t.Fatalf("it is one of HTTP: %t, error %v", c.isHTTP, err)
	}
	return c.request()
}

// checkOverWire returns the response to the bytes of a request, which must be allowed by a message that
// has bytes.
func checkOverWire(ctx context.Context, e *envoy, q *authpb.CheckRequest) (*authpb.CheckResponse, error) {
	data, err := proto.Marshal(q)
	if err != nil {
		return nil, err
	}
	c := newCheckRequest()
	if err := c.UnmarshalBinary(data); err != nil {
		return nil, err
	}
	got, err := e.check(ctx, c)
	if err != nil {
		return nil, err
	}
	if allowed, ok := got.(*allowedCheck); ok {
		var m authpb.CheckResponse
		data, err := allowed.AppendBinary(nil)
		return &m, errors.Join(err, proto.Unmarshal(data, &m))
	}
	return got.(*authpb.CheckResponse), nil
}

// TestRawHeaders checks the headers that Envoy sends as a list, in which each value is by itself.
func TestRawHeaders(t *testing.T) {
	t.Parallel()
	m := newAttributes("")
	http := m.GetRequest().GetHttp()
	http.Headers = nil
	http.HeaderMap = &corepb.HeaderMap{Headers: []*corepb.HeaderValue{
		{Key: "authorization", RawValue: []byte("Bearer ada")}, {Key: "Authorization", Value: "Bearer bob"},
		{Key: "mcp-method", RawValue: []byte("tools/call")}, {Key: "mcp-name", RawValue: []byte("a")}, {Key: "mcp-name", RawValue: []byte("b")},
	}}
	r := readAttributes(t, m)
	if len(r.authorization) != 2 || r.call.HeaderMethod != "tools/call" || r.call.HeaderName != "a,b" {
		t.Errorf("%+v", r)
	}
}

// TestKnownCalls checks what the MCP filter of Envoy says about a call.
func TestKnownCalls(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	for name, c := range map[string]struct {
		filter string
		fields object
		want   string // the method and the name; empty if the body counts
		id     string
	}{
		"a tool": {
			"envoy.filters.http.mcp",
			object{"method": "tools/call", "id": 9.0, "params": object{"name": "other"}}, "tools/call other", "9",
		},
		"the former name": {
			"mcp_proxy", object{"method": "resources/read", "id": "x", "params": object{"uri": "file:///a"}},
			"resources/read file:///a", `"x"`,
		},
		"a list":           {"envoy.filters.http.mcp", object{"method": "tools/list"}, "tools/list ", ""},
		"a part":           {"envoy.filters.http.mcp", object{"method": "tools/list", "is_exceeding_limit": true}, "", "7"},
		"another filter":   {"envoy.filters.http.lua", object{"method": "tools/list"}, "", "7"},
		"without a method": {"mcp_proxy", object{"id": 1.0}, "", "7"},
	} {
		fields, err := structpb.NewStruct(c.fields)
		must.Succeed(t, err)
		m := newAttributes(toolCall)
		m.MetadataContext = &corepb.Metadata{FilterMetadata: map[string]*structpb.Struct{c.filter: fields}}
		call := access.ReadCall(&readAttributes(t, m).call)
		if got := call.Method + " " + call.Name; c.want != "" && got != c.want || c.want == "" && got != "tools/call forecast" ||
			string(call.ID) != c.id {
			t.Errorf("%s: %q, id %s", name, got, call.ID)
		}
	}
}

// TestCheck checks the responses of Check as Envoy gets them.
func TestCheck(t *testing.T) {
	t.Parallel()
	a, r := newAPI(Config{StripToken: true, PublicURL: "https://tools.example.com"})
	e := &envoy{api: a}
	q := &authpb.CheckRequest{Attributes: newAttributes(toolCall)}
	got, err := checkOverWire(t.Context(), e, q)
	if err != nil || got.GetStatus().GetCode() != int32(codes.OK) || got.GetOkResponse() == nil {
		t.Fatalf("%v, error %v", got, err)
	}
	checkWire(t, got)
	var set []string
	for _, h := range got.GetOkResponse().GetHeaders() {
		set = append(set, h.GetHeader().GetKey()+"="+h.GetHeader().GetValue())
		if h.GetAppendAction() != corepb.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD || h.GetAppend() != nil { //nolint:staticcheck // Envoy reads it first
			t.Errorf("the header %s is not overwritten", h)
		}
	}
	if all := strings.Join(set, " "); all != "x-tollgate-subject=person:ada@example.com x-tollgate-server=com.example/weather "+
		"x-tollgate-tool=forecast x-tollgate-trust=UNVERIFIED x-tollgate-rule=r" {
		t.Errorf("the headers are %s", all)
	}
	if remove := got.GetOkResponse().GetHeadersToRemove(); len(remove) != 1 || remove[0] != "authorization" {
		t.Errorf("removed are %q", remove)
	}
	metadata := got.GetDynamicMetadata().AsMap()["dev.tollgate.decision"].(map[string]any)
	if len(metadata) != 5 || metadata["subject"] != "person:ada@example.com" || metadata["tool"] != "forecast" {
		t.Errorf("the metadata is %v", metadata)
	}
	q.GetAttributes().GetRequest().GetHttp().RawBody = []byte(`{"jsonrpc":"2.0","id":8,"method":"tools/list"}`)
	if got, _ = checkOverWire(t.Context(), e, q); strings.Join(got.GetOkResponse().GetHeadersToRemove(), " ") != "x-tollgate-tool authorization" {
		t.Errorf("removed are %q", got.GetOkResponse().GetHeadersToRemove())
	}

	r.decides = access.Decision{Effect: access.Deny, Reason: access.ByRule}
	got, err = checkOverWire(t.Context(), e, q)
	denied := got.GetDeniedResponse()
	if err != nil || got.GetStatus().GetCode() != int32(codes.PermissionDenied) || denied.GetStatus().GetCode() != 403 ||
		!strings.HasPrefix(denied.GetBody(), `{"jsonrpc":"2.0","id":8,"error":{"code":-32001,`) || len(denied.GetHeaders()) != 2 {
		t.Errorf("%v, error %v", got, err)
	}
	checkWire(t, got)
	r.decides = access.Decision{Effect: access.Challenge, Reason: access.InvalidToken}
	got, err = checkOverWire(t.Context(), e, q)
	denied = got.GetDeniedResponse()
	if err != nil || got.GetStatus().GetCode() != int32(codes.Unauthenticated) || denied.GetStatus().GetCode() != 401 ||
		denied.GetHeaders()[2].GetHeader().GetKey() != "www-authenticate" || denied.GetHeaders()[2].GetHeader().GetValue() !=
		`Bearer error="invalid_token", scope="mcp-registry:read", resource_metadata="https://tools.example.com`+
			`/.well-known/oauth-protected-resource/servers?resource=https%3A%2F%2Ftools.example.com%2Fmcp"` {
		t.Errorf("%v, error %v", got, err)
	}
}

// checkWire checks that a message can be sent.
func checkWire(t *testing.T, m *authpb.CheckResponse) {
	t.Helper()
	b, err := proto.Marshal(m)
	var again authpb.CheckResponse
	if err == nil {
		err = proto.Unmarshal(b, &again)
	}
	if err != nil || !proto.Equal(m, &again) {
		t.Errorf("%v becomes %v, error %v", m, &again, err)
	}
}

// TestUndecided checks the statuses of calls without a decision.
func TestUndecided(t *testing.T) {
	t.Parallel()
	a, r := newAPI(Config{})
	e := &envoy{api: a}
	for code, err := range map[codes.Code]error{
		codes.Unavailable: fault.New(fault.Unavailable, "away"), codes.Internal: fault.New(fault.Internal, "secret"),
		codes.Canceled: context.Canceled, codes.DeadlineExceeded: context.DeadlineExceeded,
	} {
		r.err = err
		got, err := checkOverWire(t.Context(), e, &authpb.CheckRequest{Attributes: newAttributes("")})
		if got != nil || grpcstatus.Code(err) != code || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, error %v, want %s", got, err, code)
		}
	}
	if _, err := checkOverWire(t.Context(), e, &authpb.CheckRequest{}); grpcstatus.Code(err) != codes.InvalidArgument {
		t.Errorf("without HTTP attributes: %v", err)
	}
}

// TestVerifiedTokens checks from whom the tokens count that Envoy has verified.
func TestVerifiedTokens(t *testing.T) {
	t.Parallel()
	a, r := newAPI(Config{})
	e := &envoy{api: a}
	known, other := map[string]any{"iss": "https://login.example.com", "exp": 1e9}, map[string]any{"iss": "https://login.example.org"}
	mutual := peer.NewContext(t.Context(), &peer.Peer{AuthInfo: credentials.TLSInfo{
		State: tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}},
	}})
	withKeys := func(keys ...string) context.Context {
		return metadata.NewIncomingContext(t.Context(), metadata.MD{"x-tollgate-key": keys})
	}
	for name, c := range map[string]struct {
		ctx     context.Context
		tokens  map[string]any
		bearer  bool
		who     string
		refused bool
	}{
		"mutual TLS":               {mutual, map[string]any{"a": other, "b": known}, false, "ada", false},
		"a key":                    {withKeys("key"), map[string]any{"a": known}, false, "ada", false},
		"another scope":            {withKeys("other key"), map[string]any{"a": known}, false, "", false},
		"two keys":                 {withKeys("key", "key"), map[string]any{"a": known}, false, "", false},
		"no proof":                 {t.Context(), map[string]any{"a": known}, false, "", false},
		"an issuer that is none":   {mutual, map[string]any{"a": other}, false, "", true},
		"no object with iss":       {mutual, map[string]any{"a": "x", "b": map[string]any{"sub": "x"}}, false, "", false},
		"with a header of its own": {mutual, map[string]any{"a": other}, true, "ada", false},
	} {
		fields, err := structpb.NewStruct(c.tokens)
		must.Succeed(t, err)
		m := newAttributes(toolCall)
		if !c.bearer {
			m.GetRequest().GetHttp().Headers = nil
		}
		m.MetadataContext = &corepb.Metadata{FilterMetadata: map[string]*structpb.Struct{"envoy.filters.http.jwt_authn": fields}}
		if _, err := checkOverWire(c.ctx, e, &authpb.CheckRequest{Attributes: m}); err != nil {
			t.Fatal(err)
		}
		if who, _ := r.asked.Caller.Person(); string(who) != c.who || (r.asked.Refusal != nil) != c.refused {
			t.Errorf("%s: %q, error %v", name, who, r.asked.Refusal)
		}
	}
	m := newAttributes(toolCall)
	m.GetRequest().GetHttp().Headers = nil
	m.MetadataContext = &corepb.Metadata{FilterMetadata: map[string]*structpb.Struct{
		"envoy.filters.http.jwt_authn": {Fields: map[string]*structpb.Value{"a": structpb.NewStringValue("x")}},
	}}
	if _, err := checkOverWire(withKeys("away"), e, &authpb.CheckRequest{Attributes: m}); grpcstatus.Code(err) != codes.Unavailable {
		t.Errorf("a key that cannot be checked: %v", err)
	}
}

// FuzzCheckRequest checks that what protobuf reads is read, as there.
func FuzzCheckRequest(f *testing.F) {
	full := newAttributes(toolCall)
	full.ContextExtensions = map[string]string{"tollgate.server": "com.example/weather"}
	full.MetadataContext = &corepb.Metadata{FilterMetadata: map[string]*structpb.Struct{"mcp_proxy": {}}}
	for _, m := range []*authpb.AttributeContext{nil, {}, full} {
		data, err := proto.Marshal(&authpb.CheckRequest{Attributes: m})
		must.Succeed(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m authpb.CheckRequest
		want := proto.Unmarshal(data, &m)
		var c checkRequest
		err := c.UnmarshalBinary(data)
		if want != nil {
			return // Envoy does not send it
		}
		if err != nil {
			t.Fatalf("error %v", err)
		}
		h, r := m.GetAttributes().GetRequest().GetHttp(), c.request()
		address := access.Address{Scheme: h.GetScheme(), Host: h.GetHost(), Path: h.GetPath()}
		if c.isHTTP != (h != nil) || r.call.Method != h.GetMethod() || r.address != address ||
			r.server != m.GetAttributes().GetContextExtensions()["tollgate.server"] || string(c.body) != h.GetBody() ||
			string(c.rawBody) != string(h.GetRawBody()) || !proto.Equal(c.metadata, m.GetAttributes().GetMetadataContext()) {
			t.Fatalf("%+v, protobuf has %v", r, &m)
		}
	})
}
