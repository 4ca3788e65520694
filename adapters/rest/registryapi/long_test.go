package registryapi_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/representation"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browse"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

const longPath = "/v0.1/servers/com.example%2Fserver/versions"

// depot keeps the versions of one server, newest first.
type depot struct {
	registrystore.ServerReader
	mu      sync.Mutex
	records []registry.Record
	before  func() error // each later page; nil for nothing
}

// newDepot has n versions with documents of 300 KiB, which is long from 14 on.
func newDepot(t *testing.T, n int) *depot {
	t.Helper()
	d := &depot{}
	for i := range n {
		r := record(t, "com.example/server", fmt.Sprintf("1.0.%d", n-i))
		r.PublishedAt = r.PublishedAt.Add(-time.Duration(i) * time.Hour)
		r.Document = []byte(`{"text":"` + strings.Repeat("some text "+strconv.Itoa(i), 300<<10/12) + `"}`)
		d.records = append(d.records, r)
	}
	return d
}

func (d *depot) Versions(_ context.Context, q registrystore.VersionsQuery) (registrystore.Page, error) {
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

func (d *depot) Outline(context.Context, registry.Name, bool) ([]registry.Edition, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []registry.Edition
	for _, r := range d.records {
		all = append(all, registry.Edition{Release: r.Release, Size: len(r.Document)})
	}
	return all, nil
}

// open serves a depot.
func (d *depot) open(t *testing.T, log *logrus.Entry) string {
	t.Helper()
	return d.openFor(t, log, 0)
}

// roomForOne is room for one long answer at a time.
const roomForOne = 6 << 20

// openFor serves a depot with room for that many bytes of large answers.
func (d *depot) openFor(t *testing.T, log *logrus.Entry, room int) string {
	t.Helper()
	cfg := registryapi.Config{Answers: representation.Config{InFlight: room}, Log: log}
	return serve(t, cfg, browse.New(d, page.NewSealer([]byte(strings.Repeat("k", 32)))), nil) + longPath
}

// callWhenRoom is call where an answer before has just ended: its client may know
// that before the server does.
func callWhenRoom(t *testing.T, url string) answer {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		a := call(t, "GET", url, "", "Accept-Encoding", "identity")
		if a.status != 503 || time.Now().After(end) {
			return a
		}
	}
}

func unzip(t *testing.T, body string) string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// TestLongHistory wants the answer to have the bytes that it would have if it
// were made whole.
func TestLongHistory(t *testing.T) {
	d := newDepot(t, 40)
	whole := call(t, "GET", serve(t, registryapi.Config{}, &registryStub{records: d.records}, nil)+longPath, "").body
	url := d.open(t, quiet())
	plain := call(t, "GET", url, "", "Accept-Encoding", "identity")
	if plain.status != 200 || plain.body != whole || plain.header.Get("Content-Length") != strconv.Itoa(len(whole)) {
		t.Fatalf("%d with %d bytes (length %s), want the %d of the whole", plain.status, len(plain.body), plain.header.Get("Content-Length"), len(whole))
	}
	packed := call(t, "GET", url, "", "Accept-Encoding", "gzip")
	if packed.header.Get("Content-Encoding") != "gzip" || unzip(t, packed.body) != whole || len(packed.body) > len(whole)/10 {
		t.Errorf("%d compressed bytes are not those of the whole", len(packed.body))
	}
	for coding, get := range map[string]answer{"identity": plain, "gzip": packed} {
		if get.header.Get("Access-Control-Allow-Origin") != "*" || get.header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: headers %v", coding, get.header)
		}
		head := call(t, "HEAD", url, "", "Accept-Encoding", coding)
		for _, name := range []string{"Etag", "Content-Length", "Content-Encoding", "Content-Type"} {
			if head.status != 200 || head.header.Get(name) != get.header.Get(name) {
				t.Errorf("%s: HEAD %d has the %s %q, want %q", coding, head.status, name, head.header.Get(name), get.header.Get(name))
			}
		}
		for _, method := range []string{"GET", "HEAD"} {
			if a := call(t, method, url, "", "Accept-Encoding", coding, "If-None-Match", get.header.Get("Etag")); a.status != 304 || a.body != "" {
				t.Errorf("%s: %s with the tag is %d", coding, method, a.status)
			}
		}
	}
	if plain.header.Get("Etag") == packed.header.Get("Etag") {
		t.Error("two forms have one tag")
	}
}

