package memcached

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

// maxRelativeExpiry is the maximum relative expiry, 30 days in seconds. memcached reads a greater
// number as a Unix time.
const maxRelativeExpiry = 30 * 24 * 60 * 60

// maxValue is the maximum length of the value of a counter: 20 digits, and the spaces that
// memcached leaves when a number becomes shorter. A longer value is not a counter.
const maxValue = 64

// maxSkippedValue is the maximum length of a value that is not a counter and is skipped. A longer
// value closes the connection.
const maxSkippedValue = 1 << 30

// command makes the command for a hit.
type command struct {
	encode func(out []byte, h *counter.Hit, now time.Time) []byte
	counts bool // the hit is counted, and not only its counter read
}

var countCommand, readCommand = command{appendCommand, true}, command{appendGet, false}

// pingCommand is the meta no-op command.
const pingCommand = "mn\r\n"

// response is the reply to one command.
type response struct {
	count   uint64
	cas     uint64 // of the value, if the command asked for it
	mark    uint32 // the client flags of the value, if the command asked for them
	number  bool   // count is the value
	missing bool   // there is no value
	stored  bool   // the value was stored
	err     error  // the error that memcached replied
}

// errNoCount means that memcached replied to an addition without a count.
var errNoCount = errors.New("memcached did not return the count")

// errInvalidResponse means that the connection must be closed, because the following bytes cannot
// be parsed either.
var errInvalidResponse = errors.New("memcached sent an invalid response")

// appendCommand appends the command that counts a hit. If the counter does not exist, a positive
// hit creates it with its expiry in the same command.
func appendCommand(out []byte, h *counter.Hit, now time.Time) []byte {
	switch {
	case h.Addend > 0:
		return appendAdd(out, h, now)
	case h.Addend == 0:
		return appendGet(out, h, now)
	default:
		return appendSubtract(out, h.Key, -uint64(h.Addend))
	}
}

func appendAdd(out []byte, h *counter.Hit, now time.Time) []byte {
	out = append(out, "ma "...)
	out = append(out, h.Key...)
	out = append(out, " N"...)
	out = strconv.AppendInt(out, encodeExpiry(h.TTL, now), 10)
	out = append(out, " J"...)
	out = strconv.AppendInt(out, h.Addend, 10)
	out = append(out, " D"...)
	out = strconv.AppendInt(out, h.Addend, 10)
	return append(out, " v\r\n"...)
}

// appendGet appends the command that reads the counter of a hit.
func appendGet(out []byte, h *counter.Hit, _ time.Time) []byte {
	out = append(out, "mg "...)
	out = append(out, h.Key...)
	return append(out, " v\r\n"...)
}

// appendSubtract appends the command that subtracts n from a counter. memcached stops at zero.
func appendSubtract(out []byte, key string, n uint64) []byte {
	out = append(out, "ma "...)
	out = append(out, key...)
	out = append(out, " MD D"...)
	out = strconv.AppendUint(out, n, 10)
	return append(out, " v\r\n"...)
}

// appendGetCAS appends the command that reads a value, what identifies this state of it, and its
// mark.
func appendGetCAS(out []byte, key string) []byte {
	out = append(out, "mg "...)
	out = append(out, key...)
	return append(out, " v c f\r\n"...)
}

// setCommand stores a value in place of the state of it that cas identifies; 0 creates it.
type setCommand struct {
	key        string
	value, cas uint64
	mark       uint32
	life       time.Duration
}

// maxLife is the longest life of a value that expires.
const maxLife = 5 * 365 * 24 * time.Hour

func appendSet(out []byte, c setCommand, now time.Time) []byte {
	var digits [20]byte
	value := strconv.AppendUint(digits[:0], c.value, 10)
	out = append(out, "ms "...)
	out = append(out, c.key...)
	out = append(out, ' ')
	out = strconv.AppendInt(out, int64(len(value)), 10)
	if c.cas == 0 {
		out = append(out, " ME"...)
	} else {
		out = append(out, " C"...)
		out = strconv.AppendUint(out, c.cas, 10)
	}
	if c.mark != 0 {
		out = append(out, " F"...)
		out = strconv.AppendUint(out, uint64(c.mark), 10)
	}
	if c.life < maxLife { // else it never expires: the time would not fit in 32 bits
		out = append(out, " T"...)
		out = strconv.AppendInt(out, encodeExpiry(c.life, now), 10)
	}
	out = append(out, "\r\n"...)
	out = append(out, value...)
	return append(out, "\r\n"...)
}

// encodeExpiry returns the expiry of a counter for memcached. Because its clock ticks once a
// second, one second is added, so that the counter lives at least for ttl.
func encodeExpiry(ttl time.Duration, now time.Time) int64 {
	seconds := int64((max(ttl, time.Second)+time.Second-1)/time.Second) + 1
	if seconds > maxRelativeExpiry {
		return now.Unix() + seconds
	}
	return seconds
}

