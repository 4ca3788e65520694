package registryapi

import (
	"cmp"

	"github.com/gofiber/fiber/v2"
)

// pongResponse is the response to a ping (contract P-22).
type pongResponse struct {
	Pong bool `json:"pong"`
}

func sendPong(c *fiber.Ctx) error { return c.JSON(pongResponse{Pong: true}) }

// versionResponse describes the program (contract P-22).
type versionResponse struct {
	Version   string `json:"version"`
	GitCommit string `json:"git_commit"`
	BuildTime string `json:"build_time"`
}

// sendVersion sends the version of the program; what is not known is "unknown".
func (a *API) sendVersion(c *fiber.Ctx) error {
	b := a.config.Build
	return c.JSON(versionResponse{
		Version: cmp.Or(b.Version, "unknown"), GitCommit: cmp.Or(b.Revision, "unknown"),
		BuildTime: cmp.Or(b.Time, "unknown"),
	})
}
