package registryapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// ownerPath is the path of who answers for a server.
const ownerPath = extension + serversPath + "/:" + nameParam + "/owner"

// SetOwner stores who answers for a server. (*publishing.Publisher).SetOwner documents the errors.
type SetOwner func(ctx context.Context, who authority.Caller, serverName, team, contact string) error

// ownerResponse is who answers for a server, as the API shows it; empty texts for no one.
type ownerResponse struct {
	Owner   string `json:"owner"`
	Contact string `json:"contact"`
}

// getOwner sends who answers for a server that the caller may read.
func (a *API) getOwner(c *fiber.Ctx, v *view.View) error {
	name, err := pathValue(c, nameParam)
	if err != nil {
		return err
	}
	record, err := a.readerOf(v).Version(c.UserContext(), name, registry.LatestAlias, c.Query(deletedParam))
	if err != nil {
		return err
	}
	owner, err := a.reads.Owners.Of(c.UserContext(), record.Name)
	return sendOwner(c, owner, err)
}

func (a *API) setOwner(c *fiber.Ctx, who authority.Caller) error {
	name, err := pathValue(c, nameParam)
	if err != nil {
		return err
	}
	body, err := jsonbody.Read(c)
	if err != nil {
		return err
	}
	team, contact := body.PresentText("owner"), body.OptionalText("contact")
	if err := body.Err(); err != nil {
		return err
	}
	if err := a.config.SetOwner(c.UserContext(), who, strings.Clone(name), team, contact); err != nil {
		return err
	}
	owner, err := registry.NewOwner(team, contact)
	return sendOwner(c, owner, err)
}

func sendOwner(c *fiber.Ctx, o registry.Owner, err error) error {
	if err != nil {
		return err
	}
	return sendUncached(c, http.StatusOK, ownerResponse{o.Team, o.Contact})
}
