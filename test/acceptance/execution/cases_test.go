package execution

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"unicode/utf16"

	"github.com/andybalholm/brotli"
)

// attack is a request that a client sends: the headers that matter, in the order and spelling in which it
// writes them, and the body.
type attack struct {
	method string
	header [][2]string
	body   []byte
}

func (a *attack) String() string {
	return fmt.Sprintf("%s %q\n%q", a.method, a.header, a.body)
}

// knownAttacks are bodies that one reader takes for a call of the tool safe and another one for a call of
// danger.
func knownAttacks() (all []*attack) {
	for _, one := range []struct{ types, params string }{
		{"application/json; charset=utf-7", `"name":"safe","x":"+ACIALAAi-name+ACIAOgAi-danger"`},
		{"application/json; charset=utf-7", `"name":"+AGQAYQBuAGcAZQBy-"`},
		{"application/json; charset=utf-7-imap", `"name":"&AGQAYQBuAGcAZQBy-"`},
		{"application/json; charset=utf-7", `"name":"safe+ACIALAAi-name+ACIAOgAi-danger"`},
		{`application/json; charset="utf\-7"`, `"name":"safe","x":"+ACIALAAi-name+ACIAOgAi-danger"`},
	} {
		all = append(all, &attack{"POST", [][2]string{{"Content-Type", one.types}},
			[]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + one.params + `}}`)})
	}
	return all
}

// maker makes attacks by chance.
type maker struct {
	*rand.Rand

	calm int  // how many times less often the present one is changed
	utf7 bool // the present one is in UTF-7
}

// one returns one of some values.
func one[T any](m maker, values ...T) T { return values[m.IntN(len(values))] }

// sometimes is true once in n times, or less often.
func (m maker) sometimes(n int) bool { return m.IntN(n*m.calm) == 0 }

// newAttack returns a request which is a call of a tool in most cases, changed in some ways.
func (m maker) newAttack() *attack {
	m.calm = one(m, 1, 3, 6)
	charset := ""
	coded := m.IntN(3) == 0
	if coded {
		charset = one(m, "utf-7", "utf-7-imap", "utf-7", "utf-7-imap", "utf-16", "utf-16le", "utf-16be", "utf-32", "utf-8", "us-ascii", "iso-8859-1", "unicode-1-1-utf-7")
	}
	m.utf7 = strings.HasPrefix(charset, "utf-7")
	text := m.message()
	body := []byte(text)
	if coded && (!m.utf7 || m.sometimes(2)) {
		body = m.encode(text, charset)
	}
	coding := ""
	if m.sometimes(10) {
		coding = one(m, "gzip", "br", "deflate", "identity", "zstd", "x-gzip", "gzip, identity")
		body = compress(body, coding)
	}
	a := &attack{method: "POST", body: m.wrap(body)}
	if m.sometimes(15) {
		a.method = one(m, "GET", "PUT", "PATCH", "DELETE", "QUERY", "post", "FOO", "OPTIONS", "HEAD")
	}
	types := 1
	if m.sometimes(8) {
		types = one(m, 0, 2)
	}
	for range types {
		a.add(m.spelled("Content-Type"), m.contentType(charset))
	}
	if coding != "" && !m.sometimes(5) || m.sometimes(30) {
		a.add(m.spelled("Content-Encoding"), one(m, coding, coding, "gzip", "br", "Identity", ""))
	}
	a.add("Accept", "application/json, text/event-stream")
	if m.sometimes(3) {
		a.add("MCP-Protocol-Version", one(m, "2025-03-26", "2025-06-18", "2025-11-25", "2024-11-05"))
	}
	for m.sometimes(4) {
		a.add(m.spelled("Mcp-Name"), m.name())
		if m.sometimes(2) {
			a.add(m.spelled("Mcp-Method"), one(m, "tools/call", "tools/list", "Tools/Call", "=?base64?dG9vbHMvY2FsbA==?="))
		}
	}
	return a
}

func (a *attack) add(name, value string) {
	value = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f { // the sender, a proxy or a server refuses it
			return -1
		}
		return r
	}, value)
	a.header = append(a.header, [2]string{name, value})
}

// spelled returns the name of a header, sometimes in another case.
func (m maker) spelled(name string) string {
	return one(m, name, name, strings.ToLower(name), strings.ToUpper(name))
}

