package traffic

import (
	"fmt"
	"math"
)

// Config contains the settings of a recording.
type Config struct {
	File     string  `env:"RATELIMIT_RECORD" desc:"file to which sampled requests are recorded, for 'tollgate ratelimit simulate'; of one instance only; not set = none"`
	Sample   float64 `env:"RATELIMIT_RECORD_SAMPLE" envDefault:"0.01" desc:"part of the keys whose requests are recorded, more than 0 and at most 1; a key is a domain and a first descriptor"`
	MaxBytes int64   `env:"RATELIMIT_RECORD_MAX_BYTES" envDefault:"104857600" desc:"size at which the recording is renamed to FILE.1, in place of an earlier one, and a new file begins"`
	Hash     bool    `env:"RATELIMIT_RECORD_HASH" envDefault:"false" desc:"record a keyed hash of each value, the same after a restart; 'tollgate ratelimit' then needs SECRET_KEY"`
}

// On reports whether requests are recorded.
func (c Config) On() bool { return c.File != "" }

// Validate returns an error that begins with the name of the first setting that is out of range.
func (c Config) Validate() error {
	if !(c.Sample > 0 && c.Sample <= 1) {
		return fmt.Errorf("RATELIMIT_RECORD_SAMPLE: %v is not more than 0 and at most 1", c.Sample)
	}
	if c.MaxBytes < 1 {
		return fmt.Errorf("RATELIMIT_RECORD_MAX_BYTES: %d is not at least 1", c.MaxBytes)
	}
	return nil
}

// threshold returns the hash below which a key is in the sample, and whether all keys are.
func (c Config) threshold() (below uint64, all bool) {
	if c.Sample >= 1 {
		return 0, true
	}
	return uint64(c.Sample * math.MaxUint64), false
}
