package valkey

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/must"
)

// writerFunc is a connection that calls a function when something is written.
type writerFunc struct {
	net.Conn
	write func()
}

func (w writerFunc) Write(p []byte) (int, error) {
	w.write()
	return len(p), nil
}

// TestCommandsGather: before a command is sent, while another one has no reply yet, the goroutines
// run that are ready to send others; a command that is alone does not wait for them.
func TestCommandsGather(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	ping := []byte("*1\r\n$4\r\nPING\r\n")
	ranBefore := func(c *guardedConn) (ran bool) {
		var others sync.WaitGroup
		var ready atomic.Bool
		c.Conn = writerFunc{write: func() { ran = ready.Load() }}
		others.Go(func() { ready.Store(true) })
		if _, err := c.Write(ping); err != nil {
			t.Error(err)
		}
		others.Wait()
		return ran
	}
	waited := 0
	for range 100 { // the scheduler may interrupt a few of them
		if ranBefore(&guardedConn{}) {
			waited++
		}
		busy := &guardedConn{}
		busy.owed.Store(1)
		if !ranBefore(busy) {
			t.Fatal("a command was sent before others could gather")
		}
	}
	if waited == 100 {
		t.Error("commands that were alone waited for other goroutines")
	}
}

// newScriptedStore returns a client of a server that replies to each INCRBY with reply.
func newScriptedStore(t testing.TB, reply *atomic.Pointer[string]) *Client {
	t.Helper()
	cfg := Config{URL: "127.0.0.1:1", SocketType: "tcp", Type: Single, Timeout: time.Second, PoolSize: 1}
	log := logrus.New()
	log.SetOutput(io.Discard)
	dial := func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
		near, far := net.Pipe()
		go serveScripted(far, reply)
		return near, nil
	}
	c, end, err := openWith(t.Context(), cfg, logrus.NewEntry(log), dial)
	must.Succeed(t, err)
	t.Cleanup(end)
	return c
}

