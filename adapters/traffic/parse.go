package traffic

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// Times of requests are in the years in which all algorithms count exactly.
var (
	earliest = time.Unix(0, 0)
	latest   = time.Date(2106, 1, 1, 0, 0, 0, 0, time.UTC)
)

// parser parses lines. It reads the JSON itself: encoding/json takes several times as long, and a
// recording has millions of lines. Its memory is used again for each line.
type parser struct {
	text    string // the line
	at      int    // the next byte
	err     error  // the first mistake
	entry   entry
	limits  []ratelimit.Limit
	numbers []uint64
	parts   []ratelimit.Entry
}

// parseLine parses a line. The entry is valid until the next call.
func (p *parser) parseLine(line []byte) (*entry, error) {
	if p.parts == nil {
		p.parts = make([]ratelimit.Entry, 0, 16) // so that no list of entries is nil
	}
	p.text, p.at, p.err = string(line), 0, nil
	p.entry = entry{request: ratelimit.Request{Descriptors: p.entry.request.Descriptors[:0]}}
	p.limits, p.numbers, p.parts = p.limits[:0], p.numbers[:0], p.parts[:0]
	if !utf8.ValidString(p.text) {
		return nil, errors.New("it is not valid UTF-8")
	}
	p.parseRequest()
	if p.skipSpace(); p.err == nil && p.at < len(p.text) {
		p.failf("there is more after the object")
	}
	if p.err != nil {
		return nil, p.err
	}
	return &p.entry, nil
}

// parseRequest parses the object of a line.
func (p *parser) parseRequest() {
	var found names
	p.parseObject("", func(name string) {
		switch name {
		case "time":
			found.mark(p, 0, name)
			p.parseTime()
		case "domain":
			found.mark(p, 1, name)
			p.entry.request.Domain = ratelimit.Domain(p.parseString(name))
		case "descriptors":
			found.mark(p, 2, name)
			p.parseArray(name, p.parseDescriptor)
		case "hitsAddend":
			found.mark(p, 3, name)
			p.entry.request.Hits = uint32(p.parseNumber(name)) //nolint:gosec // parseNumber returns no more
		case "answer":
			found.mark(p, 4, name)
			p.parseAnswer()
		default:
			p.failf("unknown name %s", quoteText(name))
		}
	})
	switch {
	case p.err != nil:
	case !found.has(0):
		p.failf("time is missing")
	case p.entry.request.Domain == "":
		p.failf("domain must not be empty")
	case len(p.entry.request.Descriptors) == 0:
		p.failf("descriptors must not be empty")
	}
}

func (p *parser) parseTime() {
	text := p.parseString("time")
	at, err := time.Parse(time.RFC3339, text)
	switch {
	case p.err != nil:
	case err != nil:
		p.failf("time %s is not in the form of RFC 3339", quoteText(text))
	case at.Before(earliest) || !at.Before(latest):
		p.failf("time %s is not in the years 1970 to 2105", quoteText(text))
	}
	p.entry.at = at
}

func (p *parser) parseAnswer() {
	switch answer := p.parseString("answer"); answer {
	case "OK":
		p.entry.code = ratelimit.OK
	case "OVER_LIMIT":
		p.entry.code = ratelimit.OverLimit
	default:
		p.failf("answer %s is neither OK nor OVER_LIMIT", quoteText(answer))
	}
}

func (p *parser) parseDescriptor() {
	const what = "descriptors[]"
	var found names
	var d ratelimit.Descriptor
	from := len(p.parts)
	p.parseObject(what, func(name string) {
		switch name {
		case "entries":
			found.mark(p, 0, name)
			p.parseArray(name, p.parseEntry)
		case "hitsAddend":
			found.mark(p, 1, name)
			p.numbers = append(p.numbers, p.parseNumber(name))
			d.Hits = &p.numbers[len(p.numbers)-1]
		case "isNegativeHits":
			found.mark(p, 2, name)
			d.GiveBack = p.parseBool(name)
		case "limit":
			found.mark(p, 3, name)
			p.limits = append(p.limits, p.parseLimit())
			d.Override = &p.limits[len(p.limits)-1]
		default:
			p.failf("unknown name %s in a descriptor", quoteText(name))
		}
	})
	if p.err == nil && !found.has(0) {
		p.failf("a descriptor has no entries")
	}
	d.Entries = p.parts[from:len(p.parts):len(p.parts)]
	p.entry.request.Descriptors = append(p.entry.request.Descriptors, d)
}

func (p *parser) parseEntry() {
	var found names
	var e ratelimit.Entry
	p.parseObject("entries[]", func(name string) {
		switch name {
		case "key":
			found.mark(p, 0, name)
			e.Key = p.parseString(name)
		case "value":
			found.mark(p, 1, name)
			e.Value = p.parseString(name)
		default:
			p.failf("unknown name %s in an entry", quoteText(name))
		}
	})
	if p.err == nil && !(found.has(0) && found.has(1)) {
		p.failf("an entry needs key and value")
	}
	p.parts = append(p.parts, e)
}

