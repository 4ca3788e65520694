package adminapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
)

const (
	serviceTokensPath = root + "/service-accounts/:name/tokens"
)

func (a *API) mountServices(r fiber.Router) {
	reader, writer := a.operator(adminRead), a.operator(adminWrite)
	r.Get(serviceTokensPath, a.read(reader, a.listTokens(serviceOf)))
	r.Post(serviceTokensPath, a.write(change{audit.AccountChange, "token_add", kindToken}, writer,
		a.addToken(serviceOf)))
	r.Delete(serviceTokensPath+"/:id", a.write(change{audit.AccountChange, "token_remove", kindToken}, writer,
		a.removeToken(serviceOf)))
}

// serviceOf is the service account that the path names.
func serviceOf(q *request) auth.Owner { return auth.ServiceOwner(q.param("name")) }
