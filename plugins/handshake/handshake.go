// Package handshake holds what the host and a plugin must agree on before they speak: the cookie by which a plugin knows that
// it was started as one, the versions of the protocol, and the bound of a message. It starts nothing and serves nothing.
package handshake

import (
	"github.com/hashicorp/go-plugin"
)

// The cookie is no secret: it only keeps a plugin that someone starts by hand from waiting for a host for ever.
const (
	CookieKey   = "TOLLGATE_PLUGIN"
	CookieValue = "d0f2d8f5-41c3-4c6e-9b33-2f0ad1a2f7f4"
)

// Version1 is package tollgate.plugin.v1 of plugins/proto. A later version is served beside it for as long as plugins of the
// earlier one are about; host and plugin agree on the highest that both know.
const Version1 = 1

// MaxMessageBytes bounds a message in either direction.
const MaxMessageBytes = 1 << 20

// MaxErrorText bounds, in bytes, the text of an error or a refusal that a host takes from a plugin; the rest is cut off.
const MaxErrorText = 2000

// SetName is the one name under which a plugin set holds its plugin: which services there are, the plugin describes itself.
const SetName = "tollgate"

// Health is the service name under which go-plugin's server answers the gRPC health protocol.
const Health = "plugin"

// Config returns the handshake of host and plugin. The protocol version is left out: it is negotiated from [Versions].
func Config() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{MagicCookieKey: CookieKey, MagicCookieValue: CookieValue}
}

// Versions returns the plugin sets by protocol version, p being the host's or the plugin's side of version 1.
func Versions(p plugin.GRPCPlugin) map[int]plugin.PluginSet {
	return map[int]plugin.PluginSet{Version1: {SetName: both{GRPCPlugin: p}}}
}

// both makes a gRPC plugin acceptable where go-plugin's older interface is asked for.
type both struct {
	plugin.NetRPCUnsupportedPlugin
	plugin.GRPCPlugin
}

// LifelineKey is the environment variable by which a host says, with the value [LifelineStdin], that a plugin's standard input
// is a pipe that nobody writes to, and that ends with the host: a plugin that reads its end stops, so that none outlives a host
// that was killed.
const (
	LifelineKey   = "TOLLGATE_PLUGIN_LIFELINE"
	LifelineStdin = "stdin"
)
