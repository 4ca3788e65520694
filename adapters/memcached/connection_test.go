package memcached

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestConnectionClosesAfterTimeouts checks that consecutive timeouts close a connection, and that a
// response resets their number.
func TestConnectionClosesAfterTimeouts(t *testing.T) {
	near, far := net.Pipe()
	c := newConnection(near, time.Minute)
	t.Cleanup(func() { c.closeWith(errClosed) })
	r := bufio.NewReader(far)
	call := func(answered bool) error {
		k := newPipeline()
		k.reset(1)
		k.commands = append(k.commands, pingCommand...)
		timeout := time.Millisecond
		if answered {
			timeout = time.Minute
		}
		if err := c.send(t.Context(), k); err != nil {
			return err
		}
		if _, err := r.ReadString('\n'); err != nil {
			return err
		}
		if answered {
			// The earlier calls timed out, and their responses are late.
			if _, err := io.WriteString(far, strings.Repeat("MN\r\n", timeoutsToClose)); err != nil {
				return err
			}
		}
		_, err := c.receive(deadline.NewSource(timeout).Call(t.Context(), time.Now()), k)
		return err
	}
	for round := range 2 {
		for range timeoutsToClose - 1 {
			if err := call(false); !errors.Is(err, errTimeout) {
				t.Fatalf("an unanswered call: %v", err)
			}
		}
		if round == 0 {
			if err := call(true); err != nil {
				t.Fatalf("an answered call: %v", err)
			}
		}
	}
	select {
	case <-c.ended:
		t.Fatal("the connection closed too early")
	default:
	}
	if err := call(false); !errors.Is(err, errTimeout) {
		t.Fatalf("the last call: %v", err)
	}
	<-c.ended
	if !errors.Is(c.cause, errTimeout) {
		t.Errorf("the connection was closed because of %v", c.cause)
	}
}

// TestRequestIsRepeated checks that a request is repeated over the next connection if its
// connection breaks.
func TestRequestIsRepeated(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	t.Cleanup(func() { _ = l.Close() }) // an error has no effect on the test
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answerAfter(c, n)
		}
	}()
	log := logrus.New()
	log.SetOutput(io.Discard)
	client, end, err := Open(t.Context(), Config{
		HostPort: []string{l.Addr().String()}, MaxIdleConns: 1, Timeout: 20 * time.Second,
	}, logrus.NewEntry(log))
	must.Succeed(t, err)
	t.Cleanup(end)
	after := make([]counter.Result, 1)
	if err := client.Count(t.Context(), []counter.Hit{{Key: "k", Addend: 5, TTL: time.Minute}}, after,
		counter.Each); err != nil || after[0].Count != 5 {
		t.Errorf("%v, %v, want a count of 5", after, err)
	}
}

// answerAfter serves one connection of a node that closes its first connection instead of counting.
func answerAfter(c net.Conn, earlier int) {
	defer func() { _ = c.Close() }() // an error has no effect on the test
	for lines := bufio.NewScanner(c); lines.Scan(); {
		reply := "VA 1\r\n5\r\n"
		if lines.Text() == "mn" {
			reply = "MN\r\n"
		} else if earlier == 0 {
			return
		}
		if _, err := io.WriteString(c, reply); err != nil {
			return
		}
	}
}
