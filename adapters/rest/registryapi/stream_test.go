package registryapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

const longPath = "/v0.1/servers/com.example%2Fserver/versions"

// serverStore has the versions of one server, newest first.
type serverStore struct {
	registrystore.SnapshotReader
	mu      sync.Mutex
	records []registry.Record
	before  func() error // called before each page but the first; optional
}

// newServerStore returns n versions with documents of 300 KiB. From 14 on the history is streamed.
func newServerStore(t *testing.T, n int) *serverStore {
	t.Helper()
	d := &serverStore{}
	for i := range n {
		r := record(t, "com.example/server", fmt.Sprintf("1.0.%d", n-i))
		r.PublishedAt = r.PublishedAt.Add(-time.Duration(i) * time.Hour)
		r.Document = []byte(`{"text":"` + strings.Repeat("some text "+strconv.Itoa(i), 300<<10/12) + `"}`)
		d.records = append(d.records, r)
	}
	return d
}

func (d *serverStore) Versions(_ context.Context, q registrystore.VersionsQuery) (registrystore.Page, error) {
	if d.before != nil && !q.Before.IsZero() {
		if err := d.before(); err != nil {
			return registrystore.Page{}, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var p registrystore.Page
	size := 0
	for _, r := range d.records {
		switch {
		case !q.Before.IsZero() && !r.PublishedAt.Before(q.Before):
		case size >= q.Bytes || q.Limit > 0 && len(p.Records) == q.Limit:
			p.More = true
			return p, nil
		default:
			p.Records = append(p.Records, r)
			size += len(r.Document)
		}
	}
	return p, nil
}

func (d *serverStore) Version(_ context.Context, _ registry.Name, v registry.Version, _ bool) (registry.Record, error) {
	return d.records[slices.IndexFunc(d.records, func(r registry.Record) bool { return r.Version == v })], nil
}

func (d *serverStore) Outline(context.Context, registry.Name, bool) ([]registry.Edition, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []registry.Edition
	for _, r := range d.records {
		all = append(all, registry.Edition{Release: r.Release, Size: len(r.Document)})
	}
	return all, nil
}

// serve serves the store.
func (d *serverStore) serve(t *testing.T, log *logrus.Entry) string {
	t.Helper()
	return d.serveBounded(t, log, 0)
}

// roomForOne is memory for one streamed response at a time.
const roomForOne = 6 << 20

// serveBounded serves the store with memory for that many bytes of large responses.
func (d *serverStore) serveBounded(t *testing.T, log *logrus.Entry, room int) string {
	t.Helper()
	cfg := registryapi.Config{Bodies: responsebody.Config{InFlight: room}, Log: log}
	return serveReads(t, cfg, newReads(d, newViews(t)), nil, discardLog()) + longPath
}

// callUntilRoom repeats a call while the server has no memory for it. A client may see the end of a
// response before the server releases its memory.
func callUntilRoom(t *testing.T, url string) response {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		a := call(t, "GET", url, "", "Accept-Encoding", "identity")
		if a.status != 503 || time.Now().After(end) {
			return a
		}
	}
}

// TestLongHistory expects a streamed response to have the same bytes as the responses for its
// versions.
func TestLongHistory(t *testing.T) {
	d := newServerStore(t, 40)
	url := d.serve(t, discardLog())
	var each []string
	for _, r := range d.records {
		each = append(each, call(t, "GET", url+"/"+r.Version.String(), "").body)
	}
	whole := `{"servers":[` + strings.Join(each, ",") + `],"metadata":{"count":40}}`
	plain := call(t, "GET", url, "", "Accept-Encoding", "identity")
	if plain.status != 200 || plain.body != whole || plain.header.Get("Content-Length") != strconv.Itoa(len(whole)) {
		t.Fatalf("%d with %d bytes (length %s), want %d bytes", plain.status, len(plain.body),
			plain.header.Get("Content-Length"), len(whole))
	}
	compressed := call(t, "GET", url, "", "Accept-Encoding", "gzip")
	if compressed.header.Get("Content-Encoding") != "gzip" || decompress(t, compressed.body) != whole ||
		len(compressed.body) > len(whole)/10 {
		t.Errorf("the %d compressed bytes are not a compressed form of the body", len(compressed.body))
	}
	for coding, get := range map[string]response{"identity": plain, "gzip": compressed} {
		if get.header.Get("Access-Control-Allow-Origin") != "*" || get.header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: headers %v", coding, get.header)
		}
		head := call(t, "HEAD", url, "", "Accept-Encoding", coding)
		for _, name := range []string{"Etag", "Content-Length", "Content-Encoding", "Content-Type"} {
			if head.status != 200 || head.header.Get(name) != get.header.Get(name) {
				t.Errorf("%s: HEAD is %d with %s %q, want %q", coding, head.status, name, head.header.Get(name),
					get.header.Get(name))
			}
		}
		for _, method := range []string{"GET", "HEAD"} {
			if a := call(t, method, url, "", "Accept-Encoding", coding, "If-None-Match",
				get.header.Get("Etag")); a.status != 304 || a.body != "" {
				t.Errorf("%s: %s with the entity tag is %d", coding, method, a.status)
			}
		}
	}
	if plain.header.Get("Etag") == compressed.header.Get("Etag") {
		t.Error("both codings have the same entity tag")
	}
}

