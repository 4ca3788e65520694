package httpconn_test

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
	"github.com/tollgate-dev/tollgate/test/must"
)

// checkRequest returns the error for the first request in a text, or "unread" if the library
// rejects it.
func checkRequest(text string) string {
	var h fasthttp.RequestHeader
	if h.Read(bufio.NewReaderSize(strings.NewReader(text), 16<<10)) != nil {
		return "unread"
	}
	if _, err := httpconn.CheckFraming(&h); err != nil {
		return err.Error()
	}
	return ""
}

func TestCheckFraming(t *testing.T) {
	const begin = "POST /v0.1/publish?a=%20 HTTP/1.1\r\nHost: a\r\n"
	for text, want := range map[string]string{
		begin + "\r\n":                                                         "",
		begin + "Content-Length: 1\r\n\r\n":                                    "",
		begin + "transfer-encoding: \tChunked \r\n\r\n":                        "",
		begin + "X-Empty:\r\nX-Tab: a\tb\r\nX-Bytes: \xc3\xa4\r\n\r\n":         "",
		begin + "X_y.z!#$%&'*+-^`|~0: a\r\n\r\n":                               "",
		"GET / HTTP/1.0\r\n\r\n":                                               "",
		"GET http://a/b HTTP/1.1\r\nHost: a\r\n\r\n":                           "",
		"GET / HTTP/1.1\r\n\r\n":                                               "Host",
		"GET / HTTP/1.1\r\nAccept: a\r\n\r\n":                                  "Host",
		begin + "HOST: b\r\n\r\n":                                              "Host",
		"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n":                         "Host",
		"GET / HTTP/2.0\r\nHost: a\r\n\r\n":                                    "version",
		"GET / http/1.1\r\nHost: a\r\n\r\n":                                    "version",
		"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n":                                 "target",
		"GET /a\x00b HTTP/1.1\r\nHost: a\r\n\r\n":                              "target",
		"GET /a\tb HTTP/1.1\r\nHost: a\r\n\r\n":                                "target",
		begin + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n":               "more than one Content-Length",
		begin + "Content-Length: 1\r\ncontent-length: 1\r\n\r\n":               "more than one Content-Length",
		begin + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n":      "together",
		begin + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n":      "together",
		begin + "Transfer-Encoding: xchunked\r\n\r\n":                          "not chunked",
		begin + "Transfer-Encoding: gzip, chunked\r\n\r\n":                     "not chunked",
		begin + "Transfer-Encoding: identity\r\n\r\n":                          "not chunked",
		begin + "Transfer-Encoding:\r\n\r\n":                                   "not chunked",
		begin + "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n":   "more than one Transfer-Encoding",
		"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n":                "HTTP/1.0",
		begin + "X-A: b\r\n folded\r\n\r\n":                                    "folded",
		begin + "X-A: b\nX-B: c\r\n\r\n":                                       "CR LF",
		"GET / HTTP/1.1\nHost: a\n\n":                                          "CR LF",
		begin + "X-A: a\x00b\r\n\r\n":                                          "control",
		begin + "X-A: a\rTransfer-Encoding: chunked\r\n\r\n":                   "control",
		begin + "Transfer-Encoding\x0b: chunked\r\n\r\n":                       "name",
		begin + "X(A): b\r\n\r\n":                                              "name",
		begin + ": b\r\n\r\n":                                                  "name",
		begin + "Transfer-Encoding : chunked\r\n\r\n":                          "unread",
		begin + "Content-Length: +1\r\n\r\n":                                   "unread",
		begin + "Content-Length: 1, 1\r\n\r\n":                                 "unread",
		begin + "Content-Length: 0x1\r\n\r\n":                                  "unread",
		begin + "Content-Length: 999999999999999999999999999999999999\r\n\r\n": "unread",
	} {
		if got := checkRequest(text); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// FuzzCheckFraming checks that fasthttp and net/http read an accepted request in the same way.
func FuzzCheckFraming(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
		"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
		"\r\nGET /a HTTP/1.0\r\nX: a\r\n b\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var ours fasthttp.RequestHeader
		if ours.Read(bufio.NewReaderSize(bytes.NewReader(text), 16<<10)) != nil {
			return
		}
		returned, err := httpconn.CheckFraming(&ours)
		if err != nil {
			return
		}
		theirs, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text)))
		if err != nil {
			return // net/http refuses more requests
		}
		chunked := len(theirs.TransferEncoding) == 1
		length := max(ours.ContentLength(), 0)
		if returned != max(ours.ContentLength(), -1) && returned != length {
			t.Errorf("%q has the length %d, and %d for fasthttp", text, returned, ours.ContentLength())
		}
		if chunked != (ours.ContentLength() == -1) || !chunked && theirs.ContentLength != int64(length) {
			t.Errorf("%q has the length %d for fasthttp, and %d, %v for net/http", text, ours.ContentLength(),
				theirs.ContentLength, theirs.TransferEncoding)
		}
	})
}

func BenchmarkCheckFraming(b *testing.B) {
	var h fasthttp.RequestHeader
	text := "GET /v0.1/servers?limit=100 HTTP/1.1\r\nHost: registry.example.com\r\nUser-Agent: editor/1.0\r\n" +
		"Accept: application/json\r\nAccept-Encoding: gzip\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n"
	must.Succeed(b, h.Read(bufio.NewReader(strings.NewReader(text))))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := httpconn.CheckFraming(&h); err != nil {
			b.Fatal(err)
		}
	}
}
