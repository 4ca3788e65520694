// Command otp-log is the courier plugin for development: it delivers nothing and writes each
// message to standard error, which the host copies to the service's log. If OTP_LOG_FILE is set, it
// also writes each one-time code to that file, and if NOTICE_LOG_FILE is set, each notice to that
// one. The plugin shows secrets on purpose and is not for production.
package main

import (
	"fmt"
	"os"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

// version is set by the build.
var version string

func main() {
	scribe := messageLog{log: sdk.NewLogger(os.Stderr), codes: logFile(os.Getenv("OTP_LOG_FILE")), notices: logFile(os.Getenv("NOTICE_LOG_FILE"))}
	if err := scribe.createFiles(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	sdk.ServeCourier(scribe)
}

// Version implements [sdk.Versioner].
func (s messageLog) Version() string { return version }
