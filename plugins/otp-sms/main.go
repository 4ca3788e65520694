// Command otp-sms is the courier plugin for SMS: it hands one-time codes and notices to a gateway over HTTP, in Twilio's form
// unless it is set up otherwise. It keeps no queue and never tries twice: what the gateway did not take was not delivered.
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
	g, err := open()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	sdk.ServeCourier(g)
}

func open() (*gateway, error) {
	settings, err := env.ParseAs[couriersettings.SMS]()
	if err != nil {
		return nil, err
	}
	return newGateway(settings)
}

// Version implements [sdk.Versioner].
func (*gateway) Version() string { return version }
