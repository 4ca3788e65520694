// Package pluginhost finds, starts and watches the plugin binaries of PLUGIN_DIR, and implements
// the courier and ownership ports with them. It delivers no messages and checks no packages itself,
// and stores nothing.
//
// Each plugin is a separate process. The host starts it in the background at its first use, without
// the service's environment, gives it the values of the settings that it declares, and calls it by gRPC over a socket with mutual TLS. The host checks
// the health of the process with a deadline. It kills a plugin that hangs, ends or does not start,
// and starts it again after a delay that doubles at each failure; until then calls return a fault
// of kind Unavailable. Plugins cannot end the service, and do not outlive it.
//
// Without a manifest, every executable file in the folder is a plugin if its name begins with
// "otp-" (a courier) or "pkg-" (package ownership). With a manifest, plugins.yaml in the same
// folder, only the files that it lists are plugins:
//
//	plugins:
//	  - name: otp-email          # the name in OTP_EMAIL_PLUGIN
//	    kind: courier            # courier or ownership; default: from the prefix of the name
//	    file: otp-email-1.4      # in the same folder; default: the name
//	    sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//	    env: {SMTP_TIMEOUT: 15s}
//	    limits: {start_timeout: 5s, call_timeout: 20s, max_message_bytes: 65536}
//
// At every start the host computes the checksum of the binary, and does not start it if it differs
// from that in the manifest. The host refuses a folder, a manifest or a binary that every user may
// write to.
package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-plugin"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/plugins/pluginclient"
)

// Fields of log lines about a plugin.
const (
	fieldPlugin = "plugin"
	fieldKind   = "kind"
)

// maxErrorText is the size limit, in bytes, of an error's text in log lines and in [Status].
const maxErrorText = 500

// Host runs the plugins of one folder. It is safe for concurrent use.
type Host struct {
	dir     string
	sockets string // folder of the plugins' sockets, which only the host may read
	plugins []*supervisor
	metrics callMetrics
	cancel  context.CancelFunc

	mu     sync.Mutex
	closed bool
	runs   sync.WaitGroup // of the goroutines of supervisors
}

// Open returns a host for the plugins of cfg.Dir, and [Host.Close]. It does not start plugins. It
// returns an error if a setting or the manifest is wrong, or every user may write to the folder.
func Open(cfg Config, log *logrus.Entry) (*Host, func(), error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, err
	}
	cfg = cfg.withPace()
	specs, err := discoverPlugins(cfg, log)
	if err != nil {
		return nil, nil, err
	}
	warnUnusedSettings(cfg, specs, log)
	ctx, cancel := context.WithCancel(context.Background())
	h := &Host{dir: cfg.Dir, metrics: newCallMetrics(), cancel: cancel}
	if len(specs) > 0 {
		if h.sockets, err = socketFolder(os.TempDir()); err != nil {
			cancel()
			return nil, nil, fmt.Errorf("create the folder for the sockets of plugins: %w", err)
		}
	}
	slices.SortFunc(specs, func(a, b spec) int { return strings.Compare(a.name, b.name) })
	all := ownersOf(specs)
	for _, s := range specs {
		s.owners = all
		h.plugins = append(h.plugins, h.newSupervisor(ctx, s, cfg, log))
	}
	return h, h.Close, nil
}

// warnUnusedSettings logs a warning for variables of a plugin that does not exist, because they are
// often the credentials of a plugin whose name was mistyped.
func warnUnusedSettings(cfg Config, specs []spec, log *logrus.Entry) {
	for _, name := range slices.Sorted(maps.Keys(cfg.Env)) {
		if !slices.ContainsFunc(specs, func(s spec) bool { return s.name == name }) {
			log.WithField(fieldPlugin, name).
				Warnf("the settings of this plugin are ignored: %s has no plugin of that name", cfg.Dir)
		}
	}
}

// BundledTypes returns the registry types of the plugins that come with the service, each of which
// is named after its type. A test compares them with the folder plugins.
func BundledTypes() []string { return []string{"cargo", "mcpb", "npm", "nuget", "oci", "pypi"} }

// WarnMissing logs a warning if the folder lacks plugins of [BundledTypes]: a folder of one's own
// replaces that of the service.
func (h *Host) WarnMissing(log *logrus.Entry) {
	var missing []string
	for _, registryType := range BundledTypes() {
		name := ownershipPrefix + registryType
		if !slices.ContainsFunc(h.plugins, func(v *supervisor) bool { return v.spec.name == name }) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 || (Config{Dir: h.dir}).FolderMissing() { // discoverPlugins has warned of a missing folder
		return
	}
	log.WithField("dir", h.dir).
		Warnf("PLUGIN_DIR has no %s: packages of these types cannot be checked unless another plugin checks them; copy these files from the folder plugins next to the program, and list them in %s if there is one",
			strings.Join(missing, ", "), manifestFile)
}

// socketFolder creates a folder that only this user may read. The path of a Unix socket has at most
// about 100 bytes (unix(7)), of which go-plugin uses about 40 below the folder. If the path of the
// temporary folder is too long, socketFolder uses /tmp.
func socketFolder(temporary string) (string, error) {
	const longest, short = 36, "/tmp"
	if len(temporary) > longest {
		if info, err := os.Stat(short); err == nil && info.IsDir() {
			temporary = short
		}
	}
	return os.MkdirTemp(temporary, "tollgate-plugins-")
}

func (h *Host) newSupervisor(ctx context.Context, s spec, cfg Config, log *logrus.Entry) *supervisor {
	v := &supervisor{
		spec: s, cfg: cfg, sockets: h.sockets, calls: h.metrics.forPlugin(s.name), state: Idle,
		settled: make(chan struct{}),
		log:     log.WithFields(logrus.Fields{fieldPlugin: s.name, fieldKind: string(s.kind)}),
	}
	v.startOnce = sync.OnceFunc(func() { h.startSupervisor(ctx, v) })
	return v
}

// startSupervisor runs v in the background, unless the host is closed.
func (h *Host) startSupervisor(ctx context.Context, v *supervisor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		v.markClosed()
		return
	}
	h.runs.Go(func() { v.keepRunning(ctx) })
}

