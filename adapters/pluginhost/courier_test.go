package pluginhost_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/core/fault"
	pluginv1 "github.com/tollgate-dev/tollgate/plugins/sdk/proto/tollgate/plugin/v1"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/courier/couriertest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestCourierContract(t *testing.T) {
	t.Parallel()
	couriertest.Run(t, func(t *testing.T) couriertest.Subject {
		dir := newFolder(t)
		installPlugin(t, dir, "otp-log", "otp-log")
		out := &logCapture{}
		log := out.entry()
		c, err := openHost(t, quickConfig(dir), log).Courier("otp-log")
		must.Succeed(t, err)
		return couriertest.Subject{Courier: c, Channels: []courier.Channel{courier.Email, courier.SMS}}
	})
}

func TestContractOfOneChannel(t *testing.T) {
	t.Parallel()
	couriertest.Run(t, func(t *testing.T) couriertest.Subject {
		c, err := openTestPlugin(t, "courier", "otp-test", unchangedConfig).Courier("otp-test")
		must.Succeed(t, err)
		return couriertest.Subject{Courier: c, Channels: []courier.Channel{courier.Email}}
	})
}

func TestCodeReachesLogAndFile(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	installPlugin(t, dir, "otp-log", "otp-log")
	file := filepath.Join(t.TempDir(), "codes.jsonl")
	cfg := quickConfig(dir)
	cfg.Env = map[string][]string{"otp-log": {"OTP_LOG_FILE=" + file}}
	out := &logCapture{}
	c, err := openHost(t, cfg, out.entry()).Courier("otp-log")
	must.Succeed(t, err)
	must.Succeed(t, c.Deliver(t.Context(), couriertest.Code(courier.SMS, "042917")))
	text, err := os.ReadFile(file)
	must.Succeed(t, err)
	var line map[string]string
	if err := json.Unmarshal(text, &line); err != nil || line["code"] != "042917" || line["channel"] != "sms" ||
		line["recipient"] != "+15550100" {
		t.Errorf("file has %q (%v)", text, err)
	}
	await.Until(t, "code in the service log", func() bool {
		return strings.Contains(out.String(), `"code":"042917"`) && strings.Contains(out.String(), `"level":"info"`)
	})
}

func startTestCourier(t *testing.T, change func(*pluginhost.Config)) (*pluginhost.Host, *pluginhost.Courier) {
	t.Helper()
	host := openTestPlugin(t, "courier", "otp-test", change)
	c, err := host.Courier("otp-test")
	must.Succeed(t, err)
	must.Succeed(t, host.StartAll(t.Context()))
	if s := onlyStatus(t, host); s.State != pluginhost.Running {
		t.Fatalf("status = %+v, want it running", s)
	}
	return host, c
}

// wantRecovery checks that the plugin runs again as another process, and delivers.
func wantRecovery(t *testing.T, host *pluginhost.Host, c *pluginhost.Courier, was int) {
	t.Helper()
	await.Until(t, "another process", func() bool {
		s := onlyStatus(t, host)
		return s.State == pluginhost.Running && s.PID != was
	})
	await.Until(t, "a delivery after the restart", func() bool { // a slow process may be replaced too
		return c.Deliver(t.Context(), couriertest.Code(courier.Email, "2")) == nil
	})
	if s := onlyStatus(t, host); s.Restarts < 1 || s.LastError == "" {
		t.Errorf("status = %+v, want a restart and its reason", s)
	}
	await.Until(t, "end of the process before", func() bool { return hasEnded(was) })
}

func TestUnavailableWhenTheProcessEnds(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{"killed during a call": "HANG", "exits during a call": "EXIT"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, c := startTestCourier(t, unchangedConfig)
			pid := onlyStatus(t, host).PID
			answer := make(chan error, 1)
			go func() { answer <- c.Deliver(context.Background(), couriertest.Code(courier.Email, code)) }()
			if code == "HANG" {
				killPID(t, pid)
			}
			if err := <-answer; !fault.Is(err, fault.Unavailable) {
				t.Errorf("Deliver = %v, want a fault of kind Unavailable", err)
			}
			wantRecovery(t, host, c, pid)
		})
	}
}

func TestStoppedProcessIsReplaced(t *testing.T) {
	t.Parallel()
	host, c := startTestCourier(t, func(cfg *pluginhost.Config) {
		cfg.HealthInterval, cfg.HealthTimeout = time.Hour, 500*time.Millisecond
	})
	pid := onlyStatus(t, host).PID
	freezeProcess(t, pid)
	wantUnavailable(t, c, "3")
	wantRecovery(t, host, c, pid)
}

func TestStoppedProcessIsFoundWithoutACall(t *testing.T) {
	t.Parallel()
	host, c := startTestCourier(t, func(cfg *pluginhost.Config) {
		cfg.HealthInterval, cfg.HealthTimeout = 20*time.Millisecond, 500*time.Millisecond
	})
	pid := onlyStatus(t, host).PID
	must.Succeed(t, syscall.Kill(pid, syscall.SIGSTOP))
	wantRecovery(t, host, c, pid)
}

func TestCallsThatOverrunGetThePluginReplaced(t *testing.T) {
	t.Parallel()
	host, c := startTestCourier(t, func(cfg *pluginhost.Config) { cfg.CallTimeout = 200 * time.Millisecond })
	pid := onlyStatus(t, host).PID
	for range 3 {
		err := c.Deliver(t.Context(), couriertest.Code(courier.Email, "HANG"))
		if !fault.Is(err, fault.Unavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Deliver = %v, want a fault of kind Unavailable for the deadline", err)
		}
	}
	await.Until(t, "another process", func() bool {
		s := onlyStatus(t, host)
		return s.State == pluginhost.Running && s.PID != pid
	})
	if s := onlyStatus(t, host); !strings.Contains(s.LastError, "exceeded") {
		t.Errorf("last error = %q", s.LastError)
	}
}

