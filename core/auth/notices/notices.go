// Package notices sends people messages about events of their account, for example a new device, a
// lock or a changed password. Notices are best effort: they never delay a request or make it fail,
// and are sent after the event is stored. The use cases report the events. Package stepup sends
// one-time codes.
package notices

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/report"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

const (
	queueCapacity = 1000 // waiting notices; more are dropped
	workers       = 4    // notices that are sent at the same time
)

// Kind is the kind of an event.
type Kind string

// The kinds.
const (
	NewDevice     Kind = "new_device"     // a sign-in from a device that was not known
	SignInLocked  Kind = "sign_in_locked" // too many failures to sign in
	ChangesLocked Kind = "changes_locked" // too many failures to confirm a change of the account
	Replay        Kind = "replay"         // a refresh token was used again, and all sessions were ended

	AuthenticatorEnrolled  Kind = "authenticator_enrolled"  // an authenticator was enrolled; it is not active yet
	AuthenticatorActivated Kind = "authenticator_activated" // an authenticator was activated
	AuthenticatorDisabled  Kind = "authenticator_disabled"  // the authenticator was disabled
	AuthenticatorRemoved   Kind = "authenticator_removed"   // an operator removed the authenticator
	AuthenticatorAdded     Kind = "authenticator_added"     // a further authenticator was activated
	AuthenticatorDropped   Kind = "authenticator_dropped"   // one of several authenticators was removed
	RecoveryCodesRenewed   Kind = "recovery_codes_renewed"  // there are other recovery codes
	PasswordChanged        Kind = "password_changed"        // the password was changed in a session

	BreakGlass       Kind = "break_glass"       // somebody signed in with a password that a command had admitted
	BreakGlassOpened Kind = "break_glass_open"  // a command has admitted a password
	PasskeyAdded     Kind = "passkey_added"     // a passkey was added
	PasskeyRemoved   Kind = "passkey_removed"   // a passkey was removed
	PasskeySuspended Kind = "passkey_suspended" // there seems to be a copy of a passkey

	CompanyLinked   Kind = "company_linked"   // a company sign-in was linked to the account
	CompanyUnlinked Kind = "company_unlinked" // a company sign-in was unlinked from the account

	PhoneChanged  Kind = "phone_changed"  // an operator changed the telephone number
	OperatorAdded Kind = "operator_added" // somebody else can operate now

	PublisherUsed   Kind = "publisher_used"   // a policy of the person was used for the first time, or with a new key
	PublisherFailed Kind = "publisher_failed" // a proof for a policy of the person failed, or its key is gone

	ReviewsWaiting   Kind = "reviews_waiting"   // documents wait until the person approves or rejects them
	ReviewApproved   Kind = "review_approved"   // what the person submitted was approved
	ReviewRejected   Kind = "review_rejected"   // what the person submitted was rejected
	ChangesRequested Kind = "changes_requested" // the person should change what the person submitted
	ToolsApproved    Kind = "tools_approved"    // a tool list that the person sent was approved
	ToolsRejected    Kind = "tools_rejected"    // a tool list that the person sent was rejected

	RightGranted  Kind = "right_granted"  // an operator granted what the person asked for
	RightDeclined Kind = "right_declined" // an operator declined it

	Quarantined  Kind = "quarantined"   // what the person has published is in quarantine
	ToolsChanged Kind = "tools_changed" // what the person has published, or may review, shows other tools

	TokenEnds  Kind = "token_ends"  // a token of the person, or of a service account, ends soon
	TokenAdded Kind = "token_added" // a token was made in a session of the person

	DeviceTrusted Kind = "device_trusted" // a session below FULL_TRUST marked a device TRUSTED

	// The kinds of events caused by a session below LIMITED_TRUST, which requires a password only.
	DeviceRevoked   Kind = "device_revoked"   // a device was revoked
	DeviceUntrusted Kind = "device_untrusted" // a device was marked UNTRUSTED, and sessions on it were lowered
	SessionEnded    Kind = "session_ended"    // another session was ended

	// The kinds of messages with a link, which are no notices: FormatLink.
	Invitation   Kind = "invitation"    // the link sets the first password
	PasswordLink Kind = "password_link" // the link sets another password
)