func (m maker) contentType(charset string) string {
	media := "application/json"
	if m.sometimes(8) {
		media = one(m, "Application/JSON", "text/plain", "application/json, application/json", "application/vnd.api+json", "multipart/form-data")
	}
	if charset == "" && !m.sometimes(8) || m.sometimes(12) {
		return media
	}
	parameter := one(m, "charset=%s", "charset=%s", "charset=%s", `charset="%s"`, "CharSet=%s", "charset = %s", "charset=%s; charset=utf-8",
		"charset=utf-8; charset=%s", `x="; charset=utf-8"; charset=%s`, "charset*=%s", "charset=%s,", "x=y; charset=%s", `charset="\%s"`)
	return media + one(m, ";", "; ", " ;\t") + fmt.Sprintf(parameter, one(m, charset, charset, strings.ToUpper(charset), "utf-7", "utf-8"))
}

// encode returns a text in a charset: the whole of it, or pieces for those that have ASCII as it is.
func (m maker) encode(text, charset string) []byte {
	switch charset {
	case "utf-7", "utf-7-imap", "unicode-1-1-utf-7":
		shift := "+"
		if charset == "utf-7-imap" {
			shift = "&"
		}
		for range one(m, 1, 1, 2, 3) {
			begin := m.IntN(len(text))
			end := min(begin+1+m.IntN(30), len(text))
			text = text[:begin] + utf7(shift, text[begin:end]) + text[end:]
		}
		return []byte(text)
	case "utf-16", "utf-16le", "utf-16be", "utf-32":
		var b bytes.Buffer
		if m.sometimes(2) {
			text = "\ufeff" + text
		}
		for _, unit := range utf16.Encode([]rune(text)) {
			high, low := byte(unit>>8), byte(unit)
			switch charset {
			case "utf-16be":
				b.Write([]byte{high, low})
			case "utf-32":
				b.Write([]byte{low, high, 0, 0})
			default:
				b.Write([]byte{low, high})
			}
		}
		return b.Bytes()
	}
	return []byte(text)
}

// utf7 returns a text as one shifted sequence of UTF-7 (RFC 2152), or of its form for IMAP.
func utf7(shift, text string) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = append(b, byte(unit>>8), byte(unit))
	}
	return shift + base64.RawStdEncoding.EncodeToString(b) + "-"
}

// compress returns a body in a content coding.
func compress(body []byte, coding string) []byte {
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&b)
	case "br":
		w = brotli.NewWriterLevel(&b, brotli.BestSpeed)
	case "deflate":
		w, _ = zlib.NewWriterLevel(&b, flate.BestSpeed) // the level exists
	default:
		return body
	}
	_, _ = w.Write(body) // a buffer
	_ = w.Close()        // likewise
	return b.Bytes()
}

// wrap sometimes returns more, or less, than a body.
func (m maker) wrap(body []byte) []byte {
	if !m.sometimes(5) {
		return body
	}
	text := string(body)
	const other = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"danger"}}`
	return []byte(one(m,
		"["+text+"]", "["+text+","+other+"]", "["+other+","+text+"]", "[["+text+"]]", text+other, text+"\n"+other, other+"\x1e"+text,
		"\ufeff"+text, "\xff\xfe"+text, "\x00"+text, text+"\x00"+other, "/*x*/"+text, text+"//", " \t\r\n"+text+"\n", "\v"+text, "\u00a0"+text,
		text[:len(text)-min(1+m.IntN(10), len(text))], text+"}", `"`+text, "data: "+text, strings.Repeat(" ", 70_000)+text, text+"\xc0\x80",
		")]}'\n"+text, `{"params":`+text+`}`, `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":`+text+`}`))
}

// member is a member of an object, in JSON.
type member struct{ name, value string }

// message returns a JSON-RPC message.
func (m maker) message() string {
	members := []member{{"jsonrpc", `"2.0"`}, {"id", "1"}, {"method", m.methodName()}, {"params", m.params()}}
	if m.sometimes(8) {
		members[0].value = one(m, `"1.0"`, `2`, "null")
	}
	if m.sometimes(4) {
		members[1].value = one(m, `"a"`, "1.5", "null", "-0", "1e3", "9007199254740993", "{}")
	}
	for m.sometimes(4) {
		members = append(members, one(m,
			member{"method", m.methodName()}, member{"params", m.params()}, member{"result", "{}"}, member{"error", `{"code":1,"message":"x"}`},
			member{"x", m.params()}, member{"__proto__", `{"params":{"name":"danger"}}`}, member{"Params", m.params()}, member{"param\u017f", m.params()}, member{"jsonrpc", `"2.0"`}))
	}
	if m.sometimes(12) { // one is missing
		i := m.IntN(len(members))
		members = append(members[:i], members[i+1:]...)
	}
	return m.object(members)
}

