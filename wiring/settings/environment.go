package settings

import (
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	"github.com/caarlos0/env/v11"
)

// maxSecretFile bounds the file that a *_FILE variable names.
const maxSecretFile = 64 << 10

// environment is what the process was given, ready to be parsed: without empty
// values, with the names of the Envoy rate limit service read as ours, and
// with secrets taken from the files that *_FILE variables name.
type environment struct {
	values   map[string]string
	warnings []string
}

func newEnvironment(environ []string, vars []Variable) (environment, error) {
	e := environment{values: env.ToMap(environ)}
	for name, value := range e.values {
		if value == "" {
			delete(e.values, name)
		}
	}
	e.adoptPeerNames()
	for _, v := range vars {
		if !v.Secret {
			continue
		}
		if err := e.readSecretFile(v.Name); err != nil {
			return environment{}, err
		}
	}
	return e, nil
}

// readSecretFile sets a secret from the file that NAME_FILE names.
func (e *environment) readSecretFile(name string) error {
	path := e.values[name+"_FILE"]
	if path == "" {
		return nil
	}
	if _, both := e.values[name]; both {
		return fmt.Errorf("%s and %s_FILE are both set: give one", name, name)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("%s_FILE: %w", name, err)
	}
	if info.Size() > maxSecretFile {
		return fmt.Errorf("%s_FILE: %s is larger than %d bytes", name, path, maxSecretFile)
	}
	content, err := os.ReadFile(path) // #nosec G304 -- the operator names the file
	if err != nil {
		return fmt.Errorf("%s_FILE: %w", name, err)
	}
	e.values[name] = strings.TrimRight(string(content), "\r\n")
	return nil
}

// adoptPeerNames reads the variables of the Envoy rate limit service as ours
// (decisions 3.7). Ours win; both set and different is a warning.
func (e *environment) adoptPeerNames() {
	names := make([]string, 0, len(e.values))
	for name := range e.values {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, theirs := range names {
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
		e.values[ours] = value
	}
	if e.values["PROMETHEUS_MAPPER_YAML"] != "" {
		e.warnings = append(e.warnings, "PROMETHEUS_MAPPER_YAML is not used: metrics have labels without a mapper")
	}
	switch e.values["BACKEND_TYPE"] {
	case "redis":
		e.values["BACKEND_TYPE"] = "kvstore"
	case "memcache":
		e.values["BACKEND_TYPE"] = "memstore"
	}
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

// parse fills target from the environment. Its error is one sentence a wrong
// variable, each beginning with the variable's name.
func (e environment) parse(target any, vars []Variable) error {
	err := env.ParseWithOptions(target, env.Options{Environment: e.values})
	if err == nil {
		return nil
	}
	var wrong []string
	for _, v := range vars {
		value, set := e.values[v.Name]
		if !set {
			continue
		}
		probe := reflect.New(reflect.TypeOf(target).Elem()).Interface()
		if env.ParseWithOptions(probe, env.Options{Environment: map[string]string{v.Name: value}}) != nil {
			shown := value
			if v.Secret {
				shown = masked
			}
			wrong = append(wrong, fmt.Sprintf("%s: %q is not %s", v.Name, shown, v.Form))
		}
	}
	if len(wrong) == 0 {
		return fmt.Errorf("settings: %w", err)
	}
	return fmt.Errorf("%s", strings.Join(wrong, "; "))
}
