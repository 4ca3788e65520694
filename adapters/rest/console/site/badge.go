package site

import "github.com/tollgate-dev/tollgate/core/registry/review"

// Badge is a state in words, and the class of its colour.
type Badge struct{ Text, Class string }

// ReviewBadge returns the state of a review in words.
func ReviewBadge(s review.State) Badge {
	return map[review.State]Badge{
		review.Pending: {"Pending", "warn"}, review.Approved: {"Approved", "good"}, review.Rejected: {"Rejected", "bad"},
		review.Superseded: {"Superseded", ""},
	}[s]
}
