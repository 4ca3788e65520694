package sdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
	pluginv1 "github.com/tollgate-dev/tollgate/plugins/sdk/proto/tollgate/plugin/v1"
	"github.com/tollgate-dev/tollgate/plugins/sdk/sdktest"
)

// asPlugin, when set, makes the test binary a plugin.
const asPlugin = "SDK_TEST_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		sdk.ServeCourier(&memoryCourier{})
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// memoryCourier is a courier that stores the messages.
type memoryCourier struct {
	mu   sync.Mutex
	kept []sdk.Message
	fail func(context.Context) error
}

func (*memoryCourier) Channels() []sdk.Channel { return []sdk.Channel{sdk.Email, sdk.SMS} }
func (*memoryCourier) Version() string         { return "4.5.6" }

func (m *memoryCourier) Deliver(ctx context.Context, message sdk.Message) error {
	if m.fail != nil {
		return m.fail(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = append(m.kept, message)
	return ctx.Err()
}

func (m *memoryCourier) delivered() []sdktest.Delivery {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []sdktest.Delivery
	for _, message := range m.kept {
		all = append(all, sdktest.Delivery{
			Channel: message.Channel, Recipient: message.Recipient, Code: message.Code, Text: message.Text,
		})
	}
	return all
}

func TestCourierContract(t *testing.T) {
	t.Parallel()
	sdktest.RunCourier(t, func(*testing.T) sdktest.Courier {
		m := &memoryCourier{}
		return sdktest.Courier{Plugin: m, Delivered: m.delivered}
	})
}

type registry struct{}

func (registry) RegistryTypes() []string { return []string{"oci", "npm", "oci"} }

func (registry) Check(ctx context.Context, c sdk.Claim) error {
	switch {
	case c.Identifier == "busy":
		return errors.New("503")
	case c.Identifier != "weather":
		return sdk.Refuse("there is no package %q", c.Identifier)
	case c.Version != "1.0.0":
		return sdk.Refuse("package %q has no version %q", c.Identifier, c.Version)
	}
	return ctx.Err()
}

func TestOwnershipContract(t *testing.T) {
	t.Parallel()
	sdktest.RunOwnership(t, func(*testing.T) sdktest.Ownership {
		owned := sdk.Claim{
			ServerName: "com.example/weather", RegistryType: "npm", Identifier: "weather", Version: "1.0.0",
		}
		package2, version2, busy := owned, owned, owned
		package2.Identifier, version2.Version, busy.Identifier = "rain", "2.0.0", "busy"
		return sdktest.Ownership{
			Plugin: registry{}, Owned: owned, Transient: &busy,
			Refused: map[string]sdk.Claim{
				"the package does not exist": package2, "the version does not exist": version2,
			},
		}
	})
}

// connect serves a courier in this process, for requests that Tollgate's host does not send.
func connect(t *testing.T, c sdk.Courier) *grpc.ClientConn {
	t.Helper()
	client, server := plugin.TestPluginGRPCConn(t, false, handshake.Versions(sdk.CourierPlugin(c))[handshake.Version1])
	t.Cleanup(func() {
		_ = client.Close() // the server goes down with it
		<-server.DoneCh
	})
	return client.Conn
}

func newRequest(change func(*pluginv1.DeliverRequest)) *pluginv1.DeliverRequest {
	r := &pluginv1.DeliverRequest{
		Channel: pluginv1.Channel_CHANNEL_EMAIL, Recipient: "ada@example.com",
		Content: &pluginv1.DeliverRequest_OneTimeCode{OneTimeCode: &pluginv1.OneTimeCode{Code: "042917"}},
	}
	change(r)
	return r
}

func TestMalformedRequestsAreRefused(t *testing.T) {
	t.Parallel()
	m := &memoryCourier{}
	client := pluginv1.NewCourierClient(connect(t, m))
	for name, c := range map[string]struct {
		request *pluginv1.DeliverRequest
		want    codes.Code
	}{
		"no channel":      {newRequest(func(r *pluginv1.DeliverRequest) { r.Channel = 0 }), codes.Unimplemented},
		"unknown channel": {newRequest(func(r *pluginv1.DeliverRequest) { r.Channel = 99 }), codes.Unimplemented},
		"no recipient":    {newRequest(func(r *pluginv1.DeliverRequest) { r.Recipient = "" }), codes.InvalidArgument},
		"no content":      {newRequest(func(r *pluginv1.DeliverRequest) { r.Content = nil }), codes.InvalidArgument},
		"no code": {newRequest(func(r *pluginv1.DeliverRequest) {
			r.Content = &pluginv1.DeliverRequest_OneTimeCode{}
		}), codes.InvalidArgument},
		"no text": {
			newRequest(func(r *pluginv1.DeliverRequest) { r.Content = &pluginv1.DeliverRequest_Notice{} }),
			codes.InvalidArgument,
		},
	} {
		if _, err := client.Deliver(t.Context(), c.request); status.Code(err) != c.want {
			t.Errorf("%s: status = %v, want %v", name, err, c.want)
		}
	}
	if len(m.delivered()) != 0 {
		t.Errorf("delivered %v", m.delivered())
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fail func(context.Context) error
		want codes.Code
	}{
		"error": {func(context.Context) error { return errors.New("away \xff") }, codes.Unavailable},
		"panic": {func(context.Context) error { panic("042917") }, codes.Internal},
		"nil pointer": {
			func(context.Context) error { var m *memoryCourier; return m.fail(context.Background()) }, codes.Internal,
		},
		"deadline of more": {func(context.Context) error { return context.DeadlineExceeded }, codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := pluginv1.NewCourierClient(connect(t, &memoryCourier{fail: c.fail}))
			_, err := client.Deliver(t.Context(), newRequest(func(*pluginv1.DeliverRequest) {}))
			if status.Code(err) != c.want || strings.Contains(err.Error(), "042917") {
				t.Errorf("status = %v, want %v without the code", err, c.want)
			}
		})
	}
}

func TestMessageArrivesWhole(t *testing.T) {
	t.Parallel()
	m := &memoryCourier{}
	client := pluginv1.NewCourierClient(connect(t, m))
	notice := newRequest(func(r *pluginv1.DeliverRequest) {
		r.Channel = pluginv1.Channel_CHANNEL_SMS
		r.Content = &pluginv1.DeliverRequest_Notice{Notice: &pluginv1.Notice{Subject: "s", Text: "t\nu"}}
	})
	for _, r := range []*pluginv1.DeliverRequest{newRequest(func(*pluginv1.DeliverRequest) {}), notice} {
		if _, err := client.Deliver(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	want := []sdk.Message{
		{Channel: sdk.Email, Recipient: "ada@example.com", Code: "042917", ExpiresAt: time.Unix(0, 0).UTC()},
		{Kind: sdk.Notice, Channel: sdk.SMS, Recipient: "ada@example.com", Subject: "s", Text: "t\nu"},
	}
	if len(m.kept) != 2 || m.kept[0] != want[0] || m.kept[1] != want[1] {
		t.Errorf("kept %+v, want %+v", m.kept, want)
	}
}

func TestLoggerWritesTheHostsForm(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := sdk.NewLogger(&out)
	log.Warn("slow", "took", 3, "at", time.Unix(0, 0).UTC(), slog.Group("far", "host", "h"))
	log.Debug("detail")
	var first, second map[string]any
	decoder := json.NewDecoder(&out)
	if err := errors.Join(decoder.Decode(&first), decoder.Decode(&second)); err != nil {
		t.Fatal(err)
	}
	if first["@level"] != "warn" || first["@message"] != "slow" || first["took"] != 3.0 ||
		first["at"] != "1970-01-01T00:00:00Z" {
		t.Errorf("first line = %v", first)
	}
	stamp, _ := first["@timestamp"].(string)
	if _, err := time.Parse("2006-01-02T15:04:05.000000Z07:00", stamp); err != nil {
		t.Errorf("@timestamp = %q: %v", stamp, err)
	}
	if second["@level"] != "debug" {
		t.Errorf("second line = %v", second)
	}
}

func TestStartedByHand(t *testing.T) {
	t.Parallel()
	command := exec.Command(os.Args[0])
	command.Env = []string{asPlugin + "=1"}
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "plugin") {
		t.Errorf("%v: %q, want status 1 and a sentence", err, out)
	}
}

func TestStopsWhenTheHostIsGone(t *testing.T) {
	t.Parallel()
	command := exec.Command(os.Args[0])
	command.Env = []string{
		asPlugin + "=1", handshake.CookieKey + "=" + handshake.CookieValue, "PLUGIN_PROTOCOL_VERSIONS=1",
		handshake.LifelineKey + "=" + handshake.LifelineStdin,
	}
	lifeline, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 4)
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "1|1|" {
		t.Fatalf("handshake %q: %v", line, err)
	}
	if err := lifeline.Close(); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("plugin ended with %v, want status 0", err)
	}
}

