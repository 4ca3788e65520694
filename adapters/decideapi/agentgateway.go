package decideapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tollgate-dev/tollgate/adapters/decideapi/extmcppb"
	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// agentgateway serves the policy decisions of agentgateway (contract Z-10).
type agentgateway struct {
	extmcppb.UnimplementedExtMcpServer

	api *API
}

// The names by which the configuration of the gateway adds what Tollgate needs.
const (
	contextServer = "tollgate.server"
	contextToken  = "tollgate.authorization" // the value of the header Authorization
	contextSource = "tollgate.source"        // the address of the client
)

// sourceOf returns the address of the client; the zero value, which matches no network, if there is
// no address.
func sourceOf(m *structpb.Struct) netip.Addr {
	text := m.GetFields()[contextSource].GetStringValue()
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().Unmap()
	}
	address, _ := netip.ParseAddr(text)
	return address.Unmap()
}

// serversOf returns the servers that a message is about. If there is none, the empty name is one, which
// is not listed.
func serversOf(m *structpb.Struct, backends []string) []string {
	if stated := m.GetFields()[contextServer].GetStringValue(); stated != "" {
		return []string{stated}
	}
	if len(backends) == 0 {
		return []string{""}
	}
	return backends
}

func tokenOf(m *structpb.Struct) []string {
	if v, ok := m.GetFields()[contextToken]; ok {
		return []string{v.GetStringValue()}
	}
	return nil
}

// CheckRequest implements [extmcppb.ExtMcpServer]. Each server of the request must be allowed.
func (g *agentgateway) CheckRequest(ctx context.Context, m *extmcppb.McpRequest) (*extmcppb.McpRequestResult, error) {
	r := request{
		call: access.Request{Method: "POST", Body: bodyWith(m.GetMethod(), m.McpRequest)}, from: sourceOf(m.GetMetadataContext()),
	}
	for _, h := range m.GetHeaders() {
		if strings.EqualFold(h.GetKey(), headerAuthorization) {
			r.authorization = append(r.authorization, string(h.GetValue()))
		}
	}
	if r.authorization == nil {
		r.authorization = tokenOf(m.GetMetadataContext())
	}
	q := g.api.question(ctx, &r)
	servers := serversOf(m.GetMetadataContext(), m.GetServiceNames())
	var a *answer
	for _, name := range servers {
		var err error
		q.Server = name
		if a, err = g.api.decide(ctx, &q); err != nil {
			return nil, g.api.grpcError(ctx, err)
		}
		if !a.allowed() {
			return &extmcppb.McpRequestResult{Result: &extmcppb.McpRequestResult_Error{Error: newRefusal(a)}}, nil
		}
	}
	if len(servers) > 1 { // no one server and no one rule
		a.headers[serverHeader].value, a.headers[ruleHeader].value = "", ""
	}
	return newPass(a), nil
}

// bodyWith returns the JSON-RPC message of a method and its params, as JSON; params are nil without
// them. What is wrong with them is wrong with the message.
func bodyWith(method string, params []byte) []byte {
	b := jsonstring.Append([]byte(`{"method":`), method)
	if params != nil {
		if !json.Valid(params) { // it could close the message
			return nil
		}
		b = append(append(b, `,"params":`...), params...)
	}
	return append(b, '}')
}

// newPass returns the result for a request that the gateway may forward.
func newPass(a *answer) *extmcppb.McpRequestResult {
	var change extmcppb.HeaderMutation
	metadata := map[string]string{}
	for i, h := range a.headers {
		if h.value == "" {
			change.Remove = append(change.Remove, h.name)
			continue
		}
		change.Set = append(change.Set, &extmcppb.McpHeader{Key: h.name, Value: []byte(h.value)})
		metadata[metadataNames[i]] = h.value
	}
	if a.stripToken {
		change.Remove = append(change.Remove, headerAuthorization)
	}
	return &extmcppb.McpRequestResult{
		Result:         &extmcppb.McpRequestResult_Pass{Pass: &extmcppb.Pass{}},
		HeaderMutation: &change, Metadata: newMetadata(metadata),
	}
}

// newRefusal returns the error of a call that is not allowed. The gateway writes the id of the request.
func newRefusal(a *answer) *extmcppb.AuthorizationError {
	b := jsonstring.Append([]byte(`{"code":`+codeNotAllowed+`,"message":`), a.message)
	b = jsonstring.Append(append(b, `,"data":{"decisionId":`...), a.decisionID)
	return &extmcppb.AuthorizationError{
		Code: extmcppb.AuthorizationError_PERMISSION_DENIED, Reason: a.message, McpError: append(b, "}}"...),
	}
}

// listing is a method that lists what others use. The joint is between the name of a target and a name.
type listing struct{ member, uses, key, joint string }

