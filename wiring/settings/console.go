package settings

import (
	"fmt"

	"github.com/tollgate-dev/tollgate/core/auth/cookies"
)

// Console holds the settings of the console.
type Console struct {
	Mode string `env:"CONSOLE" envDefault:"on" desc:"on, or off: there are no pages below /console/"`
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
