// Command otp-email is the courier plugin for e-mail: it hands one-time codes and notices to a mail server over SMTP, with
// STARTTLS or TLS (RFC 3207, RFC 8314). It keeps no queue and never tries twice: what the server did not take was not delivered.
package main

import (
	"fmt"
	"os"

	"github.com/caarlos0/env/v11"

	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

// version is set by the build.
var version string

func main() {
	p, err := open()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	sdk.ServeCourier(p)
}

func open() (*post, error) {
	settings, err := env.ParseAs[couriersettings.Email]()
	if err != nil {
		return nil, err
	}
	return newPost(settings)
}

// Version implements [sdk.Versioner].
func (*post) Version() string { return version }
