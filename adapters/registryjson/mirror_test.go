package registryjson

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/upstream"
)

// newTestMirror returns a source that does not wait between attempts; pauses has the waits.
func newTestMirror(t *testing.T) (s *MirrorSource, pauses *[]time.Duration) {
	t.Helper()
	s, pauses = NewMirrorSource(), new([]time.Duration)
	s.client.pause = func(ctx context.Context, d time.Duration) bool {
		*pauses = append(*pauses, d)
		return ctx.Err() == nil
	}
	t.Cleanup(func() {
		guard := s.client.http.Transport.(*redirectGuard)
		guard.chosen.CloseIdleConnections()
		guard.redirected.CloseIdleConnections()
	})
	return s, pauses
}

// readMirror reads a whole list and returns the documents, or the reasons why there are none, by
// the names of the servers, and the names in their order.
func readMirror(
	t *testing.T, s *MirrorSource, r recordsource.ListRequest,
) (texts map[string][]string, names []string, err error) {
	t.Helper()
	list, err := s.Read(t.Context(), r)
	if err != nil {
		return nil, nil, err
	}
	defer list.Close()
	texts, names = drain(t, list)
	list.Rewind()
	if again, _ := drain(t, list); !maps.EqualFunc(texts, again, slices.Equal) {
		t.Errorf("after Rewind the list has %q, before %q", again, texts)
	}
	n := 0
	for _, of := range texts {
		n += len(of)
	}
	if list.Records() != n {
		t.Errorf("Records() = %d, want %d", list.Records(), n)
	}
	return texts, names, nil
}

func drain(t *testing.T, list recordsource.List) (texts map[string][]string, names []string) {
	t.Helper()
	texts = map[string][]string{}
	for {
		server, err := list.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return texts, names
		}
		must.Succeed(t, err)
		if _, twice := texts[server.Name]; twice {
			t.Errorf("server %q comes twice", server.Name)
		}
		names = append(names, server.Name)
		for _, e := range server.Entries {
			text := string(e.Document)
			if e.Unreadable != nil {
				text = "unreadable: " + e.Unreadable.Error()
			}
			texts[server.Name] = append(texts[server.Name], text)
		}
	}
}

func requestOf(up *upstream.Server) recordsource.ListRequest {
	return recordsource.ListRequest{URL: mirror.URL(up.URL)}
}

func TestMirrorReadsAllPagesInOrder(t *testing.T) {
	t.Parallel()
	records := upstream.Servers(250)
	for _, version := range []string{"1.1.0", "1.0.0", "1.0.0"} {
		records = append(records, upstream.Record{
			Document: upstream.Document("com.example/server-000007", version, "Version "+version),
		})
	}
	records = append(records, upstream.Record{
		Document: upstream.Document("com.example/a", "1.0.0", "Deleted"), Status: "deleted",
	})
	up := upstream.Start(t, records...)
	for _, b := range []upstream.Behaviour{{}, {PageSize: 7}, {Shuffled: true, PageSize: 30}} {
		up.Behave(b)
		s, _ := newTestMirror(t)
		var progress []int
		r := requestOf(up)
		r.Observe = func(n int) { progress = append(progress, n) }
		got, names, err := readMirror(t, s, r)
		must.Succeed(t, err)
		if len(names) != 251 || names[0] != "com.example/a" || !slices.IsSorted(names) {
			t.Errorf("%+v: %d servers, sorted %t", b, len(names), slices.IsSorted(names))
		}
		want := []string{records[7].Document, records[250].Document, records[251].Document, records[252].Document}
		if of := got["com.example/server-000007"]; !b.Shuffled && !slices.Equal(of, want) {
			t.Errorf("%+v: versions are %q, want %q", b, of, want)
		} else if len(of) != 4 {
			t.Errorf("%+v: versions are %q", b, of)
		}
		if !slices.IsSorted(progress) || progress[len(progress)-1] != len(records) {
			t.Errorf("%+v: progress was %v", b, progress)
		}
	}
	if first := up.Requests()[0]; first != "/v0.1/servers?include_deleted=true&limit=100" {
		t.Errorf("first request was %s", first)
	}
}

