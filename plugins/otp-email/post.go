package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

// mechanisms are the ways to sign in, the best first. NTLM and the like are left out. The library sends a password in clear over
// TLS only, or to this machine.
var mechanisms = []gomail.SMTPAuthType{
	gomail.SMTPAuthSCRAMSHA256PLUS, gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin,
}

// post hands messages to a mail server. Each has a connection of its own: codes are few, and a connection that is kept may be
// dead when it is needed.
type post struct {
	settings couriersettings.Email
	words    *wording
	security *tls.Config
}

// newPost checks the settings and the templates; it does not connect.
func newPost(settings couriersettings.Email) (*post, error) {
	if err := settings.Check(); err != nil {
		return nil, err
	}
	roots, err := couriersettings.Roots(settings.CAFile)
	if err != nil {
		return nil, fmt.Errorf("SMTP_CA_FILE: %w", err)
	}
	words, err := newWording(settings.Templates)
	if err != nil {
		return nil, fmt.Errorf("OTP_EMAIL_TEMPLATES: %w", err)
	}
	return &post{
		settings: settings, words: words,
		security: &tls.Config{ServerName: settings.Host, RootCAs: roots, MinVersion: tls.VersionTLS12},
	}, nil
}

// Channels is e-mail alone.
func (*post) Channels() []sdk.Channel { return []sdk.Channel{sdk.Email} }

// Deliver returns nil once the server has taken the message (RFC 5321, section 4.2.5). It ends when ctx or SMTP_TIMEOUT does,
// whatever the server does.
func (p *post) Deliver(ctx context.Context, m sdk.Message) error {
	letter, err := p.letter(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.settings.Timeout, fmt.Errorf("the mail server took longer than %v", p.settings.Timeout))
	defer cancel()
	if err := p.send(ctx, letter); err != nil {
		if ended := context.Cause(ctx); ended != nil {
			return ended
		}
		return err
	}
	return nil
}

// letter words and addresses a message. Addresses are parsed and must be nothing but an address, and the library encodes what
// goes into a header, so that no part of a message can become another header or recipient.
func (p *post) letter(m sdk.Message) (*gomail.Msg, error) {
	to, err := mail.ParseAddress(m.Recipient)
	if err != nil || to.Name != "" || to.Address != m.Recipient {
		return nil, errors.New("the recipient is not an e-mail address")
	}
	w, err := p.words.of(content{
		Product: p.settings.Brand.Name, Code: m.Code, Minutes: couriersettings.Minutes(time.Until(m.ExpiresAt)), Subject: m.Subject, Text: m.Text,
	}, m.Kind)
	if err != nil {
		return nil, err
	}
	letter := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	letter.FromMailAddress(&mail.Address{Name: p.settings.Sender(), Address: p.settings.From})
	if err := letter.To(m.Recipient); err != nil {
		return nil, errors.New("the recipient is not an e-mail address")
	}
	letter.Subject(w.subject)
	letter.SetDate()
	letter.SetMessageIDWithValue(messageID(p.settings.From))
	letter.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no machine answers it
	letter.SetBodyString(gomail.TypeTextPlain, w.text)
	letter.AddAlternativeString(gomail.TypeTextHTML, w.html)
	return letter, nil
}

// messageID is unique, and tells nothing of the machine.
func messageID(from string) string {
	return rand.Text() + from[strings.LastIndexByte(from, '@'):]
}

// send hands the letter over. What the server says after it has taken it no longer matters.
func (p *post) send(ctx context.Context, letter *gomail.Msg) error {
	client, err := gomail.NewClient(p.settings.Host, p.options(ctx)...)
	if err != nil {
		return fmt.Errorf("set up for the mail server: %w", err)
	}
	conn, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return fmt.Errorf("connect to the mail server: %w", err)
	}
	defer func() { _ = client.CloseWithSMTPClient(conn) }() // as above
	if err := client.SendWithSMTPClient(conn, letter); err != nil {
		return fmt.Errorf("hand over to the mail server: %w", err)
	}
	return nil
}

func (p *post) options(ctx context.Context) []gomail.Option {
	options := []gomail.Option{ // the time limit of each step is later than that of the whole, which says what happened
		gomail.WithPort(p.settings.ServerPort()), gomail.WithTimeout(p.settings.Timeout + time.Second), gomail.WithTLSConfig(p.security),
		gomail.WithDialContextFunc(p.dialer(ctx)), gomail.WithoutNoop(),
	}
	switch p.settings.Security {
	case couriersettings.TLS:
		options = append(options, gomail.WithSSL())
	case couriersettings.Plain:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if p.settings.Username != "" {
		options = append(options, gomail.WithOpportunisticSMTPAuth(mechanisms...),
			gomail.WithUsername(p.settings.Username), gomail.WithPassword(p.settings.Password))
	}
	return options
}

// dialer connects, and cuts the connection when delivery ends: the library bounds each step of the conversation, not the whole.
func (p *post) dialer(delivery context.Context) gomail.DialContextFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		dial := (&net.Dialer{}).DialContext
		if p.settings.Security == couriersettings.TLS {
			dial = (&tls.Dialer{Config: p.security}).DialContext
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(delivery, func() { _ = conn.Close() }) // it ends what is under way
		return conn, nil
	}
}
