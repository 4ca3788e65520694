package authapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
)

type workloadResponse struct {
	AccessToken string `json:"accessToken"`
	ExpiresIn   int64  `json:"expiresIn"` // seconds
}

// proveWorkload returns a token of a service account for an ID token of one of its workloads.
func (a *API) proveWorkload(c *fiber.Ctx) error {
	b, err := readBody(c)
	if err != nil {
		return err
	}
	r := delegating.WorkloadRequest{
		Client:  delegating.Client{Address: rest.Address(c), Key: rest.Client(c).String()},
		Service: b.Text("serviceAccount"), Token: b.Text("token"),
	}
	if err := fieldError(b.Problems()); err != nil {
		return err
	}
	t, err := a.use.Workloads.ProveWorkload(c.UserContext(), r)
	if err != nil {
		return err
	}
	return sendJSON(c, workloadResponse{t.Text, wholeSeconds(auth.WorkloadTTL)})
}
