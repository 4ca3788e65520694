package decideapi

import (
	"context"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authpb "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/core/access"
)

// envoy serves the external authorization of Envoy, version 3 (contract Z-7).
type envoy struct {
	authpb.UnimplementedAuthorizationServer

	api *API
}

// Check implements [authpb.AuthorizationServer].
func (e *envoy) Check(ctx context.Context, m *authpb.CheckRequest) (*authpb.CheckResponse, error) {
	attributes := m.GetAttributes()
	if attributes.GetRequest().GetHttp() == nil {
		return nil, grpcstatus.Error(codes.InvalidArgument, "the request has no HTTP attributes: only the HTTP filter of Envoy may ask")
	}
	r := readAttributes(attributes)
	if err := e.readTokens(ctx, attributes, &r); err != nil {
		return nil, e.api.grpcError(ctx, err)
	}
	a, err := e.api.answer(ctx, &r)
	if err != nil {
		return nil, e.api.grpcError(ctx, err)
	}
	if a.allowed() {
		return newAllowed(a), nil
	}
	return newDenied(a), nil
}

// readTokens reads the payloads of the tokens that the filter jwt_authn has verified. They count without
// the header Authorization, and only from a proxy that has proved what it is (contract Z-4).
func (e *envoy) readTokens(ctx context.Context, m *authpb.AttributeContext, r *request) error {
	fields := m.GetMetadataContext().GetFilterMetadata()["envoy.filters.http.jwt_authn"].GetFields()
	if len(r.authorization) > 0 || len(fields) == 0 {
		return nil
	}
	trusted, err := e.api.trusts(ctx)
	if !trusted {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		payload := fields[name].GetStructValue()
		if payload.GetFields()["iss"] == nil {
			continue
		}
		text, err := json.Marshal(payload.AsMap())
		if err == nil { // a number that is none has no JSON
			r.verified = append(r.verified, text)
		}
	}
	return nil
}

// serverExtension is the context extension by which a route names its server.
const serverExtension = "tollgate.server"

// readAttributes returns the request that Envoy describes.
func readAttributes(m *authpb.AttributeContext) request {
	q := m.GetRequest().GetHttp()
	h := readHeaders(q)
	body := q.GetRawBody()
	if len(body) == 0 {
		body = []byte(q.GetBody())
	}
	r := request{
		authorization: h.authorization, server: m.GetContextExtensions()[serverExtension],
		address: access.Address{Scheme: q.GetScheme(), Host: q.GetHost(), Path: q.GetPath()},
		call: access.Request{
			Method: q.GetMethod(), Known: knownCall(m.GetMetadataContext()), Body: body, Cut: h.isCut(len(body)),
			HeaderMethod: strings.Join(h.method, ","), HeaderName: strings.Join(h.name, ","),
		},
	}
	r.from, _ = netip.ParseAddr(m.GetSource().GetAddress().GetSocketAddress().GetAddress()) // no address matches no network
	return r
}

// sentHeaders are the headers of a request that matter, each with all its values.
type sentHeaders struct{ authorization, method, name, partial, length []string }

// readHeaders returns the headers, which Envoy sends as a map, or as a list with encode_raw_headers.
func readHeaders(q *authpb.AttributeContext_HttpRequest) (h sentHeaders) {
	if m := q.GetHeaders(); len(m) > 0 {
		for _, name := range [...]string{headerAuthorization, headerMethod, headerName, headerPartial, headerLength} {
			if value, ok := m[name]; ok {
				h.add(name, value)
			}
		}
	}
	for _, one := range q.GetHeaderMap().GetHeaders() {
		if raw := one.GetRawValue(); len(raw) > 0 {
			h.add(strings.ToLower(one.GetKey()), string(raw))
		} else {
			h.add(strings.ToLower(one.GetKey()), one.GetValue())
		}
	}
	return h
}

// The headers of a request, as Envoy writes their names.
const (
	headerMethod  = "mcp-method"
	headerName    = "mcp-name"
	headerLength  = "content-length"
	headerPartial = "x-envoy-auth-partial-body" // Envoy removes those of clients
)

func (h *sentHeaders) add(name, value string) {
	switch name {
	case headerAuthorization:
		h.authorization = append(h.authorization, value)
	case headerMethod:
		h.method = append(h.method, value)
	case headerName:
		h.name = append(h.name, value)
	case headerPartial:
		h.partial = append(h.partial, value)
	case headerLength:
		h.length = append(h.length, value)
	}
}

// isCut reports whether Envoy has sent a part of the body only.
func (h *sentHeaders) isCut(size int) bool {
	for _, value := range h.partial {
		if value != "false" {
			return true
		}
	}
	for _, value := range h.length {
		if n, err := strconv.ParseInt(value, 10, 64); err != nil || size > 0 && n > int64(size) {
			return true
		}
	}
	return false
}

// knownCall returns the call that the MCP filter of Envoy has read; nil without one. A filter that has
// read a part of the body only may have missed the member that counts.
func knownCall(m *corepb.Metadata) *access.Call {
	for _, filter := range [...]string{"envoy.filters.http.mcp", "mcp_proxy"} {
		fields := m.GetFilterMetadata()[filter].GetFields()
		method := fields["method"].GetStringValue()
		if method == "" || fields["is_exceeding_limit"].GetBoolValue() {
			continue
		}
		params := fields["params"].GetStructValue().GetFields()
		c := access.CallOf(method, params["name"].GetStringValue(), params["uri"].GetStringValue())
		c.ID = idOf(fields["id"])
		return &c
	}
	return nil
}

// idOf returns the id of a JSON-RPC request, as JSON; nil without one.
func idOf(v *structpb.Value) []byte {
	switch kind := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return jsonstring.Append(nil, kind.StringValue)
	case *structpb.Value_NumberValue:
		if text, err := json.Marshal(kind.NumberValue); err == nil {
			return text
		}
	}
	return nil
}
