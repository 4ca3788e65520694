// Package mailserver runs a real SMTP server within a test. It stores the mail that it accepts and
// does not relay it.
package mailserver

import (
	"bytes"
	"crypto/subtle"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// Options configure a server. The zero value offers STARTTLS and accepts all mail.
type Options struct {
	TLS      bool // TLS from the first byte
	Plain    bool // neither TLS nor STARTTLS
	Username string
	Password string // required when there is a username
	// The server calls Refuse at "MAIL", "RCPT" and "DATA" and responds with its error; it may
	// block.
	Refuse func(command string) error
}

// Letter is a message that the server has accepted.
type Letter struct {
	From    string
	To      []string
	Header  mail.Header
	Subject string
	Text    string // of the part text/plain
	HTML    string // of the part text/html
}

// Server is a mail server on this machine.
type Server struct {
	Port   string
	CAFile string // the server certificate, for 127.0.0.1

	options Options
	mu      sync.Mutex
	letters []Letter
	faults  []error
}

// Start runs a server until the test ends.
func Start(t *testing.T, o Options) *Server {
	t.Helper()
	certified := httptest.NewTLSServer(nil) // for the certificate
	config := &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certified.Certificate().Raw})
	certified.Close()
	s := &Server{CAFile: filepath.Join(t.TempDir(), "ca.pem"), options: o}
	if err := os.WriteFile(s.CAFile, authority, 0o600); err != nil {
		t.Fatal(err)
	}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return s.newSession(), nil }))
	server.Domain = "mail.test"
	if !o.Plain && !o.TLS {
		server.TLSConfig = config
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, s.Port, _ = net.SplitHostPort(listener.Addr().String()) // the address of a listener that was open a moment ago
	if o.TLS {
		listener = tls.NewListener(listener, config)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close() // ends connections that hang
		<-ended
		for _, fault := range s.faults {
			t.Errorf("mail server: %v", fault)
		}
	})
	return s
}

// Letters returns the messages that the server has accepted so far.
func (s *Server) Letters() []Letter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Letter{}, s.letters...)
}

func (s *Server) newSession() smtp.Session {
	one := &session{server: s, passed: s.options.Username == ""}
	if s.options.Username == "" {
		return one
	}
	return &guarded{one}
}

// session is the session of one connection.
type session struct {
	server *Server
	passed bool
	letter Letter
}

func (c *session) Reset()        { c.letter = Letter{} }
func (c *session) Logout() error { return nil }

func (c *session) Mail(from string, _ *smtp.MailOptions) error {
	if !c.passed {
		return smtp.ErrAuthRequired
	}
	c.letter.From = from
	return c.server.checkRefusal("MAIL")
}

func (c *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	c.letter.To = append(c.letter.To, to)
	return c.server.checkRefusal("RCPT")
}

func (c *session) Data(r io.Reader) error {
	content, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("read letter: %w", err)
	}
	if err := c.server.checkRefusal("DATA"); err != nil {
		return err
	}
	letter, err := c.letter.parseContent(content)
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if err != nil {
		c.server.faults = append(c.server.faults, err)
		return err
	}
	c.server.letters = append(c.server.letters, letter)
	return nil
}

func (s *Server) checkRefusal(command string) error {
	if s.options.Refuse == nil {
		return nil
	}
	return s.options.Refuse(command)
}

// guarded is a session that requires authentication.
type guarded struct{ *session }

func (*guarded) AuthMechanisms() []string { return []string{sasl.Plain} }

func (g *guarded) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, username, password string) error {
		o := g.server.options
		if username != o.Username || subtle.ConstantTimeCompare([]byte(password), []byte(o.Password)) != 1 {
			return smtp.ErrAuthFailed
		}
		g.passed = true
		return nil
	}), nil
}

// parseContent parses a message with two alternative parts.
func (l Letter) parseContent(content []byte) (Letter, error) {
	m, err := mail.ReadMessage(bytes.NewReader(content))
	if err != nil {
		return Letter{}, fmt.Errorf("read header: %w", err)
	}
	l.Header = m.Header
	if l.Subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil {
		return Letter{}, fmt.Errorf("read subject: %w", err)
	}
	kind, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		return Letter{}, fmt.Errorf("content is %s, want multipart/alternative: %w", kind, err)
	}
	parts := multipart.NewReader(m.Body, parameters["boundary"])
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return l, nil
		}
		if err != nil {
			return Letter{}, fmt.Errorf("read part: %w", err)
		}
		text, err := io.ReadAll(quotedprintable.NewReader(part))
		if err != nil {
			return Letter{}, fmt.Errorf("read part: %w", err)
		}
		switch kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type")); kind {
		case "text/plain":
			l.Text = string(text)
		case "text/html":
			l.HTML = string(text)
		}
	}
}
