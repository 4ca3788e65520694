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

	"github.com/tollgate-dev/tollgate/plugins/handshake"
	"github.com/tollgate-dev/tollgate/plugins/pluginclient"
)

const (
	// stopGrace is how long a plugin may take to end when the host closes.
	stopGrace = 2 * time.Second
	// maxOverruns is how many calls in a row may overrun their deadline before the plugin counts as hung although it answers
	// health checks.
	maxOverruns = 3
)

// instance is one run of a plugin.
type instance struct {
	process     *process
	client      *plugin.Client
	conn        *grpc.ClientConn
	description pluginclient.Description

	doubts   chan struct{} // a call takes long: check the plugin now
	overruns atomic.Int32
}

// launch starts the plugin and returns once it is healthy and has described itself. When ctx ends first, or at the start
// deadline, the process is killed.
func launch(ctx context.Context, s spec, sockets string, around grpc.UnaryClientInterceptor, log *logrus.Entry) (*instance, error) {
	if err := s.verify(); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.limits.start, fmt.Errorf("it did not start within %v", s.limits.start))
	defer cancel()
	p := newProcess(s.path, s.env, log)
	config := clientConfig(s, sockets, p)
	if around != nil {
		config.GRPCDialOptions = append(config.GRPCDialOptions, grpc.WithChainUnaryInterceptor(around))
	}
	i := &instance{process: p, client: plugin.NewClient(config), doubts: make(chan struct{}, 1)}
	abort := context.AfterFunc(limited, p.killGroupOnce)
	err := i.connect(limited, s.kind)
	if !abort() && err == nil {
		err = context.Cause(limited) // it came up, and was killed in the same moment
	}
	if err == nil {
		return i, nil
	}
	late := context.Cause(limited)
	i.killProcess()
	if late != nil {
		return nil, late
	}
	if own := i.process.ownExit(); own != nil {
		return nil, i.process.stillborn(own)
	}
	return nil, err
}

// startGrace is how much later than ours the library's own deadline of a start is, so that it is always ours that is told.
const startGrace = time.Second

func clientConfig(s spec, sockets string, p *process) *plugin.ClientConfig {
	bound := grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(s.limits.message), grpc.MaxCallSendMsgSize(s.limits.message))
	return &plugin.ClientConfig{
		HandshakeConfig:  handshake.Config(),
		VersionedPlugins: handshake.Versions(bareConn{}),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         true,
		SkipHostEnv:      true,
		StartTimeout:     s.limits.start + startGrace,
		GRPCDialOptions:  []grpc.DialOption{bound},
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: sockets},
		Logger:           libraryLog(p.log),
		SyncStdout:       &lines{log: p.log, plain: logrus.InfoLevel},
		SyncStderr:       &lines{log: p.log, plain: logrus.WarnLevel},
		RunnerFunc:       p.runner,
	}
}

// connect has go-plugin start the process and shake hands, and asks the plugin what it is.
func (i *instance) connect(ctx context.Context, kind pluginclient.Kind) error {
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
		return fmt.Errorf("connection is a %T", open)
	}
	i.conn = conn
	if err := pluginclient.Healthy(ctx, conn); err != nil {
		return err
	}
	i.description, err = pluginclient.Describe(ctx, conn)
	if err != nil {
		return err
	}
	if i.description.Kind != kind {
		return fmt.Errorf("plugin describes itself as %s, it is set up as %s", i.description.Kind, kind)
	}
	return nil
}

// watch returns why the plugin cannot go on, or nil when ctx ends first.
func (i *instance) watch(ctx context.Context, interval, timeout time.Duration) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-i.process.done:
			return i.process.exit()
		case <-ticker.C:
		case <-i.doubts:
		}
		if n := i.overruns.Load(); n >= maxOverruns {
			return fmt.Errorf("%d calls in a row overran their deadline", n)
		}
		if err := i.probe(ctx, timeout); err != nil && ctx.Err() == nil {
			return i.cause(err)
		}
	}
}

func (i *instance) probe(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return pluginclient.Healthy(ctx, i.conn)
}

// cause prefers the end of the process, if it has ended, to what followed from it.
func (i *instance) cause(err error) error {
	select {
	case <-i.process.done:
		return i.process.exit()
	default:
		return err
	}
}

// doubt asks for a health check now.
func (i *instance) doubt() {
	select {
	case i.doubts <- struct{}{}:
	default: // one is asked for already
	}
}

// count takes note of a call's end: whether it overran the host's deadline.
func (i *instance) count(overrun bool) {
	if !overrun {
		i.overruns.Store(0)
		return
	}
	if i.overruns.Add(1) >= maxOverruns {
		i.doubt()
	}
}

// stop lets the plugin end by itself, and kills it if it does not.
func (i *instance) stop() {
	timer := time.AfterFunc(stopGrace, i.process.killGroupOnce)
	defer timer.Stop()
	i.end()
}

// killProcess ends the plugin at once. The process goes first: go-plugin would otherwise ask it to end, and wait for an answer.
func (i *instance) killProcess() {
	i.process.killGroupOnce()
	i.end()
}

// end waits for the process and removes what is left of it.
func (i *instance) end() {
	i.client.Kill()
	_ = os.RemoveAll(i.process.dir) // the host's own temporary folder around it goes at its close
}
