package settings

import "slices"

// The parts of the service that settings tell apart, by the names that the flag
// --only takes, and apiPart, which is any part that answers on the API listener.
const (
	ratelimitPart = "ratelimit"
	apiPart       = "api"
)

// readsOf returns whether a variable is read when these parts run; none means all.
func readsOf(parts []string) func(Variable) bool {
	return func(v Variable) bool {
		if len(parts) == 0 || len(v.readBy) == 0 {
			return true
		}
		return slices.ContainsFunc(parts, func(part string) bool {
			return slices.Contains(v.readBy, part) || part != ratelimitPart && slices.Contains(v.readBy, apiPart)
		})
	}
}
