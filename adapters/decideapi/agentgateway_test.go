package decideapi

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/adapters/decideapi/extmcppb"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/test/must"
)

func newContext(t *testing.T, fields map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(fields)
	must.Succeed(t, err)
	return s
}

// TestGatewayClients checks the address of the client, in requests and lists.
func TestGatewayClients(t *testing.T) {
	t.Parallel()
	a, r := newAPI(Config{})
	g := &agentgateway{api: a}
	for text, want := range map[string]string{
		"192.0.2.9": "192.0.2.9", "192.0.2.9:4711": "192.0.2.9", "::ffff:192.0.2.9": "192.0.2.9", "[2001:db8::1]:9": "2001:db8::1",
		"": "invalid IP", "client": "invalid IP",
	} {
		m := newContext(t, map[string]any{"tollgate.source": text})
		_, err := g.CheckRequest(t.Context(), &extmcppb.McpRequest{Method: "tools/list", MetadataContext: m})
		if err != nil || r.asked.From.String() != want {
			t.Errorf("%q: a request from %s, error %v", text, r.asked.From, err)
		}
		_, err = g.CheckResponse(t.Context(), &extmcppb.McpResponse{Method: "tools/list", MetadataContext: m, McpResponse: []byte(`{"tools":[]}`)})
		if err != nil || r.asked.From.String() != want {
			t.Errorf("%q: a list for %s, error %v", text, r.asked.From, err)
		}
	}
	m := newContext(t, map[string]any{"tollgate.source": 7})
	if _, err := g.CheckRequest(t.Context(), &extmcppb.McpRequest{Method: "tools/list", MetadataContext: m}); err != nil || r.asked.From.IsValid() {
		t.Errorf("a number: a request from %s, error %v", r.asked.From, err)
	}
}

// TestGatewayRequests checks who calls what in a request of agentgateway, and what it gets.
func TestGatewayRequests(t *testing.T) {
	t.Parallel()
	a, r := newAPI(Config{StripToken: true})
	g := &agentgateway{api: a}
	stated := newContext(t, map[string]any{"tollgate.server": "com.example/weather", "tollgate.authorization": "Bearer bob"})
	got, err := g.CheckRequest(t.Context(), &extmcppb.McpRequest{
		ServiceNames: []string{"other"}, Method: "tools/call", McpRequest: []byte(`{"name":"forecast","arguments":{}}`),
		MetadataContext: stated, Headers: []*extmcppb.McpHeader{{Key: "Authorization", Value: []byte("Bearer ada")}},
	})
	who, _ := r.asked.Caller.Person()
	if err != nil || got.GetPass() == nil || r.asked.Server != "com.example/weather" || who != "ada" || r.asked.Call.Tool() != "forecast" {
		t.Errorf("%v, error %v, asked %+v", got, err, r.asked)
	}
	if h := got.GetHeaderMutation(); len(h.GetSet()) != 5 || string(h.GetSet()[2].GetValue()) != "forecast" ||
		strings.Join(h.GetRemove(), " ") != "authorization" || len(got.GetMetadata().GetFields()) != 1 {
		t.Errorf("the headers are %v", h)
	}
	got, err = g.CheckRequest(t.Context(), &extmcppb.McpRequest{
		ServiceNames: []string{"com.example/weather", "com.example/maps"}, Method: "tools/list",
		MetadataContext: newContext(t, map[string]any{"tollgate.authorization": "Bearer bob"}),
	})
	who, _ = r.asked.Caller.Person()
	if err != nil || r.asked.Server != "com.example/maps" || who != "bob" || r.asked.Call.Class != access.ListsTools ||
		strings.Join(got.GetHeaderMutation().GetRemove(), " ") != "x-tollgate-server x-tollgate-tool x-tollgate-rule authorization" {
		t.Errorf("%v, error %v, asked %+v", got, err, r.asked)
	}
	for params, readable := range map[string]bool{
		`{"name":"forecast"}`: true, `{"name":"forecast","name":"x"}`: false, `{`: false, `{},"method":"tools/list"`: false, `[]`: false,
		`{"name":"` + strings.Repeat("a", access.MaxBody) + `"}`: false,
	} {
		if _, err := g.CheckRequest(t.Context(), &extmcppb.McpRequest{Method: "tools/call", McpRequest: []byte(params)}); err != nil ||
			(r.asked.Call.Problem == "") != readable {
			t.Errorf("%.40s: %+v, error %v", params, r.asked.Call, err)
		}
	}

	r.decides = access.Decision{Effect: access.Deny, Reason: access.ByRule}
	got, err = g.CheckRequest(t.Context(), &extmcppb.McpRequest{Method: "tools/call", MetadataContext: stated})
	refusal := got.GetError()
	var body struct {
		Code    int
		Message string
		Data    struct{ DecisionID string }
	}
	if err != nil || refusal.GetCode() != extmcppb.AuthorizationError_PERMISSION_DENIED || json.Unmarshal(refusal.GetMcpError(), &body) != nil ||
		body.Code != -32001 || body.Message != refusal.GetReason() || body.Message == "" {
		t.Errorf("%v, error %v", got, err)
	}
	r.err = fault.New(fault.Unavailable, "away")
	if _, err := g.CheckRequest(t.Context(), &extmcppb.McpRequest{}); grpcstatus.Code(err) != codes.Unavailable {
		t.Errorf("error %v", err)
	}
	if _, err := g.CheckResponse(t.Context(), &extmcppb.McpResponse{Method: "tools/list", McpResponse: []byte(`{"tools":[]}`)}); grpcstatus.Code(err) != codes.Unavailable {
		t.Errorf("error %v", err)
	}
}

