package memcached

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

func TestCommands(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for _, c := range []struct {
		hit  counter.Hit
		want string
	}{
		{counter.Hit{Key: "k", Addend: 3, TTL: time.Minute}, "ma k N61 J3 D3 v"},
		{counter.Hit{Key: "k", Addend: 1, TTL: 0}, "ma k N2 J1 D1 v"},
		{counter.Hit{Key: "k", Addend: 1, TTL: time.Second + 1}, "ma k N3 J1 D1 v"},
		{counter.Hit{Key: "k", Addend: 1, TTL: 30*24*time.Hour - time.Second}, "ma k N2592000 J1 D1 v"},
		{counter.Hit{Key: "k", Addend: 1, TTL: 30 * 24 * time.Hour}, "ma k N3592001 J1 D1 v"},
		{counter.Hit{Key: "k", Addend: 0}, "mg k v"},
		{counter.Hit{Key: "k", Addend: -7}, "ma k MD D7 v"},
		{counter.Hit{Key: "k", Addend: math.MinInt64}, "ma k MD D9223372036854775808 v"},
	} {
		if got := string(appendCommand(nil, &c.hit, now)); got != c.want+"\r\n" {
			t.Errorf("%+v: %q, want %q", c.hit, got, c.want)
		}
	}
}

func TestResponses(t *testing.T) {
	for text, want := range map[string]response{
		"VA 1\r\n7\r\n":      {count: 7, number: true},
		"VA 2 t30\r\n7 \r\n": {count: 7, number: true},
		"VA 20\r\n" + fmt.Sprint(uint64(math.MaxUint64)) + "\r\n": {count: math.MaxUint64, number: true},
		"EN\r\n": {missing: true}, "NF\r\n": {missing: true}, "NS\r\n": {}, "EX\r\n": {}, "HD\r\n": {stored: true},
		"MN\r\n":                            {},
		"VA 5\r\nhello\r\n":                 {err: errNotACounter},
		"VA 0\r\n\r\n":                      {err: errNotACounter},
		"VA 20\r\n18446744073709551616\r\n": {err: errNotACounter},
		"VA 100\r\n" + strings.Repeat("1", 100) + "\r\n": {err: errNotACounter},
		"ERROR\r\n": {
			err: errors.New("memcached does not support the meta commands"),
		},
		"ERROR Too many open connections\r\n": {
			err: errors.New("memcached refused the command: ERROR Too many open connections"),
		},
		"SERVER_ERROR out of memory storing object\r\n": {
			err: errors.New("memcached refused the command: SERVER_ERROR out of memory"),
		},
		"CLIENT_ERROR cannot increment non-numeric value\r\n": {
			err: errors.New("memcached refused the command: CLIENT_ERROR cannot"),
		},
	} {
		r := bufio.NewReader(strings.NewReader(text + "VA 1\r\n5\r\n"))
		got, err := readResponse(r)
		if err != nil || got.count != want.count || got.number != want.number || got.missing != want.missing ||
			got.stored != want.stored || (got.err == nil) != (want.err == nil) {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
			continue
		}
		if want.err != nil && !strings.HasPrefix(got.err.Error(), want.err.Error()) {
			t.Errorf("%q: %v, want %v", text, got.err, want.err)
		}
		if next, err := readResponse(r); err != nil || next.count != 5 {
			t.Errorf("%q: the response after it is read as %+v, %v", text, next, err)
		}
	}
}

func TestInvalidResponses(t *testing.T) {
	for _, text := range []string{
		"", "VA", "VA \r\n", "VA x\r\n", "VA 1\r\n77\r\n", "VA 1\r\n7\n\n", "VA 1\r\n7", "VA -1\r\n\r\n",
		"VA 9999999999\r\n",
		"VA 18446744073709551615\r\n", "VA 100\r\nshort", "HTTP/1.1 400 Bad Request\r\n", "\r\n", "EN\n",
		strings.Repeat("E", 1<<17),
	} {
		if got, err := readResponse(bufio.NewReader(strings.NewReader(text))); err == nil {
			t.Errorf("%.40q was read as %+v", text, got)
		}
	}
}

// FuzzResponses checks that reading any response ends, and that every count it returns is a number
// in the input.
func FuzzResponses(f *testing.F) {
	f.Add([]byte("VA 2 t30\r\n7 \r\nEN\r\n"))
	f.Add([]byte("VA 100\r\nx"))
	f.Add([]byte("CLIENT_ERROR bad\r\nMN\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := bufio.NewReaderSize(bytes.NewReader(text), 128)
		for range len(text) + 1 {
			a, err := readResponse(r)
			if err != nil {
				return
			}
			if a.err != nil && a.count != 0 {
				t.Fatalf("a response with both an error and a count: %+v", a)
			}
		}
		if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
			t.Fatal("more responses than bytes")
		}
	})
}

func TestCountRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64().Draw(t, "count")
		spaces := strings.Repeat(" ", rapid.IntRange(0, 20).Draw(t, "spaces"))
		value := fmt.Sprint(n) + spaces
		a, err := readResponse(bufio.NewReader(strings.NewReader(fmt.Sprintf("VA %d\r\n%s\r\n", len(value), value))))
		if err != nil || a.count != n || !a.number {
			t.Fatalf("%d is read as %+v, %v", n, a, err)
		}
	})
}
