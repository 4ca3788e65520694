package adminapi

import (
	"encoding/json"
	"net/http"

	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// hashOf returns the hash of the ETag of an object: of its JSON, without what changes while nobody
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

// conditionOf returns the check of If-Match and If-None-Match of a request for the use case that
// changes an object, which calls it in its transaction with the object that is stored, or nil if
// there is none. shape returns the JSON shape of an object. The condition is nil without the headers.
func conditionOf[T, J any](q *request, shape func(*T) J) func(current *T) error {
	condition, ok := responsebody.ReadConditions(q.Ctx)
	if !ok {
		return nil
	}
	return func(current *T) error {
		var hashes []uint64
		if current != nil {
			hashes = append(hashes, hashOf(shape(current)))
		}
		if condition.Holds(hashes...) {
			return nil
		}
		return fault.New(fault.Stale, "the condition of If-Match or If-None-Match does not hold")
	}
}
