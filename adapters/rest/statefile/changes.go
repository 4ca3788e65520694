package statefile

import (
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/registry/declaring"
)

// Changes is the answer to a document that was applied.
type Changes struct {
	Changes []Change `json:"changes"`
}

// Change is what became of an object.
type Change struct {
	Kind   string        `json:"kind"`
	Key    string        `json:"key"`
	Change string        `json:"change"`
	Fields audit.Details `json:"fields"` // by name the values before and after, or "changed" for a secret
}

// NewChanges returns the answer with changes.
func NewChanges(list []declaring.Change) Changes {
	answer := Changes{make([]Change, len(list))}
	for i, c := range list {
		answer.Changes[i] = Change{c.Kind, c.Key, string(c.Operation), c.Fields}
	}
	return answer
}
