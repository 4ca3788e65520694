// Package sdk is the package that plugin authors import. A plugin is a program that Tollgate starts
// and calls over gRPC; this package makes one out of a Go value, and nothing of Tollgate's inside
// is needed to write it.
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
//	func main() {
//		os.Exit(sdk.RunCourierWith([]sdk.Setting{{Name: "OTP_GATEWAY_URL"}},
//			func(values map[string]string) (sdk.Courier, error) {
//				return gateway{url: values["OTP_GATEWAY_URL"]}, nil
//			}))
//	}
//
// # A package registry
//
// An ownership plugin reports whether a package claims the server that lists it: implement
// [Ownership] and call [ServeOwnership]. Return nil if the package claims the server, an error of
// [Refuse] if it does not, and any other error if the check could not be completed.
//
// # What the host does
//
//   - Name: the name of the file in PLUGIN_DIR is the name of the plugin: "otp-…" for couriers,
//     "pkg-…" for package registries, or any name with a kind in plugins.yaml.
//   - Environment: the plugin gets an empty environment, except for env in plugins.yaml.
//   - Settings: the host passes on the variables that the plugin declares, see [Setting]. If one is
//     missing or wrong, return an error: the host logs it and tries again later.
//   - Start: the plugin must serve within 5 seconds. Call [ServeCourier] at once, and connect to
//     other servers at the first call.
//   - Calls: the host makes many calls at the same time, each with a deadline of 10 seconds in its
//     context. Respect the context: after three calls in a row that exceed their deadline, the host
//     kills the plugin and starts it again.
//   - Messages: a message has at most 1 MiB. The host checks it before it sends it: a recipient is
//     one line and not empty, a code has only letters and digits.
//   - Failure: the SDK recovers a panic in a call, logs it and returns an error. The host starts a
//     plugin that exits again, after a delay that doubles each time. It never repeats a call.
//   - Stop: the host closes the connection and main continues after [ServeCourier]. The plugin has
//     two seconds to end. It also stops when the host is gone.
//
// # Logging
//
// Use [NewLogger], and call it in main before serving: its lines appear in the host's log at their
// level. Do not log a code or a recipient; only otp-log does, because that is its purpose.
//
// # Testing
//
// Package sdktest runs Tollgate's contract tests against your implementation, over a connection
// like the host's.
package sdk
