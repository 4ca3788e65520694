package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/sdktest"
	"github.com/tollgate-dev/tollgate/test/mailserver"
	"github.com/tollgate-dev/tollgate/test/must"
)

// settingsOf returns the settings for a server, parsed as the program parses them.
func settingsOf(t *testing.T, s *mailserver.Server, environ map[string]string) couriersettings.Email {
	t.Helper()
	all := map[string]string{
		"SMTP_HOST": "127.0.0.1", "SMTP_PORT": s.Port, "SMTP_CA_FILE": s.CAFile, "SMTP_FROM": "tollgate@example.com",
	}
	for name, value := range environ {
		all[name] = value
	}
	settings, err := couriersettings.Parse[couriersettings.Email](all)
	must.Succeed(t, err)
	return settings
}

func newMailerTo(t *testing.T, s *mailserver.Server, environ map[string]string) *mailer {
	t.Helper()
	p, err := newMailer(settingsOf(t, s, environ))
	must.Succeed(t, err)
	return p
}

func newCode() sdk.Message {
	return sdk.Message{
		Channel: sdk.Email, Recipient: "ada@example.com", Code: "042917",
		ExpiresAt: time.Now().Add(10*time.Minute - time.Second),
	}
}

var sixDigits = regexp.MustCompile(`\b[0-9]{6}\b`)

func TestContract(t *testing.T) {
	t.Parallel()
	sdktest.RunCourier(t, func(t *testing.T) sdktest.Courier {
		server := mailserver.Start(t, mailserver.Options{})
		return sdktest.Courier{Plugin: newMailerTo(t, server, nil), Delivered: func() []sdktest.Delivery {
			var seen []sdktest.Delivery
			for _, l := range server.Letters() {
				seen = append(seen, sdktest.Delivery{
					Channel: sdk.Email, Recipient: l.To[0], Code: sixDigits.FindString(l.Text), Text: l.Text,
				})
			}
			return seen
		}}
	})
}

// TestConnections delivers over each kind of connection, with and without authentication.
func TestConnections(t *testing.T) {
	t.Parallel()
	signedIn := map[string]string{"SMTP_USERNAME": "tollgate", "SMTP_PASSWORD": "p w"}
	for name, c := range map[string]struct {
		server  mailserver.Options
		environ map[string]string
	}{
		"starttls":               {mailserver.Options{}, nil},
		"starttls and signed in": {mailserver.Options{Username: "tollgate", Password: "p w"}, signedIn},
		"tls":                    {mailserver.Options{TLS: true}, map[string]string{"SMTP_TLS": "tls"}},
		"tls and signed in": {
			mailserver.Options{TLS: true, Username: "tollgate", Password: "p w"},
			map[string]string{"SMTP_TLS": "tls", "SMTP_USERNAME": "tollgate", "SMTP_PASSWORD": "p w"},
		},
		"none": {mailserver.Options{Plain: true}, map[string]string{"SMTP_TLS": "none"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := mailserver.Start(t, c.server)
			must.Succeed(t, newMailerTo(t, server, c.environ).Deliver(t.Context(), newCode()))
			if n := len(server.Letters()); n != 1 {
				t.Errorf("%d letters arrived", n)
			}
		})
	}
}

