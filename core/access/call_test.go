package access_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/access"
)

const toolCall = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"get","arguments":{"method":"x"}}}`

// TestReadCall has the sentences of contract Z-6.
func TestReadCall(t *testing.T) {
	t.Parallel()
	trusted := func(method, name, body string) access.Request {
		return access.Request{
			Method: "POST", Body: []byte(body), HeaderMethod: method, HeaderName: name, TrustHeaders: true,
		}
	}
	post := func(body string) access.Request { return access.Request{Method: "POST", Body: []byte(body)} }
	known := access.NewCall("tools/call", "known")
	for name, c := range map[string]struct {
		request access.Request
		want    string // class, name and problem
	}{
		"a call of a tool":               {post(toolCall), "tools/call get "},
		"spaces":                         {post(" \n" + toolCall + "\n"), "tools/call get "},
		"a list":                         {post(`{"id":1,"method":"tools/list"}`), "tools/list  "},
		"a prompt":                       {post(`{"method":"prompts/get","params":{"name":"p"}}`), "prompts/* p "},
		"a resource":                     {post(`{"method":"resources/read","params":{"uri":"file:///x"}}`), "resources/* file:///x "},
		"another method":                 {post(`{"method":"initialize","params":{"name":1}}`), "other  "},
		"a notification":                 {post(`{"method":"notifications/initialized"}`), "other  "},
		"a response":                     {post(`{"id":1,"result":{}}`), "other  "},
		"an escaped name":                {post(`{"m\u0065thod":"tools\/call","params":{"name":"g\u0065t"}}`), "tools/call get "},
		"GET":                            {access.Request{Method: "GET"}, "other  "},
		"DELETE":                         {access.Request{Method: "DELETE"}, "other  "},
		"GET with a body":                {access.Request{Method: "GET", Body: []byte(toolCall)}, "other  unreadable"},
		"DELETE, the body is not sent":   {access.Request{Method: "DELETE", Cut: true}, "other  unreadable"},
		"another method with a body":     {access.Request{Method: "PUT", Body: []byte(toolCall)}, "other  unreadable"},
		"another method of HTTP":         {access.Request{Method: "QUERY"}, "other  unreadable"},
		"a method of HTTP in lower case": {access.Request{Method: "post", Body: []byte(toolCall)}, "other  unreadable"},
		"a body in another charset":      {access.Request{Method: "POST", Body: []byte(toolCall), Coded: true}, "other  unreadable"},
		"what the proxy read, coded":     {access.Request{Method: "POST", Known: &known, Coded: true}, "other  unreadable"},
		"a method in upper case":         {post(`{"method":"Tools/Call","params":{"name":"get"}}`), "other  unreadable"},
		"a method with a space":          {post(`{"method":"tools/call ","params":{"name":"get"}}`), "other  unreadable"},
		"a method with a control":        {post(`{"method":"tools/call\u0000","params":{"name":"get"}}`), "other  unreadable"},
		"a method with a long s":         {post(`{"method":"tool\u017f/call","params":{"name":"get"}}`), "other  unreadable"},
		"a method of MCP in upper case":  {post(`{"method":"logging/setLevel","params":{"level":"info"}}`), "other  "},
		"a header that is there twice":   {trusted("tools/call", "danger,safe", ""), "other  unreadable"},
		"a header that is no UTF-8":      {trusted("tools/call", "get\xff", ""), "other  unreadable"},
		"a header in upper case":         {trusted("Tools/call", "get", ""), "other  unreadable"},
		"what the proxy has read":        {access.Request{Method: "POST", Known: &known, Cut: true}, "tools/call known "},
		"and a part of the body":         {access.Request{Method: "POST", Known: &known, Body: []byte(toolCall[:40]), Cut: true}, "other  unreadable"},
		"and the body too":               {access.Request{Method: "POST", Known: &known, Body: []byte(toolCall)}, "tools/call known "},
		"and a tool that comes twice": {access.Request{Method: "POST", Known: &known, Body: []byte(
			`{"method":"tools/call","params":{"name":"known"},"params":{"name":"danger"}}`)}, "other  unreadable"},
		"and a tool in other case": {access.Request{Method: "POST", Known: &known, Body: []byte(
			`{"method":"tools/call","params":{"name":"known","Name":"danger"}}`)}, "other  unreadable"},
		"an upgrade":                     {access.Request{Method: "GET", Upgrades: true}, "other  unreadable"},
		"a call with an upgrade":         {access.Request{Method: "POST", Body: []byte(toolCall), Upgrades: true}, "other  unreadable"},
		"no body":                        {post(""), "other  unreadable"},
		"a cut body":                     {access.Request{Method: "POST", Body: []byte(toolCall), Cut: true}, "other  unreadable"},
		"half a body":                    {post(toolCall[:40]), "other  unreadable"},
		"a body of 64 KiB":               {post(toolCall + strings.Repeat(" ", access.MaxBody-len(toolCall))), "tools/call get "},
		"a longer body":                  {post(toolCall + strings.Repeat(" ", access.MaxBody-len(toolCall)+1)), "other  unreadable"},
		"a batch":                        {post(`[` + toolCall + `]`), "other  unreadable"},
		"two messages":                   {post(toolCall + toolCall), "other  unreadable"},
		"a text":                         {post(`"tools/call"`), "other  unreadable"},
		"no method":                      {post(`{"id":1}`), "other  unreadable"},
		"a method that is no text":       {post(`{"method":["tools/call"]}`), "other  unreadable"},
		"a method twice":                 {post(`{"method":"tools/list","method":"tools/call"}`), "other  unreadable"},
		"params twice":                   {post(`{"method":"tools/call","params":{"name":"a"},"params":{"name":"b"}}`), "other  unreadable"},
		"a name twice":                   {post(`{"method":"tools/call","params":{"name":"a","n\u0061me":"b"}}`), "other  unreadable"},
		"an argument twice":              {post(`{"method":"tools/call","params":{"name":"a","arguments":{"x":1,"x":2}}}`), "other  unreadable"},
		"a member twice of many":         {post(`{` + manyMembers(40) + `"m3":0,"method":"tools/list"}`), "other  unreadable"},
		"many members":                   {post(`{` + manyMembers(40) + `"method":"tools/list"}`), "tools/list  "},
		"another spelling of a member":   {post(`{"Method":"tools/call","method":"tools/list"}`), "other  unreadable"},
		"only another spelling":          {post(`{"method":"tools/call","params":{"Name":"a"}}`), "other  unreadable"},
		"a spelling with a long s":       {post("{\"method\":\"tools/call\",\"param\u017f\":{\"name\":\"b\"},\"params\":{\"name\":\"a\"}}"), "other  unreadable"},
		"a spelling with a dotless i":    {post(`{"method":"resources/read","params":{"ur\u0131":"b","uri":"a"}}`), "other  unreadable"},
		"a spelling with a NUL":          {post(`{"method":"tools/call","params":{"name":"a","name\u0000":"b"}}`), "other  unreadable"},
		"a spelling with a space":        {post(`{"method":"tools/call","params":{"name":"a","name ":"b"}}`), "other  unreadable"},
		"an argument that is not ASCII":  {post(`{"method":"tools/call","params":{"name":"a","arguments":{"größe ":1}}}`), "tools/call a "},
		"a tool that is not ASCII":       {post(`{"method":"tools/call","params":{"name":"größe"}}`), "tools/call größe "},
		"a tool with a NUL":              {post(`{"method":"tools/call","params":{"name":"danger\u0000"}}`), "tools/call danger\x00 unreadable"},
		"a tool with half a pair":        {post(`{"method":"tools/call","params":{"name":"a\ud800"}}`), "tools/call a\ufffd unreadable"},
		"a tool without a name":          {post(`{"method":"tools/call","params":{}}`), "tools/call  unreadable"},
		"a tool of a list of params":     {post(`{"method":"tools/call","params":["get"]}`), "other  unreadable"},
		"a tool whose name is a number":  {post(`{"method":"tools/call","params":{"name":1}}`), "tools/call  unreadable"},
		"broken UTF-8":                   {post("{\"method\":\"tools/list\",\"x\":\"\xff\"}"), "other  unreadable"},
		"headers that are not trusted":   {access.Request{Method: "POST", Body: []byte(toolCall), HeaderMethod: "tools/list"}, "tools/call get "},
		"headers alone, not trusted":     {access.Request{Method: "POST", HeaderMethod: "tools/list"}, "other  unreadable"},
		"headers alone":                  {trusted("tools/call", "get", ""), "tools/call get "},
		"a header in base64":             {trusted("tools/call", "=?base64?Z2V0?=", ""), "tools/call get "},
		"a header in wrong base64":       {trusted("tools/call", "=?base64?Z2V0!?=", ""), "other  unreadable"},
		"a name alone":                   {trusted("", "get", ""), "other  unreadable"},
		"a method without its tool":      {trusted("tools/call", "", ""), "tools/call  unreadable"},
		"headers as the body":            {trusted("tools/call", "=?base64?Z2V0?=", toolCall), "tools/call get "},
		"the method as the body":         {trusted("tools/call", "", toolCall), "tools/call get "},
		"another method than the body":   {trusted("tools/list", "", toolCall), "tools/call get header_mismatch"},
		"another tool than the body":     {trusted("tools/call", "put", toolCall), "tools/call get header_mismatch"},
		"a name that the body lacks":     {trusted("", "get", `{"method":"tools/list"}`), "tools/list  header_mismatch"},
		"wrong base64 and a body":        {trusted("tools/call", "=?base64??", toolCall), "tools/call get header_mismatch"},
		"headers and an unreadable body": {trusted("tools/call", "get", `{`), "other  unreadable"},
	} {
		got := access.ReadCall(&c.request)
		if text := string(got.Class) + " " + got.Name + " " + string(got.Problem); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

// TestIsPlainType has the headers by which readers of a body may decode it as different texts.
func TestIsPlainType(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"application/json": true, "": true, "application/json; charset=utf-8": true, `application/json;charset="UTF-8"`: true,
		"application/json; charset=us-ascii": true, "application/json; profile=x; charset=utf-8": true,
		"application/json; charset=utf-7": false, "application/json; charset=utf-7-imap": false, "application/json;CharSet = utf-7": false,
		`application/json; charset="utf-7"`: false, "application/json; charset=utf-16le": false, "application/json; charset=": false,
		"application/json; charset": false, "application/json; charset=utf-8; charset=utf-7": false,
		`application/json; x="; charset=utf-8"; charset=utf-7`: false, "application/json; charset=utf-7; charset=utf-8": false,
		"application/json, application/json; charset=utf-7": false, `application/json; charset="utf\-8"`: false,
		"application/json charset=utf-7": false, "application/json; charset*=utf-7": false, "application/json; char\u017fet=utf-7": false,
		`application/json; x="charset=utf-7"`: false, "application/json; charset:utf-7": false, "application/json;CHARSET=UTF-8;": true,
	} {
		if got := access.IsPlainType(value); got != want {
			t.Errorf("%q: %t, want %t", value, got, want)
		}
	}
	if !access.IsPlainType() || access.IsPlainType("application/json", "application/json") {
		t.Error("no header is plain, and two are not")
	}
	for value, want := range map[string]bool{"": true, "identity": true, "Identity ": true, "br": false, "gzip, identity": false, "utf-7": false} {
		if got := access.IsPlainCoding(value); got != want {
			t.Errorf("the coding %q: %t, want %t", value, got, want)
		}
	}
	if !access.IsPlainCoding() || access.IsPlainCoding("identity", "deflate") {
		t.Error("no coding is plain, and one of two is not")
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`"m` + string(rune('0'+i%10)) + strings.Repeat("x", i/10) + `":{"a":[1,{"b":null}]},`)
	}
	return b.String()
}

// TestIDOfCall: the answer to a denied request has its id, if it has one.
func TestIDOfCall(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		toolCall: "7", `{"method":"x","id":"a\"b"}`: `"a\"b"`, `{"method":"x"}`: "", `{"method":"x","id":{}}`: "",
		`{"id":3,"method":"x","method":"y"}`: "3", `[]`: "",
	} {
		r := access.Request{Method: "POST", Body: []byte(body)}
		if got := access.ReadCall(&r); string(got.ID) != want {
			t.Errorf("%s has the id %s, want %s", body, got.ID, want)
		}
	}
}

// FuzzReadCall compares what is read with what encoding/json reads, which takes the last of two
// members: what has a meaning for both has the same one.
func FuzzReadCall(f *testing.F) {
	for _, text := range []string{toolCall, `[` + toolCall + `]`, `{"id":1,"result":{}}`, `{"method":"a","method":"b"}`,
		`{"METHOD":"a"}`, "{\"method\":\"\xff\"}", `{"method":"tools/call","params":{"name":"\ud800"}}`, `{`, ` {"method":"tools/list"} `,
		"\xef\xbb\xbf" + toolCall, "{\x00\"\x00m\x00", "\x00{\x00\"", `{"id":"\u0000","method":"x"}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := access.Request{Method: "POST", Body: body}
		got := access.ReadCall(&r)
		if got.Problem != "" {
			return
		}
		var want struct {
			Method string
			Params struct{ Name, URI any }
		}
		err := json.Unmarshal(body, &want)
		name, _ := want.Params.Name.(string)
		if err != nil || got.Method != want.Method || got.Tool() != "" && got.Tool() != name {
			t.Fatalf("%s is read as %+v, and by encoding/json as %+v, %v", body, got, want, err)
		}
		if encoding := pythonEncoding(body); encoding != "utf-8" {
			t.Fatalf("%q is read as %+v, and by Python as %s", body, got, encoding)
		}
	})
}

// pythonEncoding returns the encoding by which json.loads of Python decodes a body, whatever its type says, as the
// SDK for Python does (detect_encoding in Lib/json/__init__.py of CPython).
func pythonEncoding(b []byte) string {
	for _, one := range []struct{ mark, encoding string }{
		{"\xff\xfe", "utf-16"}, {"\xfe\xff", "utf-16"}, {"\x00\x00\xfe\xff", "utf-32"}, {"\xef\xbb\xbf", "utf-8-sig"},
	} {
		if strings.HasPrefix(string(b), one.mark) {
			return one.encoding
		}
	}
	if len(b) >= 2 && (b[0] == 0 || b[1] == 0) || len(b) >= 4 && b[2] == 0 {
		return "utf-16 or utf-32"
	}
	return "utf-8"
}
