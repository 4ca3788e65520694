package valkey

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
)

// The limits of one reply. The greatest ones are lists of the nodes of a cluster.
const (
	maxReplyText     = 16 << 20 // bytes
	maxReplyLine     = 64 << 10 // bytes
	maxReplyElements = 1 << 20
	maxReplyDepth    = 8
)

// gatherRounds is how often the goroutines that are ready get their turn before a write.
const gatherRounds = 3

// errNotAReply means that the server sent what is not a reply to a command. The connection must be
// closed.
var errNotAReply = errors.New("the counter store sent what is not a reply")

// guarded wraps a function that connects, so that its connections are guarded.
func guarded(connect dialFunc) dialFunc {
	return func(ctx context.Context, address string, d *net.Dialer, t *tls.Config) (net.Conn, error) {
		c, err := connect(ctx, address, d, t)
		if err != nil {
			return nil, err
		}
		return &guardedConn{Conn: c}, nil
	}
}

// dialFunc connects to an address.
type dialFunc = func(ctx context.Context, address string, d *net.Dialer, t *tls.Config) (net.Conn, error)

// guardedConn is a connection that ends with an error when the server sends something that is not a
// reply to a command: valkey-go ends the process on some such bytes, and allocates as much memory
// as a length says. A server sends nothing of that kind, but another program at its address may.
type guardedConn struct {
	net.Conn
	commands commandReader // used only by the goroutine that writes
	replies  replyReader   // used only by the goroutine that reads
	owed     atomic.Int64  // commands without a reply yet
	// subscribed reports that the connection may get messages that are no reply: it is one to a
	// sentinel.
	subscribed atomic.Bool
}