func (p *parser) parseLimit() ratelimit.Limit {
	var found names
	var l ratelimit.Limit
	p.parseObject("limit", func(name string) {
		switch name {
		case "requestsPerUnit":
			found.mark(p, 0, name)
			l.RequestsPerUnit = uint32(p.parseNumber(name)) //nolint:gosec // parseNumber returns no more
		case "unit":
			found.mark(p, 1, name)
			text := p.parseString(name)
			var ok bool
			if l.Unit, ok = ratelimit.ParseUnit(text); !ok {
				p.failf("unit %s is not one of %s", quoteText(text),
					strings.ToUpper(strings.Join(ratelimit.UnitNames(), ", ")))
			}
		default:
			p.failf("unknown name %s in limit", quoteText(name))
		}
	})
	if p.err == nil && !found.has(1) {
		p.failf("limit has no unit")
	}
	return l
}

// names is the set of names of an object that were read.
type names uint8

// mark adds a name, and fails if it was read before.
func (n *names) mark(p *parser, bit uint, name string) {
	if n.has(bit) {
		p.failf("%s is there twice", name)
	}
	*n |= 1 << bit
}

func (n *names) has(bit uint) bool { return *n&(1<<bit) != 0 }

// parseObject parses an object and calls value at the value of each name. what names the object,
// and is empty for that of the line.
func (p *parser) parseObject(what string, value func(name string)) {
	if !p.accept('{') {
		p.failWant(what, "an object")
		return
	}
	if p.accept('}') {
		return
	}
	for p.err == nil {
		name := p.parseString("a name")
		if p.err == nil && !p.accept(':') {
			p.failf("a : is missing after %s", quoteText(name))
		}
		if p.err == nil {
			value(name)
		}
		if p.err != nil || p.accept('}') {
			return
		}
		if !p.accept(',') {
			p.failf("a , or } is missing after %s", quoteText(name))
		}
	}
}

// parseArray parses an array and calls element at each element.
func (p *parser) parseArray(what string, element func()) {
	if !p.accept('[') {
		p.failWant(what, "a list")
		return
	}
	if p.accept(']') {
		return
	}
	for p.err == nil {
		element()
		if p.err != nil || p.accept(']') {
			return
		}
		if !p.accept(',') {
			p.failf("a , or ] is missing in %s", what)
		}
	}
}

// parseString parses a string and returns it without quotes and escapes.
func (p *parser) parseString(what string) string {
	if !p.accept('"') {
		p.failWant(what, "a text")
		return ""
	}
	from, escaped := p.at, false
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			if escaped {
				return p.unescape(p.text[from-1:p.at], what)
			}
			return p.text[from : p.at-1]
		case c == '\\':
			escaped = true
			p.at++ // the next byte does not end the text
		case c < ' ':
			p.failf("%s has a control character that is not escaped", what)
			return ""
		}
	}
	p.at = len(p.text)
	p.failf("%s is not closed", what)
	return ""
}

// unescape returns the text of a JSON string with escapes.
func (p *parser) unescape(quoted, what string) string {
	var text string
	if err := json.Unmarshal([]byte(quoted), &text); err != nil {
		p.failf("%s has an escape that JSON does not have", what)
	}
	return text
}

// parseNumber parses a whole number from 0 to math.MaxUint32.
func (p *parser) parseNumber(what string) uint64 {
	p.skipSpace()
	from := p.at
	for p.at < len(p.text) && strings.IndexByte("+-.0123456789Ee", p.text[p.at]) >= 0 {
		p.at++
	}
	digits := p.text[from:p.at]
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || len(digits) > 1 && digits[0] == '0' {
		p.failf("%s must be a whole number from 0 to %d", what, uint32(math.MaxUint32))
	}
	return n
}

func (p *parser) parseBool(what string) bool {
	p.skipSpace()
	for _, word := range []string{"true", "false"} {
		if strings.HasPrefix(p.text[p.at:], word) {
			p.at += len(word)
			return word == "true"
		}
	}
	p.failWant(what, "true or false")
	return false
}

// accept skips spaces and the byte that follows, if it is c, and reports whether it is.
func (p *parser) accept(c byte) bool {
	p.skipSpace()
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *parser) skipSpace() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

// failf notes a mistake, unless there was one before.
func (p *parser) failf(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *parser) failWant(what, kind string) {
	p.failf("%s must be %s", cmp.Or(what, "it"), kind)
}

// quoteText returns a text between quotes, cut if it is long.
func quoteText(s string) string {
	const most = 100
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strconv.Quote(s)
}