// Courier returns the courier with that name and starts it in the background. It returns an error
// if no courier has that name. If the plugin does not start, the calls return an error.
func (h *Host) Courier(name string) (*Courier, error) {
	var couriers []string
	for _, v := range h.plugins {
		if v.spec.kind != pluginclient.Courier {
			continue
		}
		if v.spec.name == name {
			v.startOnce()
			return &Courier{plugin: v}, nil
		}
		couriers = append(couriers, v.spec.name)
	}
	if len(couriers) == 0 {
		return nil, fmt.Errorf(
			"there is no courier plugin %q in %s, and no other courier plugin: install it", name, h.dir)
	}
	return nil, fmt.Errorf("there is no courier plugin %q in %s: install it, or use %s", name, h.dir,
		strings.Join(couriers, ", "))
}

// Ownership returns a checker that uses all ownership plugins, and starts them in the background.
// If two plugins support one registry type, the checker calls the first by name.
func (h *Host) Ownership() *Checker {
	c := &Checker{}
	for _, v := range h.plugins {
		if v.spec.kind == pluginclient.Ownership {
			v.startOnce()
			c.plugins = append(c.plugins, v)
		}
	}
	return c
}

// StartAll starts every plugin and returns nil when each runs or has failed, or the error of ctx if
// ctx ends before. Operator commands use it; the service starts only the plugins that it needs.
func (h *Host) StartAll(ctx context.Context) error {
	for _, v := range h.plugins {
		v.startOnce()
	}
	for _, v := range h.plugins {
		if err := v.awaitFirstStart(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Status returns the status of every plugin, ordered by name.
func (h *Host) Status() []Status {
	return each.Map(h.plugins, (*supervisor).currentStatus)
}

// Close stops all plugins and returns when their processes have ended, after a few seconds at most.
// Calls in progress and later calls return a fault of kind Unavailable. Further calls of Close have
// no effect.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	h.runs.Wait()
	if h.sockets != "" {
		_ = os.RemoveAll(h.sockets) // if it fails, empty sockets remain in the temporary folder
	}
}

// hostSide is the host's side of the go-plugin protocol. It provides only the connection, which
// package pluginclient uses.
type hostSide struct{}

// GRPCServer returns an error: the host provides no services to plugins.
func (hostSide) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return fmt.Errorf("the plugin host provides no services")
}

// GRPCClient returns the connection itself.
func (hostSide) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// shortenText returns text on one line, cut to maxErrorText, because a plugin may have written
// parts of it.
func shortenText(text string) string {
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
}

// Inspect starts every plugin once and returns the status of each. A courier that does not start and
// is not one of the couriers in use is Idle: it may have no settings. Inspect returns fault.NotFound
// if the plugin folder does not exist, although the service starts without plugins then.
func Inspect(ctx context.Context, c Config, used CourierConfig, log *logrus.Entry) ([]Status, error) {
	if c.FolderMissing() {
		return nil, fault.Newf(fault.NotFound, "the plugin folder %s (PLUGIN_DIR) does not exist", c.Dir)
	}
	host, cleanup, err := Open(c, log)
	if err != nil {
		return nil, fmt.Errorf("plugins: %w", err)
	}
	defer cleanup()
	if err := host.StartAll(ctx); err != nil {
		return nil, fmt.Errorf("plugins: %w", err)
	}
	all := host.Status()
	for i := range all {
		s := &all[i]
		if s.Kind == string(pluginclient.Courier) && s.State == Failed && s.Name != used.Email && s.Name != used.SMS {
			s.State, s.LastError = Idle, ""
		}
	}
	return all, nil
}

// Unused reports whether nothing has used the plugin of a name.
func (h *Host) Unused(plugin string) bool {
	for _, status := range h.Status() {
		if status.Name == plugin {
			return status.State == Idle
		}
	}
	return false
}

// CheckFailed returns an error if the plugin of a name has failed. A plugin that has not been
// started yet has not failed.
func (h *Host) CheckFailed(plugin string) error {
	for _, status := range h.Status() {
		if status.Name == plugin && status.State == Failed {
			return errors.New("plugin " + plugin + " has failed")
		}
	}
	return nil
}
