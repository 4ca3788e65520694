// Package eventsender is the port that sends events to webhooks.
package eventsender

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/registry/event"
)

// Request is one attempt to deliver an event.
type Request struct {
	URL       event.URL
	Type      event.Type
	Body      []byte // JSON
	Signature string // event.Sign
}

// Sender sends requests. It is safe for concurrent use.
type Sender interface {
	// Check returns fault.Invalid, with the name url, for a URL whose host is an address to which
	// Send would not connect, or has only those now. A name that cannot be resolved within
	// a second is accepted.
	Check(ctx context.Context, u event.URL) error
	// Send posts the body to the URL and returns the status of the response, whatever it is. It
	// follows no redirect, and connects to public addresses and to networks that the operator
	// allows, or only to loopback addresses if the URL is one of loopback. It ends after 10
	// seconds, or with the context. It returns fault.Unavailable, with a clause that says why, if
	// there was no response.
	Send(ctx context.Context, r Request) (status int, err error)
}
