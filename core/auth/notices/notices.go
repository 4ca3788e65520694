// Package notices sends people messages about what happened to their account, such as a new device, a lock or a change of what
// they sign in with. A notice never
// keeps an act waiting and never makes it fail: it is best effort, and goes out after what it tells of is stored. What happened is
// told by the use cases where it happens; codes are the business of stepup.
package notices

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

const (
	capacity = 1000 // notices that wait; more are dropped
	clerks   = 4    // notices under way at once
)

// Kind is what happened.
type Kind string

// The kinds.
const (
	NewDevice     Kind = "new_device"     // a sign-in from a device that was not known
	SignInLocked  Kind = "sign_in_locked" // too many failures to sign in
	ChangesLocked Kind = "changes_locked" // too many failures to confirm a change of the account
	Replay        Kind = "replay"         // a refresh token was used again, and all sessions were ended

	AuthenticatorEnrolled  Kind = "authenticator_enrolled"  // an authenticator was enrolled; it does not count yet
	AuthenticatorActivated Kind = "authenticator_activated" // an authenticator was activated
	AuthenticatorDisabled  Kind = "authenticator_disabled"  // the authenticator was disabled
	PasswordChanged        Kind = "password_changed"        // the password was changed in a session

	// The kinds of what a session below LIMITED_TRUST did, for which a password suffices.
	DeviceRevoked   Kind = "device_revoked"   // a device was revoked
	DeviceUntrusted Kind = "device_untrusted" // a device was marked UNTRUSTED, and sessions on it were lowered
	SessionEnded    Kind = "session_ended"    // another session was ended
)

// Happening is something that happened to a person's account.
type Happening struct {
	Kind    Kind
	UserID  auth.UserID
	At      time.Time
	Address netip.Addr // the zero value when it is not known
	// Browser and OS are what the user agent says of the device; where both are empty, they are those of the device DeviceID.
	Browser, OS string
	DeviceID    auth.DeviceID
}

// Couriers deliver notices by channel; one that is nil is not set up.
type Couriers struct {
	Email courier.Courier
	SMS   courier.Courier
}

// Ports are the dependencies of notices. The stores say whom to notify, and about which device.
type Ports struct {
	Accounts authstore.Accounts
	Devices  authstore.Devices

	Couriers Couriers
	Throttle throttle.Throttle
	Reporter Reporter
	// Wait returns after a time, or when the context ends.
	Wait func(ctx context.Context, d time.Duration)
}

// Reporter hears what became of each notice. Its methods are called from many goroutines at once.
type Reporter interface {
	// Sent tells that a courier has taken a notice.
	Sent(kind Kind)
	// Withheld tells of a notice that was not to go out: the person has no account any more, no way to be reached, or had as many
	// as the limit allows.
	Withheld(kind Kind)
	// Failed tells that a notice could not be delivered.
	Failed(kind Kind, err error)
	// Dropped tells how many notices there was no room or no time for.
	Dropped(count uint64)
}

// Desk takes notices in and sends them out. A nil desk tells nobody. It is safe for concurrent use.
type Desk struct {
	product string
	ports   Ports
	queue   chan Happening
	dropped atomic.Uint64
}

// New returns a desk that speaks of the service by the name of product.
func New(product string, p Ports) *Desk {
	return &Desk{product: product, ports: p, queue: make(chan Happening, capacity)}
}

// Tell takes a happening in, and returns at once. It is called after the happening is stored, and only for a person who exists:
// a stranger's guess at an address leads to no message.
func (d *Desk) Tell(h Happening) {
	if d == nil {
		return
	}
	select {
	case d.queue <- h:
	default:
		d.dropped.Add(1)
	}
}

// Waiting returns how many notices wait for a clerk.
func (d *Desk) Waiting() int {
	if d == nil {
		return 0
	}
	return len(d.queue)
}

