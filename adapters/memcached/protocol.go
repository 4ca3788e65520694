package memcached

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

// memcached reads an expiry of more than 30 days as a time of the Unix epoch.
const maxRelativeExpiry = 30 * 24 * 60 * 60

// maxValue is the greatest length of a counter's value: 20 digits, and the spaces that memcached leaves behind when a
// number grows shorter. What is longer is no counter.
const maxValue = 64

// maxForeign is the greatest value of somebody else's that is skipped to stay in step with the node.
const maxForeign = 1 << 30

// encode appends the command for a hit.
type encode func(out []byte, h *counter.Hit, now time.Time) []byte

// ping asks a node for nothing but an answer.
const ping = "mn\r\n"

// answer is what a node says to one command.
type answer struct {
	count uint64
	found bool
	err   error // what the node refused, in its words
}

// errOutOfStep tells of bytes that are no answer: what follows cannot be told apart either.
var errOutOfStep = errors.New("memcached sent an invalid response")

// appendCommand appends the command that counts a hit. Where there is no counter, an addition makes it together with its
// expiry, in the same step.
func appendCommand(out []byte, h *counter.Hit, now time.Time) []byte {
	switch {
	case h.Addend > 0:
		return appendAdd(out, h, now)
	case h.Addend == 0:
		return appendLook(out, h, now)
	default:
		return appendTake(out, h.Key, -uint64(h.Addend))
	}
}

func appendAdd(out []byte, h *counter.Hit, now time.Time) []byte {
	out = append(out, "ma "...)
	out = append(out, h.Key...)
	out = append(out, " N"...)
	out = strconv.AppendInt(out, expiry(h.TTL, now), 10)
	out = append(out, " J"...)
	out = strconv.AppendInt(out, h.Addend, 10)
	out = append(out, " D"...)
	out = strconv.AppendInt(out, h.Addend, 10)
	return append(out, " v\r\n"...)
}

// appendLook appends the command that reads a hit's counter.
func appendLook(out []byte, h *counter.Hit, _ time.Time) []byte {
	out = append(out, "mg "...)
	out = append(out, h.Key...)
	return append(out, " v\r\n"...)
}

// appendTake appends the command that takes n from a counter. memcached stops at zero by itself.
func appendTake(out []byte, key string, n uint64) []byte {
	out = append(out, "ma "...)
	out = append(out, key...)
	out = append(out, " MD D"...)
	out = strconv.AppendUint(out, n, 10)
	return append(out, " v\r\n"...)
}

// expiry returns the life of a counter as memcached takes it. Its clock ticks once a second, so that a life of one second
// may end at once; one more second is what makes ttl the least.
func expiry(ttl time.Duration, now time.Time) int64 {
	seconds := int64((max(ttl, time.Second)+time.Second-1)/time.Second) + 1
	if seconds > maxRelativeExpiry {
		return now.Unix() + seconds
	}
	return seconds
}

// readAnswer reads the answer to one command. An error of its own means that the connection is of no use any more.
func readAnswer(r *bufio.Reader) (answer, error) {
	line, err := readLine(r)
	if err != nil {
		return answer{}, err
	}
	code, rest, _ := bytes.Cut(line, []byte(" "))
	switch string(code) {
	case "VA":
		size, _, _ := bytes.Cut(rest, []byte(" "))
		return readValue(r, size)
	case "EN", "NF":
		return answer{}, nil
	case "MN":
		return answer{found: true}, nil
	case "ERROR", "CLIENT_ERROR", "SERVER_ERROR":
		return answer{err: refusal(line)}, nil
	default:
		return answer{}, errOutOfStep
	}
}

// refusal is a node's word for what it does not do.
func refusal(line []byte) error {
	if string(line) == "ERROR" {
		return errors.New("memcached does not know the meta commands: it has to be 1.6")
	}
	return fmt.Errorf("memcached refuses: %s", line)
}

// readLine returns a line without its end, in memory that the next read takes again.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			return nil, errOutOfStep
		}
		return nil, fmt.Errorf("read: %w", err)
	}
	text, ended := bytes.CutSuffix(line, []byte("\r\n"))
	if !ended {
		return nil, errOutOfStep
	}
	return text, nil
}

// readValue reads a value of the size that was announced.
func readValue(r *bufio.Reader, digits []byte) (answer, error) {
	size, ok := parseCount(digits)
	if !ok || size > maxForeign {
		return answer{}, errOutOfStep
	}
	if size > maxValue {
		if _, err := r.Discard(int(size) + len("\r\n")); err != nil {
			return answer{}, fmt.Errorf("read: %w", err)
		}
		return answer{err: errNoCounter}, nil
	}
	value, err := r.Peek(int(size) + len("\r\n"))
	if err != nil {
		return answer{}, fmt.Errorf("read: %w", err)
	}
	text, ended := bytes.CutSuffix(value, []byte("\r\n"))
	if !ended {
		return answer{}, errOutOfStep
	}
	a := answer{found: true}
	if a.count, ok = parseCount(bytes.TrimRight(text, " ")); !ok {
		a = answer{err: errNoCounter}
	}
	if _, err := r.Discard(len(value)); err != nil {
		return answer{}, fmt.Errorf("read: %w", err)
	}
	return a, nil
}

var errNoCounter = errors.New("the value of a counter's key is not a number")

// parseCount reads decimal digits.
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

// validKey reports whether a key can stand in a command (ports/counter promises it; one that cannot would be read as a
// command of its own).
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
