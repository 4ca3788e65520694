package access

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// Class is a group of methods that rules name (contract Z-2).
type Class string

// The classes of methods.
const (
	CallsTools Class = "tools/call"
	ListsTools Class = "tools/list"
	Prompts    Class = "prompts/*"
	Resources  Class = "resources/*"
	Other      Class = "other"
)

// Classes returns all classes.
func Classes() []Class { return []Class{CallsTools, ListsTools, Prompts, Resources, Other} }

func parseClass(s string) (Class, error) {
	return fault.OneOf("method", s, CallsTools, ListsTools, Prompts, Resources, Other)
}

// Call is what a caller wants to do at a server. NewCall and ReadCall make one.
type Call struct {
	Class   Class
	Method  string // of MCP; empty if it has no method or could not be read
	Name    string // what the method is about: the tool, the prompt, or the URI of the resource
	Problem Reason // Unreadable, HeaderMismatch, or empty
	// ID is the id of the request, as JSON; nil without one, or if it could not be read. It is a part
	// of the body.
	ID []byte
	// Mark returns the mark of the tool as a list that passes has it, the zero value for one that cannot be marked;
	// nil for a call, of which the mark is not known.
	Mark func() toolserver.Mark
}

// Tool returns the tool of a call of one; otherwise it is empty.
func (c *Call) Tool() string {
	if c.Class == CallsTools {
		return c.Name
	}
	return ""
}

// NewCall returns the call of a method, which is empty for what is no method of MCP.
func NewCall(method, name string) Call {
	c := Call{Class: Other, Method: method, Name: name}
	switch {
	case method == string(CallsTools), method == string(ListsTools):
		c.Class = Class(method)
	case strings.HasPrefix(method, "prompts/"):
		c.Class = Prompts
	case strings.HasPrefix(method, "resources/"):
		c.Class = Resources
	}
	if c.Class == CallsTools && !isPlainText(name, ' ', utf8.MaxRune) {
		c.Problem = Unreadable
	}
	return c
}

// isPlainText reports whether no server takes a text, of characters in a range, for another one, as one does
// that ends texts at a NUL. U+FFFD is in place of half a surrogate pair, which others keep.
func isPlainText(text string, from, to rune) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r < from || r > to || r == 0x7f || r == utf8.RuneError
	})
}

// CallOf returns the call of a method with its parameters, of which it takes the one that the method is
// about.
func CallOf(method, name, uri string) Call {
	switch NewCall(method, "").Class {
	case CallsTools, Prompts:
		return NewCall(method, name)
	case Resources:
		return NewCall(method, uri)
	}
	return NewCall(method, "")
}

// Request is what a proxy says about an HTTP request, for ReadCall.
type Request struct {
	Method string // of HTTP
	Known  *Call  // what the proxy itself has read; nil without it
	Body   []byte
	Cut    bool // the proxy sent a part of the body only, or nothing of it
	Coded  bool // the headers of the body let another reader decode it otherwise (IsPlainType, IsPlainCoding)
	// Upgrades says that the client asks for another protocol on the connection, for example WebSocket: what
	// follows is no request.
	Upgrades bool
	// HeaderMethod and HeaderName are the headers Mcp-Method and Mcp-Name, which clients write: they
	// count only if the headers are trusted.
	HeaderMethod, HeaderName string
	TrustHeaders             bool
}

// MaxBody is the greatest size of a body that is read, in bytes.
const MaxBody = 64 << 10

// ReadCall returns the call of a request by contract Z-6.
func ReadCall(r *Request) Call {
	if r.Upgrades {
		return unreadable(nil)
	}
	switch r.Method {
	case "POST":
		if r.Coded {
			return unreadable(nil)
		}
	case "GET", "HEAD", "DELETE", "OPTIONS":
		if len(r.Body) > 0 || r.Cut {
			return unreadable(nil)
		}
		return NewCall("", "")
	default: // a server may execute the body of any other method, also of one in lower case
		return unreadable(nil)
	}
	if r.Known != nil {
		return r.checkKnown()
	}
	headers := r.TrustHeaders && r.HeaderMethod+r.HeaderName != ""
	if headers && r.HeaderMethod != "" && len(r.Body) == 0 && !r.Cut {
		return readHeaders(r)
	}
	c := readBody(r.Body, r.Cut)
	if headers && c.Problem == "" && r.differs(&c) {
		c.Problem = HeaderMismatch
	}
	return c
}

