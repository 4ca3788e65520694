package pluginhost_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
	pluginv1 "github.com/tollgate-dev/tollgate/plugins/sdk/proto/tollgate/plugin/v1"
)

// isPlugin reports whether a host, or the plugin itself, has started the test binary as a plugin.
func isPlugin() bool { return os.Getenv("MODE") != "" || os.Getenv(handshake.CookieKey) != "" }

// runPlugin is the plugin of the tests. The variable MODE says how it starts, and the code of a
// message how it responds to that message. It exits by package syscall, because a test binary with
// coverage prints a line when it exits by package os.
func runPlugin() {
	switch mode := os.Getenv("MODE"); mode {
	case "", "courier":
		sdk.ServeCourier(testCourier{version: "1.2.3"})
	case "settings", "settings of a check":
		serveWithSettings(mode == "settings")
	case "ownership":
		sdk.ServeOwnership(testRegistry{})
	case "cookie":
		config := handshake.Config()
		config.MagicCookieValue = "another"
		serveWith(config, handshake.Versions(sdk.CourierPlugin(testCourier{})))
	case "protocol":
		set := handshake.Versions(sdk.CourierPlugin(testCourier{}))[handshake.Version1]
		serveWith(handshake.Config(), map[int]plugin.PluginSet{99: set})
	case "huge":
		serveWith(handshake.Config(), handshake.Versions(hugePlugin{}))
	case "slow":
		select {}
	case "mute":
		neverAnswer()
	case "exit":
		fmt.Fprintln(os.Stderr, "a setting is missing")
		syscall.Exit(3)
	case "noise":
		printNoise()
		sdk.ServeCourier(testCourier{version: "noisy"})
	case "parent":
		sdk.ServeCourier(testCourier{version: startChild()})
	default:
		fmt.Fprintf(os.Stderr, "MODE is %q, which is not known\n", mode)
		syscall.Exit(2)
	}
}

// serveWithSettings serves a plugin that declares the settings of the variable DECLARE, in which a
// secret ends with an exclamation mark. A value "wrong" is refused. The version has the values.
func serveWithSettings(isCourier bool) {
	var declared []sdk.Setting
	for _, name := range strings.Fields(os.Getenv("DECLARE")) {
		name, secret := strings.CutSuffix(name, "!")
		declared = append(declared, sdk.Setting{Name: name, Secret: secret})
	}
	if isCourier {
		sdk.RunCourierWith(declared, func(values map[string]string) (sdk.Courier, error) {
			for name, value := range values {
				if value == "wrong" {
					return nil, errors.New(name + ": it is wrong")
				}
			}
			return testCourier{version: fmt.Sprint(values)}, nil
		})
		return
	}
	sdk.RunOwnershipWith(declared, func(map[string]string) (sdk.Ownership, error) { return testRegistry{}, nil })
}

type testCourier struct{ version string }

func (c testCourier) Version() string       { return c.version }
func (testCourier) Channels() []sdk.Channel { return []sdk.Channel{sdk.Email} }

func (testCourier) Deliver(ctx context.Context, m sdk.Message) error {
	switch m.Code {
	case "HANG":
		fmt.Fprintln(os.Stderr, "[INFO] hanging")
		select {}
	case "EXIT":
		syscall.Exit(7)
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

type testRegistry struct{}

func (testRegistry) RegistryTypes() []string { return []string{"npm", "cargo"} }

func (testRegistry) Check(ctx context.Context, c sdk.Claim) error {
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

// hugePlugin returns a description that is larger than a message may be.
type hugePlugin struct {
	pluginv1.UnimplementedPluginServer
}

func (h hugePlugin) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	pluginv1.RegisterPluginServer(server, h)
	return nil
}

func (hugePlugin) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("not a client")
}

func (hugePlugin) Describe(context.Context, *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	return &pluginv1.DescribeResponse{Version: strings.Repeat("x", 2*handshake.MaxMessageBytes)}, nil
}

func serveWith(config plugin.HandshakeConfig, versions map[int]plugin.PluginSet) {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: config, VersionedPlugins: versions, GRPCServer: plugin.DefaultGRPCServer,
	})
}

// neverAnswer completes the handshake and then answers no calls.
func neverAnswer() {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix",
		os.Getenv("PLUGIN_UNIX_SOCKET_DIR")+"/mute")
	if err != nil {
		syscall.Exit(4)
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
		syscall.Exit(5)
	}
	go func() { _ = child.Wait() }() // ends with this process's group
	return fmt.Sprint(child.Process.Pid)
}
