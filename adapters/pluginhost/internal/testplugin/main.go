// Command testplugin is a plugin for the tests of package pluginhost. The variable MODE says how it
// starts, and the code of a message how it responds to that message.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
	pluginv1 "github.com/tollgate-dev/tollgate/plugins/sdk/proto/tollgate/plugin/v1"
)

func main() {
	switch mode := os.Getenv("MODE"); mode {
	case "", "courier":
		sdk.ServeCourier(courier{version: "1.2.3"})
	case "ownership":
		sdk.ServeOwnership(registry{})
	case "cookie":
		config := handshake.Config()
		config.MagicCookieValue = "another"
		servePlugin(config, handshake.Versions(sdk.CourierPlugin(courier{})))
	case "protocol":
		set := handshake.Versions(sdk.CourierPlugin(courier{}))[handshake.Version1]
		servePlugin(handshake.Config(), map[int]plugin.PluginSet{99: set})
	case "huge":
		servePlugin(handshake.Config(), handshake.Versions(huge{}))
	case "slow":
		select {}
	case "mute":
		neverAnswer()
	case "exit":
		fmt.Fprintln(os.Stderr, "a setting is missing")
		os.Exit(3)
	case "noise":
		printNoise()
		sdk.ServeCourier(courier{version: "noisy"})
	case "parent":
		sdk.ServeCourier(courier{version: startChild()})
	default:
		fmt.Fprintf(os.Stderr, "MODE is %q, which is not known\n", mode)
		os.Exit(2)
	}
}

type courier struct{ version string }

func (c courier) Version() string       { return c.version }
func (courier) Channels() []sdk.Channel { return []sdk.Channel{sdk.Email} }

func (courier) Deliver(ctx context.Context, m sdk.Message) error {
	switch m.Code {
	case "HANG":
		fmt.Fprintln(os.Stderr, "[INFO] hanging")
		select {}
	case "EXIT":
		os.Exit(7)
	case "PANIC":
		return *(*error)(nil)
	case "LEAK":
		return fmt.Errorf("gateway says no to %s with %s", m.Recipient, m.Code)
	case "ENV":
		return errors.New(strings.Join(passedVariables(), " "))
	}
	return ctx.Err()
}

// passedVariables returns the environment variables that go-plugin does not set itself.
func passedVariables() []string {
	var kept []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "PLUGIN_") {
			kept = append(kept, pair)
		}
	}
	return kept
}

type registry struct{}

func (registry) RegistryTypes() []string { return []string{"npm", "cargo"} }

func (registry) Check(ctx context.Context, c sdk.Claim) error {
	switch c.Identifier {
	case "missing":
		return sdk.Refuse("there is no package %q", c.Identifier)
	case "foreign":
		return sdk.Refuse("package %q does not claim %s", c.Identifier, c.ServerName)
	case "busy":
		return errors.New("registry answered 503")
	case "huge":
		return sdk.Refuse("%s", strings.Repeat("x", 2*handshake.MaxMessageBytes))
	}
	return ctx.Err()
}

// huge returns a description that is larger than a message may be.
type huge struct {
	pluginv1.UnimplementedPluginServer
}

func (h huge) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	pluginv1.RegisterPluginServer(server, h)
	return nil
}

func (huge) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("not a client")
}

func (huge) Describe(context.Context, *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	return &pluginv1.DescribeResponse{Version: strings.Repeat("x", 2*handshake.MaxMessageBytes)}, nil
}

func servePlugin(config plugin.HandshakeConfig, versions map[int]plugin.PluginSet) {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: config, VersionedPlugins: versions, GRPCServer: plugin.DefaultGRPCServer,
	})
}

// neverAnswer completes the handshake and then answers no calls.
func neverAnswer() {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix",
		os.Getenv("PLUGIN_UNIX_SOCKET_DIR")+"/mute")
	if err != nil {
		os.Exit(4)
	}
	_, _ = fmt.Fprintf(os.Stdout, "%d|%d|unix|%s|grpc|\n", plugin.CoreProtocolVersion, handshake.Version1,
		listener.Addr())
	select {}
}

// printNoise prints lines that a careless log reader cannot handle.
func printNoise() {
	for _, line := range []string{
		`{"@message": 5, "@level": {}, "@timestamp": []}`,
		`{"@message": "named level", "@level": ["error"], "plugin": "impostor"}`,
		`{"@message": "warned", "@level": "warn", "answer": 42}`,
		`{not json`,
		"[ERROR] tagged",
		"\xff\xfe binary \x00",
		strings.Repeat("long ", 100_000),
		"panic: not really",
	} {
		fmt.Fprintln(os.Stderr, line)
	}
}

// startChild starts a child process that keeps the plugin's standard error open, and returns its
// id.
func startChild() string {
	child := exec.CommandContext(context.Background(), "/proc/self/exe")
	child.Env = []string{"MODE=slow"}
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		os.Exit(5)
	}
	go func() { _ = child.Wait() }() // ends with this process's group
	return fmt.Sprint(child.Process.Pid)
}
