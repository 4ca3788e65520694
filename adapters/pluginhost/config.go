package pluginhost

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/plugins/handshake"
)

// Config is what the host is set up with. The zero durations are not valid: fill them from the tags' defaults, as
// [DefaultConfig] does.
type Config struct {
	// Dir is the folder of the plugin binaries and of their manifest. Where it is empty the
	// composition root sets it to `plugins` next to the executable (contract O-7). A folder that
	// does not exist has no plugins.
	Dir string `env:"PLUGIN_DIR" desc:"folder of the plugin binaries and their manifest; default: the folder plugins next to the program"`
	// StartTimeout bounds a plugin's start, from the process to its first healthy answer; above 0.
	StartTimeout time.Duration `env:"PLUGIN_START_TIMEOUT" envDefault:"5s" desc:"how long the start of a plugin may take"`
	// CallTimeout bounds one call, waiting for a first start included; above 0.
	CallTimeout time.Duration `env:"PLUGIN_CALL_TIMEOUT" envDefault:"10s" desc:"how long a call to a plugin may take"`
	// HealthInterval is the pause between two health checks of a running plugin; above 0.
	HealthInterval time.Duration `env:"PLUGIN_HEALTH_INTERVAL" envDefault:"5s" desc:"interval between health checks of a running plugin"`
	// HealthTimeout bounds a health check; a plugin that does not answer within it is killed. A call that takes longer than
	// this also has its plugin checked at once. Above 0.
	HealthTimeout time.Duration `env:"PLUGIN_HEALTH_TIMEOUT" envDefault:"2s" desc:"how long a plugin may take to answer a health check; after that it is killed"`
	// RestartDelayMin is the pause before the first restart of a plugin that failed; it doubles at each further failure.
	// Above 0.
	RestartDelayMin time.Duration `env:"PLUGIN_RESTART_DELAY_MIN" envDefault:"100ms" desc:"delay before a failed plugin is started again; doubles at each failure"`
	// RestartDelayMax is the longest such pause, and the time after which a plugin that runs is thought sound again; at least
	// RestartDelayMin.
	RestartDelayMax time.Duration `env:"PLUGIN_RESTART_DELAY_MAX" envDefault:"30s" desc:"longest delay before a failed plugin is started again"`
	// Env gives plugins, by name, the variables that they may see, each as KEY=VALUE. The manifest adds to them and wins over
	// them; of the service's own environment nothing else is passed on.
	Env map[string][]string `env:"-"`
	// Around surrounds every call of a plugin; nil for nothing.
	Around grpc.UnaryClientInterceptor `env:"-"`
}

// DefaultConfig returns the defaults of the tags above, for the plugins in dir.
func DefaultConfig(dir string) Config {
	return Config{
		Dir: dir, StartTimeout: 5 * time.Second, CallTimeout: 10 * time.Second,
		HealthInterval: 5 * time.Second, HealthTimeout: 2 * time.Second,
		RestartDelayMin: 100 * time.Millisecond, RestartDelayMax: 30 * time.Second,
	}
}

// Validate checks every setting; the error names each variable that is wrong.
func (c Config) Validate() error {
	var wrong []error
	for _, setting := range []struct {
		name  string
		value time.Duration
	}{
		{"PLUGIN_START_TIMEOUT", c.StartTimeout},
		{"PLUGIN_CALL_TIMEOUT", c.CallTimeout},
		{"PLUGIN_HEALTH_INTERVAL", c.HealthInterval},
		{"PLUGIN_HEALTH_TIMEOUT", c.HealthTimeout},
		{"PLUGIN_RESTART_DELAY_MIN", c.RestartDelayMin},
		{"PLUGIN_RESTART_DELAY_MAX", c.RestartDelayMax},
	} {
		if setting.value <= 0 {
			wrong = append(wrong, fmt.Errorf("%s is %v, it must be above 0", setting.name, setting.value))
		}
	}
	if c.RestartDelayMax < c.RestartDelayMin {
		wrong = append(wrong, fmt.Errorf("PLUGIN_RESTART_DELAY_MAX is %v, it must be at least PLUGIN_RESTART_DELAY_MIN, %v",
			c.RestartDelayMax, c.RestartDelayMin))
	}
	return errors.Join(wrong...)
}

// Missing reports whether the folder is not there.
func (c Config) Missing() bool {
	_, err := os.Stat(c.Dir)
	return errors.Is(err, fs.ErrNotExist)
}

// limits bound one plugin.
type limits struct {
	start, call time.Duration
	message     int // bytes, either way
}

func (c Config) limits() limits {
	return limits{start: c.StartTimeout, call: c.CallTimeout, message: handshake.MaxMessageBytes}
}
