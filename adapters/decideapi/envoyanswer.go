package decideapi

import (
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authpb "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tollgate-dev/tollgate/adapters/internal/wire"
)

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