// Event is an event of a person's account.
type Event struct {
	Kind    Kind
	UserID  auth.UserID
	At      time.Time
	Address netip.Addr // the zero value if it is not known
	// Browser and OS are as the user agent names them. If both are empty, those of the device
	// DeviceID are used.
	Browser, OS string
	DeviceID    auth.DeviceID
	// Publisher and Servers are for the kinds of publishers: what was proved, and the pattern of
	// the policy. For the kinds of reviews, Servers is what is reviewed; for BreakGlassOpened, the person and until when.
	Publisher, Servers string
	Token              string // which token, and when it ends
	// Comment is what a reviewer or an operator has written about it, for Quarantined the reason, for ToolsChanged the tools, and Pages are the pages of the
	// console where one goes on.
	Comment string
	Pages   []Page
}

// Page is a page of the console: what it is about, and its path.
type Page struct{ Name, Path string }

// Couriers deliver notices by channel; a nil one is not configured.
type Couriers struct {
	Email courier.Courier
	SMS   courier.Courier
}

// Ports are the dependencies of a Notifier. The stores have the address of the person and the name
// of the device.
type Ports struct {
	Accounts authstore.Accounts
	Devices  authstore.Devices

	Couriers Couriers
	Throttle throttle.Throttle
	Reporter report.Reporter
	Waiter   clock.Waiter
}

// The events of a Notifier.
type (
	// Sent means that a courier has accepted a notice.
	Sent struct{ Kind Kind }
	// Withheld means that a notice was not sent because the person no longer has an account, has no
	// address for a configured channel, or has reached the limit.
	Withheld struct{ Kind Kind }
	// Failed means that a notice could not be delivered.
	Failed struct {
		Kind Kind
		Err  error
	}
	// Dropped means that notices were dropped because the queue was full or the process stopped.
	Dropped struct{ Count uint64 }
)

// Notifier queues notices and sends them. The methods of a nil Notifier are no-ops. It is safe for
// concurrent use.
type Notifier struct {
	product string
	address string
	ports   Ports
	queue   chan Event
	dropped atomic.Uint64
}

// New returns a Notifier whose messages name the service product. Their links begin with address,
// or are paths if it is empty.
func New(product, address string, p Ports) *Notifier {
	address = strings.TrimSuffix(address, "/")
	return &Notifier{product: product, address: address, ports: p, queue: make(chan Event, queueCapacity)}
}

// Notify queues a notice of an event and returns at once. It drops the notice if the queue is full.
// The caller must have stored the event, and must call Notify for existing accounts only: a guess
// at an address must not lead to a message. Service accounts and operator commands, which are no
// user, have no address.
func (n *Notifier) Notify(event Event) {
	if _, service := auth.Owner(event.UserID).Service(); n == nil || service || event.UserID == "" {
		return
	}
	select {
	case n.queue <- event:
	default:
		n.dropped.Add(1)
	}
}

// QueueLength returns the number of notices in the queue.
func (n *Notifier) QueueLength() int {
	if n == nil {
		return 0
	}
	return len(n.queue)
}

// Run sends queued notices until the context ends. Notices that are still in the queue are dropped.
func (n *Notifier) Run(ctx context.Context) {
	if n == nil {
		return
	}
	var group sync.WaitGroup
	for range workers {
		group.Go(func() { n.runWorker(ctx) })
	}
	group.Wait()
	for {
		select {
		case <-n.queue:
			n.dropped.Add(1)
		default:
			n.reportDropped()
			return
		}
	}
}

func (n *Notifier) runWorker(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-n.queue:
			n.reportDropped()
			n.deliverEvent(ctx, event)
		}
	}
}

func (n *Notifier) reportDropped() {
	if count := n.dropped.Swap(0); count > 0 {
		n.ports.Reporter.Report(Dropped{count})
	}
}