// listings are the methods whose results are filtered.
var listings = map[string]listing{
	"tools/list":     {"tools", "tools/call", "name", "_"},
	"prompts/list":   {"prompts", "prompts/get", "name", "_"},
	"resources/list": {"resources", "resources/read", "uri", "+"},
}

// CheckResponse implements [extmcppb.ExtMcpServer]. It removes from lists what the caller would be
// denied at one of the servers, and changes nothing else. Tools are compared with the approved lists (contract W-8). A challenge is no denial: the caller learns from
// it how to meet it.
func (g *agentgateway) CheckResponse(ctx context.Context, m *extmcppb.McpResponse) (*extmcppb.McpResponseResult, error) {
	l, ok := listings[m.GetMethod()]
	if !ok {
		return passResponse(), nil
	}
	spans, ok := l.read(m.GetMcpResponse())
	if !ok { // programs would read different lists
		return &extmcppb.McpResponseResult{Result: &extmcppb.McpResponseResult_Error{Error: &extmcppb.AuthorizationError{
			Code: extmcppb.AuthorizationError_INVALID, Reason: "the list of the server cannot be read",
		}}}, nil
	}
	q := g.api.question(ctx, &request{authorization: tokenOf(m.GetMetadataContext()), from: sourceOf(m.GetMetadataContext())})
	removes := false
	servers := serversOf(m.GetMetadataContext(), m.GetServiceNames())
	for _, target := range slices.Concat(m.GetServiceNames(), []string{""}) {
		calls, of := l.callsOf(spans, target, m.GetServiceNames())
		for _, q.Server = range servers {
			if target != "" && (len(calls) == 0 || q.Server != target && slices.Contains(servers, target)) {
				continue
			}
			denied, err := g.api.ports.Denied(ctx, q, calls)
			if err != nil {
				return nil, g.api.grpcError(ctx, err)
			}
			for i := range denied {
				spans[of[i]].removed = spans[of[i]].removed || denied[i]
				removes = removes || denied[i]
			}
		}
	}
	if !removes {
		return passResponse(), nil
	}
	return &extmcppb.McpResponseResult{Result: &extmcppb.McpResponseResult_Mutated{Mutated: without(m.GetMcpResponse(), spans)}}, nil
}

// callsOf returns the calls of what a list has of a target, or of no target if that is empty, and their
// places in it. Where it forwards to several targets, the gateway writes the name of the target before each
// name of the list, and takes it away before it asks about a call (crates/agentgateway/src/mcp of
// agentgateway: handler.rs, guardrails/mod.rs).
func (l listing) callsOf(spans []span, target string, targets []string) (calls []access.Call, of []int) {
	cut := func(name, target string) (string, bool) {
		rest, is := strings.CutPrefix(name, target+l.joint)
		return rest, is && len(targets) > 1
	}
	for i, s := range spans {
		var is bool
		name := s.name
		if target != "" {
			name, is = cut(name, target)
		} else {
			is = !slices.ContainsFunc(targets, func(t string) bool { _, has := cut(name, t); return has })
		}
		if is {
			calls, of = append(calls, l.callOf(s, name, i)), append(of, i)
		}
	}
	return calls, of
}

// callOf returns the call of an entry under a name, of a tool with its mark, which is made only if a server has an
// approved list, and once. What is beyond the greatest list has no mark, so that no list costs more.
func (l listing) callOf(s span, name string, place int) access.Call {
	c := access.NewCall(l.uses, name)
	if c.Class == access.CallsTools {
		c.Mark = sync.OnceValue(func() (mark toolserver.Mark) {
			if place >= tools.MaxTools {
				return mark
			}
			mark, _ = tools.MarkOf(s.text, name) // no approved list has what has no mark
			return mark
		})
	}
	return c
}

func passResponse() *extmcppb.McpResponseResult {
	return &extmcppb.McpResponseResult{Result: &extmcppb.McpResponseResult_Pass{Pass: &extmcppb.Pass{}}}
}

// span is an entry of a list: what it names, and where it is in the text.
type span struct {
	name       string
	text       []byte
	begin, end int // of the text
	removed    bool
}

// without returns a text without the entries that are removed. The comma before an entry goes with it,
// or after it for those at the beginning of the list.
func without(text []byte, spans []span) []byte {
	var b bytes.Buffer
	at, first := 0, true
	for i, s := range spans {
		switch {
		case s.removed && first && i+1 < len(spans):
			b.Write(text[at:s.begin])
			at = spans[i+1].begin
		case s.removed && first:
			b.Write(text[at:s.begin])
			at = s.end
		case s.removed:
			b.Write(text[at:spans[i-1].end])
			at = s.end
		default:
			b.Write(text[at:s.end])
			at, first = s.end, false
		}
	}
	b.Write(text[at:])
	return b.Bytes()
}
