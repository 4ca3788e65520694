package decideapi

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// The headers that questions and answers have by every protocol.
const (
	headerAuthorization = "authorization"
	headerChallenge     = "www-authenticate"
	headerContentType   = "content-type"
	headerDecisionID    = "x-tollgate-decision-id"
	headerKey           = "x-tollgate-key" // of a proxy, also as metadata of gRPC

	jsonType = "application/json"
)

// The indices of answer.headers.
const (
	subjectHeader = iota
	serverHeader
	toolHeader
	trustHeader
	ruleHeader
)

// header is a header of the request to the tool server.
type header struct{ name, value string }

// answer is what a proxy does with a request (contract Z-7).
type answer struct {
	deciding.Answer

	call access.Call
	// headers are those that the tool server gets of an allowed call, in place of what the client sent
	// under their names. One with an empty value must be removed.
	headers [ruleHeader + 1]header
	// stripToken is whether the header Authorization is to be removed.
	stripToken bool

	// The others are of a call that is not allowed.
	status     int    // 401 or 403; of an allowed call 200
	challenge  string // WWW-Authenticate; empty for no such header
	message    string // a sentence for the caller
	body       []byte // JSON, with the message
	decisionID string // what people ask operators about: the body says little
}

// allowed reports whether the proxy may forward the call.
func (a *answer) allowed() bool { return a.Effect == access.Allow }

// newAnswer returns the answer of a decision about a question.
func (c Config) newAnswer(d deciding.Answer, q *deciding.Question) *answer {
	call := q.Call
	a := &answer{Answer: d, call: call, status: http.StatusOK}
	if a.allowed() {
		a.headers = [...]header{
			subjectHeader: {"x-tollgate-subject", headerText(d.Subject.String())},
			serverHeader:  {"x-tollgate-server", headerText(d.Server)},
			toolHeader:    {"x-tollgate-tool", headerText(call.Tool())},
			trustHeader:   {"x-tollgate-trust", d.Subject.Trust().String()},
			ruleHeader:    {"x-tollgate-rule", string(d.Rule)},
		}
		a.stripToken = c.StripToken
		return a
	}
	f := refusalOf(&d)
	a.status = http.StatusForbidden
	if f.Kind == fault.Unauthenticated {
		a.status = http.StatusUnauthorized
	}
	needed := `scope="` + string(authority.ReadScope) + `"`
	if c.Issues { // clients request the scopes of the metadata, which are those of the resource
		needed = ""
	}
	a.challenge = c.challengeOf(f, needed, metadataOf(q))
	a.decisionID = string(d.ID)
	a.message, a.body = f.Message, bodyOf(f, call.ID)
	return a
}

// headerText returns a text as the value of a header. A client chooses the name of a tool, so that
// one that is no plain text is written as the header Mcp-Name would have it.
func headerText(s string) string {
	plain := !strings.HasPrefix(s, "=?") && strings.TrimSpace(s) == s
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] >= ' ' && s[i] <= '~'
	}
	if plain {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}

// denials are the messages of what is denied. They name no tool and no rule, which are no business of
// the caller.
var denials = map[access.Reason]string{
	access.NotListed:      "the tool server is not listed",
	access.Disputed:       "programs disagree where this address leads: write it as the server's URL has it",
	access.Quarantined:    "the tool server is in quarantine",
	access.Unreadable:     "the call cannot be read: POST one JSON-RPC message of at most 64 KiB as it is, in UTF-8, and each member once",
	access.ToolChanged:    "the tool is not as it was approved",
	access.HeaderMismatch: "the headers Mcp-Method and Mcp-Name differ from the body",
}

// refusalOf returns the error of a call that is not allowed: Unauthenticated if a sign-in could
// change that, else Forbidden.
func refusalOf(d *deciding.Answer) *fault.Error {
	if d.Effect != access.Challenge {
		message, ok := denials[d.Reason]
		if !ok {
			message = "the call is not allowed"
		}
		return fault.New(fault.Forbidden, message).WithCode(auth.CodeAccessDenied)
	}
	if d.Reason == access.InvalidToken {
		return fault.New(fault.Unauthenticated, "the access token is not valid: sign in").WithCode(auth.CodeInvalidToken).
			WithDetail(challengeDetail, jsonvalue.Text(scheme+`error="invalid_token"`))
	}
	if f, ok := fault.As(trust.Require(d.Subject.Trust(), d.Required)); ok && d.Subject.Kind() != access.Anonymous {
		return f
	}
	return fault.New(fault.Unauthenticated, "sign in to call the tool server").WithCode(auth.CodeInvalidToken)
}

