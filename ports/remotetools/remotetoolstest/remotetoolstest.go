// Package remotetoolstest has the contract tests of ports/remotetools. Every adapter runs them, with real
// remotes.
package remotetoolstest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/remotetools"
)

// Request is a request that a remote gets.
type Request struct{ Key, Body string } // the header X-Api-Key

// Response is how it answers: with JSON, or elsewhere with a Location.
type Response struct {
	Status         int
	Location, Body string
	Hangs          bool // until the client goes
}

// Subject is an asker under test that may connect to remotes of this machine.
type Subject struct {
	Asker remotetools.Asker
	// Serve starts a remote and returns its URL.
	Serve func(answer func(Request) Response) registry.RemoteURL
	// Guarded may connect to public addresses only.
	Guarded remotetools.Asker
}

// Run runs the suite. open returns a fresh subject, and registers its own cleanup.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	for name, part := range map[string]func(t *testing.T, s Subject){
		"a list is read, with headers":                              reads,
		"what is wrong is said, without headers and unseen letters": saysWhatIsWrong,
		"no redirect leads to another host":                         refusesRedirects,
		"a private address is refused":                              refusesPrivate,
		"headers are not sent in plain":                             refusesPlain,
		"a call ends with its context":                              endsWithContext,
	} {
		t.Run(name, func(t *testing.T) { part(t, open(t)) })
	}
}

var headers = map[string]string{"X-Api-Key": "sesame"}

// answer answers initialize, and tools/list with one tool.
func answer(r Request) Response {
	_, id, _ := strings.Cut(r.Body, `"id":`)
	id, _, _ = strings.Cut(id, ",")
	id, _, _ = strings.Cut(id, "}")
	result := ""
	switch {
	case r.Key != "sesame":
		return Response{Status: 401}
	case strings.Contains(r.Body, `"initialize"`):
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"w","version":"1"}}`
	case strings.Contains(r.Body, "tools/list"):
		result = `{"tools":[{"name":"forecast"}]}`
	case id != "":
		return Response{Status: 400}
	default:
		return Response{Status: 202}
	}
	return Response{Status: 200, Body: `{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`}
}

func reads(t *testing.T, s Subject) {
	url := s.Serve(answer)
	list, err := s.Asker.Ask(t.Context(), remotetools.Question{URL: url, Headers: headers})
	if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "forecast" {
		t.Errorf("the list is %s, %v", list.Canonical(), err)
	}
}

// expectWrong checks that a question has an error that names the remote.
func expectWrong(t *testing.T, err error, url registry.RemoteURL, says string) {
	t.Helper()
	f, ok := fault.As(err)
	if !ok || f.Kind != fault.Unavailable || f.Code != fault.UpstreamWrong || !strings.Contains(err.Error(), string(url)) ||
		!strings.Contains(err.Error(), says) || strings.ContainsAny(err.Error(), "\u202e\n") || strings.Contains(err.Error(), "sesame") {
		t.Errorf("Ask(%s) = %q, want an error with %q", url, err, says)
	}
}

func saysWhatIsWrong(t *testing.T, s Subject) {
	url := s.Serve(func(r Request) Response { return Response{Status: 418, Body: "you sent\n" + r.Key + "\u202e"} })
	_, err := s.Asker.Ask(t.Context(), remotetools.Question{URL: url, Headers: headers})
	expectWrong(t, err, url, "")
}

func refusesRedirects(t *testing.T, s Subject) {
	elsewhere := s.Serve(func(Request) Response {
		t.Error("another host is asked")
		return Response{Status: 404}
	})
	url := s.Serve(func(Request) Response { return Response{Status: 307, Location: string(elsewhere)} })
	_, err := s.Asker.Ask(t.Context(), remotetools.Question{URL: url, Headers: headers})
	expectWrong(t, err, url, "another host")
}

func refusesPrivate(t *testing.T, s Subject) {
	url := s.Serve(func(Request) Response {
		t.Error("a private address is asked")
		return Response{Status: 404}
	})
	for _, u := range []registry.RemoteURL{url, "https://10.0.0.1/mcp", "https://[::ffff:10.0.0.1]/mcp", "https://169.254.169.254/"} {
		_, err := s.Guarded.Ask(t.Context(), remotetools.Question{URL: u})
		expectWrong(t, err, u, "neither public")
	}
}

func refusesPlain(t *testing.T, s Subject) {
	const url = "http://weather.example.com/mcp"
	_, err := s.Asker.Ask(t.Context(), remotetools.Question{URL: url, Headers: headers})
	expectWrong(t, err, "", "https only")
}

func endsWithContext(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	url := s.Serve(func(Request) Response {
		cancel()
		return Response{Hangs: true}
	})
	if _, err := s.Asker.Ask(ctx, remotetools.Question{URL: url}); !errors.Is(err, context.Canceled) {
		t.Errorf("Ask = %v", err)
	}
}
