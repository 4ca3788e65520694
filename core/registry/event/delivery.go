package event

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// maxProblem is the greatest length of Delivery.Problem in bytes.
const maxProblem = 300

// State is the state of a delivery.
type State string

// The states.
const (
	Pending   State = "pending"   // it will be tried, now or later
	Delivered State = "delivered" // the receiver answered with a status from 200 to 299
	Dead      State = "dead"      // it was given up; an operator may deliver it again
)

// ParseState returns the state with the given name, or fault.Invalid.
func ParseState(s string) (State, error) {
	return fault.OneOf("state", s, Pending, Delivered, Dead)
}

// Delivery is an event on its way to one webhook. Times are UTC with microseconds.
type Delivery struct {
	// Sequence is the order of the deliveries of one server: a later event has a greater one. The
	// store sets it.
	Sequence int64
	Webhook  WebhookID
	Event    ID
	Type     Type
	Name     registry.Name
	Version  registry.Version // the zero version for a whole server
	Body     []byte           // of each request, byte for byte
	Urgent   bool             // it is sent before all that are not

	State State
	// Since begins the time in which the delivery is tried: when the event happened, or when an
	// operator last had it delivered again.
	Since    time.Time
	Attempts int       // since then
	NextAt   time.Time // of the next attempt; not before it
	EndedAt  time.Time // when it was delivered or given up; zero while it is pending
	Problem  string    // of the last attempt; empty if it succeeded, and before the first

	// Last is the last attempt, also one before the delivery was made pending again.
	Last Attempt
}

// Attempt is one request to a webhook.
type Attempt struct {
	At     time.Time // when it ended; zero before the first
	Status int       // of the response; 0 without one
	Took   time.Duration
}

// NewDelivery returns the pending delivery of an event. body is the request that is sent.
func NewDelivery(w WebhookID, e Event, body []byte) Delivery {
	return Delivery{
		Webhook: w, Event: e.ID, Type: e.Type, Name: e.Name, Version: e.Version, Body: body,
		State: Pending, Since: e.Time, NextAt: e.Time,
	}
}

// MaxTests is the number of tests of a webhook that are kept.
const MaxTests = 20

// NewTest returns the delivery of an event of the type Test, which is sent once: delivered, or given up
// with a problem.
func NewTest(w WebhookID, last Attempt, problem string) Delivery {
	last.At = last.At.UTC().Truncate(time.Microsecond)
	d := Delivery{
		Webhook: w, Type: Test, State: Delivered, Attempts: 1, Last: last, Problem: registry.ClipBytes(problem, maxProblem),
	}
	if problem != "" {
		d.State = Dead
	}
	return d
}

// Succeed returns the delivery after an attempt that the receiver accepted.
func (d Delivery) Succeed(now time.Time) Delivery {
	now = now.UTC().Truncate(time.Microsecond)
	d.State, d.EndedAt, d.Problem = Delivered, now, ""
	d.Attempts++
	return d
}

// Fail returns the delivery after an attempt that failed. It is dead if it was tried for the time
// of the schedule; the last attempt is not before the end of that time.
func (d Delivery) Fail(s Schedule, problem string, now time.Time) Delivery {
	now = now.UTC().Truncate(time.Microsecond)
	d.Attempts++
	d.Problem = registry.ClipBytes(problem, maxProblem)
	end := d.Since.Add(s.For)
	if !now.Before(end) {
		d.State, d.EndedAt = Dead, now
		return d
	}
	d.NextAt = now.Add(s.Delay(d.Attempts))
	if d.NextAt.After(end) {
		d.NextAt = end
	}
	return d
}

// Condition is what became of the deliveries to one webhook.
type Condition struct {
	Pending     int
	Dead        int
	LastSuccess time.Time // zero before the first
	LastProblem string    // of the last attempt that failed; otherwise empty
	LastFailure time.Time // when that was
	// Newest are the newest dead deliveries without their bodies, at most MaxListed.
	Newest []Delivery
}

// MaxListed is the greatest number of dead deliveries in a Condition.
const MaxListed = 100

// Schedule says when deliveries are tried again.
type Schedule struct {
	// First is the time from the first attempt to the second. It doubles with each attempt, up to
	// an hour, or First if that is longer.
	First time.Duration
	// For is how long a delivery is tried.
	For time.Duration
}

// The bounds of a schedule.
const (
	minRetry = time.Second
	maxRetry = 30 * 24 * time.Hour
	maxDelay = time.Hour // between two attempts, unless First is longer
)

// Validate returns an error that begins with the name of the first field that is out of range.
func (s Schedule) Validate() error {
	if s.For < minRetry || s.For > maxRetry {
		return fmt.Errorf("For: %v is not between %v and %v", s.For, minRetry, maxRetry)
	}
	return nil
}

// Delay returns the time from an attempt, the first of which is 1, to the next one.
func (s Schedule) Delay(attempt int) time.Duration {
	bound := max(s.First, maxDelay)
	delay := s.First
	for range attempt - 1 {
		if delay >= bound/2 {
			return bound
		}
		delay *= 2
	}
	return delay
}

// Sign returns the signature of a request that is sent at a time: "t=UNIX,v1=HEX", where HEX is the
// HMAC-SHA-256 of the Unix time, a dot and the body, with the text of the secret as the key
// (contract C-53).
func Sign(s Secret, at time.Time, body []byte) string {
	unix := strconv.FormatInt(at.Unix(), 10)
	h := hmac.New(sha256.New, []byte(s))
	_, _ = h.Write([]byte(unix + ".")) // a hash never fails to write
	_, _ = h.Write(body)               // likewise
	return "t=" + unix + ",v1=" + hex.EncodeToString(h.Sum(nil))
}
