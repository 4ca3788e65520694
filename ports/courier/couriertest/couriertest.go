// Package couriertest has the contract tests of ports/courier. Every adapter runs them, and through
// the SDK every plugin. They test what all couriers promise, not the wording of a channel.
package couriertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/courier"
)

// parallel is the number of concurrent messages.
const parallel = 16

// Subject is a courier under test.
type Subject struct {
	Courier courier.Courier
	// Channels are the channels that the courier serves; at least one.
	Channels []courier.Channel
	// Delivered returns what was delivered since the courier was opened, in any order. It is nil if
	// deliveries cannot be observed; the suite then tests only the results of calls.
	Delivered func() []Delivery
}

// Delivery is a message as it arrives at its recipient.
type Delivery struct {
	Channel   courier.Channel
	Recipient string
	Code      string // empty for a notice
	Text      string // of a notice: what the recipient reads; the courier may add text around that of the message
}

// Run runs the suite. open returns a fresh courier with nothing delivered yet, and registers its
// own cleanup.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	t.Run("a one-time code is delivered to its recipient", func(t *testing.T) { deliversCode(t, open(t)) })
	t.Run("a notice is delivered to its recipient", func(t *testing.T) { deliversNotice(t, open(t)) })
	t.Run("an invalid message is refused", func(t *testing.T) { refusesInvalid(t, open(t)) })
	t.Run("a message for another channel is refused", func(t *testing.T) { refusesChannel(t, open(t)) })
	t.Run("a call with a cancelled context fails", func(t *testing.T) { obeysCancel(t, open(t)) })
	t.Run("messages are delivered in parallel", func(t *testing.T) { deliversInParallel(t, open(t)) })
}

// Code returns a valid message with a one-time code.
func Code(channel courier.Channel, code string) courier.Message {
	return courier.Message{
		Kind: courier.OTP, Channel: channel, Recipient: recipient(channel), Code: code,
		ExpiresAt: time.Date(2040, time.February, 29, 12, 30, 15, 0, time.UTC),
	}
}

// Notice returns a valid notice.
func Notice(channel courier.Channel) courier.Message {
	return courier.Message{
		Kind: courier.Notice, Channel: channel, Recipient: recipient(channel),
		Subject: "New sign-in — Tollgate", Text: "A new device signed in.\nIf it was not you, change your password.",
	}
}

func recipient(channel courier.Channel) string {
	if channel == courier.SMS {
		return "+15550100"
	}
	return "ada.lovelace+tollgate@example.com"
}

func deliversCode(t *testing.T, s Subject) {
	for i, channel := range s.Channels {
		m := Code(channel, fmt.Sprintf("%06d", i))
		if err := s.Courier.Deliver(t.Context(), m); err != nil {
			t.Fatalf("Deliver(%v) = %v, want none", m, err)
		}
		wantDelivered(t, s, i+1, Delivery{Channel: channel, Recipient: m.Recipient, Code: m.Code})
	}
}

func deliversNotice(t *testing.T, s Subject) {
	for i, channel := range s.Channels {
		m := Notice(channel)
		if err := s.Courier.Deliver(t.Context(), m); err != nil {
			t.Fatalf("Deliver(%v) = %v, want none", m, err)
		}
		wantDelivered(t, s, i+1, Delivery{Channel: channel, Recipient: m.Recipient})
		wantText(t, s, channel, m.Text)
	}
}

// wantText checks that a notice arrived with all its lines, with any line ends and any text around
// them.
func wantText(t *testing.T, s Subject, channel courier.Channel, text string) {
	t.Helper()
	if s.Delivered == nil {
		return
	}
	for _, delivery := range s.Delivered() {
		if delivery.Channel != channel {
			continue
		}
		for line := range strings.SplitSeq(text, "\n") {
			if !strings.Contains(delivery.Text, line) {
				t.Errorf("the notice by %s lacks %q: %q", channel, line, delivery.Text)
			}
		}
	}
}

