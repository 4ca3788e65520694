// Package pluginhost finds, starts and watches the plugin binaries of PLUGIN_DIR, and answers the courier and ownership ports
// with them. It knows no channel and no package registry, and keeps nothing: what a plugin does is the plugin's.
//
// A plugin is a process of its own. It is started in the background when something first asks for it, sees none of the
// service's environment, and speaks gRPC over a socket with mutual TLS. The host checks its health with a deadline; one that
// hangs, ends or does not start is killed and started again after a pause that doubles at each failure, and meanwhile every
// call of it answers as unavailable. Plugins cannot end the service, and do not outlive it.
//
// Without a manifest every executable file of the folder is a plugin if its name begins with "otp-" (a courier) or "pkg-"
// (package ownership). With a manifest, plugins.yaml in the same folder, only what it names is loaded:
//
//	plugins:
//	  - name: otp-email          # as in OTP_EMAIL_PLUGIN
//	    kind: courier            # courier or ownership; may be left out where the name tells
//	    file: otp-email-1.4      # in the same folder; the name, if left out
//	    sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//	    env: {SMTP_TIMEOUT: 15s}
//	    limits: {start_timeout: 5s, call_timeout: 20s, max_message_bytes: 65536}
//
// A binary with another sum is not started, checked at every start. A folder, manifest or binary that everyone may write to is
// refused.
package pluginhost

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-plugin"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/plugins/pluginclient"
)

// Fields of the host's log lines about a plugin.
const (
	fieldPlugin = "plugin"
	fieldKind   = "kind"
)

// maxErrorText bounds, in bytes, an error's text in log lines and in [Status].
const maxErrorText = 500

// Host holds the plugins of one folder. Its methods may be called from many goroutines at once.
type Host struct {
	dir     string
	sockets string // folder of the plugins' sockets, only the host's
	plugins []*supervisor
	metrics measures
	cancel  context.CancelFunc

	mu     sync.Mutex
	closed bool
	runs   sync.WaitGroup
}

// Open finds the plugins of cfg.Dir and starts none of them yet. The second result is [Host.Close]. It fails by a sentence when
// a setting or the manifest is wrong, or the folder may be written to by everyone.
func Open(cfg Config, log *logrus.Entry) (*Host, func(), error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, err
	}
	specs, err := discover(cfg, log)
	if err != nil {
		return nil, nil, err
	}
	warnUnused(cfg, specs, log)
	ctx, cancel := context.WithCancel(context.Background())
	h := &Host{dir: cfg.Dir, metrics: newMeasures(), cancel: cancel}
	if len(specs) > 0 {
		if h.sockets, err = socketFolder(os.TempDir()); err != nil {
			cancel()
			return nil, nil, fmt.Errorf("folder for the sockets of plugins: %w", err)
		}
	}
	slices.SortFunc(specs, func(a, b spec) int { return strings.Compare(a.name, b.name) })
	for _, s := range specs {
		h.plugins = append(h.plugins, h.supervise(ctx, s, cfg, log))
	}
	return h, h.Close, nil
}

// warnUnused tells of variables that no plugin gets: credentials under a name that is mistyped would otherwise never be missed.
func warnUnused(cfg Config, specs []spec, log *logrus.Entry) {
	for _, name := range slices.Sorted(maps.Keys(cfg.Env)) {
		if !slices.ContainsFunc(specs, func(s spec) bool { return s.name == name }) {
			log.WithField(fieldPlugin, name).Warn("there are settings for a plugin that does not exist")
		}
	}
}

// socketFolder makes a folder that only this user may enter. The address of a Unix socket holds about a hundred bytes (unix(7)),
// of which go-plugin takes some forty below the folder, so it lies in /tmp where the temporary folder's own name is too long.
func socketFolder(temporary string) (string, error) {
	const longest, short = 36, "/tmp"
	if len(temporary) > longest {
		if info, err := os.Stat(short); err == nil && info.IsDir() {
			temporary = short
		}
	}
	return os.MkdirTemp(temporary, "tollgate-plugins-")
}

func (h *Host) supervise(ctx context.Context, s spec, cfg Config, log *logrus.Entry) *supervisor {
	v := &supervisor{
		spec: s, cfg: cfg, sockets: h.sockets, calls: h.metrics.of(s.name), state: Idle, settled: make(chan struct{}),
		log: log.WithFields(logrus.Fields{fieldPlugin: s.name, fieldKind: string(s.kind)}),
	}
	v.begin = sync.OnceFunc(func() { h.start(ctx, v) })
	return v
}

// start runs v in the background, unless the host is closed.
func (h *Host) start(ctx context.Context, v *supervisor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		v.close()
		return
	}
	h.runs.Go(func() { v.run(ctx) })
}

// Courier returns the courier of that name and starts it in the background. It fails when there is no courier of that name; that
// a plugin does not start shows at the calls.
func (h *Host) Courier(name string) (*Courier, error) {
	var couriers []string
	for _, v := range h.plugins {
		if v.spec.kind != pluginclient.Courier {
			continue
		}
		if v.spec.name == name {
			v.begin()
			return &Courier{plugin: v}, nil
		}
		couriers = append(couriers, v.spec.name)
	}
	if len(couriers) == 0 {
		return nil, fmt.Errorf("there is no courier plugin %q in %s, and no other courier plugin", name, h.dir)
	}
	return nil, fmt.Errorf("there is no courier plugin %q in %s, only %s", name, h.dir, strings.Join(couriers, ", "))
}

// Ownership returns the checker over all ownership plugins and starts them in the background. Of two that serve one registry
// type, the first by name is asked.
func (h *Host) Ownership() *Checker {
	c := &Checker{}
	for _, v := range h.plugins {
		if v.spec.kind == pluginclient.Ownership {
			v.begin()
			c.plugins = append(c.plugins, v)
		}
	}
	return c
}

// StartAll starts every plugin and returns when each runs or has failed, or when ctx ends, with its error. It is for operator
// commands; the service starts what it uses.
func (h *Host) StartAll(ctx context.Context) error {
	for _, v := range h.plugins {
		v.begin()
	}
	for _, v := range h.plugins {
		if err := v.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Status tells of every plugin, ordered by name.
func (h *Host) Status() []Status {
	all := make([]Status, len(h.plugins))
	for i, v := range h.plugins {
		all[i] = v.status()
	}
	return all
}

// Close ends all plugins and returns when their processes are gone, after at most a few seconds. Calls in flight answer as
// unavailable, as do later ones. It may be called more than once.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	h.runs.Wait()
	if h.sockets != "" {
		_ = os.RemoveAll(h.sockets) // empty sockets in the temporary folder, at worst
	}
}

// bareConn is the host's side of the protocol: package pluginclient does the talking.
type bareConn struct{}

// GRPCServer refuses: the host serves nothing to plugins.
func (bareConn) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return fmt.Errorf("the host serves no plugin")
}

// GRPCClient returns the connection itself.
func (bareConn) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// shortened cuts a text that a plugin may have had a part in, and keeps it on one line.
func shortened(text string) string {
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
}
