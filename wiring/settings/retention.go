package settings

import (
	"fmt"
	"time"
)

// Retention holds the settings of the removal of old records.
type Retention struct {
	Audit    time.Duration `env:"AUDIT_RETENTION" envDefault:"8760h" desc:"how long an audit event is kept; 0 = forever"`
	Sessions time.Duration `env:"SESSION_RETENTION" envDefault:"8760h" desc:"how long a session is kept after its end, so that the risk score can use it, and how long a device that is revoked or was never confirmed is kept after it was last seen; 0 = forever"`
	Interval time.Duration `env:"RETENTION_INTERVAL" envDefault:"1h" desc:"how often each instance removes old records; 0 = never"`
}

// Validate returns an error that begins with the name of the first setting that is out of range.
func (r Retention) Validate() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"AUDIT_RETENTION", r.Audit}, {"SESSION_RETENTION", r.Sessions}, {"RETENTION_INTERVAL", r.Interval}} {
		if d.value != 0 && d.value < time.Second {
			return fmt.Errorf("%s: %v is neither 0 nor at least a second", d.name, d.value)
		}
	}
	return nil
}
