package registry

import (
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// Check is a condition on a stored object. The use case that changes the object checks it in its
// transaction. current is nil if the object does not exist. The error ends the change.
type Check[T any] func(current *T) error

// Permit returns the error of the check; nil without one.
func (c Check[T]) Permit(current *T) error {
	if c == nil {
		return nil
	}
	return c(current)
}

// CheckByHand returns fault.Conflict for a change by hand of an object that a file manages, whose
// owner is manager; empty without one. The detail managedBy is the owner. otherwise ends the sentence
// with another way, or is empty.
func CheckByHand(manager, otherwise string) error {
	if manager == "" {
		return nil
	}
	return fault.Newf(fault.Conflict, "the file of %s manages this: change it there%s", manager, otherwise).
		WithDetail("managedBy", jsonvalue.Text(manager))
}

// FindIn returns the first object of a list that matches; otherwise nil.
func FindIn[T any](list []T, matches func(*T) bool) *T {
	for i := range list {
		if matches(&list[i]) {
			return &list[i]
		}
	}
	return nil
}
