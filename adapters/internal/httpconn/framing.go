package httpconn

import (
	"bytes"
	"errors"
	"strings"

	"github.com/valyala/fasthttp"
)

// The errors of CheckFraming. Their texts are sent to the client.
var (
	errVersion       = errors.New("the version is neither HTTP/1.0 nor HTTP/1.1")
	errTarget        = errors.New("the target has a space or a control character")
	errLineEnd       = errors.New("a header line does not end in CR LF")
	errFolded        = errors.New("a header line is folded")
	errName          = errors.New("the name of a header is malformed")
	errControl       = errors.New("a header has a control character")
	errHosts         = errors.New("there is not exactly one Host header")
	errLengths       = errors.New("there is more than one Content-Length header")
	errLength        = errors.New("the Content-Length header is not a number")
	errCoding        = errors.New("the transfer encoding is not chunked")
	errCodings       = errors.New("there is more than one Transfer-Encoding header")
	errLengthCoding  = errors.New("there is a Content-Length together with a Transfer-Encoding header")
	errCodingVersion = errors.New("HTTP/1.0 has no transfer encoding")
)

// CheckFraming returns an error for a request header that two HTTP parsers may read differently:
// its length, its host or the value of a field. A proxy in front of the service parses it first,
// and a difference between both parsers allows request smuggling (RFC 9112, section 11.2). The
// server library is lenient; this function checks what the library does not. After an error the
// caller must close the connection, because the start of the next request is unknown. The text of
// the error may be sent to the client. CheckFraming returns the length of the body: 0 without one,
// and -1 for a body in chunks.
func CheckFraming(h *fasthttp.RequestHeader) (length int, err error) {
	version := h.Protocol()
	if !bytes.Equal(version, protocol11) && !bytes.Equal(version, protocol10) {
		return 0, errVersion
	}
	for _, b := range h.RequestURI() {
		if b <= ' ' || b == del {
			return 0, errTarget
		}
	}
	var s framingHeaders
	if err := s.readLines(h.RawHeaders()); err != nil {
		return 0, err
	}
	if err := s.check(bytes.Equal(version, protocol11)); err != nil {
		return 0, err
	}
	if s.codings > 0 {
		return -1, nil
	}
	return s.length, nil
}

var (
	protocol10 = []byte("HTTP/1.0")
	protocol11 = []byte("HTTP/1.1")
)

const del = 0x7f

// framingHeaders counts the headers that determine the host and the length of a request.
type framingHeaders struct {
	hosts, lengths, codings int
	length                  int // the value of Content-Length
	notChunked              bool
	badLength               bool
}

// readLines reads the header lines after the request line, with or without the empty line at the
// end.
func (s *framingHeaders) readLines(raw []byte) error {
	for len(raw) > 0 {
		end := bytes.IndexByte(raw, '\n')
		if end < 1 || raw[end-1] != '\r' {
			return errLineEnd
		}
		if end == 1 {
			return nil
		}
		if err := s.readLine(raw[:end-1]); err != nil {
			return err
		}
		raw = raw[end+1:]
	}
	return nil
}

func (s *framingHeaders) readLine(line []byte) error {
	if line[0] == ' ' || line[0] == '\t' {
		return errFolded
	}
	name, value, found := bytes.Cut(line, []byte(":"))
	if !found || !isToken(name) {
		return errName
	}
	for _, b := range value {
		if b < ' ' && b != '\t' || b == del {
			return errControl
		}
	}
	s.countHeader(name, value)
	return nil
}

// countHeader counts a header. It compares the length of the name first, because that is fast and
// rules out most headers.
func (s *framingHeaders) countHeader(name, value []byte) {
	switch len(name) {
	case len("Host"):
		s.hosts += countIf(name, "Host")
	case len("Content-Length"):
		if countIf(name, "Content-Length") == 1 {
			s.lengths++
			length, err := fasthttp.ParseUint(bytes.Trim(value, " \t"))
			s.length, s.badLength = length, err != nil
		}
	case len("Transfer-Encoding"):
		if countIf(name, "Transfer-Encoding") == 1 {
			s.codings++
			s.notChunked = s.notChunked || !strings.EqualFold(string(bytes.Trim(value, " \t")), "chunked")
		}
	}
}

// countIf returns 1 if the names are equal, else 0.
func countIf(name []byte, want string) int {
	if strings.EqualFold(string(name), want) {
		return 1
	}
	return 0
}

// check applies RFC 9112, 3.2 (one Host header), 6.1 and 6.3 (the length of a body).
func (s *framingHeaders) check(http11 bool) error {
	switch {
	case s.hosts > 1 || s.hosts == 0 && http11:
		return errHosts
	case s.lengths > 1:
		return errLengths
	case s.badLength:
		return errLength
	case s.codings > 1:
		return errCodings
	case s.codings == 1 && s.lengths > 0:
		return errLengthCoding
	case s.notChunked:
		return errCoding
	case s.codings == 1 && !http11:
		return errCodingVersion
	}
	return nil
}

// isToken reports whether a name consists of token characters.
func isToken(name []byte) bool {
	for _, b := range name {
		if !isTokenChar[b] {
			return false
		}
	}
	return len(name) > 0
}

// isTokenChar is true for the characters of a token (RFC 9110, 5.6.2).
var isTokenChar = func() (table [256]bool) {
	for b := '!'; b < del; b++ {
		table[b] = !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, b)
	}
	return table
}()
