package couriersettings

import (
	"cmp"
	"errors"
	"fmt"
	"net/mail"
	"os"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
)

// The values of SMTP_TLS.
const (
	StartTLS = "starttls" // the connection changes to TLS before the message is sent, or fails (RFC 3207)
	TLS      = "tls"      // TLS from the first byte (RFC 8314, section 3.3)
	Plain    = "none"     // no TLS; allowed only to this machine
)

// Email holds the settings of otp-email (docs/couriers.md).
type Email struct {
	Host     string `env:"SMTP_HOST"`
	Port     int    `env:"SMTP_PORT"`
	Security string `env:"SMTP_TLS" envDefault:"starttls"`
	Username string `env:"SMTP_USERNAME"`
	Password string `env:"SMTP_PASSWORD" secret:"true"`
	From     string `env:"SMTP_FROM"`
	FromName string `env:"SMTP_FROM_NAME"`
	CAFile   string `env:"SMTP_CA_FILE"`
	// Timeout is the time limit of one delivery, from the connection until the server has accepted
	// the message; above 0.
	Timeout     time.Duration `env:"SMTP_TIMEOUT" envDefault:"8s"`
	CallTimeout time.Duration `env:"PLUGIN_CALL_TIMEOUT"` // of the host
	Templates   string        `env:"OTP_EMAIL_TEMPLATES"`
	Brand
}

// ServerPort returns SMTP_PORT, or the default port for SMTP_TLS ([RFC 6409], [RFC 8314]).
//
// [RFC 6409]: https://www.rfc-editor.org/rfc/rfc6409
// [RFC 8314]: https://www.rfc-editor.org/rfc/rfc8314
func (e Email) ServerPort() int {
	return cmp.Or(e.Port, map[string]int{StartTLS: 587, TLS: 465, Plain: 25}[e.Security])
}

// SenderName returns the name that recipients see next to the sender's address.
func (e Email) SenderName() string { return cmp.Or(e.FromName, e.Brand.Name) }

// CheckSettings returns an error that names the first setting that is missing or malformed.
func (e Email) CheckSettings() error {
	if e.Port < 0 || e.Port > 65535 {
		return fmt.Errorf("SMTP_PORT: %d is not valid, it must be 1 to 65535", e.Port)
	}
	if err := checkTimeout("SMTP_TIMEOUT", e.Timeout, e.CallTimeout); err != nil {
		return err
	}
	if err := e.checkServer(); err != nil {
		return err
	}
	from, err := mail.ParseAddress(e.From)
	if err != nil || from.Name != "" || from.Address != e.From {
		return fmt.Errorf(
			"SMTP_FROM: %q is not valid, it must be an e-mail address, for example tollgate@example.com", e.From)
	}
	if err := errors.Join(checkOneLine("SMTP_FROM_NAME", e.FromName, maxName), e.Brand.Validate()); err != nil {
		return err
	}
	if e.Templates != "" {
		if info, err := os.Stat(e.Templates); err != nil || !info.IsDir() {
			return fmt.Errorf("OTP_EMAIL_TEMPLATES: %s must be a folder that otp-email may read", e.Templates)
		}
	}
	return checkCAFile("SMTP_CA_FILE", e.CAFile)
}

func (e Email) checkServer() error {
	switch {
	case e.Host == "":
		return errors.New("SMTP_HOST: it is missing, and required with OTP_EMAIL_PLUGIN=otp-email")
	case strings.ContainsAny(e.Host, " /@[]\t\r\n"):
		return fmt.Errorf("SMTP_HOST: %q is not valid, it must be the name or address of a host", e.Host)
	case e.Security != StartTLS && e.Security != TLS && e.Security != Plain:
		return fmt.Errorf("SMTP_TLS: %q is not valid, it must be starttls, tls or none", e.Security)
	case e.Security == Plain && !publicdial.IsLoopback(e.Host):
		return fmt.Errorf(
			"SMTP_TLS: none would send codes unencrypted to %s; it is allowed only to the same machine", e.Host)
	case (e.Username == "") != (e.Password == ""):
		return errors.New("SMTP_USERNAME: it and SMTP_PASSWORD must be set together")
	}
	return nil
}
