package adminapi

import (
	"encoding/json"
	"net/http"

	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// hashOf returns the hash of the ETag of an object: of its JSON, without what changes while no one
// changes the object, such as the time of its last use. A shape that has those has the method
// stable, which returns the shape without them.
func hashOf(shape any) uint64 {
	if s, ok := shape.(interface{ stable() any }); ok {
		shape = s.stable()
	}
	text, _ := json.Marshal(shape) // no error: shapes have texts, numbers and flags only
	return responsebody.Hash(text)
}

// object is the answer with an object, as its JSON shape.
func object(status int, shape any) answer {
	return answer{status: status, body: shape, tag: responsebody.Tag(hashOf(shape))}
}

// putObject is the answer to a PUT that made or replaced an object.
func putObject(created bool, shape any) answer {
	if created {
		return object(http.StatusCreated, shape)
	}
	return object(http.StatusOK, shape)
}

// ownedBy is the member of the shapes of objects that a file may manage.
type ownedBy struct {
	ManagedBy string `json:"managedBy"` // the owner of the file; empty without one
}

func (m ownedBy) manager() string { return m.ManagedBy }

// conditionOf returns the check of a write for the use case that changes an object, which calls it
// in its transaction with the stored object, or nil without one: the condition of If-Match and
// If-None-Match, and that no file manages the object, unless the query has force=true. shape
// returns the JSON shape of an object.
func conditionOf[T any, J interface{ manager() string }](q *request, shape func(*T) J) func(current *T) error {
	condition, _ := responsebody.ReadConditions(q.Ctx)
	force := q.flag("force")
	return func(current *T) error {
		if current == nil {
			return checkCondition(condition)
		}
		shown := shape(current)
		if err := checkCondition(condition, hashOf(shown)); err != nil {
			return err
		}
		if force {
			return nil
		}
		return registry.CheckByHand(shown.manager(), ", or send force=true (--managed of a command)")
	}
}

// checkCondition returns fault.Stale unless a condition holds for a stored object with a hash, or for
// none.
func checkCondition(c responsebody.Condition, stored ...uint64) error {
	if c.Holds(stored...) {
		return nil
	}
	return fault.New(fault.Stale, "the condition of If-Match or If-None-Match does not hold")
}
