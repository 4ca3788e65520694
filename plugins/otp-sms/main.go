// Command otp-sms is the courier plugin for SMS: it sends one-time codes and notices to a gateway
// over HTTP, by default in the form that Twilio requires. It has no queue and sends each message
// once: a message that the gateway did not accept is not delivered.
package main

import (
	"os"

	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

func main() {
	os.Exit(sdk.RunCourierWith(couriersettings.Declared(couriersettings.SMS{}), openGateway))
}

func openGateway(values map[string]string) (sdk.Courier, error) {
	settings, err := couriersettings.Parse[couriersettings.SMS](values)
	if err != nil {
		return nil, err
	}
	return newGateway(settings)
}