func serveScripted(c net.Conn, reply *atomic.Pointer[string]) {
	defer func() { _ = c.Close() }()
	for r := bufio.NewReader(c); ; {
		command, err := readCommand(r)
		if err != nil {
			return
		}
		answer := "+OK\r\n"
		switch command[0] {
		case "HELLO":
			answer = "%1\r\n$5\r\nproto\r\n:3\r\n"
		case "PING":
			answer = "+PONG\r\n"
		case "INCRBY":
			answer = *reply.Load()
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

// readCommand reads an array of strings.
func readCommand(r *bufio.Reader) ([]string, error) {
	size, err := readNumber(r)
	words := make([]string, size)
	for i := range words {
		n, err := readNumber(r)
		if err != nil {
			return nil, err
		}
		text := make([]byte, n+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		words[i] = string(text[:n])
	}
	return words, err
}

func readNumber(r *bufio.Reader) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// invalidReplies are replies to an addition of 1 that have no count, or are no replies.
var invalidReplies = []string{
	"$-1\r\n", "_\r\n", ":-5\r\n", ":0\r\n", "+OK\r\n", "*0\r\n", "#t\r\n",
	"*-5\r\n", "$-7\r\n", "%-1\r\n", "~-1\r\n", "*2000000000\r\n", "$2000000000\r\n", "%9223372036854775807\r\n",
	"*99999999999999999999\r\n",
	"*?\r\n:1\r\n.\r\n", "$?\r\n;-5\r\n", ";5\r\nhello\r\n", ".\r\n", "|1\r\n+a\r\n+b\r\n:1\r\n", "!5\r\nMOVED\r\n",
	"-MOVED\r\n", "-MOVED 1\r\n", "-ASK 1\r\n", "-REDIRECT\r\n", "+QUEUED\r\n",
	"*2\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n:1\r\n:2\r\n", "220 mail.example.org\r\n", "HTTP/1.1 400\r\n\r\n",
	"\n", "\r\n",
	">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", ">2\r\n$10\r\nssubscribe\r\n$1\r\na\r\n", ">1\r\n+psubscribe\r\n",
	strings.Repeat("*1\r\n", 100),
	strings.Repeat("*1000000\r\n", 3), "+" + strings.Repeat("x", 1<<20) + "\r\n", ":1", ":12x\r\n",
	"#maybe\r\n", "_x\r\n",
}

// TestInvalidReplies requires that additions fail on replies without a count, and on bytes that are
// no reply, that these end neither the process nor its memory, and that the next reply is good
// again.
func TestInvalidReplies(t *testing.T) {
	var reply atomic.Pointer[string]
	good := ":7\r\n"
	for n, invalid := range append(invalidReplies, good+good, good+"+OK\r\n") {
		reply.Store(&invalid)
		c := newScriptedStore(t, &reply)
		one, after := []counter.Hit{
			{Key: fmt.Sprint("k", n), Addend: 1, Limit: 9, Window: time.Minute, TTL: time.Minute},
		}, make([]counter.Result, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond) // ends a wait for the rest of a reply
		err := c.Count(ctx, one, after, counter.Each)
		cancel()
		if extra := strings.HasPrefix(invalid, good); !extra && !fault.Is(err, fault.Unavailable) {
			t.Errorf("%.40q: %v and the count %d, want fault.Unavailable", invalid, err, after[0].Count)
		}
		reply.Store(&good)
		for range 100 { // the connection may be about to end
			if err = c.Count(t.Context(), one, after, counter.Each); err == nil {
				break
			}
		}
		if err != nil || after[0].Count != 7 {
			t.Errorf("after %.40q: %v and the count %d, want 7", invalid, err, after[0].Count)
		}
	}
}

// FuzzReplies sends any bytes in place of a reply: a panic of valkey-go would end the test.
func FuzzReplies(f *testing.F) {
	for _, invalid := range invalidReplies {
		f.Add(invalid)
	}
	f.Add("*2\r\n:1\r\n*1\r\n$2\r\nhi\r\n:5\r\n")
	f.Fuzz(func(t *testing.T, bytes string) {
		var reply atomic.Pointer[string]
		reply.Store(&bytes)
		c := newScriptedStore(t, &reply)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		for range 2 {
			_ = c.Count(ctx, []counter.Hit{{Key: "k", Addend: 1, Window: time.Minute, TTL: time.Minute}},
				make([]counter.Result, 1), counter.Each)
		}
	})
}

// TestRepliesInPieces requires that good replies pass, however the network divides them.
func TestRepliesInPieces(t *testing.T) {
	for text, want := range map[string]int64{
		":1\r\n+OK\r\n-ERR no\r\n$-1\r\n*-1\r\n$5\r\nhello\r\n*2\r\n*1\r\n$0\r\n\r\n*0\r\n%1\r\n+a\r\n*2\r\n:1\r\n_\r\n-MOVED 3 a:1\r\n#f\r\n,1.5\r\n": 11,
		// messages of Redis 6 between the replies
		"%1\r\n$7\r\nversion\r\n$5\r\n6.2.7\r\n*2\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n:1\r\n:2\r\n>0\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n:3\r\n": 3,
	} {
		for size := 1; size < len(text); size++ {
			var r replyReader
			began := int64(0)
			for from := 0; from < len(text); from += size {
				n, err := r.read([]byte(text[from:min(from+size, len(text))]), false)
				if err != nil {
					t.Fatalf("pieces of %d bytes: %v", size, err)
				}
				began += n
			}
			if began != want || r.depth != 0 || r.skip != 0 || len(r.line) != 0 || r.push {
				t.Errorf("pieces of %d bytes: %d replies, want %d, %+v", size, began, want, r)
			}
		}
	}
	commands := "*3\r\n$6\r\nINCRBY\r\n$4\r\n*1\r\n\r\n$1\r\n1\r\n*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$0\r\n\r\n"
	for size := 1; size < len(commands); size++ {
		var r commandReader
		count := int64(0)
		for from := 0; from < len(commands); from += size {
			count += r.read([]byte(commands[from:min(from+size, len(commands))]))
		}
		if count != 3 {
			t.Errorf("pieces of %d bytes: %d commands", size, count)
		}
	}
}

// BenchmarkGuard checks a command and its reply.
func BenchmarkGuard(b *testing.B) {
	command, reply := []byte("*3\r\n$6\r\nINCRBY\r\n$60\r\n"+strings.Repeat("k", 60)+"\r\n$1\r\n1\r\n"),
		[]byte(":12345\r\n")
	var commands commandReader
	var replies replyReader
	b.ReportAllocs()
	for b.Loop() {
		if _, err := replies.read(reply, false); err != nil || commands.read(command) != 1 {
			b.Fatal(err)
		}
	}
}
