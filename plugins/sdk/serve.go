package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
	pluginv1 "github.com/tollgate-dev/tollgate/plugins/sdk/proto/tollgate/plugin/v1"
)

// Versioner is an optional interface of plugins. The version of a plugin that does not implement it
// is that of its main module.
type Versioner interface {
	// Version must return at most 64 printable bytes, for people to read.
	Version() string
}

// grpcPlugin implements [plugin.GRPCPlugin] for both kinds of plugin.
type grpcPlugin struct {
	register func(*grpc.Server)
}

// GRPCServer registers the plugin's services.
func (s grpcPlugin) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	s.register(server)
	return nil
}

// GRPCClient returns the connection itself, which tests use.
func (s grpcPlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

type describer struct {
	pluginv1.UnimplementedPluginServer
	describe  func() *pluginv1.DescribeResponse
	settings  []Setting
	configure func(map[string]string) error // nil for a plugin without settings
}

func (d describer) Describe(context.Context, *pluginv1.DescribeRequest) (_ *pluginv1.DescribeResponse, err error) {
	defer recoverPanic(&err)
	return d.describe(), nil
}

func runPlugin(openError error, serve func()) (exitStatus int) {
	if openError != nil {
		fmt.Fprintln(os.Stderr, openError)
		return 1
	}
	serve()
	return 0
}

func servePlugin(versions map[int]plugin.PluginSet) {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  handshake.Config(),
		VersionedPlugins: versions,
		GRPCServer:       newServer,
		Logger: hclog.New(&hclog.LoggerOptions{
			Name: "go-plugin", Level: hclog.Warn, Output: os.Stderr, JSONFormat: true,
		}),
	})
}

// newServer returns the gRPC server for go-plugin. The server stops when the host is gone.
func newServer(options []grpc.ServerOption) *grpc.Server {
	server := grpc.NewServer(append(options,
		grpc.MaxRecvMsgSize(handshake.MaxMessageBytes), grpc.MaxSendMsgSize(handshake.MaxMessageBytes))...)
	if os.Getenv(handshake.LifelineKey) == handshake.LifelineStdin {
		stopAtEOF(os.Stdin, server.Stop)
	}
	return server
}

// stopAtEOF calls stop once when reading r returns io.EOF or another error.
func stopAtEOF(r io.Reader, stop func()) {
	var once sync.Once
	go func() {
		_, _ = io.Copy(io.Discard, r) // at the end or at an error, the host is gone
		once.Do(stop)
	}()
}

// bundledVersion is the version of the plugins that come with Tollgate. Their build sets it.
var bundledVersion string

// pluginVersion returns the version that p reports, or that of the program.
func pluginVersion(p any) string {
	if v, ok := p.(Versioner); ok {
		return validUTF8(v.Version())
	}
	if bundledVersion != "" {
		return bundledVersion
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "(devel)" {
		return ""
	}
	return info.Main.Version
}

// recoverPanic converts a panic in the plugin author's code to an error status, so that other calls
// continue. It logs only the type of the panic's value and the stack, because the value may contain
// the code.
func recoverPanic(err *error) {
	value := recover()
	if value == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "[ERROR] panic of type %T in a call, at %s\n", value, strings.Join(panicFrames(), " < "))
	*err = status.Error(codes.Internal, fmt.Sprintf("panic of type %T in the plugin", value))
}

// errorStatus returns the gRPC status for an error of the plugin author's code: the status of ctx
// if ctx has ended, otherwise Unavailable, which the host treats as transient.
func errorStatus(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.Unavailable, "a deadline was exceeded: "+validUTF8(err.Error()))
	}
	return status.Error(codes.Unavailable, validUTF8(err.Error()))
}

// validUTF8 returns s with invalid UTF-8 replaced, because protocol buffers accept only valid
// UTF-8.
func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// hostTimeFormat is the time format that the host reads.
const hostTimeFormat = "2006-01-02T15:04:05.000000Z07:00"

// NewLogger returns a logger whose lines the host writes to its log, with their level and
// attributes. w must be [os.Stderr]; call NewLogger before serving, because serving replaces
// os.Stderr.
func NewLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: renameKeys}))
}

// renameKeys renames the keys of a line to those that go-plugin reads.
func renameKeys(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		return slog.String("@timestamp", a.Value.Time().Format(hostTimeFormat))
	case slog.LevelKey:
		return slog.String("@level", levelName(a.Value))
	case slog.MessageKey:
		return slog.Attr{Key: "@message", Value: a.Value}
	}
	if a.Value.Kind() == slog.KindTime {
		return slog.String(a.Key, a.Value.Time().Format(time.RFC3339Nano))
	}
	return a
}

func levelName(v slog.Value) string {
	level, _ := v.Any().(slog.Level) // slog stores only levels under this key; the zero value is info
	switch {
	case level >= slog.LevelError:
		return "error"
	case level >= slog.LevelWarn:
		return "warn"
	case level >= slog.LevelInfo:
		return "info"
	}
	return "debug"
}

// panicFrames returns the innermost callers of a panic, without their arguments, which may contain
// a code.
func panicFrames() []string {
	const depth, skip = 16, 4 // skip: Callers, panicFrames, recoverPanic and the runtime's own panic
	counters := make([]uintptr, depth)
	n := runtime.Callers(skip, counters)
	walk := runtime.CallersFrames(counters[:n])
	var names []string
	for {
		frame, more := walk.Next()
		if !strings.HasPrefix(frame.Function, "runtime.") {
			names = append(names, fmt.Sprintf("%s (%s:%d)", frame.Function, filepath.Base(frame.File), frame.Line))
		}
		if !more {
			return names
		}
	}
}
