package pluginhost

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
)

// Config holds the settings of the host.
type Config struct {
	// Dir is the folder of the plugin binaries and their manifest. If PLUGIN_DIR is not set,
	// package wiring sets Dir to the folder plugins next to the executable (contract O-7). A folder
	// that does not exist means no plugins.
	Dir string `env:"PLUGIN_DIR" desc:"folder of the plugin binaries and their manifest; default: the folder plugins next to the program"`
	// StartTimeout is the time limit of a plugin's start, from the start of the process to its
	// first healthy response; 0 means half of CallTimeout.
	StartTimeout time.Duration `env:"-"`
	// CallTimeout is the time limit of one call, including the wait for the first start; above 0.
	CallTimeout time.Duration `env:"PLUGIN_CALL_TIMEOUT" envDefault:"10s" desc:"how long a call to a plugin may take; its start may take half of that, and the answer to a health check a fifth"`
	// HealthInterval is the time between two health checks of a running plugin; 0 means 5s.
	HealthInterval time.Duration `env:"-"`
	// HealthTimeout is the time limit of a health check, after which the plugin is killed. If a
	// call takes longer than HealthTimeout, the host checks the plugin at once. 0 means a fifth of
	// CallTimeout.
	HealthTimeout time.Duration `env:"-"`
	// RestartDelayMin is the delay before the first restart of a failed plugin. It doubles at each
	// further failure. 0 means 100ms.
	RestartDelayMin time.Duration `env:"-"`
	// RestartDelayMax is the longest delay before a restart. After a plugin has run this long, the
	// delay is RestartDelayMin again. 0 means 30s.
	RestartDelayMax time.Duration `env:"-"`
	// Env holds the environment variables of the plugins by name of plugin, each as KEY=VALUE. The
	// manifest adds variables and replaces those with the same name. Plugins get no other variables
	// of the service.
	Env map[string][]string `env:"-"`
	// Variable returns the value of a variable of the service, or of the file that the variable with
	// _FILE after its name has if it is a secret. It returns an error, which begins with the name,
	// for one that the service reads itself. A plugin gets its own, which it declares. May be nil.
	Variable func(name string, secret bool) (string, error) `env:"-"`
	// Shared holds the settings of the service that each plugin may declare; no secrets.
	Shared map[string]string `env:"-"`
	// Interceptor is called for every call of a plugin; may be nil.
	Interceptor grpc.UnaryClientInterceptor `env:"-"`
}

// withPace returns the configuration with the values that only tests change.
func (c Config) withPace() Config {
	c.StartTimeout = cmp.Or(c.StartTimeout, c.CallTimeout/2)
	c.HealthTimeout = cmp.Or(c.HealthTimeout, c.CallTimeout/5)
	c.HealthInterval = cmp.Or(c.HealthInterval, 5*time.Second)
	c.RestartDelayMin = cmp.Or(c.RestartDelayMin, 100*time.Millisecond)
	c.RestartDelayMax = cmp.Or(c.RestartDelayMax, 30*time.Second)
	return c
}

// Validate returns an error that names the setting that is wrong.
func (c Config) Validate() error {
	if c.CallTimeout <= 0 {
		return fmt.Errorf("PLUGIN_CALL_TIMEOUT is %v, it must be above 0", c.CallTimeout)
	}
	return nil
}

// FolderMissing reports whether the folder does not exist.
func (c Config) FolderMissing() bool {
	_, err := os.Stat(c.Dir)
	return errors.Is(err, fs.ErrNotExist)
}

// limits holds the limits of one plugin.
type limits struct {
	start, call time.Duration
	message     int // bytes, either way
}

func (c Config) defaultLimits() limits {
	return limits{start: c.StartTimeout, call: c.CallTimeout, message: handshake.MaxMessageBytes}
}
