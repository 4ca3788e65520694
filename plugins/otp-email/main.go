// Command otp-email is the courier plugin for e-mail: it sends one-time codes and notices to a mail
// server by SMTP with STARTTLS or TLS (RFC 3207, RFC 8314). It has no queue and sends each message
// once: a message that the server did not accept is not delivered.
package main

import (
	"os"

	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

func main() {
	os.Exit(sdk.RunCourierWith(couriersettings.Declared(couriersettings.Email{}), openMailer))
}

func openMailer(values map[string]string) (sdk.Courier, error) {
	settings, err := couriersettings.Parse[couriersettings.Email](values)
	if err != nil {
		return nil, err
	}
	return newMailer(settings)
}
