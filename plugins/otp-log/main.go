// Command otp-log is the courier plugin for development: it delivers nothing, and writes every one-time code where a developer
// or a test finds it, to standard error (which the host puts into the service's log) and, when OTP_LOG_FILE is set, to that file.
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
	scribe := scribe{log: sdk.NewLogger(os.Stderr), path: os.Getenv("OTP_LOG_FILE")}
	if err := scribe.check(); err != nil {
		fmt.Fprintf(os.Stderr, "OTP_LOG_FILE: %v\n", err)
		os.Exit(1)
	}
	sdk.ServeCourier(scribe)
}

// Version is the build's.
func (s scribe) Version() string { return version }
