// Package apiclient calls the service over HTTP. It does not start the service; package fixture does.
package apiclient

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Check is called with each response of the API and its request. Acceptance tests compare them with openapi.yaml.
var Check = func(*http.Request, Response) error { return nil }

// OtherListeners holds the addresses of the listeners that openapi.yaml does not describe.
var OtherListeners sync.Map

// Response is the response to an HTTP call, with its whole body.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Decode decodes the body into a value. It fails the test when the body is not JSON.
func (a Response) Decode(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, into); err != nil {
		t.Fatalf("answer %d is no JSON: %v\n%s", a.Status, err, a.Body)
	}
}

// WantStatus fails the test unless the response has the status, and returns the response.
func (a Response) WantStatus(t *testing.T, status int) Response {
	t.Helper()
	if a.Status != status {
		t.Fatalf("status is %d, want %d: %s", a.Status, status, a.Body)
	}
	return a
}

// Call sends one request and returns the response. It fails the test when the call fails. A body
// that is not a string or bytes is sent as JSON.
func Call(t *testing.T, method, address string, body any, header ...string) Response {
	t.Helper()
	a, err := TryCall(method, address, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TryCall does what Call does, and returns an error instead of failing the test. header holds names
// and values in turn. TryCall checks every response of the API against the OpenAPI description.
func TryCall(method, address string, body any, header ...string) (Response, error) {
	return TryCallWith(http.DefaultClient, method, address, body, header...)
}

// TryCallWith does what TryCall does, with the given client.
func TryCallWith(client *http.Client, method, address string, body any, header ...string) (Response, error) {
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	case []byte:
		content = bytes.NewReader(b)
	default:
		encoded, err := json.Marshal(b)
		if err != nil {
			return Response{}, fmt.Errorf("encode body: %w", err)
		}
		content = bytes.NewReader(encoded)
	}
	req, err := http.NewRequest(method, address, content)
	if err != nil {
		return Response{}, fmt.Errorf("make request: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return Response{}, fmt.Errorf("call: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // the body was read whole
	read, err := io.ReadAll(resp.Body)
	if err != nil {
		return Response{}, fmt.Errorf("read answer: %w", err)
	}
	a := Response{Status: resp.StatusCode, Header: resp.Header, Body: read}
	if _, other := OtherListeners.Load(req.URL.Host); !other {
		if err := Check(req, a); err != nil {
			return Response{}, err
		}
	}
	return a, nil
}