func refusesInvalid(t *testing.T, s Subject) {
	code, notice := Code(s.Channels[0], "135790"), Notice(s.Channels[0])
	broken := map[string]courier.Message{}
	add := func(name string, m courier.Message, change func(*courier.Message)) {
		change(&m)
		broken[name] = m
	}
	add("no recipient", code, func(m *courier.Message) { m.Recipient = "" })
	add("recipient with line break", code, func(m *courier.Message) { m.Recipient += "\r\nBcc: eve@example.com" })
	add("no code", code, func(m *courier.Message) { m.Code = "" })
	add("no expiry", code, func(m *courier.Message) { m.ExpiresAt = time.Time{} })
	add("code too long", code, func(m *courier.Message) { m.Code = strings.Repeat("7", courier.MaxCode+1) })
	add("notice without text", notice, func(m *courier.Message) { m.Text = "" })
	add("notice with code", notice, func(m *courier.Message) { m.Code = "135790" })
	for name, m := range broken {
		if err := s.Courier.Deliver(t.Context(), m); fault.KindOf(err) != fault.Invalid || err == nil {
			t.Errorf("%s: Deliver = %v, want a fault of kind Invalid", name, err)
		}
	}
	wantDelivered(t, s, 0)
}

func refusesChannel(t *testing.T, s Subject) {
	served := map[courier.Channel]bool{}
	for _, channel := range s.Channels {
		served[channel] = true
	}
	for _, channel := range []courier.Channel{courier.Email, courier.SMS, "pigeon", ""} {
		if served[channel] {
			continue
		}
		err := s.Courier.Deliver(t.Context(), Code(channel, "246802"))
		if err == nil || fault.KindOf(err) != fault.Unsupported {
			t.Errorf("channel %q: Deliver = %v, want a fault of kind Unsupported", channel, err)
		}
	}
	wantDelivered(t, s, 0)
}

func obeysCancel(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := Code(s.Channels[0], "975310")
	err := s.Courier.Deliver(ctx, m)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Deliver under a cancelled context = %v, want one that is context.Canceled", err)
	}
	if err != nil && fault.KindOf(err) != fault.Unavailable {
		t.Errorf("kind = %v, want Unavailable", fault.KindOf(err))
	}
	if err != nil && strings.Contains(err.Error(), m.Code) {
		t.Errorf("error %q shows the code", err)
	}
	if err := s.Courier.Deliver(t.Context(), m); err != nil {
		t.Fatalf("Deliver after a cancelled one = %v, want none", err)
	}
}

func deliversInParallel(t *testing.T, s Subject) {
	var group sync.WaitGroup
	want := make([]Delivery, parallel)
	for i := range parallel {
		m := Code(s.Channels[i%len(s.Channels)], fmt.Sprintf("%06d", 500_000+i))
		want[i] = Delivery{Channel: m.Channel, Recipient: m.Recipient, Code: m.Code}
		group.Go(func() {
			if err := s.Courier.Deliver(t.Context(), m); err != nil {
				t.Errorf("Deliver(%v) = %v, want none", m, err)
			}
		})
	}
	group.Wait()
	wantDelivered(t, s, parallel, want...)
}

// wantDelivered checks that exactly count messages arrived, and each of want among them.
func wantDelivered(t *testing.T, s Subject, count int, want ...Delivery) {
	t.Helper()
	if s.Delivered == nil {
		return
	}
	got := s.Delivered()
	if len(got) != count {
		t.Errorf("%d messages arrived, want %d", len(got), count)
	}
	seen := map[Delivery]int{}
	for _, delivery := range got {
		delivery.Text = "" // wording is the courier's
		seen[delivery]++
	}
	for _, delivery := range want {
		if seen[delivery] == 0 {
			t.Errorf("%+v did not arrive", delivery)
		}
	}
}
