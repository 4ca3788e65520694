package settings

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caarlos0/env/v11"
)

// adoptPeerNames renames the variables of the Envoy rate limit service to ours (contract L-50). If
// both are set and differ, it keeps ours and warns. It also warns of a variable of that service
// that has no effect here.
func (e *environment) adoptPeerNames() {
	for _, theirs := range slices.Sorted(maps.Keys(e.values)) {
		if why, ok := unusedPeerNames[theirs]; ok {
			e.warnings = append(e.warnings, theirs+" is not used: "+why)
			continue
		}
		ours, ok := ownName(theirs)
		if !ok {
			continue
		}
		value := e.values[theirs]
		if mine, both := e.values[ours]; both {
			if mine != value {
				e.warnings = append(e.warnings,
					fmt.Sprintf("%s and %s are both set and differ: %s is used", ours, theirs, ours))
			}
			continue
		}
		e.values[ours], e.adopted[ours] = value, theirs
	}
	e.chooseDaemonProtocol()
	switch e.values["BACKEND_TYPE"] {
	case "redis":
		e.values["BACKEND_TYPE"] = "kvstore"
	case "memcache":
		e.values["BACKEND_TYPE"] = "memstore"
	}
}

// chooseDaemonProtocol makes TCP the default protocol of the metrics daemon if only variables of
// the Envoy rate limit service configure it, because TCP is the default of that service. The tagged
// form is sent over UDP there too.
func (e *environment) chooseDaemonProtocol() {
	const protocol = "METRICSD_PROTOCOL"
	tagged, _ := strconv.ParseBool(e.values["USE_TAGGED_METRICSD"]) // parse reports a value that is not a bool
	if value, given := e.values[protocol]; given {
		if tagged && strings.HasPrefix(value, "tcp") {
			e.warnings = append(e.warnings, protocol+" is not used: USE_TAGGED_METRICSD sends over UDP")
		}
		return
	}
	ours, theirs := false, false
	for _, name := range []string{"USE_METRICSD", "METRICSD_HOST", "METRICSD_PORT"} {
		_, set := e.values[name]
		_, adopted := e.adopted[name]
		ours, theirs = ours || set && !adopted, theirs || adopted
	}
	if theirs && !ours && !tagged {
		e.values[protocol] = "tcp"
	}
}

// addGivenNames adds to an error the other names by which the variables in it were given.
func (e environment) addGivenNames(err error) error {
	if err == nil {
		return nil
	}
	words := strings.FieldsFunc(err.Error(), func(r rune) bool {
		return r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
	var given []string
	for _, word := range words {
		if other, ok := e.adopted[word]; ok {
			if text := word + " was given as " + other; !slices.Contains(given, text) {
				given = append(given, text)
			}
		}
	}
	if len(given) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(given, ", "))
}

// ownName returns our name for a variable of the Envoy rate limit service.
func ownName(theirs string) (string, bool) {
	for _, n := range peerNames {
		if theirs == n.theirs {
			return n.ours, true
		}
	}
	for _, p := range peerPrefixes {
		if rest, ok := strings.CutPrefix(theirs, p.theirs); ok {
			return p.ours + rest, true
		}
	}
	return "", false
}

var peerNames = []struct{ theirs, ours string }{
	{"USE_STATSD", "USE_METRICSD"},
	{"USE_DOG_STATSD", "USE_TAGGED_METRICSD"},
	{"USE_DOG_STATSD_MOGRIFIERS", "TAGGED_METRICSD_MOGRIFIERS"},
}

var peerPrefixes = []struct{ theirs, ours string }{
	{"REDIS_", "KVSTORE_"},
	{"MEMCACHE_", "MEMSTORE_"},
	{"STATSD_", "METRICSD_"},
	{"DOG_STATSD_MOGRIFIER_", "TAGGED_METRICSD_MOGRIFIER_"},
}

// unusedPeerNames are the variables of the Envoy rate limit service that have no effect here, with
// the reason. They are listed one by one, because the platform of a container sets other variables
// with the same prefixes, for example REDIS_PORT.
var unusedPeerNames = map[string]string{
	"REDIS_POOL_ON_EMPTY_BEHAVIOR":                 poolIsShared,
	"REDIS_POOL_ON_EMPTY_WAIT_DURATION":            poolIsShared,
	"REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR":       poolIsShared,
	"REDIS_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION":  poolIsShared,
	"REDIS_USE_EXPLICIT_PIPELINE":                  alwaysPipelined,
	"REDIS_PERSECOND_USE_EXPLICIT_PIPELINE":        alwaysPipelined,
	"REDIS_STARTUP_INITIAL_INTERVAL":               startsWithoutStore,
	"REDIS_STARTUP_MAX_INTERVAL":                   startsWithoutStore,
	"REDIS_STARTUP_MAX_ELAPSED_TIME":               startsWithoutStore,
	"REDIS_CLUSTER_PIPELINE_PARALLELISM":           nodesAtOnce,
	"REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM": nodesAtOnce,
	"GOSTATS_FLUSH_INTERVAL_SECONDS":               "use STATS_FLUSH_INTERVAL",
	"GOSTATS_LOGGING_SINK_DISABLED":                "use DISABLE_STATS",
	"GOSTATS_USE_RESERVOIR_TIMER":                  "the memory for response times is always limited",
	"GOSTATS_PRUNE_IDLE_SECONDS":                   "STATS_MAX_SERIES limits the statistics by value",
}

const (
	poolIsShared       = "calls share the connections to the store, and do not wait for a free one"
	alwaysPipelined    = "commands of the same time are always sent together"
	startsWithoutStore = "the service starts without the store, and connects as soon as the store is there"
	nodesAtOnce        = "calls to the nodes of a cluster are always sent in parallel"
)

// forgetPartsOff sets the settings of the parts that are off to their defaults, so that they are
// not validated: the Envoy rate limit service does not look at them either, and teams leave them in
// their environment. It is for a service that takes the place of that one.
func (s *Settings) forgetPartsOff() {
	var usual Settings
	_ = env.ParseWithOptions(&usual, env.Options{Environment: map[string]string{}}) // the defaults are well formed
	if s.RateLimit.Backend != Memstore {
		s.Memcached = usual.Memcached
	}
	if s.RateLimit.ConfigType != ConfigFromServer {
		s.RuleServer = usual.RuleServer
	}
	if !s.RuleServer.TLS.Enabled {
		s.RuleServer.TLS = usual.RuleServer.TLS
	}
	if !s.Tracing.Enabled {
		s.Tracing = usual.Tracing
	}
	if !s.Prometheus.Enabled {
		s.Prometheus.Address, s.Prometheus.Path = usual.Prometheus.Address, usual.Prometheus.Path
	}
	if !s.Statsd.ToDaemon() {
		s.Statsd.Host, s.Statsd.Port, s.Statsd.Protocol = usual.Statsd.Host, usual.Statsd.Port, usual.Statsd.Protocol
	}
	if !s.Statsd.Tagged {
		s.Statsd.MogrifierNames, s.Statsd.Mogrifiers = nil, nil
	}
}