// readResponse reads the response to one command. If it returns an error, the connection must be
// closed.
func readResponse(r *bufio.Reader) (response, error) {
	line, err := readLine(r)
	if err != nil {
		return response{}, err
	}
	code, rest, _ := bytes.Cut(line, []byte(" "))
	switch string(code) {
	case "VA":
		size, flags, _ := bytes.Cut(rest, []byte(" "))
		id, mark := parseFlags(flags) // before the line is overwritten
		a, err := readValue(r, size)
		a.cas, a.mark = id, mark
		return a, err
	case "EN", "NF":
		return response{missing: true}, nil
	case "EX", "NS", "MN":
		return response{}, nil
	case "HD":
		return response{stored: true}, nil
	case "ERROR", "CLIENT_ERROR", "SERVER_ERROR":
		return response{err: parseError(line)}, nil
	default:
		return response{}, errInvalidResponse
	}
}

// parseFlags returns the cas and the mark of a value; 0 for what the command did not ask for.
func parseFlags(flags []byte) (cas uint64, mark uint32) {
	for flag := range bytes.FieldsSeq(flags) {
		n, _ := parseCount(flag[1:]) // 0 for an invalid one
		switch flag[0] {
		case 'c':
			cas = n
		case 'f':
			mark = uint32(n) //nolint:gosec // memcached has 32 bits
		}
	}
	return cas, mark
}

// parseError returns the error for an error line of memcached.
func parseError(line []byte) error {
	if string(line) == "ERROR" {
		return errors.New("memcached does not support the meta commands; use version 1.6 or later")
	}
	return fmt.Errorf("memcached refused the command: %s", line)
}

// readLine returns a line without its line end. The next read overwrites it.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			return nil, errInvalidResponse
		}
		return nil, fmt.Errorf("read: %w", err)
	}
	text, ended := bytes.CutSuffix(line, []byte("\r\n"))
	if !ended {
		return nil, errInvalidResponse
	}
	return text, nil
}

// readValue reads a value of the given size.
func readValue(r *bufio.Reader, digits []byte) (response, error) {
	size, ok := parseCount(digits)
	if !ok || size > maxSkippedValue {
		return response{}, errInvalidResponse
	}
	if size > maxValue {
		if _, err := r.Discard(int(size) + len("\r\n")); err != nil {
			return response{}, fmt.Errorf("read: %w", err)
		}
		return response{err: errNotACounter}, nil
	}
	value, err := r.Peek(int(size) + len("\r\n"))
	if err != nil {
		return response{}, fmt.Errorf("read: %w", err)
	}
	text, ended := bytes.CutSuffix(value, []byte("\r\n"))
	if !ended {
		return response{}, errInvalidResponse
	}
	a := response{number: true}
	if a.count, ok = parseCount(bytes.TrimRight(text, " ")); !ok {
		a = response{err: errNotACounter}
	}
	if _, err := r.Discard(len(value)); err != nil {
		return response{}, fmt.Errorf("read: %w", err)
	}
	return a, nil
}

var errNotACounter = errors.New(
	"the value stored under the key of a counter is not a number; does another program use the same keys?")

// parseCount parses decimal digits.
func parseCount(digits []byte) (uint64, bool) {
	if len(digits) == 0 {
		return 0, false
	}
	var n uint64
	for _, d := range digits {
		if d < '0' || d > '9' || n > (math.MaxUint64-uint64(d-'0'))/10 {
			return 0, false
		}
		n = n*10 + uint64(d-'0')
	}
	return n, true
}

// validKey reports whether a command can contain the key. ports/counter promises valid keys; an
// invalid one could inject a command.
func validKey(key string) bool {
	if key == "" || len(key) > counter.MaxKey {
		return false
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return false
		}
	}
	return true
}

// runForEachHit runs a command for each hit and stores the counts. The hits of one node are sent
// together and in order, and all nodes run in parallel.
func (c *Client) runForEachHit(ctx context.Context, b batch, command command) error {
	if err := ctx.Err(); err != nil {
		return storeUnavailable(err)
	}
	first, err := c.findCommonNode(b.hits)
	if err != nil {
		return storeUnavailable(err)
	}
	if first == nil {
		return c.runOnSeveralNodes(ctx, b, command)
	}
	f, now := c.newRequest(first, len(b.hits)), time.Now()
	for i := range b.hits {
		f.addHit(command, &b.hits[i], now)
	}
	f.sendPipeline(ctx)
	if c.awaitResponses(ctx, &f) {
		return storeUnavailable(f.err)
	}
	defer c.putPipeline(f.pipeline)
	if f.err != nil {
		return storeUnavailable(f.err)
	}
	return b.storeCounts(f.pipeline.responses, command)
}

