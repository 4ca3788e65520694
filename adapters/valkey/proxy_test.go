package valkey_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/counter/countertest"
)

// known is what the proxies of these tests pass on.
var known = []string{"PING", "AUTH", "SELECT", "GET", "SET", "INCRBY", "EXPIRE", "PEXPIRE", "EVAL", "EVALSHA"}

// newProxy starts a Redis proxy that knows few commands. It answers others with a refusal of their name, or closes the connection
// where there is no refusal.
func newProxy(t *testing.T, target, refusal string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // nothing is left to do about it
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = c.Close() // the test fails by it
				return
			}
			go proxy(c, server, refusal)
		}
	}()
	return l.Addr().String()
}

// proxy answers one command after the other.
func proxy(client, server net.Conn, refusal string) {
	defer func() { _, _ = client.Close(), server.Close() }()
	requests, answers := bufio.NewReader(client), bufio.NewReader(server)
	for {
		command, err := readMessage(requests)
		if err != nil {
			return
		}
		name := strings.Split(command, "\r\n")[2] // a command is a number of parts, a length, and its name
		if !slices.Contains(known, strings.ToUpper(name)) {
			if refusal == "" {
				return
			}
			if _, err := fmt.Fprintf(client, refusal+"\r\n", name); err != nil {
				return
			}
			continue
		}
		if _, err := io.WriteString(server, command); err != nil {
			return
		}
		answer, err := readMessage(answers)
		if err != nil {
			return
		}
		if _, err := io.WriteString(client, answer); err != nil {
			return
		}
	}
}

// readMessage reads one RESP2 message as it was sent.
func readMessage(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:])) // simple messages have no number
	switch line[0] {
	case '*':
		for range n {
			part, err := readMessage(r)
			if err != nil {
				return "", err
			}
			line += part
		}
	case '$':
		if n < 0 {
			return line, nil
		}
		text := make([]byte, n+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return "", err
		}
		line += string(text)
	}
	return line, nil
}

// TestProxies counts, and keeps copies of sessions, through proxies that refuse HELLO and CLIENT, with a password and a database
// other than the first.
func TestProxies(t *testing.T) {
	s := newServer(t, "--requirepass", "secret").start()
	for name, refusal := range map[string]string{
		"as a server":     "-ERR unknown command '%s'",
		"in other words":  "-ERR unsupported command '%s'",
		"without a name":  "-ERR invalid request%.0s",
		"with other code": "-NOPERM %s",
		"by closing":      "",
	} {
		t.Run(name, func(t *testing.T) {
			cfg := settings("redis://:secret@" + newProxy(t, s.Address, refusal) + "/3")
			c := open(t, cfg)
			if err := c.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			countertest.Run(t, func(*testing.T) countertest.Subject {
				return countertest.Subject{Store: c, Key: keys()}
			})
			clock := systemClock{}
			cache, end, err := valkey.OpenSessions(t.Context(), cfg, clock, quiet())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(end)
			session := auth.Session{ID: auth.SessionID(keys()("session"))}
			eventually(t, "a copy of a session", func() bool {
				cache.Put(t.Context(), session, clock.Now())
				_, found := cache.Get(t.Context(), session.ID)
				return found
			})
		})
	}
}
