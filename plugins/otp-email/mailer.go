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

// authMechanisms lists the SMTP authentication mechanisms, best first, without NTLM. The library
// sends an unencrypted password only over TLS or to this machine.
var authMechanisms = []gomail.SMTPAuthType{
	gomail.SMTPAuthSCRAMSHA256PLUS, gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin,
}

// mailer sends messages to a mail server, each over a new connection: there are few messages, and a
// connection that is kept open may be dead when it is needed.
type mailer struct {
	settings  couriersettings.Email
	templates *messageTemplates
	security  *tls.Config
}

// newMailer returns a mailer that has not connected yet. It returns an error if a setting or a
// template is wrong.
func newMailer(settings couriersettings.Email) (*mailer, error) {
	if err := settings.CheckSettings(); err != nil {
		return nil, err
	}
	roots, err := couriersettings.LoadRoots(settings.CAFile)
	if err != nil {
		return nil, fmt.Errorf("SMTP_CA_FILE: %w", err)
	}
	words, err := loadTemplates(settings.Templates)
	if err != nil {
		return nil, fmt.Errorf("OTP_EMAIL_TEMPLATES: %w", err)
	}
	return &mailer{
		settings: settings, templates: words,
		security: &tls.Config{ServerName: settings.Host, RootCAs: roots, MinVersion: tls.VersionTLS12},
	}, nil
}

// Channels implements [sdk.Courier].
func (*mailer) Channels() []sdk.Channel { return []sdk.Channel{sdk.Email} }

// Deliver returns nil once the server has accepted the message (RFC 5321, section 4.2.5). It
// returns an error when ctx ends or SMTP_TIMEOUT has passed, even if the server does not answer.
func (p *mailer) Deliver(ctx context.Context, m sdk.Message) error {
	letter, err := p.newLetter(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.settings.Timeout,
		fmt.Errorf("the mail server took longer than %v", p.settings.Timeout))
	defer cancel()
	if err := p.sendLetter(ctx, letter); err != nil {
		if ended := context.Cause(ctx); ended != nil {
			return ended
		}
		return err
	}
	return nil
}

// newLetter returns the e-mail for m. It accepts only a plain address as the recipient, and the
// library encodes the headers, so that no part of a message can become another header or recipient.
func (p *mailer) newLetter(m sdk.Message) (*gomail.Msg, error) {
	to, err := mail.ParseAddress(m.Recipient)
	if err != nil || to.Name != "" || to.Address != m.Recipient {
		return nil, errors.New("the recipient is not an e-mail address")
	}
	w, err := p.templates.render(templateData{
		Product: p.settings.Brand.Name, Code: m.Code, Minutes: couriersettings.WholeMinutes(time.Until(m.ExpiresAt)),
		Subject: m.Subject, Text: m.Text, Link: m.Link,
	}, m.Kind)
	if err != nil {
		return nil, err
	}
	letter := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	letter.FromMailAddress(&mail.Address{Name: p.settings.SenderName(), Address: p.settings.From})
	if err := letter.To(m.Recipient); err != nil {
		return nil, errors.New("the recipient is not an e-mail address")
	}
	letter.Subject(w.subject)
	letter.SetDate()
	letter.SetMessageIDWithValue(newMessageID(p.settings.From))
	letter.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: prevents automatic replies
	letter.SetBodyString(gomail.TypeTextPlain, w.text)
	letter.AddAlternativeString(gomail.TypeTextHTML, w.html)
	return letter, nil
}

// newMessageID returns a unique message id that does not reveal the name of the machine.
func newMessageID(from string) string {
	return rand.Text() + from[strings.LastIndexByte(from, '@'):]
}

// sendLetter sends the letter. Errors after the server has accepted it are ignored.
func (p *mailer) sendLetter(ctx context.Context, letter *gomail.Msg) error {
	client, err := gomail.NewClient(p.settings.Host, p.clientOptions(ctx)...)
	if err != nil {
		return fmt.Errorf("configure the mail client: %w", err)
	}
	conn, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return fmt.Errorf("connect to the mail server: %w", err)
	}
	defer func() { _ = client.CloseWithSMTPClient(conn) }() // the letter is accepted, or the error is returned
	if err := client.SendWithSMTPClient(conn, letter); err != nil {
		return fmt.Errorf("send to the mail server: %w", err)
	}
	return nil
}

func (p *mailer) clientOptions(ctx context.Context) []gomail.Option {
	options := []gomail.Option{ // each step has a longer limit than the delivery, whose error says what happened
		gomail.WithPort(p.settings.ServerPort()), gomail.WithTimeout(p.settings.Timeout + time.Second),
		gomail.WithTLSConfig(p.security),
		gomail.WithDialContextFunc(p.dialUntilDone(ctx)), gomail.WithoutNoop(),
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
		options = append(options, gomail.WithOpportunisticSMTPAuth(authMechanisms...),
			gomail.WithUsername(p.settings.Username), gomail.WithPassword(p.settings.Password))
	}
	return options
}

// dialUntilDone returns a dial function whose connections are closed when delivery ends: the
// library limits the time of each step, not of the whole delivery.
func (p *mailer) dialUntilDone(delivery context.Context) gomail.DialContextFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		dial := (&net.Dialer{}).DialContext
		if p.settings.Security == couriersettings.TLS {
			dial = (&tls.Dialer{Config: p.security}).DialContext
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(delivery, func() { _ = conn.Close() }) // ends the step in progress
		return conn, nil
	}
}
