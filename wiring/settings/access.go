package settings

import (
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// accessBindings returns the settings of decisions about calls.
func (s *Settings) accessBindings() []binding {
	c := &s.Access
	effect := func(text string) (access.Effect, error) {
		return fault.OneOf("effect", text, access.Deny, access.Allow)
	}
	mode := func(text string) (access.Mode, error) {
		return fault.OneOf("mode", text, access.Enforce, access.Observe)
	}
	return []binding{
		s.bind(&c.Default, "ACCESS_DEFAULT", "deny",
			"what becomes of a call that no access rule matches: deny or allow").
			as("text", word(&c.Default, effect, "deny or allow")),
		s.bind(&c.Unlisted, "ACCESS_UNLISTED", "deny",
			"what becomes of a call of a server that the registry does not list: deny or allow").
			as("text", word(&c.Unlisted, effect, "deny or allow")),
		s.bind(&c.Mode, "ACCESS_MODE", "enforce",
			"enforce, or observe: no access rule decides, and what each would have done is shown").
			as("text", word(&c.Mode, mode, "enforce or observe")),
		s.bind(&c.AwayAllows, "DECIDE_AWAY", "deny",
			"what becomes of a call whose caller is not in memory while the database is away: deny or allow").
			as("text", oneOf(&c.AwayAllows, "allow", "deny")),
		s.bind(&c.StaleMax, "DECIDE_STALE_MAX", "5m",
			"while rules and listings cannot be read, how old those may be by which calls are decided, 1s to 720h; then DECIDE_AWAY decides"),
		s.bind(&s.Proxies.On, "DECIDE", "off", "whether proxies may ask for decisions about calls: off or on").
			as("text", oneOf(&s.Proxies.On, "on", "off")),
		s.bind(&c.LogsAll, "DECIDE_LOG", "denied",
			"denied: denials and challenges are in the audit log; all: every decision is also a line of the log").
			as("text", oneOf(&c.LogsAll, "all", "denied")),
	}
}