// TestGatewayLists checks what is removed from lists: what would be denied, and no other byte.
func TestGatewayLists(t *testing.T) {
	t.Parallel()
	a, _ := newAPI(Config{})
	g := &agentgateway{api: a}
	for name, c := range map[string]struct{ method, result, want string }{
		"nothing":              {"tools/list", `{"tools":[ {"name":"a"} , {"name":"b"}]}`, ""},
		"the first":            {"tools/list", `{"tools":[ {"name":"no"} , {"name":"b"} ], "nextCursor":"x"}`, `{"tools":[ {"name":"b"} ], "nextCursor":"x"}`},
		"the last":             {"tools/list", `{"n":1e3,"tools":[{"x":[{"name":"no"}],"name":"a"} , {"name":"no1"} ]}`, `{"n":1e3,"tools":[{"x":[{"name":"no"}],"name":"a"} ]}`},
		"all":                  {"tools/list", `{"tools":[ {"name":"no"},{"name":"no2"} ]}`, `{"tools":[  ]}`},
		"some":                 {"tools/list", `{"tools":[{"name":"no"},{"name":"no"},{"name":"a"},{"name":"no"},{"name":"b"},{"name":"no"}]}`, `{"tools":[{"name":"a"},{"name":"b"}]}`},
		"escapes":              {"tools/list", `{"to\u006fls":[{"n\u0061me":"\u006eo"},{"name":"a\u00e9"}]}`, `{"to\u006fls":[{"name":"a\u00e9"}]}`},
		"prompts":              {"prompts/list", `{"prompts":[{"name":"no"}],"tools":[{"name":"no"}]}`, `{"prompts":[],"tools":[{"name":"no"}]}`},
		"resources":            {"resources/list", `{"resources":[{"name":"no","uri":"a"},{"name":"a","uri":"no:b"}]}`, `{"resources":[{"name":"no","uri":"a"}]}`},
		"another":              {"tools/call", `{"tools":[{"name":"no"}]}`, ""},
		"no list":              {"tools/list", `{"x":[{"name":"no"}]}`, ""},
		"no object":            {"tools/list", `{"tools":["no",7,{"name":7},[]]}`, ""},
		"a member given twice": {"tools/list", `{"tools":[],"tools":[{"name":"no"}]}`, "error"},
		"a name given twice":   {"tools/list", `{"tools":[{"name":"a","name":"no"}]}`, "error"},
		"another spelling":     {"tools/list", `{"x":1,"Tools":[{"name":"no"}]}`, "error"},
		"a spelling with ſ":    {"tools/list", `{"tools":[],"tool\u017f":[{"name":"no"}]}`, "error"},
		"a name in upper case": {"tools/list", `{"tools":[{"name":"a","NAME":"no"}]}`, "error"},
		"no JSON":              {"tools/list", `{"tools":[`, "error"},
		"no list at all":       {"tools/list", `{"tools":{"name":"no"}}`, "error"},
	} {
		got, err := g.CheckResponse(t.Context(), &extmcppb.McpResponse{Method: c.method, McpResponse: []byte(c.result), ServiceNames: []string{"x"}})
		switch {
		case err != nil || (c.want == "error") != (got.GetError().GetCode() == extmcppb.AuthorizationError_INVALID):
			t.Errorf("%s: %v, error %v", name, got, err)
		case (c.want == "") != (got.GetPass() != nil), c.want != "" && c.want != "error" && string(got.GetMutated()) != c.want:
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// TestListsOfTargets: of several targets, the gateway lists names with that of the target before them, and asks
// about calls without it. What could be of two targets must be allowed by both.
func TestListsOfTargets(t *testing.T) {
	t.Parallel()
	a, _ := newAPI(Config{})
	g := &agentgateway{api: a}
	for name, c := range map[string]struct{ method, result, want string }{
		"tools":      {"tools/list", `{"tools":[{"name":"maps_no"},{"name":"maps_a"},{"name":"no_a"},{"name":"no"}]}`, `{"tools":[{"name":"maps_a"},{"name":"no_a"}]}`},
		"two":        {"tools/list", `{"tools":[{"name":"no_maps_a"},{"name":"no_maps_no"}]}`, `{"tools":[{"name":"no_maps_a"}]}`},
		"two at odd": {"tools/list", `{"tools":[{"name":"maps_no_a"}]}`, `{"tools":[]}`},
		"resources":  {"resources/list", `{"resources":[{"uri":"maps+no:b"},{"uri":"maps+a:b"}]}`, `{"resources":[{"uri":"maps+a:b"}]}`},
	} {
		got, err := g.CheckResponse(t.Context(), &extmcppb.McpResponse{
			Method: c.method, McpResponse: []byte(c.result), ServiceNames: []string{"no", "maps", "no_maps"},
		})
		if err != nil || string(got.GetMutated()) != c.want {
			t.Errorf("%s: %v, error %v, want %s", name, got, err, c.want)
		}
	}
}

// TestMarksOfLists: a tool of a list has the mark that it has under its name at the server, and what is beyond the
// greatest list has none, as has what is no tool.
func TestMarksOfLists(t *testing.T) {
	t.Parallel()
	a, _ := newAPI(Config{})
	g := &agentgateway{api: a}
	var asked []access.Call
	a.ports.Denied = func(_ context.Context, _ deciding.Question, calls []access.Call) ([]bool, error) {
		asked = append(asked, calls...)
		return make([]bool, len(calls)), nil
	}
	list := func(method, text string, targets ...string) []access.Call {
		t.Helper()
		asked = nil
		_, err := g.CheckResponse(t.Context(), &extmcppb.McpResponse{Method: method, McpResponse: []byte(text), ServiceNames: targets})
		must.Succeed(t, err)
		return asked
	}
	want, err := tools.MarkOf([]byte(`{"name":"a","description":"d"}`), "a")
	must.Succeed(t, err)
	for name, c := range map[string]struct {
		text    string
		targets []string
		marked  bool
	}{
		"of one server":    {`{"tools":[ {"description":"d", "name":"a","_meta":{}} ]}`, []string{"maps"}, true},
		"of a target":      {`{"tools":[{"name":"maps_a","description":"d"}]}`, []string{"maps", "mail"}, true},
		"another one":      {`{"tools":[{"name":"a","description":"e"}]}`, []string{"maps"}, false},
		"a member twice":   {`{"tools":[{"name":"a","description":"d","description":"d"}]}`, []string{"maps"}, false},
		"another spelling": {`{"tools":[{"name":"a","description":"d","DESCRIPTION":"e"}]}`, []string{"maps"}, false},
	} {
		calls := list("tools/list", c.text, c.targets...)
		if len(calls) == 0 || (calls[0].Mark() == want) != c.marked || calls[0].Name != "a" {
			t.Errorf("%s: %+v", name, calls)
		}
	}
	many := strings.TrimSuffix(strings.Repeat(`{"name":"a","description":"d"},`, tools.MaxTools+1), ",")
	calls := list("tools/list", `{"tools":[`+many+`]}`)
	if calls[tools.MaxTools-1].Mark() != want || calls[tools.MaxTools].Mark() != (toolserver.Mark{}) {
		t.Error("a tool beyond the greatest list has a mark")
	}
	if calls := list("prompts/list", `{"prompts":[{"name":"a"}]}`); len(calls) != 1 || calls[0].Mark != nil {
		t.Errorf("a prompt is %+v", calls)
	}
}

// TestFilteredLists compares with a filter that decodes and encodes.
func TestFilteredLists(t *testing.T) {
	t.Parallel()
	a, _ := newAPI(Config{})
	g := &agentgateway{api: a}
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "no", "no1", "é", ""}), 0, 6).Draw(t, "names")
		var tools, kept []map[string]any
		for i, name := range names {
			tool := map[string]any{"name": name, "n": float64(i)}
			if tools = append(tools, tool); !strings.HasPrefix(name, "no") {
				kept = append(kept, tool)
			}
		}
		text, _ := json.Marshal(map[string]any{"tools": append([]map[string]any{}, tools...), "z": 1})
		want, _ := json.Marshal(map[string]any{"tools": append([]map[string]any{}, kept...), "z": 1})
		got, err := g.CheckResponse(t.Context(), &extmcppb.McpResponse{Method: "tools/list", McpResponse: text})
		filtered := string(got.GetMutated())
		if got.GetPass() != nil {
			filtered = string(text)
		}
		if err != nil || filtered != string(want) {
			t.Fatalf("%s becomes %s, want %s, error %v", text, filtered, want, err)
		}
	})
}
