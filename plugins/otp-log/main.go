// Command otp-log is the courier plugin for development: it delivers nothing and writes each
// message to standard error, which the host copies to the service's log. If OTP_LOG_FILE is set, it
// also writes each one-time code to that file, and if NOTICE_LOG_FILE is set, each notice to that
// one. A link by which a person sets a password is written to NOTICE_LOG_FILE only. The plugin shows secrets on purpose and is not for production.
package main

import (
	"os"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

func main() {
	log := sdk.NewLogger(os.Stderr) // before serving
	settings := []sdk.Setting{{Name: "OTP_LOG_FILE"}, {Name: "NOTICE_LOG_FILE"}}
	os.Exit(sdk.RunCourierWith(settings, func(values map[string]string) (sdk.Courier, error) {
		m := messageLog{
			log: log, codes: logFile(values["OTP_LOG_FILE"]), notices: logFile(values["NOTICE_LOG_FILE"]),
		}
		return m, m.createFiles()
	}))
}
