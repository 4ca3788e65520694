package site

import "github.com/tollgate-dev/tollgate/core/auth"

// Level is a trust level on a page.
type Level struct {
	Name  string
	Means string // what the session may do
	Class string // of its look
}

var levels = map[auth.TrustLevel]Level{
	auth.FullTrust: {"Full trust", "It may do everything that you may do.", "good"},
	auth.LimitedTrust: {
		"Limited trust", "It may read, and do what does not change the registry, until you enter a code.", "warn",
	},
	auth.Unverified: {"Not verified", "It may look at this account and little else, until you enter a code.", "warn"},
	auth.HighRisk:   {"High risk", "It may only sign out.", "bad"},
}

// LevelOf returns how a page shows a trust level.
func LevelOf(l auth.TrustLevel) Level { return levels[l] }