// findCommonNode returns the node of all hits, or nil if there are several.
func (c *Client) findCommonNode(hits []counter.Hit) (*node, error) {
	first, err := c.ring.findNode(hits[0].Key)
	if err != nil {
		return nil, err
	}
	for i := 1; i < len(hits); i++ {
		// The list may change between two calls of findNode.
		if n, err := c.ring.findNode(hits[i].Key); err != nil || n != first {
			return nil, err
		}
	}
	return first, nil
}

// runOnSeveralNodes is runForEachHit for hits of several nodes.
func (c *Client) runOnSeveralNodes(ctx context.Context, b batch, command command) error {
	keys, now := make([]string, len(b.hits)), time.Now()
	for i := range b.hits {
		keys[i] = b.hits[i].Key
	}
	answers, err := c.exchange(ctx, keys, func(f *request, i int) {
		f.addHit(command, &b.hits[i], now)
	})
	if err != nil {
		return err
	}
	return b.storeCounts(answers, command)
}

// exchange sends one command for each key to its node, and returns the responses. It calls encode
// to append each command to the request of its node.
func (c *Client) exchange(ctx context.Context, keys []string, encode func(f *request, i int)) ([]response, error) {
	if err := ctx.Err(); err != nil {
		return nil, storeUnavailable(err)
	}
	places := map[*node][]int{}
	for i, key := range keys {
		n, err := c.ring.findNode(key)
		if err != nil {
			return nil, storeUnavailable(err)
		}
		places[n] = append(places[n], i)
	}
	requests := make(map[*node]request, len(places))
	for n, indices := range places {
		f := c.newRequest(n, len(indices))
		for _, i := range indices {
			encode(&f, i)
		}
		f.sendPipeline(ctx)
		requests[n] = f
	}
	answers := make([]response, len(keys))
	var failure error
	for n, f := range requests {
		abandoned := c.awaitResponses(ctx, &f)
		if f.err != nil {
			failure = storeUnavailable(f.err)
		} else {
			for at, i := range places[n] {
				answers[i] = f.pipeline.responses[at]
			}
		}
		if !abandoned {
			c.putPipeline(f.pipeline)
		}
	}
	return answers, failure
}

// request is a pipeline in progress on a node, or the error that prevented it from being sent.
type request struct {
	node       *node
	pipeline   *pipeline
	connection *connection
	noRetry    bool // it subtracts hits, which must not happen twice
	err        error
}

// newRequest returns a request of n commands to a node, which are not appended yet.
func (c *Client) newRequest(to *node, n int) request {
	k := c.getPipeline()
	k.reset(n)
	return request{node: to, pipeline: k}
}

// addHit appends the command for a hit.
func (f *request) addHit(c command, h *counter.Hit, now time.Time) {
	f.pipeline.commands = c.encode(f.pipeline.commands, h, now)
	f.noRetry = f.noRetry || h.Addend < 0
}

// sendPipeline sends the pipeline over an open connection of its node.
func (f *request) sendPipeline(ctx context.Context) {
	for {
		if f.connection, f.err = f.node.waitForConnection(ctx); f.err != nil {
			return
		}
		if f.err = f.connection.send(ctx, f.pipeline); !errors.Is(f.err, errClosed) {
			return
		}
	}
}

// awaitResponses waits for the responses to a request. abandoned reports that the connection still
// uses its pipeline. A node that restarts breaks all its connections at once, so the request is
// repeated over each of them within its deadline. If the first attempt was executed after all, its
// hits count twice, which never lets more requests through than the limit. A request that subtracts
// hits is not repeated, because subtracting twice would.
func (*Client) awaitResponses(ctx context.Context, f *request) (abandoned bool) {
	if f.err == nil {
		abandoned, f.err = f.connection.receive(ctx, f.pipeline)
	}
	for n := 0; n < len(f.node.slots) && errors.Is(f.err, errConnectionLost) && !f.noRetry; n++ {
		if f.sendPipeline(ctx); f.err == nil {
			abandoned, f.err = f.connection.receive(ctx, f.pipeline)
		}
	}
	return abandoned
}

// storeCounts copies the counts from the responses to the results. A counter that is missing is
// zero, but an addition always has a count.
func (b batch) storeCounts(responses []response, of command) error {
	for i := range responses {
		r := &responses[i]
		switch {
		case r.err != nil:
			return storeUnavailable(r.err)
		case !r.number && (!r.missing || of.counts && b.hits[i].Addend > 0):
			return storeUnavailable(errNoCount)
		}
		b.results[i] = counter.Result{Count: r.count}
	}
	return nil
}

// getPipeline returns a pipeline from the pool.
func (c *Client) getPipeline() *pipeline {
	return c.pipelines.Get().(*pipeline) //nolint:errcheck // the pool holds nothing else
}

// putPipeline returns a pipeline to the pool. No connection may use it any more.
func (c *Client) putPipeline(k *pipeline) {
	if cap(k.responses) <= maxPooledResponses {
		c.pipelines.Put(k)
	}
}

// maxPooledResponses is the maximum capacity for responses of a pipeline in the pool.
const maxPooledResponses = 256
