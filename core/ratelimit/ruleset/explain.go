package ruleset

import (
	"strconv"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// Miss is the reason why entries match no rule.
type Miss struct {
	Reason Reason
	// Level is the index of the entry at which the search ended. For NoLimit it is the number of
	// entries.
	Level int
}

// Reason is the kind of a Miss.
type Reason uint8

// The reasons. The zero value means that there is a rule.
const (
	Matched       Reason = iota
	UnknownDomain        // the configuration does not have the domain
	UnknownKey           // no descriptor at this level has the key
	UnknownValue         // descriptors have the key, and no descriptor matches the value
	TooDeep              // there are no descriptors at this level
	NoLimit              // the descriptor at the end has no rate_limit
)

// Explain returns why Match returns no rule. It follows the same path as Match. It serves
// diagnosis; decisions use Match.
func (s *Set) Explain(domain ratelimit.Domain, entries []ratelimit.Entry) Miss {
	n := s.domains[domain]
	if n == nil {
		return Miss{Reason: UnknownDomain}
	}
	for i := range entries {
		child := n.findChild(&entries[i])
		switch {
		case child != nil:
			n = child
		case len(n.keys) == 0:
			return Miss{Reason: TooDeep, Level: i}
		case n.keys[entries[i].Key] == nil:
			return Miss{Reason: UnknownKey, Level: i}
		default:
			return Miss{Reason: UnknownValue, Level: i}
		}
	}
	if n.rule == nil {
		return Miss{Reason: NoLimit, Level: len(entries)}
	}
	return Miss{}
}

// Phrase says in words why no rule matches entries; it is empty if one does. quote returns a text
// of the request between quotes.
func (m Miss) Phrase(entries []ratelimit.Entry, quote func(string) string) string {
	switch m.Reason {
	case UnknownDomain:
		return "the domain is not configured"
	case UnknownKey:
		return "no rule has the key " + quote(entries[m.Level].Key) + " at level " + strconv.Itoa(m.Level+1)
	case UnknownValue:
		e := entries[m.Level]
		return "no rule of the key " + quote(e.Key) + " at level " + strconv.Itoa(m.Level+1) + " has the value " +
			quote(e.Value)
	case TooDeep:
		return "the rules end at level " + strconv.Itoa(m.Level) + ", but the descriptor has more entries"
	case NoLimit:
		return "the rules have no rate_limit at level " + strconv.Itoa(m.Level)
	case Matched:
	}
	return ""
}