func TestMirrorReadsWhatChanged(t *testing.T) {
	t.Parallel()
	up := upstream.Start(t, upstream.Servers(3)...)
	changed := upstream.Record{
		Document: upstream.Document("com.example/b", "1.0.0", "B"), UpdatedAt: upstream.Epoch().Add(time.Hour),
	}
	up.Put(changed)
	s, _ := newTestMirror(t)
	r := requestOf(up)
	r.Since = upstream.Epoch().Add(time.Minute).In(time.FixedZone("", 3600))
	for since, want := range map[upstream.Since]int{
		upstream.SinceHonoured: 1, upstream.SinceIgnored: 4, upstream.SinceNothing: 0,
	} {
		up.Behave(upstream.Behaviour{Since: since})
		_, names, err := readMirror(t, s, r)
		if err != nil || len(names) != want {
			t.Errorf("behaviour %d: %q, %v", since, names, err)
		}
	}
	if last := up.Requests()[len(
		up.Requests())-1]; last !=
		"/v0.1/servers?include_deleted=true&limit=100&updated_since=2026-01-02T03%3A05%3A05Z" {
		t.Errorf("request was %s", last)
	}
	for _, b := range []upstream.Behaviour{
		{Since: upstream.SinceRefused}, {Fault: upstream.Status(http.StatusUnprocessableEntity)},
	} {
		up.Behave(b)
		if _, err := s.Read(t.Context(), r); !fault.Is(err, fault.Unsupported) {
			t.Errorf("Read returned %v", err)
		}
	}
	if _, err := s.Read(t.Context(), requestOf(up)); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Read of everything returned %v", err)
	}
}

func TestMirrorKeepsUnreadableRecords(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 256)
	up := upstream.Start(t,
		upstream.Record{
			Document: upstream.Document("com.example/a", "1.0.0", "A"),
			Meta:     `{"io.modelcontextprotocol.registry/official":{"publishedAt":"yesterday"}}`,
		},
		upstream.Record{Document: upstream.BigDocument("com.example/b", "1.0.0", 10<<20)},
		upstream.Record{Document: upstream.DeepDocument("com.example/c", "1.0.0", 200_000)},
		upstream.Record{Document: upstream.DeepDocument("com.example/d", "1.0.0", 5_000)},
		upstream.Record{Document: upstream.Document("../e", "1.0.0", "E")},
		upstream.Record{Document: upstream.Document(long, "1.0.0", "F")},
		upstream.Record{Document: `{"name":7}`},
		upstream.Record{Document: `{"name":"a","NAME":"b"}`},
		upstream.Record{Document: `null`},
		upstream.Record{Document: `[]`},
		upstream.Record{Document: `{}`, Meta: `{},"name":"com.example/outside-the-document"`},
	)
	s, _ := newTestMirror(t)
	got, names, err := readMirror(t, s, requestOf(up))
	must.Succeed(t, err)
	if want := []string{"", "../e", "a", "com.example/a", "com.example/d"}; !slices.Equal(names, want) {
		t.Errorf("names are %q, want %q", names, want)
	}
	if of := got["com.example/a"]; len(of) != 1 ||
		!strings.Contains(of[0], "unreadable: _meta of the record has an invalid status or time") {
		t.Errorf("record with wrong times is %q", of)
	}
	if of := got[""]; len(of) != 7 || of[0] != "unreadable: "+errTooLarge.Error() ||
		!strings.HasPrefix(of[1], "unreadable: ") || of[3] != `{"name":7}` {
		t.Errorf("records without names are %.200q", of)
	}
}