// checkKnown returns the call that the proxy has read, unless servers may read another one in the body. A
// proxy that reads no further than it must does not notice that a member comes again (can_stop_parsing_
// in source/extensions/filters/http/mcp/mcp_json_parser.cc of Envoy), or with a name in other case.
func (r *Request) checkKnown() Call {
	if len(r.Body) > 0 && readBody(r.Body, r.Cut).Problem != "" {
		return unreadable(r.Known.ID)
	}
	return *r.Known
}

// readHeaders returns the call that the headers state. A comma is between the values of a header that is
// there twice, of which a server may take either.
func readHeaders(r *Request) Call {
	method, ok := decodeHeader(r.HeaderMethod)
	name, okToo := decodeHeader(r.HeaderName)
	if !ok || !okToo || !isPlainMethod(method) || strings.Contains(r.HeaderMethod+r.HeaderName, ",") {
		return unreadable(nil)
	}
	return NewCall(method, name)
}

// differs reports whether a header states something else than the body.
func (r *Request) differs(c *Call) bool {
	method, ok := decodeHeader(r.HeaderMethod)
	name, okToo := decodeHeader(r.HeaderName)
	return !ok || !okToo || r.HeaderMethod != "" && method != c.Method || r.HeaderName != "" && name != c.Name
}

// decodeHeader returns the text of a header, which may be written as =?base64?…?=.
func decodeHeader(s string) (string, bool) {
	inner, begins := strings.CutPrefix(s, "=?base64?")
	inner, ends := strings.CutSuffix(inner, "?=")
	if !begins || !ends {
		return s, utf8.ValidString(s)
	}
	text, err := base64.StdEncoding.Strict().DecodeString(inner)
	return string(text), err == nil && utf8.Valid(text)
}

// unreadable is the call of a body that cannot be read, as far as rules about methods matter.
func unreadable(id []byte) Call { return Call{Class: Other, Problem: Unreadable, ID: id} }

// readBody returns the call of a body, which must be one JSON-RPC message: a request, a notification
// or a response.
func readBody(body []byte, cut bool) Call {
	if cut || len(body) > MaxBody || !utf8.Valid(body) || !json.Valid(body) {
		return unreadable(nil)
	}
	m := message{reader: jsonvalue.NewReader(body), body: body}
	if m.reader.Next() != '{' {
		return unreadable(nil)
	}
	m.object(topLevel)
	if m.broken || m.hasMethod && !isPlainMethod(m.method) || !m.hasMethod && !m.answers {
		return unreadable(m.id)
	}
	c := CallOf(m.method, m.name, m.uri)
	c.ID = m.id
	return c
}

// mixedMethods are the methods of MCP that have upper case.
var mixedMethods = []string{"logging/setLevel", "sampling/createMessage"}

// isPlainMethod reports whether no server takes a method for another one, as one might that trims it or
// ignores case.
func isPlainMethod(method string) bool {
	if strings.ContainsFunc(method, func(r rune) bool { return 'A' <= r && r <= 'Z' }) {
		return slices.Contains(mixedMethods, method)
	}
	return isPlainText(method, '!', '~')
}

// IsPlainType reports whether the values of the header Content-Type let every reader decode a body as
// UTF-8: there is at most one, and it states no other charset. Frameworks for servers decode UTF-7 and
// UTF-16 where a header says so (express.json of the npm package body-parser takes each charset whose name
// begins with utf-), and one body is then two calls.
func IsPlainType(values ...string) bool {
	if len(values) > 1 {
		return false
	}
	for _, value := range values {
		value = strings.ToLower(value)
		plain := 0
		for parameter := range strings.SplitSeq(value, ";") {
			name, charset, _ := strings.Cut(strings.TrimSpace(parameter), "=")
			if name == "charset" && isReadCharset(charset) {
				plain++
			}
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r == ',' || r > '~' }) || strings.Count(value, "charset") != plain {
			return false
		}
	}
	return true
}

