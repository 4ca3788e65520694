package httpconn

import "time"

// Timeouts are how long a client may take. 0 means no bound.
type Timeouts struct {
	Request  time.Duration // to send a request
	Response time.Duration // to receive a response
	Idle     time.Duration // until its next request
}

// deadline is the deadline of one direction of a connection. Its zero value is none. To set it for
// each request would cost as much as to find the response.
type deadline struct {
	at    time.Time
	begun bool // what is received or sent now
}

// begin begins the time of what is received or sent next, unless it has begun. It leaves a deadline
// that is at most a 64th of the time too early.
func (d *deadline) begin(timeout time.Duration, set func(time.Time) error) error {
	if timeout == 0 || d.begun {
		return nil
	}
	d.begun = true
	next := time.Now().Add(timeout)
	if later := next.Sub(d.at); later >= 0 && later <= timeout/64 {
		return nil
	}
	d.at = next
	return set(next)
}
