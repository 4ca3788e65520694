package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/plugins/handshake"
	pluginv1 "github.com/tollgate-dev/tollgate/plugins/proto/tollgate/plugin/v1"
)

// Versioner is implemented by a plugin that names its own version; others go by the version of their main module.
type Versioner interface {
	// Version returns at most 64 printable bytes, for people to read.
	Version() string
}

// side is the plugin's side of the protocol.
type side struct {
	register func(*grpc.Server)
}

// GRPCServer registers the plugin's services.
func (s side) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	s.register(server)
	return nil
}

// GRPCClient hands the bare connection to those who test.
func (s side) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

type describer struct {
	pluginv1.UnimplementedPluginServer
	describe func() *pluginv1.DescribeResponse
}

func (d describer) Describe(context.Context, *pluginv1.DescribeRequest) (_ *pluginv1.DescribeResponse, err error) {
	defer recovered(&err)
	return d.describe(), nil
}

func serve(p plugin.GRPCPlugin) {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  handshake.Config(),
		VersionedPlugins: handshake.Versions(p),
		GRPCServer:       newServer,
		Logger: hclog.New(&hclog.LoggerOptions{
			Name: "go-plugin", Level: hclog.Warn, Output: os.Stderr, JSONFormat: true,
		}),
	})
}

// newServer makes the server that go-plugin fills, and ties its life to the host's.
func newServer(options []grpc.ServerOption) *grpc.Server {
	server := grpc.NewServer(append(options,
		grpc.MaxRecvMsgSize(handshake.MaxMessageBytes), grpc.MaxSendMsgSize(handshake.MaxMessageBytes))...)
	if os.Getenv(handshake.LifelineKey) == handshake.LifelineStdin {
		stopAtEnd(os.Stdin, server.Stop)
	}
	return server
}

// stopAtEnd calls stop once when r ends, by its end or an error.
func stopAtEnd(r io.Reader, stop func()) {
	var once sync.Once
	go func() {
		_, _ = io.Copy(io.Discard, r) // whichever way it ends, the host is gone
		once.Do(stop)
	}()
}

// versionOf returns what p says, else the version of the program's main module.
func versionOf(p any) string {
	if v, ok := p.(Versioner); ok {
		return utf8Only(v.Version())
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "(devel)" {
		return ""
	}
	return info.Main.Version
}

// recovered turns a panic of the author's code into an error status, so that one bad message does not end the others. The
// panic's value may hold the code, so only its type and the stack are logged.
func recovered(err *error) {
	value := recover()
	if value == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "[ERROR] panic of type %T in a call, at %s\n", value, strings.Join(frames(), " < "))
	*err = status.Error(codes.Internal, fmt.Sprintf("panic of type %T in the plugin", value))
}

// statusOf returns the status for an author's error: that it has, if it is one, else one for a failure that may pass.
func statusOf(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.Unavailable, "a deadline passed: "+utf8Only(err.Error()))
	}
	return status.Error(codes.Unavailable, utf8Only(err.Error()))
}

// utf8Only makes s fit a protocol buffer string.
func utf8Only(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
