// Package apiclient calls the service over HTTP and checks each response of the API against its OpenAPI description. It
// does not start the service; package fixture does.
package apiclient

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Response is what an HTTP call got.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Decode reads the answer's body, which must be JSON.
func (a Response) Decode(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, into); err != nil {
		t.Fatalf("answer %d is no JSON: %v\n%s", a.Status, err, a.Body)
	}
}

// WantStatus fails the test unless the answer has the status.
func (a Response) WantStatus(t *testing.T, status int) Response {
	t.Helper()
	if a.Status != status {
		t.Fatalf("status is %d, want %d: %s", a.Status, status, a.Body)
	}
	return a
}

// Call sends one request. A body that is not a string or bytes is sent as JSON.
func Call(t *testing.T, method, address string, body any, header ...string) Response {
	t.Helper()
	a, err := TryCall(method, address, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TryCall is call for where a connection may fail. header holds names and values
// in turn. Every answer of the API is checked against its description.
func TryCall(method, address string, body any, header ...string) (Response, error) {
	return TryCallWith(http.DefaultClient, method, address, body, header...)
}

// TryCallWith is try by a client of one's own.
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
		if err := CheckDescribed(req, a); err != nil {
			return Response{}, err
		}
	}
	return a, nil
}