func TestLetter(t *testing.T) {
	t.Parallel()
	server := mailserver.Start(t, mailserver.Options{})
	p := newMailerTo(t, server, map[string]string{"PRODUCT_NAME": "Wörkshop"})
	must.Succeed(t, p.Deliver(t.Context(), newCode()))
	l := server.Letters()[0]
	if l.From != "tollgate@example.com" || len(l.To) != 1 || l.To[0] != "ada@example.com" ||
		l.Subject != "042917 is your Wörkshop code" {
		t.Errorf("envelope %s to %s, subject %q", l.From, l.To, l.Subject)
	}
	from, err := l.Header.AddressList("From")
	if err != nil || len(from) != 1 || from[0].Name != "Wörkshop" ||
		l.Header.Get("Auto-Submitted") != "auto-generated" ||
		!strings.HasSuffix(l.Header.Get("Message-Id"), "@example.com>") || l.Header.Get("X-Mailer") != "" {
		t.Errorf("header %v, error %v", l.Header, err)
	}
	if host, err := os.Hostname(); err == nil && len(host) > 3 && strings.Contains(l.Header.Get("Message-Id"), host) {
		t.Errorf("message id %s contains the name of the machine", l.Header.Get("Message-Id"))
	}
	for _, part := range []string{l.Text, l.HTML} {
		if !strings.Contains(part, "042917") || !strings.Contains(part, "10 minutes") ||
			!strings.Contains(part, "Wörkshop") {
			t.Errorf("part %q lacks code, time or name", part)
		}
		if strings.Contains(part, "http") {
			t.Errorf("part %q has a link", part)
		}
	}
}

// TestNothingIsInjected checks that no part of a message becomes a header, a recipient or markup.
func TestNothingIsInjected(t *testing.T) {
	t.Parallel()
	server := mailserver.Start(t, mailserver.Options{})
	p := newMailerTo(t, server, nil)
	for _, recipient := range []string{
		"ada@example.com\r\nBcc: eve@example.com", "ada@example.com, eve@example.com",
		"Ada <ada@example.com>", "ada", "",
		"ada@example.com>\r\nRCPT TO:<eve@example.com", "<ada@example.com>",
	} {
		m := newCode()
		m.Recipient = recipient
		if err := p.Deliver(t.Context(), m); err == nil {
			t.Errorf("%q is accepted as a recipient", recipient)
		}
	}
	notice := sdk.Message{
		Kind: sdk.Notice, Channel: sdk.Email, Recipient: "ada@example.com",
		Subject: "new\r\nBcc: eve@example.com",
		Text:    "from <script>alert(1)</script>\n.\nMAIL FROM:<eve@example.com>\n\nlast",
	}
	must.Succeed(t, p.Deliver(t.Context(), notice))
	letters := server.Letters()
	if len(letters) != 1 || len(letters[0].To) != 1 {
		t.Fatalf("letters %+v", letters)
	}
	l := letters[0]
	if l.Header.Get("Bcc") != "" || l.Subject != "new Bcc: eve@example.com" {
		t.Errorf("subject %q, header %v", l.Subject, l.Header)
	}
	if strings.Contains(l.HTML, "<script") || !strings.Contains(l.Text, "\r\n.\r\nMAIL FROM:<eve@example.com>") ||
		!strings.Contains(l.Text, "last") {
		t.Errorf("text %q, HTML %q", l.Text, l.HTML)
	}
}

// TestRefusals checks that everything that the server refuses leads to an error without the code.
func TestRefusals(t *testing.T) {
	t.Parallel()
	at := func(command string, status int) func(string) error {
		return func(c string) error {
			if c != command {
				return nil
			}
			return &smtp.SMTPError{
				Code: status, EnhancedCode: smtp.EnhancedCode{status / 100, 7, 1}, Message: "no thanks",
			}
		}
	}
	for name, c := range map[string]struct {
		server  mailserver.Options
		environ map[string]string
	}{
		"sender, for ever":    {mailserver.Options{Refuse: at("MAIL", 550)}, nil},
		"recipient, for now":  {mailserver.Options{Refuse: at("RCPT", 451)}, nil},
		"recipient, for ever": {mailserver.Options{Refuse: at("RCPT", 550)}, nil},
		"content":             {mailserver.Options{Refuse: at("DATA", 554)}, nil},
		"no sign-in":          {mailserver.Options{Username: "u", Password: "p"}, nil},
		"wrong password": {
			mailserver.Options{Username: "u", Password: "p"}, map[string]string{
				"SMTP_USERNAME": "u", "SMTP_PASSWORD": "q",
			},
		},
		"no STARTTLS":           {mailserver.Options{Plain: true}, nil},
		"untrusted certificate": {mailserver.Options{}, map[string]string{"SMTP_CA_FILE": ""}},
		"server without TLS":    {mailserver.Options{}, map[string]string{"SMTP_TLS": "tls", "SMTP_TIMEOUT": "2s"}},
		"sign-in without cipher": {
			mailserver.Options{Plain: true}, map[string]string{"SMTP_USERNAME": "u", "SMTP_PASSWORD": "p"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := mailserver.Start(t, c.server)
			err := newMailerTo(t, server, c.environ).Deliver(t.Context(), newCode())
			if err == nil || strings.Contains(err.Error(), "042917") {
				t.Errorf("error %v, want an error without the code", err)
			}
			if n := len(server.Letters()); n != 0 {
				t.Errorf("%d letters arrived", n)
			}
		})
	}
}

