package requestbody_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/tollgate-dev/tollgate/adapters/requestbody"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

// frames returns what do writes.
func frames(do func(*http2.Framer)) []byte {
	var b bytes.Buffer
	do(http2.NewFramer(&b, nil))
	return b.Bytes()
}

func header(stream uint32, last bool) []byte {
	return frames(func(f *http2.Framer) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{
			StreamID: stream, BlockFragment: []byte{0x82}, EndHeaders: true, EndStream: last,
		})
	})
}

func data(stream uint32, last bool, p []byte) []byte {
	return frames(func(f *http2.Framer) { _ = f.WriteData(stream, last, p) })
}

func paddedData(stream uint32, p []byte) []byte {
	return frames(func(f *http2.Framer) { _ = f.WriteDataPadded(stream, false, p, make([]byte, 200)) })
}

func reset(stream uint32) []byte {
	return frames(func(f *http2.Framer) { _ = f.WriteRSTStream(stream, http2.ErrCodeCancel) })
}

// message returns a message of gRPC with n bytes.
func message(n int) []byte {
	return append([]byte{0, 0, byte(n >> 16), byte(n >> 8), byte(n)}, make([]byte, n)...)
}

// serverConn is the connection of a gRPC server; the client's end is a pipe.
type serverConn struct {
	net.Conn
	client net.Conn
}

func connectMessages(t *testing.T, b *requestbody.Budget) serverConn {
	t.Helper()
	client, server := net.Pipe()
	c := serverConn{b.BoundMessages(server), client}
	t.Cleanup(func() { _ = errors.Join(c.Close(), client.Close()) }) // of a pipe
	if err := c.receive([]byte(http2.ClientPreface), 5); err != nil {
		t.Fatal(err)
	}
	return c
}

// receive sends p, and reads it in parts.
func (c serverConn) receive(p []byte, part int) error {
	go func() { _, _ = c.client.Write(p) }() // the reads show whether it was sent
	buffer := make([]byte, part)
	for left := len(p); left > 0; {
		n, err := c.Read(buffer[:min(part, left)])
		if err != nil {
			return err
		}
		left -= n
	}
	return nil
}

// room returns how many frames of unfinished messages have memory on a new connection.
func room(t *testing.T, b *requestbody.Budget) (n int) {
	t.Helper()
	c := connectMessages(t, b)
	defer c.Close()
	must.Succeed(t, c.receive(header(1, false), 100))
	for more := data(1, false, append([]byte{0, 1, 0, 0, 0}, make([]byte, 1_000)...)); ; n++ {
		err := c.receive(more, len(more))
		if fault.Is(err, fault.Unavailable) {
			return n
		}
		must.Succeed(t, err)
	}
}

// TestMessagesGiveTheirMemoryBack follows calls in all ways in which they can end, in parts of all sizes: nothing is left of
// them. What is unfinished uses memory until its connection closes.
func TestMessagesGiveTheirMemoryBack(t *testing.T) {
	t.Parallel()
	whole, half := message(10_000), message(10_000)[:6_000]
	for name, c := range map[string]struct {
		in, out []byte
		left    bool
	}{
		"a message":                       {in: slices.Concat(header(1, false), data(1, true, whole))},
		"a message without an end":        {in: slices.Concat(header(1, false), data(1, false, whole))},
		"a message in two frames":         {in: slices.Concat(header(1, false), data(1, false, half), data(1, true, whole[6_000:]))},
		"a message in a padded frame":     {in: slices.Concat(header(1, false), paddedData(1, whole))},
		"two messages in one frame":       {in: slices.Concat(header(1, false), data(1, false, slices.Concat(whole, message(0))))},
		"calls side by side":              {in: slices.Concat(header(1, false), header(3, false), data(3, true, whole), data(1, true, whole))},
		"a header without a message":      {in: header(1, true)},
		"an end without the rest":         {in: slices.Concat(header(1, false), data(1, true, half))},
		"trailers":                        {in: slices.Concat(header(1, false), data(1, false, half), header(1, true))},
		"a reset by the client":           {in: slices.Concat(header(1, false), data(1, false, half), reset(1))},
		"a reset by the server":           {in: slices.Concat(header(1, false), data(1, false, half)), out: reset(1)},
		"a refusal":                       {in: header(1, false), out: header(1, true)},
		"a frame for a call that ended":   {in: slices.Concat(header(1, true), data(1, false, half))},
		"half a message":                  {in: slices.Concat(header(1, false), data(1, false, half)), left: true},
		"half a message after a whole":    {in: slices.Concat(header(1, false), data(1, false, slices.Concat(whole, half))), left: true},
		"half a message and an answer":    {in: slices.Concat(header(1, false), data(1, false, half)), out: header(1, false), left: true},
		"a header alone":                  {in: header(1, false), left: true},
		"a part of the last frame":        {in: slices.Concat(header(1, false), data(1, false, half), data(1, true, whole[6_000:])[:100]), left: true},
		"a padded part of a message":      {in: slices.Concat(header(1, false), paddedData(1, half)), left: true},
		"a message in frames of one byte": {in: slices.Concat(header(1, false), data(1, false, half[:5]), slices.Repeat(data(1, false, half[:1]), 5_000)), left: true},
	} {
		for _, part := range []int{1, 7, 16_384} {
			budget := requestbody.NewBudget(requestbody.Config{InFlight: 1 << 20})
			before := room(t, budget)
			of := connectMessages(t, budget)
			must.Succeed(t, of.receive(c.in, part))
			for out := range slices.Chunk(c.out, part) {
				go func() { _, _ = of.client.Read(make([]byte, part)) }() // as much as is written
				if _, err := of.Write(out); err != nil {
					t.Fatal(err)
				}
			}
			if got := room(t, budget); (got < before) != c.left {
				t.Errorf("%s in parts of %d: room for %d frames, before %d", name, part, got, before)
			}
			must.Succeed(t, of.Close())
			if got := room(t, budget); got != before {
				t.Errorf("%s in parts of %d: after its end room for %d frames, before %d", name, part, got, before)
			}
		}
	}
}

// TestMessagesHaveADeadline: a connection fails 30 seconds after the beginning of a message that has not arrived, and never
// for other reasons.
func TestMessagesHaveADeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		after := func(d time.Duration) {
			time.Sleep(time.Until(began.Add(d)))
			synctest.Wait()
		}
		c := connectMessages(t, requestbody.NewBudget(requestbody.Config{}))
		must.Succeed(t, c.receive(slices.Concat(header(1, false), data(1, false, message(10))), 100)) // stays open
		failed := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 4))
			for err == nil {
				_, err = c.Read(make([]byte, 4))
			}
			failed <- fmt.Errorf("after %v: %w", time.Since(began), err)
		}()
		send := func(p []byte) {
			if _, err := c.client.Write(p); err != nil {
				t.Fatal(err)
			}
		}
		after(time.Hour)
		send(header(3, false))
		after(time.Hour + 20*time.Second)
		send(slices.Concat(data(3, true, message(1)), header(5, false)))
		after(time.Hour + 49*time.Second)
		select {
		case err := <-failed:
			t.Fatal(err)
		default:
		}
		if err := <-failed; !errors.Is(err, requestbody.ErrTimeout) || time.Since(began) != time.Hour+50*time.Second {
			t.Error(err)
		}
	})
}
