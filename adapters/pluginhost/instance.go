package pluginhost

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-plugin"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/plugins/pluginclient"
	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
)

const (
	// stopGrace is the time that a plugin has to end by itself when the host closes.
	stopGrace = 2 * time.Second
	// maxOverruns is the number of consecutive calls that may exceed their deadline before the host
	// replaces the plugin, even if its health checks succeed.
	maxOverruns = 3
)

// instance is one run of a plugin.
type instance struct {
	process     *process
	client      *plugin.Client
	conn        *grpc.ClientConn
	description pluginclient.Description

	checkNow chan struct{} // requests a health check now, because a call takes long
	overruns atomic.Int32
}

// launchInstance starts the plugin and returns it once it is healthy and has returned its
// description. It kills the process and returns an error if ctx ends or the start deadline passes
// before that.
func launchInstance(
	ctx context.Context, s spec, sockets string, cfg Config, log *logrus.Entry,
) (*instance, error) {
	if err := s.verifyBinary(); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.limits.start,
		fmt.Errorf("the plugin did not start within %v", s.limits.start))
	defer cancel()
	p := &process{path: s.path, env: s.env, log: log, done: make(chan struct{})}
	config := clientConfig(s, sockets, p)
	if cfg.Interceptor != nil {
		config.GRPCDialOptions = append(config.GRPCDialOptions, grpc.WithChainUnaryInterceptor(cfg.Interceptor))
	}
	i := &instance{process: p, client: plugin.NewClient(config), checkNow: make(chan struct{}, 1)}
	abort := context.AfterFunc(limited, p.killGroupOnce)
	err := i.connectPlugin(limited, s, cfg)
	if !abort() && err == nil {
		err = context.Cause(limited) // the plugin started and was killed at the same moment
	}
	if err == nil {
		return i, nil
	}
	late := context.Cause(limited)
	i.killProcess()
	if late != nil {
		return nil, late
	}
	if own := i.process.ownExitError(); own != nil {
		return nil, i.process.startError(own)
	}
	return nil, err
}

// startGrace is how much later the library's own start deadline is, so that the error of our
// deadline is always the one reported.
const startGrace = time.Second

func clientConfig(s spec, sockets string, p *process) *plugin.ClientConfig {
	bound := grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(s.limits.message),
		grpc.MaxCallSendMsgSize(s.limits.message))
	return &plugin.ClientConfig{
		HandshakeConfig:  handshake.Config(),
		VersionedPlugins: handshake.Versions(hostSide{}, handshake.Version2),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         true,
		SkipHostEnv:      true,
		StartTimeout:     s.limits.start + startGrace,
		GRPCDialOptions:  []grpc.DialOption{bound},
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: sockets},
		Logger:           newLibraryLogger(p.log),
		SyncStdout:       &logWriter{log: p.log, defaultLevel: logrus.InfoLevel},
		SyncStderr:       &logWriter{log: p.log, defaultLevel: logrus.WarnLevel},
		RunnerFunc:       p.newRunner,
	}
}

// connectPlugin lets go-plugin start the process, checks the health of the plugin, gives it its
// settings, and checks its description.
func (i *instance) connectPlugin(ctx context.Context, s spec, cfg Config) error {
	protocol, err := i.client.Client()
	if err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	open, err := protocol.Dispense(handshake.SetName)
	if err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	conn, ok := open.(*grpc.ClientConn)
	if !ok {
		return fmt.Errorf("the connection has the unexpected type %T", open)
	}
	i.conn = conn
	if err := pluginclient.CheckHealth(ctx, conn); err != nil {
		return err
	}
	if i.client.NegotiatedVersion() >= handshake.Version2 {
		if err := s.configure(ctx, conn, cfg); err != nil {
			return err
		}
	}
	i.description, err = pluginclient.Describe(ctx, conn)
	if err != nil {
		return err
	}
	if i.description.Kind != s.kind {
		return fmt.Errorf("the plugin is of kind %s, but its name or the manifest says %s", i.description.Kind, s.kind)
	}
	return nil
}

// watchHealth returns the reason when the plugin must be replaced, or nil when ctx ends.
func (i *instance) watchHealth(ctx context.Context, interval, timeout time.Duration) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-i.process.done:
			return i.process.exitError()
		case <-ticker.C:
		case <-i.checkNow:
		}
		if n := i.overruns.Load(); n >= maxOverruns {
			return fmt.Errorf("%d calls in a row exceeded their deadline", n)
		}
		if err := i.checkHealth(ctx, timeout); err != nil && ctx.Err() == nil {
			return i.preferExit(err)
		}
	}
}

func (i *instance) checkHealth(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return pluginclient.CheckHealth(ctx, i.conn)
}

// preferExit returns the error of the process's exit if it has ended, because err then follows from
// it, and err otherwise.
func (i *instance) preferExit(err error) error {
	select {
	case <-i.process.done:
		return i.process.exitError()
	default:
		return err
	}
}

// requestCheck requests a health check now.
func (i *instance) requestCheck() {
	select {
	case i.checkNow <- struct{}{}:
	default: // already requested
	}
}

// recordOverrun records whether a call exceeded the host's deadline.
func (i *instance) recordOverrun(overrun bool) {
	if !overrun {
		i.overruns.Store(0)
		return
	}
	if i.overruns.Add(1) >= maxOverruns {
		i.requestCheck()
	}
}

// stopGracefully lets the plugin end by itself, and kills it after stopGrace.
func (i *instance) stopGracefully() {
	timer := time.AfterFunc(stopGrace, i.process.killGroupOnce)
	defer timer.Stop()
	i.cleanUp()
}

// killProcess kills the plugin at once. It kills the process before it calls go-plugin, which would
// otherwise request the plugin to end and wait.
func (i *instance) killProcess() {
	i.process.killGroupOnce()
	i.cleanUp()
}

// cleanUp waits for the process to end and removes its files.
func (i *instance) cleanUp() {
	i.client.Kill()
	_ = os.RemoveAll(i.process.dir) // Host.Close removes the folder that contains it
}