// TestHangingServers checks that a delivery ends at SMTP_TIMEOUT, or with the caller, at whichever
// command the server hangs.
func TestHangingServers(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	for _, command := range []string{"MAIL", "DATA"} {
		server := mailserver.Start(t, mailserver.Options{Refuse: func(c string) error {
			if c == command {
				<-release
			}
			return nil
		}})
		if err := newMailerTo(t, server, map[string]string{"SMTP_TIMEOUT": "300ms"}).Deliver(t.Context(),
			newCode()); err == nil ||
			!strings.Contains(err.Error(), "longer than 300ms") {
			t.Errorf("hanging at %s: %v", command, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		// With a timeout of an hour only the caller can end the delivery.
		if err := newMailerTo(t, server, map[string]string{"SMTP_TIMEOUT": "1h"}).Deliver(ctx,
			newCode()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("caller left at %s: %v", command, err)
		}
	}
}

// TestDrippingServer checks that a delivery ends at SMTP_TIMEOUT even if the server sends without
// end.
func TestDrippingServer(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		for {
			if _, err := conn.Write([]byte("220-wait\r\n")); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond) // the pace of the server, nothing is awaited
		}
	}()
	address, _ := listener.Addr().(*net.TCPAddr)
	p := newMailerTo(t, &mailserver.Server{Port: strconv.Itoa(address.Port)}, map[string]string{
		"SMTP_TIMEOUT": "300ms",
	})
	if err := p.Deliver(t.Context(), newCode()); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("error %v", err)
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	folder := func(files map[string]string) string {
		dir := t.TempDir()
		for name, content := range files {
			must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
		}
		return dir
	}
	w, err := loadTemplates(folder(map[string]string{
		"code.txt": "{{.Code}}!", "notice.subject": "a\n b", "readme": "x",
	}))
	must.Succeed(t, err)
	got, err := w.render(templateData{Product: "P", Code: "042917", Minutes: 1}, sdk.OTP)
	if err != nil || got.text != "042917!" || got.subject != "042917 is your P code" ||
		!strings.Contains(got.html, "1 minute,") {
		t.Errorf("words %+v, error %v", got, err)
	}
	if got, err := w.render(templateData{Text: "x"}, sdk.Notice); err != nil || got.subject != "a b" {
		t.Errorf("words %+v, error %v", got, err)
	}
	for name, files := range map[string]map[string]string{
		"mistyped name": {"cod.txt": "{{.Code}}"}, "no template": {"code.txt": "{{.Code"}, "unknown field": {
			"code.html": "{{.Secret}}",
		},
		"no code": {"code.txt": "hello"}, "no text": {"notice.html": "hello"}, "too large": {
			"code.txt": strings.Repeat("x", maxTemplate+1),
		},
	} {
		if _, err := loadTemplates(folder(files)); err == nil {
			t.Errorf("%s: loadTemplates succeeded, want an error", name)
		}
	}
	if _, err := loadTemplates(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that does not exist is accepted")
	}
}
