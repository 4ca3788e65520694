package settings

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// adoptPeerNames reads the variables of the Envoy rate limit service as ours (contract L-50). If
// both are set and differ, ours counts, with a warning. A variable of that service that means
// nothing here is a warning too.
func (e *environment) adoptPeerNames() {
	names := make([]string, 0, len(e.values))
	for name := range e.values {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, theirs := range names {
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
				e.warnings = append(e.warnings, fmt.Sprintf("%s and %s are both set and differ: %s counts", ours, theirs, ours))
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

// chooseDaemonProtocol makes TCP the default protocol of the metrics daemon where only variables of the
// Envoy rate limit service name it, as it is there. The tagged form goes over UDP there too.
func (e *environment) chooseDaemonProtocol() {
	const protocol = "METRICSD_PROTOCOL"
	tagged, _ := strconv.ParseBool(e.values["USE_TAGGED_METRICSD"]) // parsing refuses what is no bool
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

// named adds to an error that names variables by our names how those were given
// that were given by another.
func (e environment) named(err error) error {
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

// ownName returns our name of a variable of the Envoy rate limit service.
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

// unusedPeerNames are the variables of the Envoy rate limit service that have
// no effect here, and why. They are named one by one: a container gets other
// variables with the same beginnings from the platform that it runs on, such
// as REDIS_PORT.
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
	"GOSTATS_FLUSH_INTERVAL_SECONDS":               "STATS_FLUSH_INTERVAL is what counts",
	"GOSTATS_LOGGING_SINK_DISABLED":                "DISABLE_STATS is what counts",
	"GOSTATS_USE_RESERVOIR_TIMER":                  "response times are always bounded",
	"GOSTATS_PRUNE_IDLE_SECONDS":                   "statistics by value are bounded by STATS_MAX_SERIES",
}

const (
	poolIsShared       = "calls share the connections to the store, and wait for none"
	alwaysPipelined    = "commands that are there at the same time always travel together"
	startsWithoutStore = "the service starts without the store, and connects as soon as the store is there"
	nodesAtOnce        = "the nodes of a cluster are always asked at once"
)