// Write implements net.Conn. While other commands are in progress it first lets goroutines run that
// are ready, so that their commands gather for the next write: a write is the greater part of a
// call. Nothing waits for a timer, and a caller that is alone does not wait. (grpc-go's writer does
// the same: internal/transport/controlbuf.go, loopyWriter.run.)
func (c *guardedConn) Write(p []byte) (int, error) {
	if n := c.commands.read(p); c.owed.Add(n) > n {
		for range gatherRounds {
			runtime.Gosched()
		}
	}
	if bytes.Contains(p, []byte("SUBSCRIBE\r\n")) {
		c.subscribed.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *guardedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	began, invalid := c.replies.read(p[:n], c.subscribed.Load())
	if invalid == nil && !c.subscribed.Load() && c.owed.Add(-began) < 0 {
		invalid = fmt.Errorf("%w: there is no command for it", errNotAReply)
	}
	if invalid != nil {
		_ = c.Close() // the error is returned
		return 0, invalid
	}
	return n, err
}

// commandReader counts the commands in what is written.
type commandReader struct {
	number int64 // of the line that is being read
	args   int64 // of the command that are still to come
	skip   int64 // bytes of an argument that are still to come
}

// read returns the number of commands that begin in p. valkey-go writes each as an array of
// strings.
func (r *commandReader) read(p []byte) (commands int64) {
	for at := int64(0); at < int64(len(p)); {
		if r.skip > 0 {
			n := min(r.skip, int64(len(p))-at)
			r.skip -= n
			at += n
			continue
		}
		b := p[at]
		at++
		switch {
		case b >= '0' && b <= '9':
			r.number = 10*r.number + int64(b-'0')
			continue
		case b != '\n': // the type of the element, or the end of the line begins
			continue
		case r.args == 0:
			r.args = r.number
			commands++
		default:
			r.skip = r.number + int64(len("\r\n"))
			r.args--
		}
		r.number = 0
	}
	return commands
}

// replyReader checks the form of replies.
type replyReader struct {
	line     []byte // of an element, if the end of the line is not there yet
	long     int    // bytes of the line that are not kept
	skip     int64  // bytes of a text that are still to come
	depth    int
	left     [maxReplyDepth]int64 // elements of each list that are still to come
	elements int64                // of the reply
	text     []byte               // the beginning of the text that is being read, or was read last
	before   []byte               // the same of the text before it, in the first reply

	push, pushNamed bool // a message that is no reply is being read, and its name was
	pushDepth       int
	greeted, six    bool // the first reply was read; the server is Redis 6
}

// keptText is how much of a text is kept: the name of a message, or of the version.
const keptText = 16

// keptLine is how much of a line is kept: lengths, and the addresses in MOVED.
const keptLine = 512

// read returns the number of replies that begin in p, or an error.
func (r *replyReader) read(p []byte, subscribed bool) (began int64, err error) {
	for len(p) > 0 {
		if r.skip > 0 {
			n := min(r.skip, int64(len(p)))
			r.text = append(r.text, p[:min(n, int64(keptText-len(r.text)))]...)
			r.skip -= n
			p = p[n:]
			if r.skip == 0 {
				if err := r.endText(subscribed); err != nil {
					return began, err
				}
			}
			continue
		}
		end := bytes.IndexByte(p, '\n') + 1
		if end == 0 {
			return began, r.keep(p)
		}
		line := p[:end]
		if len(r.line) > 0 || end > keptLine { // it is not whole, or long
			if err := r.keep(line); err != nil {
				return began, err
			}
			line = r.line
		}
		p = p[end:]
		if r.depth == 0 && line[0] != '>' {
			began++
		}
		if err := r.readLine(line, subscribed); err != nil {
			return began, err
		}
		r.line, r.long = r.line[:0], 0
	}
	return began, nil
}

// keep appends to the line.
func (r *replyReader) keep(p []byte) error {
	n := min(len(p), keptLine-len(r.line))
	r.line = append(r.line, p[:n]...)
	r.long += len(p) - n
	if r.long > maxReplyLine {
		return fmt.Errorf("%w: a line is too long", errNotAReply)
	}
	return nil
}

// readLine reads the first line of an element, and that is the whole element if it is no text and
// no list.
func (r *replyReader) readLine(line []byte, subscribed bool) error {
	kind := line[0]
	text, ended := bytes.CutSuffix(line[1:], []byte("\r\n"))
	if !ended && r.long == 0 {
		return errNotAReply
	}
	switch kind {
	case '+':
		if subscribed && string(text) == "QUEUED" {
			return errNotAReply
		}
		r.text = append(r.text[:0], text[:min(len(text), keptText)]...)
		return r.endText(subscribed)
	case ',', '(':
	case '-':
		if !validError(text) {
			return errNotAReply
		}
	case ':':
		if _, ok := parseLength(bytes.TrimPrefix(text, []byte("-"))); !ok {
			return errNotAReply
		}
	case '_', '#':
		if kind == '_' && len(text) != 0 || kind == '#' && len(text) != 1 {
			return errNotAReply
		}
	case '$', '=', '*', '%', '~', '>':
		return r.readLength(kind, text)
	default: // also streams and attributes, which no server sends unless it is asked to
		return errNotAReply
	}
	r.endElement()
	return nil
}

// readLength begins a text or a list.
func (r *replyReader) readLength(kind byte, digits []byte) error {
	if string(digits) == "-1" && (kind == '$' || kind == '*') {
		r.endElement()
		return nil
	}
	n, ok := parseLength(digits)
	switch {
	case !ok, kind == '>' && (r.push || r.depth > 0 && !r.six):
		return errNotAReply
	case kind == '$' || kind == '=':
		if n > maxReplyText {
			return fmt.Errorf("%w: a text has %d bytes", errNotAReply, n)
		}
		r.skip, r.text = n+int64(len("\r\n")), r.text[:0]
		return nil
	case kind == '>':
		r.push, r.pushNamed, r.pushDepth = true, false, r.depth
	case kind == '%':
		n = 2 * min(n, maxReplyElements)
	}
	r.elements += min(n, maxReplyElements+1)
	if r.elements > maxReplyElements || r.depth == maxReplyDepth {
		return fmt.Errorf("%w: a list is too long, or too deep", errNotAReply)
	}
	if n == 0 {
		r.endList()
		return nil
	}
	r.left[r.depth] = n
	r.depth++
	return nil
}

// endText ends a text. A message that confirms a subscription ends the process if it does not
// exist. Redis 6 sends messages in the middle of replies, and valkey-go knows that.
func (r *replyReader) endText(subscribed bool) error {
	text := string(bytes.TrimRight(r.text, "\r\n"))
	if r.push && !r.pushNamed && r.depth == r.pushDepth+1 {
		r.pushNamed = true
		if !subscribed && (text == "subscribe" || text == "psubscribe" || text == "ssubscribe") {
			return errNotAReply
		}
	}
	if !r.greeted && r.depth == 1 {
		if string(r.before) == "version" {
			major, _, _ := strings.Cut(text, ".")
			r.six = major == "6"
		}
		r.before = append(r.before[:0], text...)
	}
	r.endElement()
	return nil
}

// endElement ends an element, and the lists that it is the last one of.
func (r *replyReader) endElement() {
	for r.depth > 0 {
		r.left[r.depth-1]--
		if r.left[r.depth-1] > 0 {
			return
		}
		r.depth--
		if r.endPush() {
			return
		}
	}
	r.elements, r.greeted = 0, true
}

// endList ends a list without elements.
func (r *replyReader) endList() {
	if !r.endPush() {
		r.endElement()
	}
}

// endPush ends a message if the list that has ended is one, and reports whether that was in the
// middle of a reply, of which it is no element.
func (r *replyReader) endPush() bool {
	if !r.push || r.depth != r.pushDepth {
		return false
	}
	r.push = false
	return r.depth > 0
}

// validError reports whether valkey-go can read an error: those that name a node must have its
// address.
func validError(text []byte) bool {
	fields := bytes.Count(text, []byte(" ")) + 1
	switch {
	case bytes.HasPrefix(text, []byte("MOVED")), bytes.HasPrefix(text, []byte("ASK")):
		return fields >= 3
	case bytes.HasPrefix(text, []byte("REDIRECT")):
		return fields >= 2
	default:
		return true
	}
}

// parseLength returns a number of up to 19 digits.
func parseLength(digits []byte) (n int64, ok bool) {
	if len(digits) == 0 || len(digits) > 19 {
		return 0, false
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + int64(d-'0')
	}
	return n, n >= 0
}
