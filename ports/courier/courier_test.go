package courier_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/courier"
)

func otp(change func(*courier.Message)) courier.Message {
	m := courier.Message{
		Channel: courier.Email, Recipient: "ada@example.com", Code: "042917", ExpiresAt: time.Unix(1700000000, 0),
	}
	change(&m)
	return m
}

func notice(change func(*courier.Message)) courier.Message {
	m := courier.Message{
		Kind: courier.Notice, Channel: courier.SMS, Recipient: "+15550100", Subject: "New device",
		Text: "Hello.\n\tBye.",
	}
	change(&m)
	return m
}

func TestValidate(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		message courier.Message
		want    string // part of the message; empty if the message is valid
	}{
		"code": {otp(func(*courier.Message) {}), ""},
		"longest code": {
			otp(func(m *courier.Message) { m.Code = strings.Repeat("z", courier.MaxCode) }), "",
		},
		"longest recipient": {
			otp(func(m *courier.Message) { m.Recipient = strings.Repeat("é", courier.MaxRecipient) }), "",
		},
		"no recipient": {otp(func(m *courier.Message) { m.Recipient = "" }), "recipient has 0"},
		"recipient too long": {
			otp(func(m *courier.Message) { m.Recipient = strings.Repeat("x", 321) }), "recipient has 321",
		},
		"recipient with header": {
			otp(func(m *courier.Message) { m.Recipient = "a@b.c\r\nBcc: d@e.f" }), "recipient has a control",
		},
		"recipient not UTF-8": {
			otp(func(m *courier.Message) { m.Recipient = "a\xff@b.c" }), "recipient is not valid UTF-8",
		},
		"no code":             {otp(func(m *courier.Message) { m.Code = "" }), "code has 0"},
		"code too long":       {otp(func(m *courier.Message) { m.Code = strings.Repeat("1", 33) }), "code has 33"},
		"code with a space":   {otp(func(m *courier.Message) { m.Code = "042 917" }), "neither letter nor digit"},
		"code without expiry": {otp(func(m *courier.Message) { m.ExpiresAt = time.Time{} }), "expiry time"},
		"code with text":      {otp(func(m *courier.Message) { m.Text = "x" }), "must not have a subject, text or link"},
		"code with subject": {
			otp(func(m *courier.Message) { m.Subject = "x" }), "must not have a subject, text or link",
		},
		"kind unknown":           {otp(func(m *courier.Message) { m.Kind = 9 }), "kind 9"},
		"notice":                 {notice(func(*courier.Message) {}), ""},
		"notice without subject": {notice(func(m *courier.Message) { m.Subject = "" }), ""},
		"longest notice": {
			notice(func(m *courier.Message) { m.Text = strings.Repeat("é", courier.MaxText) }), "",
		},
		"notice too long": {
			notice(func(m *courier.Message) { m.Text = strings.Repeat("é", courier.MaxText+1) }), "text has 4001",
		},
		"notice without text": {notice(func(m *courier.Message) { m.Text = "" }), "text has 0"},
		"notice with NUL":     {notice(func(m *courier.Message) { m.Text = "a\x00b" }), "text has a control"},
		"notice not UTF-8":    {notice(func(m *courier.Message) { m.Text = "a\xffb" }), "text is not valid UTF-8"},
		"notice with code": {
			notice(func(m *courier.Message) { m.Code = "1" }), "must not have a code or expiry time",
		},
		"notice with expiry": {
			notice(func(m *courier.Message) { m.ExpiresAt = time.Unix(1, 0) }), "must not have a code or expiry time",
		},
		"subject with line break": {notice(func(m *courier.Message) { m.Subject = "a\nb" }), "subject has a control"},
		"subject too long": {
			notice(func(m *courier.Message) { m.Subject = strings.Repeat("x", 201) }), "subject has 201",
		},
		"unknown channel is valid": {otp(func(m *courier.Message) { m.Channel = "pigeon" }), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.message.Validate()
			if c.want == "" {
				if err != nil {
					t.Fatalf("Validate() = %v, want nil", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("Validate() = %v, want a message with %q", err, c.want)
			}
			if kind := fault.KindOf(err); kind != fault.Invalid {
				t.Errorf("kind = %v, want Invalid", kind)
			}
		})
	}
}

func TestPrintedMessageKeepsItsSecrets(t *testing.T) {
	t.Parallel()
	m := otp(func(*courier.Message) {})
	n := notice(func(*courier.Message) {})
	printed := fmt.Sprintf("%v %+v %#v %s %v %+v %#v", m, m, m, m, &n, n, n)
	for _, secret := range []string{m.Code, m.Recipient, n.Text, n.Recipient} {
		if strings.Contains(printed, secret) {
			t.Errorf("printed message %q shows %q", printed, secret)
		}
	}
	if !strings.Contains(printed, "otp by email") || !strings.Contains(printed, "notice by sms") {
		t.Errorf("printed message %q does not name kind and channel", printed)
	}
}

func TestKnown(t *testing.T) {
	t.Parallel()
	for channel, want := range map[courier.Channel]bool{
		courier.Email: true, courier.SMS: true, "": false, "EMAIL": false, "pigeon": false,
	} {
		if got := channel.Known(); got != want {
			t.Errorf("Channel(%q).Known() = %v, want %v", channel, got, want)
		}
	}
}
