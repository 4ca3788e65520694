// Package healthprobe checks over HTTP whether a service is ready, for the health check of a
// container. It reads the responses of /ready and /healthcheck, and does not authenticate.
package healthprobe

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Bounds of a response that is read, and of its text in an error.
const (
	maxBody  = 64 << 10 // bytes
	maxShown = 200      // characters
)

// Target is the address of a service.
type Target struct {
	URL *url.URL    // with the path
	TLS *tls.Config // for an https address; nil for the authorities of the system
}

// Check returns nil if the response is 200 and a response of /ready also has the status ok or degraded.
// Otherwise it returns fault.Unavailable with the address and what is down, or the error of the
// context if that ended first.
func Check(ctx context.Context, t Target) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.URL.String(), http.NoBody)
	if err != nil {
		return fault.Wrap(fault.Invalid, "the address "+t.URL.Redacted()+" is invalid", err)
	}
	// without a proxy, which could respond itself
	transport := &http.Transport{TLSClientConfig: t.TLS, DisableKeepAlives: true}
	client := &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	response, err := client.Do(r)
	if err != nil {
		return t.noResponse(ctx, err)
	}
	defer func() { _ = response.Body.Close() }() // the body was only read
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	switch {
	case err != nil:
		return t.noResponse(ctx, err)
	case response.StatusCode != http.StatusOK:
		return fault.Newf(fault.Unavailable, "%s is not ready: %s", t.URL.Redacted(),
			describeResponse(response.StatusCode, text))
	case path.Base(t.URL.Path) == "ready" && !isReady(text):
		return fault.Newf(fault.Unavailable, "%s does not answer like a tollgate service: check the address",
			t.URL.Redacted())
	}
	return nil
}

// isReady reports whether a response of /ready has the status of a service that does its work. Other
// web servers may respond 200 to every path.
func isReady(text []byte) bool {
	var ready struct {
		Status string `json:"status"`
	}
	return json.Unmarshal(text, &ready) == nil && (ready.Status == "ok" || ready.Status == "degraded")
}

// noResponse returns the error for a service that did not respond.
func (t Target) noResponse(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("check %s: %w", t.URL.Redacted(), ctx.Err())
	}
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err // without the address, which the error has already
	}
	return fault.Wrap(fault.Unavailable, t.URL.Redacted()+" does not answer", err)
}

// describeResponse returns which dependencies are down, or the first line of the response.
func describeResponse(status int, text []byte) string {
	var ready struct {
		Status       string            `json:"status"`
		Dependencies map[string]string `json:"dependencies"`
	}
	if json.Unmarshal(text, &ready) != nil || ready.Status == "" {
		line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		return strings.TrimRight(fmt.Sprintf("%d %s, %s", status, http.StatusText(status), printable(line)), ", ")
	}
	var down []string
	for _, name := range slices.Sorted(maps.Keys(ready.Dependencies)) {
		if state := ready.Dependencies[name]; state != "ok" {
			down = append(down, name+" is "+state)
		}
	}
	if len(down) == 0 || ready.Status == "terminating" {
		down = append([]string{"it is " + ready.Status}, down...)
	}
	return printable(strings.Join(down, ", "))
}

// printable returns a short text without control characters, because the response may come from any
// server and an operator may read it on a terminal.
func printable(s string) string {
	r := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s))
	return string(r[:min(len(r), maxShown)])
}
