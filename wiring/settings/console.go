package settings

import (
	"fmt"

	"github.com/tollgate-dev/tollgate/core/auth/cookies"
)

// Console holds the settings of the console.
type Console struct {
	Mode string `env:"CONSOLE" envDefault:"on" desc:"on, or off: there are no pages below /console/"`
	// Announce makes the log name the address of the console. It is not a setting: the command that
	// serves sets it, if its log is a terminal.
	Announce bool
}

// Validate returns an error that names the setting that is wrong.
func (c Console) Validate() error {
	if c.Mode != "on" && c.Mode != "off" {
		return fmt.Errorf("CONSOLE: %q is neither on nor off", c.Mode)
	}
	return nil
}

// On reports whether there are pages.
func (c Console) On() bool { return c.Mode == "on" }

// CookiesConfig returns the settings of session cookies: the sessions live as long as with tokens.
func CookiesConfig(a Auth) cookies.Config { return cookies.Config{SessionTTL: a.RefreshTokenTTL} }