func TestMirrorRefusesLists(t *testing.T) {
	t.Parallel()
	const text = "application/json"
	for name, c := range map[string]struct {
		b      upstream.Behaviour
		change func(*MirrorSource)
		want   string
		pauses []time.Duration
	}{
		"a cursor to the same page": {
			b:    upstream.Behaviour{Cursors: upstream.CursorsLoop},
			want: "page 2: the nextCursor leads to a page that was read before",
		},
		"a cycle of three pages": {
			b:    upstream.Behaviour{Cursors: upstream.CursorsCycle},
			want: "page 4: the nextCursor leads to a page that was read before",
		},
		"pages without records": {
			b:    upstream.Behaviour{Cursors: upstream.CursorsEmpty},
			want: "page 1003: the last 1000 pages have no records",
		},
		"a long cursor": {
			b:    upstream.Behaviour{Cursors: upstream.CursorsLong},
			want: "page 1: the nextCursor is longer than 4096 bytes",
		},
		"a cursor that is a number": {
			b:    upstream.Behaviour{Cursors: upstream.CursorsNumber},
			want: "page 1: the metadata of the list cannot be read",
		},
		"too many records": {
			b: upstream.Behaviour{Cursors: upstream.CursorsEndless}, change: func(s *MirrorSource) {
				s.limits.records = 1000
			}, want: "the list has more than 1000 records",
		},
		"too many pages": {
			b: upstream.Behaviour{Cursors: upstream.CursorsEndless}, change: func(s *MirrorSource) {
				s.limits.pages = 50
			}, want: "page 50: the list has more than 50 pages",
		},
		"too many bytes": {
			b: upstream.Behaviour{Cursors: upstream.CursorsEndless}, change: func(s *MirrorSource) {
				s.limits.bytes = 1 << 20
			}, want: "the list is larger than 1048576 bytes",
		},
		"a page that is too large": {
			change: func(s *MirrorSource) { s.limits.pageBytes = 1 << 10 },
			want:   "page 1: the page is larger than 1024 bytes",
		},
		"a gzip bomb": {
			b:    upstream.Behaviour{Fault: upstream.GzipBomb(maxPageBytes + 1)},
			want: "page 1: the page is larger than 134217728 bytes",
		},
		"broken off on page 2": {
			b:    upstream.Behaviour{Fault: upstream.BreakOff(), OnPage: 2},
			want: "page 2: ends in the middle of its JSON",
		},
		"HTML": {
			b:    upstream.Behaviour{Fault: upstream.HTML()},
			want: "page 1: the server responded with HTML or XML instead of JSON; check the URL",
		},
		"a document": {
			b: upstream.Behaviour{Fault: upstream.Body(text, `{"name":"a"}`)}, want: errNotAList.Error(),
		},
		"an array": {
			b: upstream.Behaviour{Fault: upstream.Body(text, `[{"name":"a"}]`)}, want: errNotAList.Error(),
		},
		"an empty array": {
			b: upstream.Behaviour{Fault: upstream.Body(text, `[]`)}, want: errNotAList.Error(),
		},
		"a text after the list": {
			b:    upstream.Behaviour{Fault: upstream.Body(text, `{"servers":null}{}`)},
			want: "has more data after its JSON",
		},
		"servers is an object": {
			b: upstream.Behaviour{Fault: upstream.Body(text, `{"servers":{}}`)}, want: errNotAList.Error(),
		},
		"metadata that are too large": {
			b: upstream.Behaviour{
				Fault: upstream.Body(text, `{"servers":[],"metadata":"`+strings.Repeat("x", maxRecord)+`"}`),
			}, want: errMetadata.Error(),
		},
		"metadata of no servers": {
			b:    upstream.Behaviour{Fault: upstream.Body(text, `{"servers":null,"metadata":[]}`)},
			want: errMetadata.Error(),
		},
		"nothing": {
			b: upstream.Behaviour{Fault: upstream.Body(text, ``)}, want: "page 1: is empty",
		},
		"not found": {
			b: upstream.Behaviour{Fault: upstream.Status(404)}, want: "page 1: the server responded with 404 Not Found",
		},
		"an unknown status": {
			b: upstream.Behaviour{Fault: upstream.Status(299)}, want: "page 1: the server responded with 299",
		},
		"an error on page 3": {
			b:    upstream.Behaviour{Fault: upstream.Status(500), OnPage: 3},
			want: "page 3: the server responded with 500 Internal Server Error", pauses: []time.Duration{
				time.Second, 2 * time.Second,
			},
		},
		"a long Retry-After": {
			b:    upstream.Behaviour{Fault: upstream.TooManyRequests(time.Hour)},
			want: "page 1: the server responded with 429 Too Many Requests", pauses: []time.Duration{
				time.Minute, time.Minute,
			},
		},
		"too many redirects": {
			b: upstream.Behaviour{Fault: upstream.RedirectToSelf()}, change: allowLoopback,
			want: "page 1: redirects more than 5 times",
		},
		"a redirect to a file": {
			b:    upstream.Behaviour{Fault: upstream.Redirect("file:///etc/passwd")},
			want: "page 1: the connection failed, or the response is not valid HTTP", pauses: []time.Duration{
				time.Second, 2 * time.Second,
			},
		},
		"hangs": {
			b: upstream.Behaviour{Fault: upstream.Hang()}, change: func(s *MirrorSource) {
				s.client.maxIdle = 20 * time.Millisecond
			}, want: "page 1: no data arrived for 20ms", pauses: []time.Duration{time.Second, 2 * time.Second},
		},
		"hangs inside a page": {
			b: upstream.Behaviour{Fault: upstream.HangInside()}, change: func(s *MirrorSource) {
				s.client.maxIdle = 500 * time.Millisecond
			}, want: "page 1: no data arrived for 500ms",
		},
		"drips": {
			b: upstream.Behaviour{Fault: upstream.Drip(5 * time.Millisecond)}, change: func(s *MirrorSource) {
				s.client.maxPage = 300 * time.Millisecond
			}, want: "page 1: the response takes longer than 300ms",
		},
		"takes too long in all": {
			b: upstream.Behaviour{Fault: upstream.Drip(5 * time.Millisecond)}, change: func(s *MirrorSource) {
				s.limits.readTime = 300 * time.Millisecond
			}, want: "page 1: reading the list takes longer than 300ms",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := upstream.Start(t, upstream.Servers(250)...)
			up.Behave(c.b)
			s, pauses := newTestMirror(t)
			if c.change != nil {
				c.change(s)
			}
			_, err := s.Read(t.Context(), requestOf(up))
			if !fault.Is(err, fault.Unavailable) || !strings.HasPrefix(err.Error(), up.URL+", page ") ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("Read returned %v, want %q", err, c.want)
			}
			if strings.Contains(fmt.Sprint(err), "secret") {
				t.Errorf("Read returned text of the upstream: %v", err)
			}
			if !slices.Equal(*pauses, c.pauses) {
				t.Errorf("pauses are %v, want %v", *pauses, c.pauses)
			}
		})
	}
}

