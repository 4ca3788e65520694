// Command otp-log is the courier plugin for development: it delivers nothing, and writes every message where a developer or a
// test finds it, to standard error (which the host puts into the service's log) and, when they are set, a one-time code to
// OTP_LOG_FILE and a notice to NOTICE_LOG_FILE. The two are apart: who reads the one for codes finds nothing else there.
// It shows secrets on purpose and is not for production.
package main

import (
	"fmt"
	"os"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

// version is set by the build.
var version string

func main() {
	scribe := scribe{log: sdk.NewLogger(os.Stderr), codes: book(os.Getenv("OTP_LOG_FILE")), notices: book(os.Getenv("NOTICE_LOG_FILE"))}
	if err := scribe.check(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	sdk.ServeCourier(scribe)
}

// Version is the build's.
func (s scribe) Version() string { return version }