func isReadCharset(name string) bool {
	return slices.Contains([]string{"utf-8", `"utf-8"`, "us-ascii", `"us-ascii"`}, name)
}

// IsPlainCoding reports whether the values of the header Content-Encoding say that a body is sent as it is.
func IsPlainCoding(values ...string) bool {
	return !slices.ContainsFunc(values, func(value string) bool {
		value = strings.TrimSpace(value)
		return value != "" && !strings.EqualFold(value, "identity")
	})
}

// message is what is read of a JSON-RPC message.
type message struct {
	reader            jsonvalue.Reader
	body              []byte
	method, name, uri string
	hasMethod         bool
	answers           bool // has a result or an error
	id                []byte
	broken            bool // a member is there twice, or has another type or spelling
}

// level is where an object is in a message.
type level uint8

const (
	topLevel level = iota
	inParams
	elsewhere
)

// read are the members that are read, by the level. Another spelling of one breaks the message, since
// some readers of JSON take it for the member: they ignore case, in ways that differ beyond ASCII, and end
// names at a NUL. No member of the protocol at these levels has other characters.
var read = [...][]string{
	topLevel: {"method", "params", "id", "result", "error", "jsonrpc"}, inParams: {"name", "uri"}, elsewhere: nil,
}

// fewMembers is up to how many members of an object are compared one by one.
const fewMembers = 16

func (m *message) object(at level) {
	var first [fewMembers][]byte
	var known map[string]bool
	n := 0
	for m.reader.Enter(); m.reader.More('}'); n++ {
		name := m.reader.Bytes()
		if n < fewMembers {
			m.broken = m.broken || slices.ContainsFunc(first[:n], func(b []byte) bool { return bytes.Equal(b, name) })
			first[n] = name
		} else {
			if known == nil {
				known = make(map[string]bool, 2*fewMembers)
				for _, one := range first {
					known[string(one)] = true
				}
			}
			m.broken = m.broken || known[string(name)]
			known[string(name)] = true
		}
		m.member(m.wanted(at, name))
	}
}

// wanted returns the member that is read and has the name; otherwise empty.
func (m *message) wanted(at level, name []byte) string {
	for _, one := range read[at] {
		if string(name) == one {
			return one
		}
		m.broken = m.broken || len(name) == len(one) && strings.EqualFold(one, string(name))
	}
	m.broken = m.broken || at != elsewhere && len(name) > 0 && !isPlainText(string(name), '!', '~')
	return ""
}

// member reads the value of a member, which is empty for one that does not matter.
func (m *message) member(member string) {
	first := m.reader.Next()
	begin := m.reader.Offset()
	inner := elsewhere
	if member == "params" {
		inner = inParams
		m.broken = m.broken || first != '{' && first != 'n' // null is what is left out
	}
	text := m.value(inner)
	switch member {
	case "method":
		m.method, m.hasMethod = methodOf(text), true
	case "name":
		m.name = string(text)
	case "uri":
		m.uri = string(text)
	case "result", "error":
		m.answers = true
	case "id":
		if first != '{' && first != '[' {
			m.id = m.body[begin:m.reader.Offset()]
		}
	}
}

// methodOf returns a method. The usual ones need no memory.
func methodOf(text []byte) string {
	if string(text) == string(CallsTools) {
		return string(CallsTools)
	}
	return string(text)
}

// value reads a value, and returns a string; otherwise it is empty.
func (m *message) value(at level) []byte {
	switch m.reader.Next() {
	case '{':
		m.object(at)
	case '[':
		for m.reader.Enter(); m.reader.More(']'); {
			m.value(elsewhere)
		}
	case '"':
		return m.reader.Bytes()
	default:
		m.reader.Word()
	}
	return nil
}
