package statsd

// The bounds of STATS_FLUSH_INTERVAL.
const (
	MinFlushInterval = minFlush
	MaxFlushInterval = maxFlush
)
