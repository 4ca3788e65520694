package readcache

import (
	"errors"
	"time"
)

// Config has the settings of a Cache.
type Config struct {
	Bytes    int64         `env:"REGISTRY_CACHE_BYTES" envDefault:"67108864" desc:"memory for responses to reads of the registry that are kept, 0 to 64 GiB; 0 = none are kept"`
	StaleMax time.Duration `env:"REGISTRY_STALE_MAX" envDefault:"24h" desc:"while the database is away, how old responses to reads of the registry may be, 0 to 720h; 0 = reads are 503"`
}

const (
	maxBytes = 64 << 30
	maxStale = 30 * 24 * time.Hour
)

// Validate checks the ranges.
func (c Config) Validate() error {
	switch {
	case c.Bytes < 0 || c.Bytes > maxBytes:
		return errors.New("REGISTRY_CACHE_BYTES must be 0 to 68719476736")
	case c.StaleMax < 0 || c.StaleMax > maxStale:
		return errors.New("REGISTRY_STALE_MAX must be 0 to 720h")
	}
	return nil
}
