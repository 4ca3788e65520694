package settings

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

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
