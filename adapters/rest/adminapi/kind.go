package adminapi

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/ports/management"
)

// kindRoutes are the routes of the objects of a kind: their list, and each by its name.
type kindRoutes struct {
	management.Objects

	kind *kinds.Kind
}

func newKindRoutes(o management.Objects) kindRoutes { return kindRoutes{o, o.Kind()} }

func (a *API) mountKind(r fiber.Router, k kindRoutes) {
	list, reader, writer := root+"/"+k.kind.Path(), a.operator(adminRead), a.operator(adminWrite)
	one := list + "/:name"
	r.Get(list, a.read(reader, k.list))
	r.Get(one, a.read(reader, k.get))
	r.Put(one, a.write(change{k.kind.Category, k.kind.Put, k.kind.Name}, writer, k.put))
	r.Delete(one, a.write(change{k.kind.Category, k.kind.Remove, k.kind.Name}, writer, k.remove))
}

// objectResponse is an object: its fields, also those that are empty, and what else is known of it.
type objectResponse struct {
	members, state audit.Details
	ownedBy
}

func (k kindRoutes) newResponse(o *management.Object) objectResponse {
	members := kinds.Complete(k.kind.Fields, o.Fields)
	maps.Copy(members, o.Fixed)
	members["managedBy"] = audit.Text(o.Owner)
	return objectResponse{members, o.State, ownedBy{o.Owner}}
}

// stable returns the object without its state.
func (r objectResponse) stable() any { return r.members }

// MarshalJSON writes the members in the order of their names.
func (r objectResponse) MarshalJSON() ([]byte, error) {
	all := maps.Clone(r.members)
	maps.Copy(all, r.state)
	return json.Marshal(all)
}

func (k kindRoutes) list(q *request) act {
	return listing[management.Object, objectResponse]{
		name: k.kind.List, key: func(o *management.Object) string { return o.Key }, shape: k.newResponse, fetch: k.List,
	}.handle(q)
}

func (k kindRoutes) get(q *request) act {
	key := q.param("name")
	return func(ctx context.Context) (answer, error) {
		o, err := k.Get(ctx, key)
		if err != nil {
			return answer{}, err
		}
		return object(http.StatusOK, k.newResponse(&o)), nil
	}
}

func (k kindRoutes) put(q *request) act {
	given := q.body().Fields(k.kind.Fields[1:])
	given[k.kind.Fields[0].Name] = audit.Text(q.param("name"))
	_, err := k.Parse(given)
	q.check("", err)
	c := management.Change{Fields: given, Force: q.flag("force"), Check: conditionOf(q, k.newResponse)}
	return func(ctx context.Context) (answer, error) {
		o, created, err := k.Put(ctx, c)
		if err != nil {
			return answer{}, err
		}
		return putObject(created, k.newResponse(&o)), nil
	}
}

func (k kindRoutes) remove(q *request) act {
	key, c := q.param("name"), management.Change{Force: q.flag("purge"), Check: conditionOf(q, k.newResponse)}
	return func(ctx context.Context) (answer, error) { return noContent(), k.Remove(ctx, key, c) }
}
