package event

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

var epoch = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func TestDelays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first   time.Duration
		attempt int
		want    time.Duration
	}{
		{5 * time.Second, 1, 5 * time.Second}, {5 * time.Second, 2, 10 * time.Second}, {
			5 * time.Second, 10, 2560 * time.Second,
		},
		{5 * time.Second, 11, time.Hour}, {5 * time.Second, 1_000_000, time.Hour}, {2 * time.Hour, 1, 2 * time.Hour}, {
			2 * time.Hour, 9, 2 * time.Hour,
		},
	} {
		if got := (Schedule{First: c.first}).Delay(c.attempt); got != c.want {
			t.Errorf("Delay(%d) with the first %s = %s, want %s", c.attempt, c.first, got, c.want)
		}
	}
}

// TestAttemptsEnd fails a delivery until it is dead. Each attempt is later than the one before,
// none is after the end, and the last one is not before it.
func TestAttemptsEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := Schedule{
			First: time.Duration(rapid.Int64Range(1, 10_000_000).Draw(t, "first")) * time.Millisecond,
			For:   time.Duration(rapid.Int64Range(1, 360_000).Draw(t, "for")) * time.Second,
		}
		d := Delivery{State: Pending, Since: epoch, NextAt: epoch}
		end, now := epoch.Add(s.For), epoch
		for d.State == Pending {
			if d.Attempts > 1000 {
				t.Fatal("the attempts do not end")
			}
			if now = d.NextAt; now.After(end) {
				t.Fatalf("attempt %d at %s is after the end %s", d.Attempts+1, now, end)
			}
			next := d.Fail(s, "no answer", now)
			if next.Attempts != d.Attempts+1 || next.Problem != "no answer" {
				t.Fatalf("after a failure: %+v", next)
			}
			if next.State == Pending && !next.NextAt.After(now) {
				t.Fatalf("the attempt after %s is at %s", now, next.NextAt)
			}
			d = next
		}
		if d.State != Dead || !now.Equal(end) || !d.EndedAt.Equal(now) {
			t.Fatalf("the last attempt at %s gave %+v, the end is %s", now, d, end)
		}
	})
}

func TestSucceed(t *testing.T) {
	t.Parallel()
	d := Delivery{State: Pending, Attempts: 2, Problem: "no answer"}.Succeed(epoch.Add(999))
	if d.State != Delivered || d.Attempts != 3 || d.Problem != "" || !d.EndedAt.Equal(epoch) {
		t.Errorf("after a success: %+v", d)
	}
}

func TestProblemsAreClipped(t *testing.T) {
	t.Parallel()
	d := Delivery{
		State: Pending, Since: epoch,
	}.Fail(Schedule{First: time.Second, For: time.Hour}, strings.Repeat("é", 200), epoch)
	if d.Problem != strings.Repeat("é", maxProblem/2) {
		t.Errorf("the problem has %d bytes", len(d.Problem))
	}
}

// TestSign compares with a signature that openssl made.
func TestSign(t *testing.T) {
	t.Parallel()
	// printf '%s' '1800000000.{"id":"x"}' | openssl dgst -sha256 -hmac 'c2VjcmV0'
	const want = "t=1800000000,v1=ec8b8cfb25309d78d998308e9da55a838eb2b1a46204448e56c35eaf65f0b4bd"
	got := Sign("c2VjcmV0", time.Unix(1_800_000_000, 5), []byte(`{"id":"x"}`))
	if got != want {
		t.Errorf("the signature is %s, want %s", got, want)
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	s := NewSecret([32]byte{1, 2, 3})
	if len(s) != 44 {
		t.Errorf("the secret has %d characters", len(s))
	}
	for _, verb := range []string{"%v", "%s", "%#v", "%+v"} {
		if got := fmt.Sprintf(verb, struct{ S Secret }{s}); strings.Contains(got, string(s)) {
			t.Errorf("%s prints %s", verb, got)
		}
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://example.com/hook?a=b":         "example.com",
		"https://example.com:8443":             "example.com:8443",
		"http://127.0.0.1:8080/x":              "127.0.0.1:8080",
		"http://localhost/x":                   "localhost",
		"http://[::1]:1/":                      "[::1]:1",
		"http://example.com":                   "",
		"http://127.0.0.1.example.com":         "",
		"http://10.0.0.1/":                     "",
		"ftp://example.com":                    "",
		"example.com/hook":                     "",
		"https:///hook":                        "",
		"https:example.com":                    "",
		"https://user@example.com":             "",
		"https://example.com/#x":               "",
		"https://example.com/a b":              "",
		"https://example.com/é":                "",
		"https://" + strings.Repeat("a", 2048): "",
		"":                                     "",
	} {
		u, err := ParseURL(text)
		if (err == nil) != (want != "") || u.Host() != want ||
			err != nil && (!fault.Is(err, fault.Invalid) || !strings.HasPrefix(fault.PublicMessage(err), "url ")) {
			t.Errorf("ParseURL(%q) = %v, %v, want the host %q", text, u, err, want)
		}
		if want != "" && u.IsLoopback() != strings.HasPrefix(text, "http://") {
			t.Errorf("IsLoopback of %s is %v", text, u.IsLoopback())
		}
	}
}

func TestMasked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://hooks.slack.com/services/T0/B0/secret": "https://hooks.slack.com/services/T0/B0/…",
		"https://example.com/secret":                    "https://example.com/…",
		"https://example.com/a/secret/":                 "https://example.com/a/…",
		"https://example.com/?key=se/cret":              "https://example.com/…",
		"https://example.com?key=secret":                "https://example.com/…",
		"https://example.com/a/b?key=secret":            "https://example.com/a/…",
		"https://example.com":                           "https://example.com",
		"http://[::1]:8443/":                            "http://[::1]:8443/",
	} {
		u, err := ParseURL(text)
		if err != nil || u.Masked() != want {
			t.Errorf("%s is shown as %s, %v, want %s", text, u.Masked(), err, want)
		}
	}
	if u, _ := ParseURL("https://[2001:db8::1]:8443/x"); u.Hostname() != "2001:db8::1" {
		t.Errorf("the host is %s", u.Hostname())
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	const address = "https://example.com"
	for want, d := range map[string]Draft{
		"url":             {Events: []string{"published"}},
		"events is missi": {URL: address},
		"events must be":  {URL: address, Events: []string{"test"}},
		"pattern":         {URL: address, Events: []string{"status"}, Pattern: "a*b"},
	} {
		if _, err := New(d); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.PublicMessage(err), want) {
			t.Errorf("New(%+v) returned %v, want %q", d, err, want)
		}
	}
	w, err := New(Draft{URL: address, Events: []string{"status", "published", "status"}})
	if err != nil || fmt.Sprint(w.Events) != "[published status]" || w.Pattern.String() != "*" {
		t.Errorf("New = %+v, %v", w, err)
	}
	name, err := registry.ParseName("com.example/a")
	if err != nil || !w.Wants(Status, name) || w.Wants(Approved, name) {
		t.Errorf("the webhook wants the wrong events, error %v", err)
	}
	w, err = New(Draft{URL: address, Events: []string{"status"}, Pattern: "org.example/*"})
	if err != nil || w.Wants(Status, name) {
		t.Errorf("the webhook wants events of another server, error %v", err)
	}
}
