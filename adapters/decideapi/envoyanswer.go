package decideapi

import (
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authpb "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"
)

// decisionMetadata is the name of the dynamic metadata below that of the filter, for the descriptors of
// the rate limit and for access logs.
const decisionMetadata = "dev.tollgate.decision"

// allowedMessage is a response with all messages that it points to, in one allocation.
type allowedMessage struct {
	response authpb.CheckResponse
	status   status.Status
	result   authpb.CheckResponse_OkResponse
	ok       authpb.OkHttpResponse
	values   [len(answer{}.headers)]corepb.HeaderValue
	options  [len(answer{}.headers)]corepb.HeaderValueOption
	set      [len(answer{}.headers)]*corepb.HeaderValueOption
	remove   [len(answer{}.headers) + 1]string
	metadata metadataMessage
}

// newAllowed returns the response for a call that Envoy may forward. Envoy sets headers before it
// removes others, so that no header is in both lists.
func newAllowed(a *answer) *authpb.CheckResponse {
	m := &allowedMessage{}
	set, remove := m.set[:0], m.remove[:0]
	for i, h := range a.headers {
		if h.value == "" {
			remove = append(remove, h.name)
			continue
		}
		m.values[i].Key, m.values[i].Value = h.name, h.value
		m.options[i].Header = &m.values[i]
		m.options[i].AppendAction = corepb.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
		set = append(set, &m.options[i])
		m.metadata.add(metadataNames[i], h.value)
	}
	if a.stripToken {
		remove = append(remove, headerAuthorization)
	}
	m.ok.Headers, m.ok.HeadersToRemove = set, remove
	m.result.OkResponse = &m.ok
	m.response.Status, m.response.HttpResponse = &m.status, &m.result
	m.response.DynamicMetadata = m.metadata.complete()
	return &m.response
}

// metadataNames are the names in the metadata of the values of answer.headers.
var metadataNames = [len(answer{}.headers)]string{"subject", "server", "tool", "trust", "rule"}

// metadataMessage is the dynamic metadata of an answer.
type metadataMessage struct {
	outer, inner structpb.Struct
	value        structpb.Value
	object       structpb.Value_StructValue
	values       [len(metadataNames)]structpb.Value
	texts        [len(metadataNames)]structpb.Value_StringValue
	n            int
}

func (m *metadataMessage) add(name, value string) {
	if m.inner.Fields == nil {
		m.inner.Fields = make(map[string]*structpb.Value, len(m.values))
	}
	m.texts[m.n].StringValue = value
	m.values[m.n].Kind = &m.texts[m.n]
	m.inner.Fields[name] = &m.values[m.n]
	m.n++
}

func (m *metadataMessage) complete() *structpb.Struct {
	m.object.StructValue = &m.inner
	m.value.Kind = &m.object
	m.outer.Fields = map[string]*structpb.Value{decisionMetadata: &m.value}
	return &m.outer
}

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
	var metadata metadataMessage
	metadata.add("effect", string(a.Effect))
	metadata.add("reason", string(a.Reason))
	metadata.add("decisionId", a.decisionID)
	return &authpb.CheckResponse{
		Status: &status.Status{Code: int32(code)},
		HttpResponse: &authpb.CheckResponse_DeniedResponse{DeniedResponse: &authpb.DeniedHttpResponse{
			Status: &typepb.HttpStatus{Code: typepb.StatusCode(a.status)}, Headers: headers, Body: string(a.body),
		}},
		DynamicMetadata: metadata.complete(),
	}
}

func newOption(name, value string) *corepb.HeaderValueOption {
	return &corepb.HeaderValueOption{
		Header:       &corepb.HeaderValue{Key: name, Value: value},
		AppendAction: corepb.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}