// TestLongHistoryOfOldClients wants HTTP/1.0, which has no chunks, to get a
// length.
func TestLongHistoryOfOldClients(t *testing.T) {
	header, body := exchange(t, newDepot(t, 20).open(t, quiet()), "GET", "HTTP/1.0")
	if !strings.Contains(header, "Content-Length: "+strconv.Itoa(len(body))) || strings.Contains(header, "chunked") {
		t.Errorf("%d bytes behind %s", len(body), header)
	}
}

// TestHeadOfLongHistory wants a connection closed on which the server may have
// written the end of chunks that it left out, and no part of the body.
func TestHeadOfLongHistory(t *testing.T) {
	header, body := exchange(t, newDepot(t, 20).open(t, quiet()), "HEAD", "HTTP/1.1")
	if !strings.Contains(header, "Connection: close") || strings.TrimSpace(body) != "" {
		t.Errorf("%q behind %s", body, header)
	}
}

// exchange returns the answer to a request for the compressed form, as it comes
// until the connection ends.
func exchange(t *testing.T, url, method, protocol string) (header, body string) {
	t.Helper()
	address, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, method+" "+longPath+" "+protocol+"\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	header, body, _ = strings.Cut(string(got), "\r\n\r\n")
	return header, body
}

func TestLongHistoryTagTellsOfChanges(t *testing.T) {
	d := newDepot(t, 20)
	url := d.open(t, quiet())
	tag := func() string { return call(t, "HEAD", url, "").header.Get("Etag") }
	first := tag()
	if again := tag(); again != first {
		t.Errorf("the tag changes from %s to %s though nothing did", first, again)
	}
	seen := map[string]string{first: "nothing"}
	for name, change := range map[string]func(){
		"a new update time":       func() { d.records[7].UpdatedAt = d.records[7].UpdatedAt.Add(time.Microsecond) },
		"another size":            func() { d.records[8].Document = append(d.records[8].Document, ' ') },
		"another status":          func() { d.records[9].Status = registry.StatusDeprecated },
		"a message":               func() { d.records[9].StatusMessage = "use another" },
		"a version more than was": func() { d.records = append(d.records, newDepot(t, 21).records[20]) },
	} {
		change()
		got := tag()
		if before, known := seen[got]; known {
			t.Errorf("%s leaves the tag as after %s", name, before)
		}
		seen[got] = name
	}
}

// TestLongHistoryBreaksOff wants a client to see that an answer is not whole.
func TestLongHistoryBreaksOff(t *testing.T) {
	for _, coding := range []string{"identity", "gzip"} {
		d := newDepot(t, 40)
		log, heard := logtest.NewNullLogger()
		url := d.openFor(t, logrus.NewEntry(log), roomForOne)
		d.before = func() error { return errors.New("the store is away") }
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", coding)
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, response.Body)
		_ = response.Body.Close() // all of it is read
		if response.StatusCode != 200 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %d with %d bytes, %v, want an unexpected end", coding, response.StatusCode, n, err)
		}
		if last := heard.LastEntry(); last == nil || last.Message != "a response was interrupted" {
			t.Errorf("%s: the log has %v", coding, last)
		}
		d.before = nil
		if a := callWhenRoom(t, url); a.status != 200 { // it gave its memory back
			t.Errorf("%s: the next answer is %d %s", coding, a.status, a.body)
		}
	}
}

// TestTooManyLargeAnswers wants a second one refused while the first waits, and
// small ones let through.
func TestTooManyLargeAnswers(t *testing.T) {
	d := newDepot(t, 40)
	waits, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	d.before = func() error {
		once.Do(func() { close(waits); <-goOn })
		return nil
	}
	url := d.openFor(t, quiet(), roomForOne)
	first := make(chan answer)
	go func() { first <- call(t, "GET", url, "", "Accept-Encoding", "identity") }()
	<-waits
	second := call(t, "GET", url, "", "If-None-Match", "*")
	second.expect(t, 503, `{"error":"too many large answers are being sent, try again later"}`)
	if second.header.Get("Retry-After") != "1" || second.header.Get("Etag") != "" {
		t.Errorf("headers %v", second.header)
	}
	d.mu.Lock()
	all := d.records
	d.records = d.records[:1] // 300 KiB
	d.mu.Unlock()
	if a := call(t, "GET", url, ""); a.status != 200 {
		t.Errorf("an answer that there is room for is %d", a.status)
	}
	d.mu.Lock()
	d.records = all
	d.mu.Unlock()
	close(goOn)
	if a := <-first; a.status != 200 || strconv.Itoa(len(a.body)) != a.header.Get("Content-Length") {
		t.Errorf("the first answer is %d with %d bytes", a.status, len(a.body))
	}
	if a := callWhenRoom(t, url); a.status != 200 {
		t.Errorf("behind the first answer: %d %s", a.status, a.body)
	}
}
