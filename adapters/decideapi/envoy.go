package decideapi

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authpb "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/adapters/internal/wire"
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

// decisionMetadata is the name of the dynamic metadata below that of the filter, for the descriptors of
// the rate limit and for access logs.
const decisionMetadata = "dev.tollgate.decision"

// The fields of responses.
const (
	responseStatus   = 1<<3 | wire.Bytes
	responseOK       = 3<<3 | wire.Bytes
	responseMetadata = 4<<3 | wire.Bytes

	okHeaders = 2<<3 | wire.Bytes
	okRemove  = 5<<3 | wire.Bytes

	optionHeader = 1<<3 | wire.Bytes
	optionAction = 3<<3 | wire.Varint

	pairKey   = 1<<3 | wire.Bytes // of a header, and of an entry of a map
	pairValue = 2<<3 | wire.Bytes

	structFields = 1<<3 | wire.Bytes
	valueText    = 3<<3 | wire.Bytes
	valueStruct  = 5<<3 | wire.Bytes
)

// allowedCheck is the response for a call that Envoy may forward. Envoy sets headers before it removes
// others, so that no header is in both lists.
type allowedCheck answer

// AppendBinary implements [encoding.BinaryAppender].
func (a *allowedCheck) AppendBinary(dst []byte) ([]byte, error) {
	dst, start := wire.Begin(dst, responseStatus)
	dst = wire.End(dst, start)
	dst, start = wire.Begin(dst, responseOK)
	for _, h := range a.headers {
		if h.value != "" {
			dst = appendOption(dst, h)
		}
	}
	for _, h := range a.headers {
		if h.value == "" {
			dst = wire.AppendText(dst, okRemove, h.name)
		}
	}
	if a.stripToken {
		dst = wire.AppendText(dst, okRemove, headerAuthorization)
	}
	return a.appendMetadata(wire.End(dst, start)), nil
}

// appendOption appends a header that is set.
func appendOption(dst []byte, h header) []byte {
	dst, option := wire.Begin(dst, okHeaders)
	dst, inner := wire.Begin(dst, optionHeader)
	dst = wire.AppendText(wire.AppendText(dst, pairKey, h.name), pairValue, h.value)
	dst = wire.AppendVarint(wire.End(dst, inner), optionAction, uint64(corepb.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD))
	return wire.End(dst, option)
}

// appendMetadata appends the dynamic metadata.
func (a *allowedCheck) appendMetadata(dst []byte) []byte {
	dst, outer := wire.Begin(dst, responseMetadata)
	dst, entry := wire.Begin(dst, structFields)
	dst = wire.AppendText(dst, pairKey, decisionMetadata)
	dst, value := wire.Begin(dst, pairValue)
	dst, object := wire.Begin(dst, valueStruct)
	for i, h := range a.headers {
		if h.value == "" {
			continue
		}
		var field, text int
		dst, field = wire.Begin(dst, structFields)
		dst = wire.AppendText(dst, pairKey, metadataNames[i])
		dst, text = wire.Begin(dst, pairValue)
		dst = wire.End(wire.End(wire.AppendText(dst, valueText, h.value), text), field)
	}
	return wire.End(wire.End(wire.End(wire.End(dst, object), value), entry), outer)
}

// metadataNames are the names in the metadata of the values of answer.headers.
var metadataNames = [len(answer{}.headers)]string{"subject", "server", "tool", "trust", "rule"}

// newDenied returns the response for a call that Envoy must refuse.
func newDenied(a *answer) *authpb.CheckResponse {
	code := codes.PermissionDenied
	if a.status == int(typepb.StatusCode_Unauthorized) {
		code = codes.Unauthenticated
	}
	headers := []*corepb.HeaderValueOption{
		newOption(headerContentType, jsonType), newOption(headerDecisionID, a.decisionID),
	}
	if a.challenge != "" {
		headers = append(headers, newOption(headerChallenge, a.challenge))
	}
	metadata := map[string]string{"effect": string(a.Effect), "reason": string(a.Reason), "decisionId": a.decisionID}
	return &authpb.CheckResponse{
		Status: &status.Status{Code: int32(code)},
		HttpResponse: &authpb.CheckResponse_DeniedResponse{DeniedResponse: &authpb.DeniedHttpResponse{
			Status: &typepb.HttpStatus{Code: typepb.StatusCode(a.status)}, Headers: headers, Body: string(a.body),
		}},
		DynamicMetadata: newMetadata(metadata),
	}
}

// newMetadata returns the dynamic metadata of an answer.
func newMetadata(texts map[string]string) *structpb.Struct {
	inner := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(texts))}
	for name, text := range texts {
		inner.Fields[name] = structpb.NewStringValue(text)
	}
	return &structpb.Struct{Fields: map[string]*structpb.Value{decisionMetadata: structpb.NewStructValue(inner)}}
}

func newOption(name, value string) *corepb.HeaderValueOption {
	return &corepb.HeaderValueOption{
		Header:       &corepb.HeaderValue{Key: name, Value: value},
		AppendAction: corepb.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}
