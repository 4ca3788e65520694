// Package healthprobe asks a service over HTTP whether it is ready, as the
// healthcheck of a container does. It knows the answers of /ready and
// /healthcheck, and signs in nowhere.
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

// Bounds of what is read and shown of an answer.
const (
	maxAnswer = 64 << 10 // bytes
	maxShown  = 200      // characters
)

// Target is what is asked.
type Target struct {
	URL *url.URL    // with the path
	TLS *tls.Config // how an https address is checked; nil for the system's authorities
}

// Ask returns nil when the answer is 200, and of /ready also says so. Anything else is fault.Unavailable with
// a sentence that names the address and what is down there; the context's error
// when it ended first.
func Check(ctx context.Context, t Target) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.URL.String(), http.NoBody)
	if err != nil {
		return fault.Wrap(fault.Invalid, "", "the address "+t.URL.Redacted()+" cannot be reached", err)
	}
	transport := &http.Transport{TLSClientConfig: t.TLS, DisableKeepAlives: true} // and no proxy: it is this address that counts
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		return t.noResponse(ctx, err)
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	switch {
	case err != nil:
		return t.noResponse(ctx, err)
	case answer.StatusCode != http.StatusOK:
		return fault.Newf(fault.Unavailable, "", "%s is not ready: %s", t.URL.Redacted(), describeResponse(answer.StatusCode, text))
	case path.Base(t.URL.Path) == "ready" && !isReady(text):
		return fault.Newf(fault.Unavailable, "", "%s answers as no tollgate service does: is the address right?", t.URL.Redacted())
	}
	return nil
}

// saysReady reports whether an answer of /ready says that all is well, which a web server that answers everything does not.
func isReady(text []byte) bool {
	var ready struct {
		Status string `json:"status"`
	}
	return json.Unmarshal(text, &ready) == nil && ready.Status == "ok"
}

// silent tells of a service that did not answer.
func (t Target) noResponse(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("ask %s: %w", t.URL.Redacted(), ctx.Err())
	}
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err // the address is said once
	}
	return fault.Wrap(fault.Unavailable, "", t.URL.Redacted()+" does not answer", err)
}

// why tells what an answer says: which dependencies are down, or its own words.
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

// plain keeps what a stranger may have written from steering a terminal.
func printable(s string) string {
	r := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s))
	return string(r[:min(len(r), maxShown)])
}