func TestMirrorLimits(t *testing.T) {
	t.Parallel()
	s := NewMirrorSource()
	want := mirrorLimits{
		records: 1_000_000, names: 64 << 20, pages: 100_000, emptyPages: 1000,
		bytes: 4 << 30, pageBytes: 128 << 20, readTime: 2 * time.Hour,
	}
	if s.limits != want || s.client.tries != 3 || s.client.maxPage != 2*time.Minute ||
		s.client.maxIdle != 30*time.Second {
		t.Errorf("limits are %+v, %+v", s.limits, s.client)
	}
}

func TestMirrorTriesAgain(t *testing.T) {
	t.Parallel()
	up := upstream.Start(t, upstream.Servers(150)...)
	up.Behave(upstream.Behaviour{Fault: upstream.TooManyRequests(7 * time.Second), OnPage: 2, Times: 2})
	s, pauses := newTestMirror(t)
	_, names, err := readMirror(t, s, requestOf(up))
	if err != nil || len(names) != 150 || !slices.Equal(*pauses, []time.Duration{7 * time.Second, 7 * time.Second}) {
		t.Errorf("%d servers, %v after %v", len(names), err, *pauses)
	}
}

func TestMirrorReadsEmptyLists(t *testing.T) {
	t.Parallel()
	up := upstream.Start(t)
	s, _ := newTestMirror(t)
	for _, text := range []string{"", `{"servers":null,"metadata":{"count":0}}`, `{"servers":[]}`, `{"servers":null}`} {
		if text != "" {
			up.Behave(upstream.Behaviour{Fault: upstream.Body("application/json", text)})
		}
		if _, names, err := readMirror(t, s, requestOf(up)); err != nil || len(names) != 0 {
			t.Errorf("%s is %q, %v", text, names, err)
		}
	}
}