// Run sends out what is told, until the context ends. What waits then is dropped.
func (d *Desk) Run(ctx context.Context) {
	if d == nil {
		return
	}
	var group sync.WaitGroup
	for range clerks {
		group.Go(func() { d.serve(ctx) })
	}
	group.Wait()
	for {
		select {
		case <-d.queue:
			d.dropped.Add(1)
		default:
			d.reportDropped()
			return
		}
	}
}

func (d *Desk) serve(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case h := <-d.queue:
			d.reportDropped()
			d.send(ctx, h)
		}
	}
}

func (d *Desk) reportDropped() {
	if n := d.dropped.Swap(0); n > 0 {
		d.ports.Reporter.Dropped(n)
	}
}

// pauses returns how long to wait before each further try of a notice that could not be delivered.
func pauses() []time.Duration { return []time.Duration{2 * time.Second, 10 * time.Second, time.Minute} }

// send tries until the notice is delivered or there is no use in trying. A courier may have delivered what it failed to: a person
// may get a notice twice.
func (d *Desk) send(ctx context.Context, h Happening) {
	e := errand{Happening: h}
	sent, err := d.try(ctx, &e)
	for _, pause := range pauses() {
		if err == nil || !passing(err) {
			break
		}
		d.ports.Wait(ctx, pause)
		if ctx.Err() != nil {
			break
		}
		sent, err = d.try(ctx, &e)
	}
	switch {
	case err != nil:
		d.ports.Reporter.Failed(h.Kind, err)
	case sent:
		d.ports.Reporter.Sent(h.Kind)
	default:
		d.ports.Reporter.Withheld(h.Kind)
	}
}

// passing tells a failure that a later try may not meet.
func passing(err error) bool { return fault.Is(err, fault.Unavailable) }

// errand is a notice on its way.
type errand struct {
	Happening
	counted bool // within the limit already
}

// try sends a notice once. Nobody is told who has no account any more, no way to be reached, or more notices of the kind than
// the limit allows.
func (d *Desk) try(ctx context.Context, e *errand) (sent bool, err error) {
	account, err := d.ports.Accounts.Get(ctx, e.UserID)
	if fault.Is(err, fault.NotFound) || err == nil && account.State == auth.AccountDisabled {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	by, m := d.route(&account)
	if by == nil {
		return false, nil
	}
	if within, err := d.within(ctx, e); err != nil || !within {
		return false, err
	}
	if err := d.recognise(ctx, &e.Happening); err != nil {
		return false, err
	}
	m.Subject, m.Text = e.words(d.product, m.Channel)
	err = by.Deliver(ctx, m)
	return err == nil, err
}

// route is by e-mail where there is a courier for it, else by SMS to those who have a telephone number.
func (d *Desk) route(account *auth.Account) (courier.Courier, courier.Message) {
	switch c := d.ports.Couriers; {
	case c.Email != nil:
		return c.Email, courier.Message{Kind: courier.Notice, Channel: courier.Email, Recipient: string(account.Email)}
	case c.SMS != nil && account.Phone != "":
		return c.SMS, courier.Message{Kind: courier.Notice, Channel: courier.SMS, Recipient: account.Phone}
	}
	return nil, courier.Message{}
}

// within counts a notice once. Each kind is counted apart, so that a stranger who has an account locked again and again cannot
// use up the notice of a new device.
func (d *Desk) within(ctx context.Context, e *errand) (bool, error) {
	if e.counted {
		return true, nil
	}
	v, err := d.ports.Throttle.Try(ctx, throttle.NoticeUser, string(e.Kind)+" "+string(e.UserID))
	if err != nil {
		return false, err
	}
	e.counted = v.Allowed || v.Unlimited
	return e.counted, nil
}

// recognise reads the device where the happening does not say what it is.
func (d *Desk) recognise(ctx context.Context, h *Happening) error {
	if h.Browser != "" || h.OS != "" || h.DeviceID == "" {
		return nil
	}
	device, err := d.ports.Devices.Get(ctx, h.DeviceID)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	h.Browser, h.OS = device.Browser, device.OS
	return nil
}