// waiting is a registry that requests a delay.
type waiting struct{ registry }

func (waiting) Check(_ context.Context, c sdk.Claim) error {
	after, _ := time.ParseDuration(c.Version) // "" is no time
	return sdk.RetryAfter(after, errors.New("busy"))
}

func TestTimeToRetryReachesTheHost(t *testing.T) {
	t.Parallel()
	client, server := plugin.TestPluginGRPCConn(t, false,
		handshake.Versions(sdk.OwnershipPlugin(waiting{}))[handshake.Version1])
	t.Cleanup(func() {
		_ = client.Close() // the server goes down with it
		<-server.DoneCh
	})
	for asked, want := range map[string]time.Duration{
		"": 0, "-1s": 0, "1500ms": 1500 * time.Millisecond, "2000h": 2000 * time.Hour,
	} {
		_, err := pluginv1.NewOwnershipClient(client.Conn).Check(t.Context(), &pluginv1.CheckRequest{
			ServerName: "com.example/weather", RegistryType: "npm", Identifier: "weather", Version: asked,
		})
		var delays []time.Duration
		for _, detail := range status.Convert(err).Details() {
			if info, ok := detail.(*errdetails.RetryInfo); ok {
				delays = append(delays, info.GetRetryDelay().AsDuration())
			}
		}
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "busy") || len(delays) > 1 {
			t.Errorf("with a delay of %q: Check = %v, want the status Unavailable with at most one delay", asked, err)
		}
		if got := append(delays, 0)[0]; got != want {
			t.Errorf("with a delay of %q: the host gets the delay %s, want %s", asked, got, want)
		}
	}
	if sdk.RetryAfter(time.Second, nil) != nil {
		t.Error("RetryAfter(nil) is not nil")
	}
}