// retryDelays returns how long to wait before each retry of a notice that could not be delivered.
func retryDelays() []time.Duration {
	return []time.Duration{2 * time.Second, 10 * time.Second, time.Minute}
}

// deliverEvent tries to deliver a notice until it succeeds, the error is not transient or no retry
// is left. A courier may return an error after it has delivered, so a person may get a notice
// twice.
func (n *Notifier) deliverEvent(ctx context.Context, event Event) {
	d := delivery{Event: event}
	sent, err := n.tryDelivery(ctx, &d)
	for _, pause := range retryDelays() {
		if !fault.Is(err, fault.Unavailable) { // a retry would not succeed
			break
		}
		n.ports.Waiter.Wait(ctx, pause)
		if ctx.Err() != nil {
			break
		}
		sent, err = n.tryDelivery(ctx, &d)
	}
	switch {
	case err != nil:
		n.ports.Reporter.Report(Failed{event.Kind, err})
	case sent:
		n.ports.Reporter.Report(Sent{event.Kind})
	default:
		n.ports.Reporter.Report(Withheld{event.Kind})
	}
}

// delivery is a notice that is being sent.
type delivery struct {
	Event
	counted bool // counted against the limit already
}

// tryDelivery sends a notice once and reports whether it was sent. It is not sent to a person who
// no longer has an account, has no address for a configured channel, or has reached the limit for
// this kind.
func (n *Notifier) tryDelivery(ctx context.Context, d *delivery) (sent bool, err error) {
	account, err := n.ports.Accounts.Get(ctx, d.UserID)
	if fault.Is(err, fault.NotFound) || err == nil && !account.State.HasSignIn() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	by, m := n.selectCourier(&account)
	if by == nil {
		return false, nil
	}
	if within, err := n.withinLimit(ctx, d); err != nil || !within {
		return false, err
	}
	if err := n.loadDevice(ctx, &d.Event); err != nil {
		return false, err
	}
	m.Subject, m.Text = d.formatMessage(n.product, n.address, m.Channel)
	err = by.Deliver(ctx, m)
	return err == nil, err
}

// selectCourier returns the courier for an account and a message with the recipient: e-mail if it
// is configured, otherwise SMS if the account has a telephone number. The courier is nil if there
// is no way to reach the person.
func (n *Notifier) selectCourier(account *auth.Account) (courier.Courier, courier.Message) {
	switch c := n.ports.Couriers; {
	case c.Email != nil:
		return c.Email, courier.Message{Kind: courier.Notice, Channel: courier.Email, Recipient: string(account.Email)}
	case c.SMS != nil && account.Phone != "":
		return c.SMS, courier.Message{Kind: courier.Notice, Channel: courier.SMS, Recipient: account.Phone}
	}
	return nil, courier.Message{}
}

// uncounted are the kinds without a limit: what waits, which comes once a minute at most, and decisions, of which each
// answers something that the person has submitted.
var uncounted = map[Kind]bool{
	ReviewsWaiting: true, ReviewApproved: true, ReviewRejected: true, ChangesRequested: true, ToolsApproved: true, ToolsRejected: true,
}

// withinLimit reports whether the limit allows a notice, and counts it once. Each kind has its own
// count, so that a stranger who gets an account locked again and again cannot suppress the notice
// of a new device.
func (n *Notifier) withinLimit(ctx context.Context, d *delivery) (bool, error) {
	if d.counted || uncounted[d.Kind] {
		return true, nil
	}
	v, err := n.ports.Throttle.Try(ctx, throttle.NoticeUser, string(d.Kind)+" "+string(d.UserID))
	if err != nil {
		return false, err
	}
	d.counted = v.Allowed || v.Unlimited
	return d.counted, nil
}

// loadDevice sets the browser and operating system of an event from its device, if the event does
// not have them.
func (n *Notifier) loadDevice(ctx context.Context, event *Event) error {
	if event.Browser != "" || event.OS != "" || event.DeviceID == "" {
		return nil
	}
	device, err := n.ports.Devices.Get(ctx, event.DeviceID)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	event.Browser, event.OS = device.Browser, device.OS
	return nil
}
