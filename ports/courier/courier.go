// Package courier is the port through which one-time codes and security notices leave Tollgate for a person's mailbox or
// telephone. It says what a message is and what a delivery promises; it neither makes codes nor knows how a channel works.
//
// Answers to the port are checked by [github.com/tollgate-dev/tollgate/ports/courier/couriertest].
package courier

import (
	"context"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Codes of the faults that a courier answers with.
const (
	// CodeInvalidMessage marks a message that breaks a rule of [Message.Validate].
	CodeInvalidMessage fault.Code = "invalid_message"
	// CodeUnsupportedChannel marks a channel that this courier does not serve.
	CodeUnsupportedChannel fault.Code = "unsupported_channel"
	// CodeDeliveryFailed marks a message that was not handed over.
	CodeDeliveryFailed fault.Code = "delivery_failed"
)

// Bounds of a message's parts, in characters.
const (
	MaxRecipient = 320 // the longest e-mail address: 64 + "@" + 255 (RFC 5321, section 4.5.3.1)
	MaxCode      = 32
	MaxSubject   = 200
	MaxText      = 4000
)

// Channel is the way a message takes to its recipient.
type Channel string

// The channels of step-up (contract A-41).
const (
	Email Channel = "email"
	SMS   Channel = "sms"
)

// Known reports whether c is one of the channels above.
func (c Channel) Known() bool { return c == Email || c == SMS }

// Kind tells what a message carries.
type Kind uint8

const (
	// OTP is a one-time code; it is the zero value. Code is required, Subject and Text are empty: the courier words it.
	OTP Kind = iota
	// Notice reports an event of the account, such as a new device (contract A-51). Text is
	// required, Code is empty.
	Notice
)

// String answers "otp" or "notice".
func (k Kind) String() string {
	if k == Notice {
		return "notice"
	}
	return "otp"
}

// Message is what a courier hands over. Printing it with fmt shows neither recipient nor code nor text, so that a careless
// log line gives nothing away.
type Message struct {
	Kind    Kind
	Channel Channel
	// Recipient is an e-mail address or a telephone number, as the channel has it: 1 to 320 characters.
	Recipient string
	// Code is the one-time code in clear: 1 to 32 letters or digits. Only for OTP.
	Code string
	// ExpiresAt is when the code stops to be good. Required for OTP, zero for a notice.
	ExpiresAt time.Time
	// Subject heads a notice where the channel has a place for it; at most 200 characters, one line.
	Subject string
	// Text is the body of a notice: 1 to 4000 characters.
	Text string
}

// Courier hands messages over to a channel.
type Courier interface {
	// Deliver hands m over, and returns once the channel has taken it; whether a person read it is not known. It may be called
	// from many goroutines at once and keeps no order among them. It never tries twice: a message is handed over at most once
	// per call, and after an error it may have been.
	//
	// Errors are faults:
	//   - Invalid when m breaks a rule of [Message.Validate]; nothing was sent;
	//   - Unsupported when the courier does not serve m.Channel; nothing was sent;
	//   - Unavailable when it could not be delivered, for whatever reason, the end of ctx included; then the error also
	//     matches ctx.Err() by errors.Is.
	//
	// No error's text holds the code.
	Deliver(ctx context.Context, m Message) error
}

// Validate checks m against the rules of its fields. The error is a fault of kind Invalid with code invalid_message. A channel
// that is not [Channel.Known] is not its business: the courier answers Unsupported for it.
func (m Message) Validate() error {
	if err := line("recipient", m.Recipient, 1, MaxRecipient); err != nil {
		return err
	}
	switch m.Kind {
	case OTP:
		return m.validateOTP()
	case Notice:
		return m.validateNotice()
	}
	return invalid("message kind %d is unknown", m.Kind)
}

// String names kind and channel only.
func (m Message) String() string { return fmt.Sprintf("%s by %s", m.Kind, m.Channel) }

// GoString is String: %#v keeps the secret too.
func (m Message) GoString() string { return m.String() }

func (m Message) validateOTP() error {
	if n := len(m.Code); n < 1 || n > MaxCode {
		return invalid("code has %d characters, 1 to %d are allowed", n, MaxCode)
	}
	for i := range len(m.Code) {
		if c := m.Code[i]; !alphanumeric(c) {
			return invalid("code has a character that is neither letter nor digit")
		}
	}
	if m.ExpiresAt.IsZero() {
		return invalid("a code needs a time at which it expires")
	}
	if m.Subject != "" || m.Text != "" {
		return invalid("a code has neither subject nor text")
	}
	return nil
}

func (m Message) validateNotice() error {
	if m.Code != "" || !m.ExpiresAt.IsZero() {
		return invalid("a notice has neither code nor expiry")
	}
	if err := line("subject", m.Subject, 0, MaxSubject); err != nil {
		return err
	}
	if n := utf8.RuneCountInString(m.Text); n < 1 || n > MaxText {
		return invalid("text has %d characters, 1 to %d are allowed", n, MaxText)
	}
	if !utf8.ValidString(m.Text) {
		return invalid("text is not valid UTF-8")
	}
	for _, r := range m.Text {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return invalid("text has a control character")
		}
	}
	return nil
}

// line checks a field that goes into a header or a single line, where a line break would start another header.
func line(field, s string, least, most int) error {
	if n := utf8.RuneCountInString(s); n < least || n > most {
		return invalid("%s has %d characters, %d to %d are allowed", field, n, least, most)
	}
	if !utf8.ValidString(s) {
		return invalid("%s is not valid UTF-8", field)
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return invalid("%s has a control character", field)
		}
	}
	return nil
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func invalid(format string, args ...any) error {
	return fault.Newf(fault.Invalid, CodeInvalidMessage, format, args...)
}
