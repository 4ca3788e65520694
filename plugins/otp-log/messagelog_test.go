package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/sdktest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// syncBuffer is a buffer that many goroutines may write to.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *syncBuffer) lines(t *testing.T) []map[string]any {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	return decodeLines[map[string]any](t, s.text.Bytes())
}

func decodeLines[T any](t *testing.T, text []byte) []T {
	t.Helper()
	var all []T
	for line := range strings.Lines(string(text)) {
		var one T
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		all = append(all, one)
	}
	return all
}

func TestContract(t *testing.T) {
	t.Parallel()
	sdktest.RunCourier(t, func(t *testing.T) sdktest.Courier {
		out := &syncBuffer{}
		return sdktest.Courier{
			Plugin: messageLog{log: sdk.NewLogger(out)},
			Delivered: func() []sdktest.Delivery {
				var seen []sdktest.Delivery
				for _, line := range out.lines(t) {
					code, _ := line["code"].(string) // empty for a notice
					channel, _ := line["channel"].(string)
					recipient, _ := line["recipient"].(string)
					text, _ := line["text"].(string) // empty for a code
					seen = append(seen, sdktest.Delivery{
						Channel: sdk.Channel(channel), Recipient: recipient, Code: code, Text: text,
					})
				}
				return seen
			},
		}
	})
}

func TestFilesHaveALinePerMessage(t *testing.T) {
	t.Parallel()
	s := messageLog{
		log: sdk.NewLogger(&syncBuffer{}), codes: logFile(filepath.Join(t.TempDir(), "codes.jsonl")),
		notices: logFile(filepath.Join(t.TempDir(), "notices.jsonl")),
	}
	must.Succeed(t, s.createFiles())
	const writers = 20
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			m := sdk.Message{Channel: sdk.SMS, Recipient: "+15550100", Code: "042917", ExpiresAt: time.Now()}
			if err := s.Deliver(t.Context(), m); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	notice := sdk.Message{Kind: sdk.Notice, Channel: sdk.Email, Recipient: "a@b.c", Text: "hello"}
	must.Succeed(t, s.Deliver(t.Context(), notice))
	text, err := os.ReadFile(string(s.codes))
	must.Succeed(t, err)
	got := decodeLines[map[string]string](t, text)
	if len(got) != writers {
		t.Fatalf("%d lines among the codes, want %d: one for each code", len(got), writers)
	}
	for _, line := range got {
		if line["channel"] != "sms" || line["recipient"] != "+15550100" || line["code"] != "042917" || len(line) != 4 {
			t.Fatalf("line = %v", line)
		}
		if when, err := time.Parse(time.RFC3339Nano, line["time"]); err != nil || when.Location() != time.UTC {
			t.Fatalf("time = %q, want RFC 3339 in UTC", line["time"])
		}
	}
	if text, err = os.ReadFile(string(s.notices)); err != nil {
		t.Fatal(err)
	}
	notices := decodeLines[map[string]string](t, text)
	if len(notices) != 1 || notices[0]["channel"] != "email" || notices[0]["recipient"] != "a@b.c" ||
		notices[0]["notice"] != "hello" ||
		len(notices[0]) != 4 {
		t.Errorf("notices are %v", notices)
	}
	info, err := os.Stat(string(s.codes))
	must.Succeed(t, err)
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("mode = %o, want 600", mode)
	}
}

func TestFileThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	out := &syncBuffer{}
	s := messageLog{log: sdk.NewLogger(out), codes: logFile(t.TempDir())}
	if err := s.createFiles(); err == nil {
		t.Error("createFiles with a folder as the file succeeded")
	}
	if err := (messageLog{
		notices: logFile(t.TempDir()),
	}).createFiles(); err == nil || !strings.Contains(err.Error(), "NOTICE_LOG_FILE") {
		t.Errorf("createFiles with a folder as the file for notices = %v", err)
	}
	m := sdk.Message{Channel: sdk.Email, Recipient: "a@b.c", Code: "1", ExpiresAt: time.Now()}
	if err := s.Deliver(t.Context(), m); err == nil {
		t.Error("Deliver to a folder succeeded")
	}
	if lines := out.lines(t); len(lines) != 0 {
		t.Errorf("logged %v for a code that was not delivered", lines)
	}
}

func TestLogLineHasTheFormOfTheHost(t *testing.T) {
	t.Parallel()
	out := &syncBuffer{}
	m := sdk.Message{Channel: sdk.Email, Recipient: "a@b.c", Code: "042917", ExpiresAt: time.Unix(1700000000, 0)}
	must.Succeed(t, (messageLog{log: sdk.NewLogger(out)}).Deliver(t.Context(), m))
	lines := out.lines(t)
	if len(lines) != 1 {
		t.Fatalf("%d lines, want 1", len(lines))
	}
	want := map[string]string{"@level": "info", "@message": "one-time code", "channel": "email", "recipient": "a@b.c",
		"code": "042917", "expires": "2023-11-14T22:13:20Z"}
	for key, value := range want {
		if lines[0][key] != value {
			t.Errorf("%s = %v, want %q", key, lines[0][key], value)
		}
	}
	if stamp, _ := lines[0]["@timestamp"].(string); stamp == "" {
		t.Error("no time")
	}
}
