// Command otp-log is the courier plugin for development: it delivers nothing and writes each
// message to standard error, which the host copies to the service's log. If OTP_LOG_FILE is set, it
// also writes each one-time code to that file, and if NOTICE_LOG_FILE is set, each notice to that
// one. A link by which a person sets a password is written to NOTICE_LOG_FILE only. The plugin shows secrets on purpose and is not for production.
package main

import (
	"os"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

func main() { os.Exit(sdk.RunCourier(openMessageLog())) }

func openMessageLog() (messageLog, error) {
	m := messageLog{
		log: sdk.NewLogger(os.Stderr), codes: logFile(os.Getenv("OTP_LOG_FILE")),
		notices: logFile(os.Getenv("NOTICE_LOG_FILE")),
	}
	return m, m.createFiles()
}