func TestTheCallersDeadlineIsNotThePluginsFault(t *testing.T) {
	t.Parallel()
	host, c := startTestCourier(t, unchangedConfig)
	pid := onlyStatus(t, host).PID
	for range 4 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := c.Deliver(ctx, couriertest.Code(courier.Email, "HANG"))
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Deliver = %v, want the deadline", err)
		}
	}
	must.Succeed(t, c.Deliver(t.Context(), couriertest.Code(courier.Email, "4")))
	if s := onlyStatus(t, host); s.PID != pid {
		t.Errorf("process %d became %d", pid, s.PID)
	}
}

// TestADeadlineReportedEarlyIsNotAnOverrun ends each call as if the plugin had closed it at its
// deadline before the timers of the host have fired.
func TestADeadlineReportedEarlyIsNotAnOverrun(t *testing.T) {
	t.Parallel()
	for name, callersBound := range map[string]time.Duration{
		"the caller's deadline": time.Hour, "the host's deadline": 3 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var checks atomic.Int64
			host, c := startTestCourier(t, func(cfg *pluginhost.Config) {
				cfg.CallTimeout, cfg.HealthInterval = 2*time.Hour, time.Millisecond
				cfg.Interceptor = closedAtTheDeadline(&checks)
			})
			pid := onlyStatus(t, host).PID
			ctx, cancel := context.WithTimeout(t.Context(), callersBound)
			defer cancel()
			for range 4 {
				if err := c.Deliver(ctx, couriertest.Code(courier.Email, "5")); !errors.Is(err,
					context.DeadlineExceeded) {
					t.Errorf("Deliver = %v, want the deadline", err)
				}
			}
			before := checks.Load()
			await.Until(t, "two more health checks", func() bool { return checks.Load() > before+2 })
			if s := onlyStatus(t, host); s.PID != pid || s.LastError != "" {
				t.Errorf("status = %+v, want process %d", s, pid)
			}
		})
	}
}

// closedAtTheDeadline ends deliveries with the status that gRPC returns for a stream that was reset
// at its deadline, and counts health checks.
func closedAtTheDeadline(checks *atomic.Int64) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
		options ...grpc.CallOption) error {
		switch method {
		case pluginv1.Courier_Deliver_FullMethodName:
			return status.Error(codes.DeadlineExceeded, "stream terminated by RST_STREAM with error code: CANCEL")
		case grpc_health_v1.Health_Check_FullMethodName:
			checks.Add(1)
		}
		return invoke(ctx, method, request, reply, conn, options...)
	}
}

func TestPanicEndsTheCallOnly(t *testing.T) {
	t.Parallel()
	host, c := startTestCourier(t, unchangedConfig)
	pid := onlyStatus(t, host).PID
	err := c.Deliver(t.Context(), couriertest.Code(courier.Email, "PANIC"))
	if !fault.Is(err, fault.Unavailable) || strings.Contains(err.Error(), "PANIC") {
		t.Errorf("Deliver = %v, want a fault of kind Unavailable without the code", err)
	}
	if s := onlyStatus(t, host); s.PID != pid || s.Restarts != 0 {
		t.Errorf("status = %+v, want the same process", s)
	}
}

func TestErrorsShowNeitherCodeNorRecipient(t *testing.T) {
	t.Parallel()
	_, c := startTestCourier(t, unchangedConfig)
	m := couriertest.Code(courier.Email, "LEAK")
	err := c.Deliver(t.Context(), m)
	if err == nil || strings.Contains(err.Error(), m.Code) || strings.Contains(err.Error(), m.Recipient) {
		t.Errorf("Deliver = %v, want an error with both masked", err)
	}
	if err != nil && !strings.Contains(err.Error(), "gateway says no") {
		t.Errorf("Deliver = %v, want the plugin's reason in it", err)
	}
	if f, ok := fault.As(err); !ok || strings.Contains(f.Message, "gateway") {
		t.Errorf("fault = %+v, want the reason kept from the caller", f)
	}
}

func TestEnvironmentIsNotPassedOn(t *testing.T) {
	t.Setenv("TOLLGATE_TEST_SECRET", "hush")
	dir := newFolder(t)
	installPlugin(t, dir, "testplugin", "otp-test")
	cfg := quickConfig(dir)
	cfg.Env = map[string][]string{"otp-test": {"ALLOWED=yes", "MODE=courier"}, "otp-other": {"OTHER=1"}}
	c, err := openHost(t, cfg, discardLog()).Courier("otp-test")
	must.Succeed(t, err)
	err = c.Deliver(t.Context(), couriertest.Code(courier.Email, "ENV"))
	if err == nil {
		t.Fatal("Deliver succeeded, want an error with the environment")
	}
	_, got, _ := strings.Cut(err.Error(), "Unavailable: ")
	if want := "ALLOWED=yes MODE=courier TOLLGATE_PLUGIN=d0f2d8f5-41c3-4c6e-9b33-2f0ad1a2f7f4 TOLLGATE_PLUGIN_LIFELINE=stdin"; got != want {
		t.Errorf("environment = %q, want %q", got, want)
	}
}

// environmentCode returns a message for which the test plugin returns its environment in the error.
func environmentCode() courier.Message { return couriertest.Code(courier.Email, "ENV") }

// wantUnavailable checks that the message with a code is not delivered now.
func wantUnavailable(t *testing.T, c courier.Courier, code string) {
	t.Helper()
	if err := c.Deliver(t.Context(), couriertest.Code(courier.Email, code)); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Deliver = %v, want a fault of kind Unavailable", err)
	}
}
