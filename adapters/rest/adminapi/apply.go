package adminapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/statefile"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/registry/declaring"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// The paths of the state in a file.
const (
	applyPath = root + "/apply"
	statePath = root + "/state"
)

func (a *API) mountState(r fiber.Router) {
	r.Post(applyPath, a.write(change{audit.AccountChange, "apply", "state"}, a.operator(adminWrite), a.applyState))
	r.Get(statePath, a.read(a.operator(adminRead), a.exportState))
}

func (a *API) applyState(q *request) act {
	document, err := readState(q.Ctx)
	if err == nil {
		err = a.use.State.Check(&document)
	}
	q.check("body", err)
	wanted := declaring.Request{
		Document: document, Owner: q.query("owner"), DryRun: q.flag("dryRun"), Prune: q.flag("prune"),
		Adopt: q.flag("adopt"), ApplyID: a.use.State.NewApplyID(), By: q.who,
		Operator: authority.Operator(),
	}
	q.check("owner", declaring.CheckOwner(wanted.Owner))
	return func(ctx context.Context) (answer, error) {
		actor := q.who.Actor()
		actor.ApplyID = wanted.ApplyID
		changes, err := a.use.State.Apply(auditing.By(ctx, actor), wanted)
		return answer{status: http.StatusOK, body: statefile.NewChanges(changes)}, err
	}
}

// readState returns the document in the body, which is YAML or JSON.
func readState(c *fiber.Ctx) (declaring.Node, error) {
	media, _, _ := strings.Cut(strings.ToLower(c.Get(fiber.HeaderContentType)), ";")
	media = strings.TrimSpace(media)
	isYAML := media == "application/yaml" || media == "application/x-yaml"
	text, err := rest.Body(c, "application/json or application/yaml", func(t string) bool { return isYAML || rest.IsJSON(t) })
	if err != nil {
		return declaring.Node{}, err
	}
	return statefile.Read(text, "", isYAML)
}

func (a *API) exportState(q *request) act {
	owner := q.query("owner")
	q.check("owner", declaring.CheckOwner(owner))
	return func(ctx context.Context) (answer, error) {
		document, err := a.use.State.Export(ctx, owner)
		return answer{status: http.StatusOK, body: document}, err
	}
}
