package decideapi

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

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

// check is a handler of gRPC for a checkRequest.
func (e *envoy) check(ctx context.Context, m any) (any, error) {
	q, _ := m.(*checkRequest) // of newCheckRequest
	if !q.isHTTP {
		return nil, grpcstatus.Error(codes.InvalidArgument, "the request has no HTTP attributes: only the HTTP filter of Envoy may ask")
	}
	r := q.request()
	if err := e.readTokens(ctx, q.metadata, r); err != nil {
		return nil, e.api.grpcError(ctx, err)
	}
	a, err := e.api.answer(ctx, r)
	if err != nil {
		return nil, e.api.grpcError(ctx, err)
	}
	if a.allowed() {
		return (*allowedCheck)(a), nil
	}
	return newDenied(a), nil
}

// readTokens reads the payloads of the tokens that the filter jwt_authn has verified. They count without
// the header Authorization, and only from a proxy that has proved what it is (contract Z-4).
func (e *envoy) readTokens(ctx context.Context, m *corepb.Metadata, r *request) error {
	fields := m.GetFilterMetadata()["envoy.filters.http.jwt_authn"].GetFields()
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
