package access

import (
	"crypto/tls"
	"net/http"
	"strconv"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	auth "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// call is a request that a client sends to the proxy, and how the proxy passes it on for a decision.
type call struct {
	method, host, path string
	headers            http.Header
	body               string
	server             string // context extension; empty without it
	sends              int    // max_request_bytes; 0 for 64 KiB
	raw                bool   // encode_raw_headers

	filters map[string]object // the metadata of the filters that ran before
	key     string            // initial_metadata x-tollgate-key of the proxy; empty without it
	tls     *tls.Config       // with the certificate of the proxy; nil without TLS
}

// outcome is what the client or the tool server gets.
type outcome struct {
	status   int
	reason   string      // of a call that is refused, for access logs
	response http.Header // likewise
	body     string
	upstream http.Header // what the tool server gets; nil if it gets nothing
}

// ask sends a call through a proxy that does what Envoy does (the filter ext_authz with
// with_request_body and pack_as_bytes).
func ask(t *testing.T, s *fixture.Service, c *call) outcome {
	t.Helper()
	proof := insecure.NewCredentials()
	if c.tls != nil {
		proof = credentials.NewTLS(c.tls)
	}
	conn, err := grpc.NewClient(s.GRPC, grpc.WithTransportCredentials(proof))
	must.Succeed(t, err)
	defer func() { _ = conn.Close() }() // the call is over
	ctx := t.Context()
	if c.key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-tollgate-key", c.key)
	}
	m, err := auth.NewAuthorizationClient(conn).Check(ctx, c.describe(t))
	must.Succeed(t, err)
	return c.apply(m)
}

// describe is CheckRequestUtils::createHttpCheck of Envoy
// (source/extensions/filters/common/ext_authz/check_request_utils.cc): lines of one header are joined,
// the client's own mark of a cut body is left out, and Envoy adds its own.
func (c *call) describe(t *testing.T) *auth.CheckRequest {
	t.Helper()
	const mark = "x-envoy-auth-partial-body"
	headers := map[string]string{}
	for name, values := range c.headers {
		if name = strings.ToLower(name); name != mark {
			headers[name] = strings.Join(values, ",")
		}
	}
	limit := c.sends
	if limit == 0 {
		limit = 64 << 10
	}
	sent := c.body[:min(len(c.body), limit)]
	if c.body != "" {
		headers[mark] = strconv.FormatBool(len(sent) < len(c.body))
	}
	m := &auth.AttributeContext{
		Source: &auth.AttributeContext_Peer{Address: &core.Address{Address: &core.Address_SocketAddress{
			SocketAddress: &core.SocketAddress{Address: "192.0.2.9", PortSpecifier: &core.SocketAddress_PortValue{PortValue: 4711}},
		}}},
		Request: &auth.AttributeContext_Request{Http: &auth.AttributeContext_HttpRequest{
			Method: c.method, Scheme: "https", Host: c.host, Path: c.path, Headers: headers, RawBody: []byte(sent),
		}},
	}
	if c.raw {
		c.sendRaw(m.GetRequest().GetHttp())
	}
	if c.server != "" {
		m.ContextExtensions = map[string]string{"tollgate.server": c.server}
	}
	for filter, fields := range c.filters {
		known, err := structpb.NewStruct(fields)
		must.Succeed(t, err)
		if m.MetadataContext == nil {
			m.MetadataContext = &core.Metadata{FilterMetadata: map[string]*structpb.Struct{}}
		}
		m.MetadataContext.FilterMetadata[filter] = known
	}
	return &auth.CheckRequest{Attributes: m}
}

// sendRaw sends the headers as a list in which each line is by itself (encode_raw_headers).
func (c *call) sendRaw(m *auth.AttributeContext_HttpRequest) {
	m.HeaderMap = &core.HeaderMap{}
	for name, value := range m.GetHeaders() {
		lines := c.headers.Values(name)
		if len(lines) == 0 { // Envoy has added it
			lines = []string{value}
		}
		for _, line := range lines {
			m.HeaderMap.Headers = append(m.HeaderMap.Headers, &core.HeaderValue{Key: name, RawValue: []byte(line)})
		}
	}
	m.Headers = nil
}

// apply is GrpcClientImpl::onSuccess and Filter::onComplete of Envoy
// (source/extensions/filters/common/ext_authz/ext_authz_grpc_impl.cc and
// source/extensions/filters/http/ext_authz/ext_authz.cc): the status decides, headers are set first and
// removed then, but never those that begin with a colon, and Host.
func (c *call) apply(m *auth.CheckResponse) outcome {
	if m.GetStatus().GetCode() != 0 {
		o := outcome{status: http.StatusForbidden, response: http.Header{}}
		if code := m.GetDeniedResponse().GetStatus().GetCode(); code > 0 {
			o.status = int(code)
		}
		mutate(o.response, m.GetDeniedResponse().GetHeaders())
		o.body = m.GetDeniedResponse().GetBody()
		o.reason = m.GetDynamicMetadata().GetFields()["dev.tollgate.decision"].GetStructValue().GetFields()["reason"].GetStringValue()
		return o
	}
	o := outcome{status: http.StatusOK, upstream: c.headers.Clone()}
	mutate(o.upstream, m.GetOkResponse().GetHeaders())
	for _, name := range m.GetOkResponse().GetHeadersToRemove() {
		if !strings.HasPrefix(name, ":") && !strings.EqualFold(name, "host") {
			o.upstream.Del(name)
		}
	}
	return o
}

// mutate changes headers as getAppendAction of Envoy says.
func mutate(headers http.Header, all []*core.HeaderValueOption) {
	for _, one := range all {
		name, value, action := one.GetHeader().GetKey(), one.GetHeader().GetValue(), one.GetAppendAction()
		if one.GetAppend() != nil { //nolint:staticcheck // Envoy reads it first
			action = core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
			if one.GetAppend().GetValue() { //nolint:staticcheck // likewise
				action = core.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD
			}
		}
		exists := len(headers.Values(name)) > 0
		switch {
		case action == core.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD:
			headers.Add(name, value)
		case action == core.HeaderValueOption_ADD_IF_ABSENT && exists, action == core.HeaderValueOption_OVERWRITE_IF_EXISTS && !exists:
		default:
			headers.Set(name, value)
		}
	}
}
