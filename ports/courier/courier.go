// Package courier is the port that sends one-time codes and security notices to a person's mailbox
// or telephone. It defines messages and what a delivery promises. It does not create codes and does
// not know how a channel works.
//
// Answers to the port are checked by [github.com/tollgate-dev/tollgate/ports/courier/couriertest].
package courier

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Codes of the faults that a courier returns.
const (
	// CodeInvalidMessage marks a message that breaks a rule of [Message.Validate].
	CodeInvalidMessage fault.Code = "invalid_message"
	// CodeUnsupportedChannel marks a channel that this courier does not serve.
	CodeUnsupportedChannel fault.Code = "unsupported_channel"
	// CodeDeliveryFailed marks a message that was not delivered.
	CodeDeliveryFailed fault.Code = "delivery_failed"
)

// Maximum lengths of the parts of a message, in characters.
const (
	MaxRecipient = 320 // the longest e-mail address: 64 + "@" + 255 (RFC 5321, section 4.5.3.1)
	MaxCode      = 32
	MaxSubject   = 200
	MaxText      = 4000
	MaxLink      = 2000
)

// Channel is the way in which a message reaches its recipient.
type Channel string

// The channels of step-up (contract A-41).
const (
	Email Channel = "email"
	SMS   Channel = "sms"
)

// Known reports whether c is one of the channels above.
func (c Channel) Known() bool { return c == Email || c == SMS }

// Kind is the kind of a message.
type Kind uint8

const (
	// OTP is a one-time code, and the zero value. Code is required, Subject and Text are empty: the
	// courier writes the text.
	OTP Kind = iota
	// Notice reports an event of the account, for example a new device (contract A-51). Text is
	// required, Code is empty.
	Notice
)

// String returns "otp" or "notice".
func (k Kind) String() string {
	if k == Notice {
		return "notice"
	}
	return "otp"
}

// Message is what a courier delivers. Printing it with fmt shows neither recipient nor code nor
// text, so that no log line reveals them by accident.
type Message struct {
	Kind    Kind
	Channel Channel
	// Recipient is an e-mail address or a telephone number, depending on the channel: 1 to 320
	// characters.
	Recipient string
	// Code is the one-time code in plain text: 1 to 32 letters or digits. Only for OTP.
	Code string
	// ExpiresAt is when the code expires. Required for OTP, zero for a notice.
	ExpiresAt time.Time
	// Subject is the subject of a notice, for channels that have one: at most 200 characters, one
	// line.
	Subject string
	// Text is the body of a notice: 1 to 4000 characters.
	Text string
	// Link is the part of the text that lets the person set a password: at most 2000 characters,
	// one line. It is optional, and only for a notice, which is then as secret as a code.
	Link string
}

// Courier delivers messages to a channel.
type Courier interface {
	// Deliver sends m and returns when the channel has accepted it; whether a person reads it is
	// not known. It is safe for concurrent use and keeps no order. It does not retry: a call
	// delivers a message at most once, and may have delivered it when it returns an error.
	//
	// Errors are faults:
	//   - Invalid if m breaks a rule of [Message.Validate]; nothing was sent;
	//   - Unsupported if the courier does not serve m.Channel; nothing was sent;
	//   - Unavailable if the message could not be delivered for any other reason, also if ctx ended;
	//     then errors.Is(err, ctx.Err()) is true.
	//
	// The text of an error must not contain the code or the link.
	Deliver(ctx context.Context, m Message) error
}

// Validate returns fault.Invalid with code invalid_message if a field breaks its rule. It accepts
// any channel; a courier returns Unsupported for one that is not [Channel.Known].
func (m Message) Validate() error {
	if err := checkLine("recipient", m.Recipient, 1, MaxRecipient); err != nil {
		return err
	}
	switch m.Kind {
	case OTP:
		return m.validateOTP()
	case Notice:
		return m.validateNotice()
	}
	return invalidMessage("message kind %d is unknown", m.Kind)
}

// String returns the kind and the channel only.
func (m Message) String() string { return fmt.Sprintf("%s by %s", m.Kind, m.Channel) }

// GoString returns String, so that %#v does not print the secrets either.
func (m Message) GoString() string { return m.String() }

func (m Message) validateOTP() error {
	if n := len(m.Code); n < 1 || n > MaxCode {
		return invalidMessage("code has %d characters, 1 to %d are allowed", n, MaxCode)
	}
	for i := range len(m.Code) {
		if c := m.Code[i]; !isAlphanumeric(c) {
			return invalidMessage("code has a character that is neither letter nor digit")
		}
	}
	if m.ExpiresAt.IsZero() {
		return invalidMessage("a code must have an expiry time")
	}
	if m.Subject != "" || m.Text != "" || m.Link != "" {
		return invalidMessage("a code must not have a subject, text or link")
	}
	return nil
}

func (m Message) validateNotice() error {
	if m.Code != "" || !m.ExpiresAt.IsZero() {
		return invalidMessage("a notice must not have a code or expiry time")
	}
	if err := checkLine("subject", m.Subject, 0, MaxSubject); err != nil {
		return err
	}
	if err := checkLine("link", m.Link, 0, MaxLink); err != nil {
		return err
	}
	if !strings.Contains(m.Text, m.Link) {
		return invalidMessage("the text does not contain the link")
	}
	if n := utf8.RuneCountInString(m.Text); n < 1 || n > MaxText {
		return invalidMessage("text has %d characters, 1 to %d are allowed", n, MaxText)
	}
	if !utf8.ValidString(m.Text) {
		return invalidMessage("text is not valid UTF-8")
	}
	for _, r := range m.Text {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return invalidMessage("text has a control character")
		}
	}
	return nil
}

// checkLine checks a field that is used in a header or a single line, where a line break would
// start another header.
func checkLine(field, s string, least, most int) error {
	if n := utf8.RuneCountInString(s); n < least || n > most {
		return invalidMessage("%s has %d characters, %d to %d are allowed", field, n, least, most)
	}
	if !utf8.ValidString(s) {
		return invalidMessage("%s is not valid UTF-8", field)
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return invalidMessage("%s has a control character", field)
		}
	}
	return nil
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func invalidMessage(format string, args ...any) error {
	return fault.Newf(fault.Invalid, format, args...).WithCode(CodeInvalidMessage)
}