const (
	challengeDetail = "challenge"
	scheme          = "Bearer "
	metadataPath    = "/.well-known/oauth-protected-resource" // RFC 9728, section 3
)

// metadataOf returns where the metadata of a tool server is: that of the address which the client has called,
// since it refuses any other (RFC 9728, section 3.3). If the address is not known, it is that of the registry.
func metadataOf(q *deciding.Question) string {
	resource, ok := q.Address.Resource()
	if !ok {
		return metadataPath
	}
	place := metadataPath + "/servers"
	if _, err := toolserver.ParseName(q.Server); err == nil && !strings.Contains("/"+q.Server, "/.") { // no dot segments
		place += "/" + q.Server
	}
	return place + "?resource=" + url.QueryEscape(resource)
}

// challengeOf returns the header WWW-Authenticate of an error (RFC 6750, section 3; RFC 9728, section
// 5.1); empty for one that a sign-in or a step-up does not change. needed is the parameter with the scope
// that the caller needs; empty if there is none. place is where the metadata is, below PUBLIC_URL.
func (c Config) challengeOf(f *fault.Error, needed, place string) string {
	given := f.Details.Text(challengeDetail)
	if given == "" && f.Kind != fault.Unauthenticated {
		return ""
	}
	parameters := []string{strings.TrimPrefix(given, scheme), needed}
	if c.PublicURL != "" {
		parameters = append(parameters, `resource_metadata="`+strings.TrimRight(c.PublicURL, "/")+place+`"`)
	}
	parameters = slices.DeleteFunc(parameters, func(p string) bool { return p == "" })
	return strings.TrimSpace(scheme + strings.Join(parameters, ", "))
}

// codeNotAllowed is the code of JSON-RPC errors about calls that are not allowed.
const codeNotAllowed = "-32001"

// bodyOf returns the body of an error: a JSON-RPC error if the id of the request is known, else the
// errors of the API (contract A-2).
func bodyOf(f *fault.Error, id []byte) []byte {
	if id != nil {
		b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
		b = append(b, `,"error":{"code":`+codeNotAllowed+`,"message":`...)
		return append(jsonstring.Append(b, f.Message), "}}"...)
	}
	details := jsonvalue.Object{}
	for name, v := range f.Details {
		if name != challengeDetail { // is in WWW-Authenticate
			details[name] = v
		}
	}
	b, err := json.Marshal(errorResponse{f.Code, f.Message, details})
	if err != nil { // texts always have a JSON
		return []byte("{}")
	}
	return b
}

// errorResponse is the body of an error (contract A-2).
type errorResponse struct {
	Error   fault.Code       `json:"error"`
	Message string           `json:"message"`
	Details jsonvalue.Object `json:"details"`
}

// read returns the entries of the list in a result, in their order. ok is false for a list of which
// programs would read different entries.
func (l listing) read(result []byte) (all []span, ok bool) {
	if !utf8.Valid(result) || !json.Valid(result) {
		return nil, false
	}
	r := jsonvalue.NewReader(result)
	if r.Next() != '{' {
		return nil, false
	}
	seen := false
	for r.Enter(); r.More('}'); {
		name := r.Text()
		if name != l.member {
			if strings.EqualFold(name, l.member) { // some readers take it for the member
				return nil, false
			}
			skip(&r)
			continue
		}
		if seen || r.Next() != '[' {
			return nil, false
		}
		seen = true
		for r.Enter(); r.More(']'); {
			one := span{begin: r.Offset()}
			if one.name, ok = l.readEntry(&r); !ok {
				return nil, false
			}
			one.end = r.Offset()
			one.text = result[one.begin:one.end]
			all = append(all, one)
		}
	}
	return all, true
}

// readEntry returns what an entry of the list names; empty without that. ok is as for read.
func (l listing) readEntry(r *jsonvalue.Reader) (name string, ok bool) {
	if r.Next() != '{' {
		skip(r)
		return "", true
	}
	seen := false
	for r.Enter(); r.More('}'); {
		member := r.Text()
		if member != l.key {
			if strings.EqualFold(member, l.key) {
				return "", false
			}
			skip(r)
			continue
		}
		if seen {
			return "", false
		}
		if seen = true; r.Next() == '"' {
			name = r.Text()
		} else {
			skip(r)
		}
	}
	return name, true
}

// skip reads a value.
func skip(r *jsonvalue.Reader) {
	switch r.Next() {
	case '{':
		for r.Enter(); r.More('}'); {
			r.Next()
			r.Bytes()
			skip(r)
		}
	case '[':
		for r.Enter(); r.More(']'); {
			skip(r)
		}
	case '"':
		r.Bytes()
	default:
		r.Word()
	}
}
