package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tollgate-dev/tollgate/test/instance"
)

const startTimeout = 30 * time.Second

// service is one of the two services.
type service struct {
	client     ratelimit.RateLimitServiceClient
	statistics *statsd
	stop       func()
}

// shared returns the settings that both services need, under the names that both know.
func shared(dir string, statistics *statsd, environ []string) []string {
	all := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LOG_FORMAT=json",
		"BACKEND_TYPE=redis", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + os.Getenv("TEST_VALKEY_URL"),
		"REDIS_TIMEOUT=" + callTimeout.String(), // the default of the Envoy service, so that load is no difference
		"CACHE_KEY_PREFIX=" + strconv.FormatInt(time.Now().UnixNano(), 36) + "_",
		"HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1",
	}
	return append(append(all, statistics.settings()...), environ...)
}

// startTollgate starts our service and waits until it is healthy.
func startTollgate(program, dir string, environ []string) (*service, error) {
	statistics, err := listenStatsd()
	if err != nil {
		return nil, err
	}
	all := append(shared(dir, statistics, environ), "PORT=0", "GRPC_PORT=0", "DEBUG_PORT=0")
	i, err := instance.Start(program, all, "ratelimit")
	if err != nil {
		statistics.close()
		return nil, err
	}
	return newService(i.RateLimitHTTP, i.GRPC, statistics, i.Kill)
}

// startPeer starts the Envoy service and waits until it is healthy.
func startPeer(program, dir string, environ []string) (*service, error) {
	statistics, err := listenStatsd()
	if err != nil {
		return nil, err
	}
	output, err := os.Create(filepath.Join(dir, "peer.log"))
	if err != nil {
		return nil, fmt.Errorf("log of the Envoy service: %w", err)
	}
	defer output.Close()
	cmd := exec.Command(program)
	web, calls := instance.FreePort(), instance.FreePort()
	cmd.Env = append(shared(dir, statistics, environ), "PORT="+web, "GRPC_PORT="+calls,
		"DEBUG_PORT="+instance.FreePort(),
		"GOSTATS_FLUSH_INTERVAL_SECONDS=1")
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the Envoy service: %w", err)
	}
	return newService(net.JoinHostPort("127.0.0.1", web), net.JoinHostPort("127.0.0.1", calls), statistics, func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()         // it ends by a signal, which is an error
	})
}

// newService returns a service that has started, when it is healthy. It stops one that is not.
func newService(web, calls string, statistics *statsd, stop func()) (*service, error) {
	connection, err := grpc.NewClient(calls, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		stop()
		return nil, fmt.Errorf("connect to %s: %w", calls, err)
	}
	s := &service{ratelimit.NewRateLimitServiceClient(connection), statistics, func() {
		stop()
		_ = connection.Close() // the process has ended
		statistics.close()
	}}
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if text, err := get("http://" + web + "/healthcheck"); err == nil && text == "OK" {
			return s, nil
		}
	}
	s.stop()
	return nil, errors.New("the service at " + web + " was not healthy in time")
}

// ask returns the answer to a request, or its error, as text.
func (s *service) ask(request *ratelimit.RateLimitRequest) string {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	answer, err := s.client.ShouldRateLimit(ctx, request)
	if err != nil {
		return "error: " + err.Error()
	}
	return formatAnswer(answer)
}

// get returns the body of a 200.
func get(address string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", fmt.Errorf("request: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("get: %w", err)
	}
	defer response.Body.Close()
	var text strings.Builder
	if _, err := bufio.NewReader(response.Body).WriteTo(&text); err != nil {
		return "", fmt.Errorf("read: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return "", errors.New(response.Status)
	}
	return text.String(), nil
}

// formatAnswer returns the parts of an answer that are compared. Times to a reset are compared to
// the minute, since the services are asked one after the other.
func formatAnswer(answer *ratelimit.RateLimitResponse) string {
	var out strings.Builder
	out.WriteString(answer.GetOverallCode().String())
	over := 0
	for _, s := range answer.GetStatuses() {
		if s.GetCode() == ratelimit.RateLimitResponse_OVER_LIMIT {
			over++
		}
		fmt.Fprintf(&out, " | %s limit={%v} remaining=%d", s.GetCode(), s.GetCurrentLimit(), s.GetLimitRemaining())
		if d := s.GetDurationUntilReset(); d != nil {
			fmt.Fprintf(&out, " reset=%dm", d.GetSeconds()/60)
		}
	}
	if m := answer.GetDynamicMetadata(); m != nil {
		fmt.Fprintf(&out, " metadata=%s", formatMetadata(m))
	}
	if over > 1 { // of two limits that are exceeded, the services' headers describe different ones
		return out.String()
	}
	headers := make([]string, 0, len(answer.GetResponseHeadersToAdd()))
	for _, h := range answer.GetResponseHeadersToAdd() {
		value := h.GetValue()
		if strings.EqualFold(h.GetKey(), "RateLimit-Reset") {
			seconds, _ := strconv.Atoi(value) // -1 is not a reset, and differs from one
			value = strconv.Itoa(seconds/60) + "m"
		}
		headers = append(headers, h.GetKey()+"="+value)
	}
	sort.Strings(headers)
	return out.String() + " " + strings.Join(headers, " ")
}

// formatMetadata returns dynamic metadata without the two names that newer versions of the Envoy
// service do not have any more. In the text of an override, that service has one space or two at
// random.
func formatMetadata(m *structpb.Struct) string {
	fields := m.AsMap()
	delete(fields, "quotaModeEnabled")
	delete(fields, "quotaModeViolations")
	text, _ := json.Marshal(fields) // it is JSON
	return strings.ReplaceAll(string(text), "  ", " ")
}
