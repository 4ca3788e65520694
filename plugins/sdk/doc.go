// Package sdk is what a plugin author imports. A plugin is a program that Tollgate starts and calls over gRPC; this package
// makes one out of a Go value, and nothing of Tollgate's inside is needed to write it.
//
// # A courier
//
// A courier hands one-time codes and notices to a channel, e-mail or SMS. The whole program:
//
//	package main
//
//	import (
//		"context"
//		"os"
//
//		"github.com/tollgate-dev/tollgate/plugins/sdk"
//	)
//
//	type gateway struct{ url string }
//
//	func (g gateway) Channels() []sdk.Channel { return []sdk.Channel{sdk.SMS} }
//
//	func (g gateway) Deliver(ctx context.Context, m sdk.Message) error {
//		text := m.Text
//		if m.Kind == sdk.OTP {
//			text = "Your code is " + m.Code
//		}
//		return post(ctx, g.url, m.Recipient, text)
//	}
//
//	func main() { sdk.ServeCourier(gateway{url: os.Getenv("SMS_GATEWAY_URL")}) }
//
// # A package registry
//
// An ownership plugin reports whether a package claims the server that names it: implement [Ownership] and call
// [ServeOwnership]. Return nil for "it does", [Refuse] for "it does not", any other error for "not known now".
//
// # What the host does
//
//   - Name: the file's name in PLUGIN_DIR is the plugin's name: "otp-…" for couriers, "pkg-…" for package registries, or any
//     name with a `kind` in plugins.yaml.
//   - Environment: empty, but for what plugins.yaml gives the plugin under `env`. Read it in main, and exit with a sentence on
//     standard error when something is missing: the host logs it and tries again later.
//   - Start: serving must begin within 5 seconds. Call [ServeCourier] at once and connect to third parties when first called.
//   - Calls: many at once, each with a deadline of 10 seconds in its context. Heed the context; calls that all overrun their
//     deadline get the plugin killed and started again.
//   - Messages: at most 1 MiB, checked before they arrive: a recipient is one line and not empty, a code is letters and digits.
//   - Failure: a panic in a call is recovered, logged and answered as a failure. A plugin that exits is started again, after
//     a delay that doubles each time. The host never tries a call twice.
//   - Stop: the connection closes and main continues after [ServeCourier]; it has two seconds to end. The program also stops
//     when the host is gone.
//
// # Logging
//
// Use [NewLogger], made in main before serving: its lines appear in the host's log at their level. Never log a code or a
// recipient; otp-log alone does, since that is what it is for.
//
// # Testing
//
// Package sdktest runs Tollgate's contract suite against your implementation, over a connection like the host's.
package sdk