// TestLongHistoryOverHTTP10 expects a length, because HTTP/1.0 has no chunks.
func TestLongHistoryOverHTTP10(t *testing.T) {
	header, body := readRaw(t, newServerStore(t, 20).serve(t, discardLog()), "GET", "HTTP/1.0")
	if !strings.Contains(header, "Content-Length: "+strconv.Itoa(len(body))) || strings.Contains(header, "chunked") {
		t.Errorf("%d bytes after the header %s", len(body), header)
	}
}

// TestHeadOfLongHistory expects no part of the body, and a closed connection, because the server
// may write the end of chunks that it has not sent.
func TestHeadOfLongHistory(t *testing.T) {
	header, body := readRaw(t, newServerStore(t, 20).serve(t, discardLog()), "HEAD", "HTTP/1.1")
	if !strings.Contains(header, "Connection: close") || strings.TrimSpace(body) != "" {
		t.Errorf("%q after the header %s", body, header)
	}
}

// readRaw requests the compressed form and returns the bytes until the connection ends.
func readRaw(t *testing.T, url, method, protocol string) (header, body string) {
	t.Helper()
	address, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	must.Succeed(t, err)
	defer c.Close()
	must.Succeed(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	if _, err := io.WriteString(c,
		method+" "+longPath+" "+protocol+"\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	must.Succeed(t, err)
	header, body, _ = strings.Cut(string(got), "\r\n\r\n")
	return header, body
}

func TestLongHistoryTagDependsOnTheVersions(t *testing.T) {
	d := newServerStore(t, 20)
	url := d.serve(t, discardLog())
	tag := func() string { return call(t, "HEAD", url, "").header.Get("Etag") }
	first := tag()
	if again := tag(); again != first {
		t.Errorf("the entity tag changed from %s to %s without a change", first, again)
	}
	seen := map[string]string{first: "no change"}
	for name, change := range map[string]func(){
		"a new update time": func() { d.records[7].UpdatedAt = d.records[7].UpdatedAt.Add(time.Microsecond) },
		"another size":      func() { d.records[8].Document = append(d.records[8].Document, ' ') },
		"another status":    func() { d.records[9].Status = registry.StatusDeprecated },
		"a message":         func() { d.records[9].StatusMessage = "use another" },
		"another version":   func() { d.records = append(d.records, newServerStore(t, 21).records[20]) },
	} {
		change()
		got := tag()
		if before, known := seen[got]; known {
			t.Errorf("%s gives the same entity tag as %s", name, before)
		}
		seen[got] = name
	}
}

// TestInterruptedLongHistory expects that a client notices an incomplete response.
func TestInterruptedLongHistory(t *testing.T) {
	for _, coding := range []string{"identity", "gzip"} {
		d := newServerStore(t, 40)
		log, lines := logtest.NewNullLogger()
		url := d.serveBounded(t, logrus.NewEntry(log), roomForOne)
		d.before = func() error { return errors.New("the store is unavailable") }
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		must.Succeed(t, err)
		r.Header.Set("Accept-Encoding", coding)
		response, err := http.DefaultTransport.RoundTrip(r)
		must.Succeed(t, err)
		n, err := io.Copy(io.Discard, response.Body)
		_ = response.Body.Close() // all of it was read
		if response.StatusCode != 200 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %d with %d bytes, %v, want an unexpected EOF", coding, response.StatusCode, n, err)
		}
		if last := lines.LastEntry(); last == nil || last.Message != "a response was interrupted" {
			t.Errorf("%s: the last log line is %v", coding, last)
		}
		d.before = nil
		if a := callUntilRoom(t, url); a.status != 200 { // the memory is released
			t.Errorf("%s: the next response is %d %s", coding, a.status, a.body)
		}
	}
}

// TestTooManyLargeResponses expects a second large response to be refused while the first one is
// sent, and small ones to be sent.
func TestTooManyLargeResponses(t *testing.T) {
	d := newServerStore(t, 40)
	waits, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	d.before = func() error {
		once.Do(func() { close(waits); <-goOn })
		return nil
	}
	url := d.serveBounded(t, discardLog(), roomForOne)
	first := make(chan response)
	go func() { first <- call(t, "GET", url, "", "Accept-Encoding", "identity") }()
	<-waits
	second := call(t, "GET", url, "", "If-None-Match", "*")
	second.expect(t, 503, `{"error":"too many large responses are being sent; try again later"}`)
	if second.header.Get("Retry-After") != "1" || second.header.Get("Etag") != "" {
		t.Errorf("headers %v", second.header)
	}
	d.mu.Lock()
	all := d.records
	d.records = d.records[:1] // 300 KiB
	d.mu.Unlock()
	if a := call(t, "GET", url, ""); a.status != 200 {
		t.Errorf("a response that fits into the memory is %d", a.status)
	}
	d.mu.Lock()
	d.records = all
	d.mu.Unlock()
	close(goOn)
	if a := <-first; a.status != 200 || strconv.Itoa(len(a.body)) != a.header.Get("Content-Length") {
		t.Errorf("the first response is %d with %d bytes", a.status, len(a.body))
	}
	if a := callUntilRoom(t, url); a.status != 200 {
		t.Errorf("after the first response: %d %s", a.status, a.body)
	}
}
