package registryapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// extension is where the paths are that comparable registries do not have.
const extension = "/x/dev.tollgate"

// toolsPath is the path of the tool lists of a version (contract W-3).
const toolsPath = extension + versionPath + "/tools"

// RecordTools stores a tool list. (*publishing.Publisher).RecordTools documents the errors.
type RecordTools func(
	ctx context.Context, who authority.Caller, body []byte, t publishing.Target,
) (publishing.RecordedTools, error)

func (a *API) getTools(c *fiber.Ctx, v *view.View) error {
	return a.sendVersionRead(c, readTools, v)
}

// recordTools stores the list in the body, and sends all lists of the version.
func (a *API) recordTools(c *fiber.Ctx, w write) error {
	recorded, err := a.config.RecordTools(c.UserContext(), w.who, w.request.Body, w.target)
	if err != nil {
		return err
	}
	body, err := encodeTools(recorded.Lists)
	if err != nil {
		return err
	}
	if recorded.First {
		c.Status(http.StatusCreated)
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.Send(body)
}

// makeTools returns the body of the answer to a read of tool lists.
func (a *API) makeTools(ctx context.Context, version registry.Record) ([]byte, error) {
	lists, err := a.reads.Tools.Of(ctx, version)
	if err != nil {
		return nil, err
	}
	return encodeTools(lists)
}

// encodeTools returns tool lists as JSON.
func encodeTools(lists []tools.Shown) ([]byte, error) {
	all := make(jsonvalue.List, len(lists))
	for i, l := range lists {
		all[i] = describeTools(l)
	}
	body, err := json.Marshal(jsonvalue.Object{"lists": all})
	if err != nil {
		return nil, fmt.Errorf("write tool lists as JSON: %w", err)
	}
	return body, nil
}

// describeTools returns a list as the API shows it. Each tool has its marked fields and its mark.
func describeTools(l tools.Shown) jsonvalue.Object {
	described := jsonvalue.Object{
		"source": jsonvalue.Text(l.Source), "state": jsonvalue.Text(l.State), "mark": jsonvalue.Text(l.List.Mark),
		"contextMark": jsonvalue.Text(l.List.ContextMark), "at": jsonvalue.Text(jsonstring.FormatTime(l.At)),
		"by":      jsonvalue.Text(describePerson(registry.Holder(l.By.Key))),
		"prompts": describeNamed(l.List.Prompts), "resourceTemplates": describeNamed(l.List.ResourceTemplates),
	}
	described.Set("instructions", l.List.Instructions)
	if l.Remote != "" {
		described["remote"] = jsonvalue.Text(l.Remote)
	} else {
		described["package"] = jsonvalue.Number(l.Package)
	}
	all := make(jsonvalue.List, len(l.List.Tools))
	for i, t := range l.List.Tools {
		fields := maps.Clone(t.Fields())
		fields["mark"] = jsonvalue.Text(t.Mark)
		all[i] = fields
	}
	described["tools"] = all
	return described
}

func describeNamed(named []tools.Named) jsonvalue.List {
	all := make(jsonvalue.List, len(named))
	for i, n := range named {
		object := jsonvalue.Object{"name": jsonvalue.Text(n.Name)}
		object.Set("description", n.Description)
		all[i] = object
	}
	return all
}