func TestMirrorEndsWithTheContext(t *testing.T) {
	t.Parallel()
	up := upstream.Start(t, upstream.Servers(10)...)
	for name, b := range map[string]upstream.Behaviour{
		"while it waits for a response": {Fault: upstream.Hang()}, "inside a page": {Fault: upstream.HangInside()},
		"in a list without an end": {Cursors: upstream.CursorsEndless},
	} {
		up.Behave(b)
		s, _ := newTestMirror(t)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if _, err := s.Read(ctx, requestOf(up)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: Read returned %v", name, err)
		}
		cancel()
	}
	up.Behave(upstream.Behaviour{})
	s, _ := newTestMirror(t)
	list, err := s.Read(t.Context(), requestOf(up))
	must.Succeed(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := list.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Next returned %v", err)
	}
	if texts, _ := drain(t, list); len(texts) != 10 {
		t.Errorf("%d servers after a call whose context ended", len(texts))
	}
	must.Succeed(t, errors.Join(list.Close(), list.Close()))
	if _, err := list.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("Next after Close returned %v", err)
	}
}

func TestMirrorIsAway(t *testing.T) {
	t.Parallel()
	s, pauses := newTestMirror(t)
	for address, want := range map[string]string{
		"http://127.0.0.1:1/t/secret/x": "http://127.0.0.1:1/t/***/x, page 1: the server refuses the connection",
		"http://registry.invalid":       "http://registry.invalid, page 1: the name of the host cannot be resolved",
	} {
		*pauses = nil
		_, err := s.Read(t.Context(), recordsource.ListRequest{URL: mirror.URL(address)})
		if !fault.Is(err, fault.Unavailable) || err.Error() != want || len(*pauses) != mirrorTries-1 {
			t.Errorf("Read returned %v after %v", err, *pauses)
		}
	}
}

func TestMirrorLeavesNoFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not remove open files")
	}
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	up := upstream.Start(t, upstream.Servers(3)...)
	s, _ := newTestMirror(t)
	list, err := s.Read(t.Context(), requestOf(up))
	must.Succeed(t, err)
	defer list.Close()
	if files, err := os.ReadDir(folder); err != nil || len(files) != 0 {
		t.Errorf("the folder has %v, %v", files, err)
	}
	t.Setenv("TMPDIR", filepath.Join(folder, "missing"))
	if _, err := s.Read(t.Context(), requestOf(up)); !fault.Is(err, fault.Unavailable) ||
		!strings.Contains(err.Error(), "a temporary file cannot be used") {
		t.Errorf("Read returned %v", err)
	}
}

func hostOf(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	must.Succeed(t, err)
	return u
}

// BenchmarkMirrorRead reads 100,000 servers from a registry on this machine, whose work counts too.
func BenchmarkMirrorRead(b *testing.B) {
	up := upstream.Start(b, upstream.Servers(100_000)...)
	s := NewMirrorSource()
	for b.Loop() {
		before := heap()
		list, err := s.Read(b.Context(), requestOf(up))
		must.Succeed(b, err)
		b.ReportMetric(float64(heap()-before)/float64(list.Records()), "kept-B/record")
		must.Succeed(b, list.Close())
	}
}
