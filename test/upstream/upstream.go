// Package upstream runs a registry within a test, for mirrors to read. It lists any records by
// pages, as a correct registry does, and can be made to fail, to lie and to attack.
//
//	up := upstream.Start(t, upstream.Servers(3)...)
//	up.Put(upstream.Record{Document: upstream.Document("com.example/a", "2.0.0", "New.")})
//	up.Behave(upstream.Behaviour{Fault: upstream.Status(503), OnPage: 2})
//	up.Behave(upstream.Behaviour{}) // correct again
package upstream

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/test/testcert"
)

// Server is a registry on this machine. It is safe for concurrent use.
type Server struct {
	URL    string // before /v0.1
	CAFile string // the authority of its certificate; empty without TLS

	ended context.Context // ends with the test

	mu        sync.Mutex
	records   []Record
	behaviour Behaviour
	faults    int // how often the fault of the behaviour has happened
	requests  []string
}

// Start runs a registry over HTTP until the test ends.
func Start(t testing.TB, records ...Record) *Server {
	t.Helper()
	s := newServer(records)
	server := httptest.NewServer(s)
	s.endWith(t, server)
	return s
}

// StartTLS is like Start, over HTTPS with a certificate of its own authority for 127.0.0.1.
func StartTLS(t testing.TB, records ...Record) *Server {
	t.Helper()
	s := newServer(records)
	authority := testcert.NewAuthority(t)
	server := httptest.NewUnstartedServer(s)
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{authority.Issue(t, "127.0.0.1").Pair()}, MinVersion: tls.VersionTLS12,
	}
	server.StartTLS()
	s.CAFile = authority.CertFile
	s.endWith(t, server)
	return s
}

func newServer(records []Record) *Server {
	s := &Server{}
	s.Set(records...)
	return s
}

func (s *Server) endWith(t testing.TB, server *httptest.Server) {
	ended, end := context.WithCancel(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.URL, s.ended = server.URL, ended
	t.Cleanup(func() {
		end() // ends responses that hang
		server.Close()
	})
}

// Set replaces all records. They are listed in the given order.
func (s *Server) Set(records ...Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = s.records[:0:0]
	for _, r := range records {
		s.records = append(s.records, r.withDefaults())
	}
	s.markLatest()
}

// Put replaces each record whose name and version are listed, and appends the others.
func (s *Server) Put(records ...Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = slices.Clone(s.records) // a response may be reading the old ones
	for _, r := range records {
		r = r.withDefaults()
		if at := slices.IndexFunc(s.records, r.isSameVersion); at >= 0 {
			s.records[at] = r
			continue
		}
		s.records = append(s.records, r)
	}
	s.markLatest()
}

// markLatest sets isLatest of all records: the last version of each server that is not deleted.
func (s *Server) markLatest() {
	latest := map[string]int{}
	for i, r := range s.records {
		if r.Status != "deleted" {
			latest[r.name] = i
		}
	}
	for i := range s.records {
		at, ok := latest[s.records[i].name]
		s.records[i].isLatest = ok && at == i
	}
}

// Forget removes all versions of a server without a trace. To delete a version as registries do,
// Put it with the status "deleted" and a new UpdatedAt.
func (s *Server) Forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = slices.DeleteFunc(slices.Clone(s.records), func(r Record) bool { return r.name == name })
}

// Behave replaces the behaviour. The zero Behaviour is that of a correct registry.
func (s *Server) Behave(b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behaviour, s.faults = b, 0
}

// Requests returns the path and query of each request so far.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServeHTTP responds to GET /v0.1/servers.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.URL.RequestURI())
	b, records, ended := s.behaviour, s.records[:len(s.records):len(s.records)], s.ended
	number := pageNumber(r)
	fails := b.Fault != nil && (b.OnPage == 0 || b.OnPage == number) && (b.Times == 0 || s.faults < b.Times)
	if fails {
		s.faults++
	}
	s.mu.Unlock()

	if r.Method != http.MethodGet || r.URL.Path != "/v0.1/servers" {
		http.NotFound(w, r)
		return
	}
	page, err := b.page(records, r, number)
	if err != nil {
		http.Error(w, `{"error":"`+err.Error()+`"}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if !fails {
		_, _ = w.Write(page) // the client may close the connection
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(ended, cancel)()
	b.Fault(w, r.WithContext(ctx), page)
}
