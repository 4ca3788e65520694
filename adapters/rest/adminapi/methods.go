package adminapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
)

const methodsPath = root + "/methods"

func (a *API) mountMethods(r fiber.Router) {
	r.Get(methodsPath, a.read(a.operator(adminRead), func(*request) act { return a.sendMethods }))
	r.Put(methodsPath, a.write(change{audit.MethodsChange, "import", "method"}, a.operator(adminWrite), a.putMethods))
}

// methodsResponse is the whole listing: one object.
type methodsResponse struct {
	Methods []methodResponse `json:"methods"`
}

// methodResponse is a method as files of methods have it.
type methodResponse struct {
	MethodID    int      `json:"method_id"`
	Path        string   `json:"path"`
	ServiceID   int      `json:"service_id"`
	ServiceName string   `json:"service_name"`
	Parameters  []string `json:"parameters"`
}

// manager implements conditionOf: no file manages methods.
func (methodsResponse) manager() string { return "" }

func newMethodsResponse(all *[]catalogue.Method) methodsResponse {
	return methodsResponse{each.Map(*all, func(m catalogue.Method) methodResponse {
		return methodResponse{int(m.ID), m.Path, int(m.ServiceID), m.ServiceName, append([]string{}, m.Parameters...)}
	})}
}

func (a *API) sendMethods(ctx context.Context) (answer, error) {
	all, err := a.use.Methods.List(ctx)
	return answerWith(http.StatusOK, all, err, newMethodsResponse)
}

func (a *API) putMethods(q *request) act {
	if !q.body().Has("methods") {
		q.check("methods", fault.New(fault.Invalid, "is missing"))
	}
	var methods []catalogue.Method
	ids, paths := map[catalogue.MethodID]bool{}, map[string]bool{}
	for i, b := range q.body().Objects("methods") {
		m, err := readMethod(b)
		if err == nil && (ids[m.ID] || paths[m.Path]) {
			err = fault.New(fault.Invalid, "has the method_id or the path of another one")
		}
		q.check(fmt.Sprintf("methods[%d]", i), err)
		ids[m.ID], paths[m.Path] = true, true
		methods = append(methods, m)
	}
	check := conditionOf(q, newMethodsResponse)
	return func(ctx context.Context) (answer, error) {
		if err := a.use.Listing.Replace(ctx, methods, check); err != nil {
			return answer{}, err
		}
		return a.sendMethods(ctx)
	}
}

func readMethod(b *jsonbody.Object) (catalogue.Method, error) {
	return catalogue.NewMethod(catalogue.Method{
		ID: catalogue.MethodID(b.Number("method_id")), Path: b.Text("path"),
		ServiceID: catalogue.ServiceID(b.Number("service_id")), ServiceName: b.Text("service_name"),
		Parameters: b.OptionalTexts("parameters"),
	})
}
