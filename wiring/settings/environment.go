package settings

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/caarlos0/env/v11"
)

// maxSecretFile is the greatest size of the file of a *_FILE variable, in bytes.
const maxSecretFile = 64 << 10

// environment holds the environment variables of the process for parsing: without empty values,
// with the names of the Envoy rate limit service replaced by ours, and with secrets read from the
// files of *_FILE variables.
type environment struct {
	values   map[string]string
	adopted  map[string]string // the name by which a value was given, by our name
	warnings []string
	alone    bool // the rate limit service runs alone, in place of the Envoy rate limit service
}

// newEnvironment returns the environment of variables in the form of os.Environ. If the rate limit
// service runs alone, HOST and PORT are the address of its HTTP listener.
func newEnvironment(environ []string, alone bool) environment {
	e := environment{values: env.ToMap(environ), adopted: map[string]string{}, alone: alone}
	for name, value := range e.values {
		if value == "" {
			delete(e.values, name)
		}
	}
	e.adoptPeerNames()
	if alone {
		e.adoptListener()
		if _, set := e.values["MAX_DESCRIPTORS"]; !set {
			e.values["MAX_DESCRIPTORS"] = "0" // the Envoy rate limit service has no such limit
		}
	}
	return e
}

// adoptListener renames HOST and PORT to the variables of the rate limit HTTP listener.
func (e *environment) adoptListener() {
	for _, name := range []string{"HOST", "PORT"} {
		if value, ok := e.values[name]; ok {
			e.values["RATELIMIT_HTTP_"+name], e.adopted["RATELIMIT_HTTP_"+name] = value, name
			delete(e.values, name)
		}
	}
}

// keepOnly removes the variables that are not read, and their *_FILE variables.
func (e *environment) keepOnly(vars []Variable, reads func(Variable) bool) {
	for _, v := range vars {
		if reads(v) {
			continue
		}
		delete(e.values, v.Name)
		if v.Secret {
			delete(e.values, v.Name+"_FILE")
		}
	}
}

// isReadWith reports whether a variable is read because of another one, which is read and true.
func (e *environment) isReadWith(v Variable, vars []Variable, reads func(Variable) bool) bool {
	if v.readWith == "" {
		return false
	}
	i := slices.IndexFunc(vars, func(other Variable) bool { return other.Name == v.readWith })
	on, err := strconv.ParseBool(e.values[v.readWith])
	return i >= 0 && reads(vars[i]) && err == nil && on
}

// readSecretFiles sets the secrets that are in files. The error begins with the name of a variable.
func (e *environment) readSecretFiles(vars []Variable) error {
	for _, v := range vars {
		if !v.Secret || e.values[v.Name+"_FILE"] == "" {
			continue
		}
		value, err := e.secret(v.Name)
		if err != nil {
			return err
		}
		e.values[v.Name] = value
	}
	return nil
}

// secret returns the value of a secret, or the content of the file of NAME_FILE without line ends at
// its end.
func (e environment) secret(name string) (string, error) {
	path := e.values[name+"_FILE"]
	if path == "" {
		return e.values[name], nil
	}
	if _, both := e.values[name]; both {
		return "", fmt.Errorf("%s and %s_FILE are both set: set only one of them", name, name)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("%s_FILE: %w", name, err)
	}
	if info.Size() > maxSecretFile {
		return "", fmt.Errorf("%s_FILE: %s is larger than %d bytes", name, path, maxSecretFile)
	}
	content, err := os.ReadFile(path) // #nosec G304 -- the operator names the file
	if err != nil {
		return "", fmt.Errorf("%s_FILE: %w", name, err)
	}
	return strings.TrimRight(string(content), "\r\n"), nil
}

// parse fills settings from the environment. Its error has a sentence for each variable that cannot
// be parsed, which begins with the name of the variable.
func (e environment) parse(target *Settings, vars []Variable) error {
	wrong := parseBindings(target.bindings(), e.values)
	err := env.ParseWithOptions(target, env.Options{Environment: e.values})
	if err != nil {
		wrong = append(wrong, e.malformed(vars)...)
	}
	switch {
	case len(wrong) > 0:
		return errors.New(strings.Join(wrong, "; "))
	case err != nil:
		return fmt.Errorf("settings: %w", err)
	}
	return nil
}

// malformed returns a sentence for each variable of an adapter that cannot be parsed.
func (e environment) malformed(vars []Variable) (wrong []string) {
	for _, v := range vars {
		value, set := e.values[v.Name]
		if !set {
			continue
		}
		if env.ParseWithOptions(new(Settings), env.Options{Environment: map[string]string{v.Name: value}}) != nil {
			shown := value
			if v.Secret {
				shown = masked
			}
			wrong = append(wrong, fmt.Sprintf("%s: %q is not %s", v.Name, shown, v.Form))
		}
	}
	return wrong
}

// removed are variables that were settings, with the part that read them and what replaces them. A
// variable that only tuned the inside of the service is not listed: it has no effect.
func removed() map[string][2]string {
	all := map[string][2]string{
		"GRPC_MAX_CONNECTIONS":           {ratelimitPart, "set RATELIMIT_MAX_CONNECTIONS"},
		"RATELIMIT_HTTP_MAX_CONNECTIONS": {ratelimitPart, "set RATELIMIT_MAX_CONNECTIONS"},
		"ANSWERS_IN_FLIGHT":              {apiPart, "large responses may use four times BODIES_IN_FLIGHT"},
		"WRITE_TIMEOUT":                  {apiPart, "it is twice READ_TIMEOUT"},
		"IDLE_TIMEOUT":                   {apiPart, "it is four times READ_TIMEOUT"},
		"SQLITE_BUSY_TIMEOUT":            {apiPart, "it is half of DATABASE_STATEMENT_TIMEOUT"},
		"ARGON2_PARALLELISM":             {apiPart, "it is 1: raise ARGON2_ITERATIONS or ARGON2_MEMORY_KIB"},
		"MFA_ISSUER":                     {authPart, "set PRODUCT_NAME"},
		"PASSWORD_QUEUE":                 {apiPart, "128 password checks may wait"},
	}
	for name, key := range policyVariables {
		all[name] = [2]string{authPart, "set " + key + " in the file of RISK_POLICY"}
	}
	return all
}

// refuseRemoved returns an error if a removed variable of a part that runs is set. Without the
// error, a stricter value would no longer count.
func (e environment) refuseRemoved(reads func(Variable) bool) error {
	var old []string
	all := removed()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		part, now := all[name][0], all[name][1]
		if _, set := e.values[name]; set && reads(Variable{Name: name, readBy: []string{part}}) {
			old = append(old, name+" is no setting any more: "+now)
		}
	}
	if len(old) > 0 {
		return errors.New(strings.Join(old, "; "))
	}
	return nil
}