func (m maker) methodName() string {
	if !m.sometimes(6) {
		return m.text("tools/call")
	}
	return one(m, `"Tools/Call"`, `"tools/call "`, `" tools/call"`, `"TOOLS/CALL"`, `"tools/call\u0000"`, `"tools\/call"`, `"tool\u017f/call"`, `"toolſ/call"`,
		`"tools/Call"`, `"tools//call"`, `"tools/call/"`, `"/tools/call"`, `"tools.call"`, `"tools/list"`, `"ping"`, `"initialize"`, `null`, `["tools/call"]`, `1`,
		`"tools/call\n"`, `"tools\uff0fcall"`)
}

// params are the parameters of a call.
func (m maker) params() string {
	if m.sometimes(20) {
		return one(m, "null", "[]", `["danger"]`, `"danger"`, `[{"name":"danger"}]`, "{}", "7")
	}
	members := []member{{"name", m.nameValue()}}
	if m.sometimes(2) {
		members = append(members, member{"arguments", one(m, "{}", `{"name":"danger"}`, `{"x":1,"x":2}`, "null", "[]", `{"a":{"b":["danger"]}}`)})
	}
	if m.utf7 {
		members = append(members, member{"x", `"` + utf7(one(m, "+", "&"), `","name":"danger`) + `"`})
	}
	for m.sometimes(4) {
		members = append(members, one(m,
			member{"name", m.nameValue()}, member{"Name", m.nameValue()}, member{"uri", `"danger"`}, member{"_meta", `{"name":"danger","progressToken":1}`},
			member{"__proto__", `{"name":"danger"}`}, member{"tool", `"danger"`}, member{"task", "{}"}, member{"name\\u0000", `"danger"`},
			member{"x", strings.Repeat("[", 200) + strings.Repeat("]", 200)}))
	}
	return m.object(members)
}

func (m maker) nameValue() string {
	if m.sometimes(15) {
		return one(m, `["danger"]`, `{"danger":1}`, "null", "1", `"\ud800"`, `"danger\ud800"`, `{"toString":"danger"}`)
	}
	return m.text(m.name())
}

// name is the name of a tool.
func (m maker) name() string {
	if !m.sometimes(3) {
		return one(m, "safe", "safe", "danger")
	}
	return one(m, "\u017fafe", "SAFE", "Danger", "danger ", " danger", "danger\x00", "safe\x00danger",
		"tas\u212a", "d\u00e4nger", "safe,danger", "safe/../danger", "\u202edanger", "=?base64?ZGFuZ2Vy?=", "", "safe\ndanger")
}

// text returns a text in JSON, sometimes with escapes that it does not need.
func (m maker) text(s string) string {
	if m.sometimes(3) {
		var b strings.Builder
		for _, r := range s {
			if r < 0x10000 && m.sometimes(3) {
				fmt.Fprintf(&b, one(m, `\u%04x`, `\u%04X`), r)
				continue
			}
			part, _ := json.Marshal(string(r)) // a text always has a JSON
			b.WriteString(strings.Trim(string(part), `"`))
		}
		return `"` + b.String() + `"`
	}
	b, _ := json.Marshal(s) // likewise
	return string(b)
}

// object returns an object, whose members are sometimes in another order or spelling.
func (m maker) object(members []member) string {
	if m.sometimes(3) {
		m.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	}
	var b strings.Builder
	for i, one := range members {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(`"` + m.spell(one.name) + `":` + one.value)
	}
	return "{" + b.String() + "}"
}

// spell sometimes returns another spelling of the name of a member: with an escape, which is the same name,
// or one that only some readers take for it.
func (m maker) spell(name string) string {
	if !m.sometimes(15) {
		return name
	}
	i := m.IntN(len(name))
	return one(m, name[:i]+fmt.Sprintf(`\u%04x`, name[i])+name[i+1:], strings.ToUpper(name), strings.ToUpper(name[:1])+name[1:],
		strings.ReplaceAll(name, "s", "\u017f"), name+" ", name+`\u0000`, "\\ufeff"+name, strings.ReplaceAll(name, "i", "\u0131"), name+"\u200b")
}
