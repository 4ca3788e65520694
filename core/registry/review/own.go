package review

import (
	"slices"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// Submitter is who submitted a document.
type Submitter struct {
	// Key identifies the submitter: the user id of a person, or what a publisher has proved.
	Key string
	// Policy is the policy by which a publisher submitted; empty for a person, and for a proof that
	// depends on no policy.
	Policy registry.PolicyID
	// Makers are the people who created the policies by which a publisher submitted.
	Makers []registry.Holder
}

// People returns the people who are responsible for the document: its submitter, or the makers of
// the policies.
func (s Submitter) People() []registry.Holder {
	if s.Policy != "" || len(s.Makers) > 0 {
		return s.Makers
	}
	return []registry.Holder{registry.Holder(s.Key)}
}

// IsOwn reports whether a person has submitted the document, or created a policy by which it was
// submitted.
func (r Review) IsOwn(person registry.Holder) bool {
	return r.Submitter.Key == string(person) || slices.Contains(r.Submitter.Makers, person)
}
