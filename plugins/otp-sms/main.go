// Command otp-sms is the courier plugin for SMS: it sends one-time codes and notices to a gateway
// over HTTP, by default in the form that Twilio requires. It has no queue and sends each message
// once: a message that the gateway did not accept is not delivered.
package main

import (
	"os"

	"github.com/caarlos0/env/v11"

	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

func main() { os.Exit(sdk.RunCourier(openGateway())) }

func openGateway() (*gateway, error) {
	settings, err := env.ParseAs[couriersettings.SMS]()
	if err != nil {
		return nil, err
	}
	return newGateway(settings)
}
