package sdktest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	pluginv1 "github.com/tollgate-dev/tollgate/plugins/sdk/proto/tollgate/plugin/v1"
)

// parallelMessages is the number of concurrent messages.
const parallelMessages = 16

// Courier is a courier plugin under test.
type Courier struct {
	Plugin sdk.Courier
	// Delivered must return the messages that have arrived at the destination since the plugin was
	// opened. Leave it nil if the test cannot observe the destination.
	Delivered func() []Delivery
}

// Delivery is a message as it arrived at the destination.
type Delivery struct {
	Channel   sdk.Channel
	Recipient string
	Code      string // empty for a notice
	// of a notice: the text that the recipient reads; the courier may have added text around
	// Tollgate's
	Text string
}

// courierTest is a courier with the host that calls it.
type courierTest struct {
	host
	delivered func() []Delivery // nil if deliveries cannot be observed
}

// RunCourier runs the contract tests for couriers. open must return a new plugin that has delivered
// nothing, and register its own cleanup.
func RunCourier(t *testing.T, open func(t *testing.T) Courier) {
	t.Helper()
	for name, run := range map[string]func(*testing.T, courierTest){
		"a code is delivered":                            deliverCode,
		"a notice is delivered":                          deliverNotice,
		"an incomplete message is refused":               refuseIncomplete,
		"a channel that is not supported is refused":     refuseChannel,
		"a call whose context has ended is not answered": deliverAfterCancel,
		"messages are delivered in parallel":             deliverInParallel,
	} {
		t.Run(name, func(t *testing.T) {
			under := open(t)
			c := courierTest{
				connectPlugin(t, sdk.CourierPlugin(under.Plugin), pluginv1.Kind_KIND_COURIER), under.Delivered,
			}
			if len(c.channels()) == 0 {
				t.Fatal("the courier lists no channel, it must list email or sms")
			}
			run(t, c)
		})
	}
}

func newCode(channel sdk.Channel, code string) sdk.Message {
	return sdk.Message{
		Kind: sdk.OTP, Channel: channel, Recipient: recipient(channel), Code: code,
		ExpiresAt: time.Date(2040, time.February, 29, 12, 30, 15, 0, time.UTC),
	}
}

func newNotice(channel sdk.Channel) sdk.Message {
	return sdk.Message{
		Kind: sdk.Notice, Channel: channel, Recipient: recipient(channel),
		Subject: "New sign-in — Tollgate", Text: "A new device signed in.\nIf it was not you, change your password.",
	}
}

func recipient(channel sdk.Channel) string {
	if channel == sdk.SMS {
		return "+15550100"
	}
	return "ada.lovelace+tollgate@example.com"
}

func deliverCode(t *testing.T, c courierTest) {
	for i, channel := range c.channels() {
		m := newCode(channel, fmt.Sprintf("%06d", i))
		if err := c.deliver(t.Context(), m); err != nil {
			t.Fatalf("Deliver by %s = %v, want no error", channel, err)
		}
		c.wantDelivered(t, i+1, Delivery{Channel: channel, Recipient: m.Recipient, Code: m.Code})
	}
}

func deliverNotice(t *testing.T, c courierTest) {
	for i, channel := range c.channels() {
		m := newNotice(channel)
		if err := c.deliver(t.Context(), m); err != nil {
			t.Fatalf("Deliver by %s = %v, want no error", channel, err)
		}
		c.wantDelivered(t, i+1, Delivery{Channel: channel, Recipient: m.Recipient})
		c.wantText(t, channel, m.Text)
	}
}

// wantText checks that a notice arrived with all its lines, with any line ends and any text around
// them.
func (c courierTest) wantText(t *testing.T, channel sdk.Channel, text string) {
	t.Helper()
	if c.delivered == nil {
		return
	}
	for _, delivery := range c.delivered() {
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

func refuseIncomplete(t *testing.T, c courierTest) {
	code, notice := newCode(c.channels()[0], "135790"), newNotice(c.channels()[0])
	noRecipient := code
	noRecipient.Recipient, code.Code, notice.Text = "", "", ""
	for name, m := range map[string]sdk.Message{
		"no recipient": noRecipient, "no code": code, "notice without text": notice,
	} {
		if err := c.deliver(t.Context(), m); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: Deliver = %v, want the status InvalidArgument", name, err)
		}
	}
	c.wantDelivered(t, 0)
}

func refuseChannel(t *testing.T, c courierTest) {
	served := map[sdk.Channel]bool{}
	for _, channel := range c.channels() {
		served[channel] = true
	}
	for _, channel := range []sdk.Channel{sdk.Email, sdk.SMS, "pigeon", ""} {
		if served[channel] {
			continue
		}
		if err := c.deliver(t.Context(), newCode(channel, "246802")); status.Code(err) != codes.Unimplemented {
			t.Errorf("channel %q: Deliver = %v, want the status Unimplemented", channel, err)
		}
	}
	c.wantDelivered(t, 0)
}

func deliverAfterCancel(t *testing.T, c courierTest) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := newCode(c.channels()[0], "975310")
	err := c.deliver(ctx, m)
	if status.Code(err) != codes.Canceled || strings.Contains(err.Error(), m.Code) {
		t.Errorf("Deliver under a cancelled context = %v, want the status Canceled without the code", err)
	}
	if err := c.deliver(t.Context(), m); err != nil {
		t.Fatalf("Deliver after a cancelled one = %v, want no error", err)
	}
}

func deliverInParallel(t *testing.T, c courierTest) {
	var group sync.WaitGroup
	channels, want := c.channels(), make([]Delivery, parallelMessages)
	for i := range parallelMessages {
		m := newCode(channels[i%len(channels)], fmt.Sprintf("%06d", 500_000+i))
		want[i] = Delivery{Channel: m.Channel, Recipient: m.Recipient, Code: m.Code}
		group.Go(func() {
			if err := c.deliver(t.Context(), m); err != nil {
				t.Errorf("Deliver by %s = %v, want no error", m.Channel, err)
			}
		})
	}
	group.Wait()
	c.wantDelivered(t, parallelMessages, want...)
}

// wantDelivered checks that exactly count messages arrived, and each of want among them.
func (c courierTest) wantDelivered(t *testing.T, count int, want ...Delivery) {
	t.Helper()
	if c.delivered == nil {
		return
	}
	got := c.delivered()
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
