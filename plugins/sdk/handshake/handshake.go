// Package handshake declares what the host and a plugin must agree on before the first call: the
// cookie that shows a program that it was started as a plugin, the protocol versions, and the size
// limit of a message. It does not start or serve plugins.
package handshake

import (
	"github.com/hashicorp/go-plugin"
)

// The cookie is not secret. Without it, a plugin that somebody starts by hand would wait for a host
// forever.
const (
	CookieKey   = "TOLLGATE_PLUGIN"
	CookieValue = "d0f2d8f5-41c3-4c6e-9b33-2f0ad1a2f7f4"
)

// Version1 is the protocol of package tollgate.plugin.v1 in plugins/sdk/proto. The host supports a
// later version in addition to earlier ones while plugins use them; host and plugin agree on the
// highest version that both support.
const Version1 = 1

// Version2 is Version1 with the calls Settings and Configure before Describe. A plugin without
// settings needs only Version1.
const Version2 = 2

// MaxMessageBytes is the size limit of a message in either direction.
const MaxMessageBytes = 1 << 20

// MaxErrorText is the size limit, in bytes, of the text of an error that the host accepts from a
// plugin. The host cuts off the rest.
const MaxErrorText = 2000

// ReasonRegistryHost is the reason of the detail ErrorInfo of a failed check whose domain is the host
// of a registry that gave no usable response. The publisher reads the host.
const ReasonRegistryHost = "REGISTRY_HOST"

// Limits of the registry types that an ownership plugin lists: how many, and of how many bytes.
const (
	MaxRegistryTypes = 64
	MaxRegistryType  = 64
)

// Setting is a setting that a plugin declares.
type Setting struct {
	// Name is the environment variable of the service that has the value. It must begin with the
	// plugin's name in capitals, for example OTP_OUTBOX_DIR for otp-outbox: the host refuses others.
	Name string
	// Secret means that a file may have the value, whose path is in the variable with _FILE after
	// Name.
	Secret bool
}

// MaxSettings is how many settings a plugin may declare, and of how many bytes the name of one.
const MaxSettings = 64

// SetName is the name of the only plugin in a plugin set. The description of the plugin says which
// services it has.
const SetName = "tollgate"

// Health is the service name that go-plugin's server uses in the gRPC health protocol.
const Health = "plugin"

// Config returns the handshake of host and plugin. It contains no protocol version because host and
// plugin negotiate the version from [Versions].
func Config() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{MagicCookieKey: CookieKey, MagicCookieValue: CookieValue}
}

// Versions returns the plugin sets by protocol version; p is the host's or the plugin's side of
// version 1, and of the later versions that it has.
func Versions(p plugin.GRPCPlugin, later ...int) map[int]plugin.PluginSet {
	sets := map[int]plugin.PluginSet{}
	for _, version := range append(later, Version1) {
		sets[version] = plugin.PluginSet{SetName: grpcOnly{GRPCPlugin: p}}
	}
	return sets
}

// grpcOnly implements go-plugin's older interface for a gRPC plugin.
type grpcOnly struct {
	plugin.NetRPCUnsupportedPlugin
	plugin.GRPCPlugin
}

// LifelineKey is the name of an environment variable. If its value is [LifelineStdin], the plugin's
// standard input is a pipe without data that is closed when the host ends. A plugin stops at the
// end of the pipe, so that it does not outlive a host that was killed.
const (
	LifelineKey   = "TOLLGATE_PLUGIN_LIFELINE"
	LifelineStdin = "stdin"
)
