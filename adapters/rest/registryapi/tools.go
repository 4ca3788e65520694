package registryapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/core/registry/watching"
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

// AskTools queries remotes of a version. (*watching.Watcher).Ask documents the errors.
type AskTools func(ctx context.Context, who authority.Caller, t watching.Target) ([]tools.Shown, error)

// getTools sends the lists of a version. Who may review the server also reads what is wrong with remotes,
// which no shared cache keeps.
func (a *API) getTools(c *fiber.Ctx, v *view.View) error {
	reviews, err := a.mayReview(c)
	switch {
	case err != nil:
		return err
	case !reviews:
		return a.sendVersionRead(c, readTools, v)
	}
	t, err := readTarget(c)
	if err != nil {
		return err
	}
	record, err := a.readerOf(v).Version(c.UserContext(), t.Name, t.Version, c.Query(deletedParam))
	if err != nil {
		return err
	}
	lists, err := a.reads.Tools.Of(c.UserContext(), record)
	if err != nil {
		return err
	}
	body, err := encodeTools(lists, true)
	if err == nil {
		err = a.bodies.Send(c, responsebody.NewShared(fiber.MIMEApplicationJSON, body))
	}
	keepPrivate(c, keptNever)
	return err
}

// mayReview reports whether the caller may review the server in the path. Another token than a
// person's is for the read to judge.
func (a *API) mayReview(c *fiber.Ctx) (bool, error) {
	token := rest.BearerToken(c)
	if token == "" {
		return false, nil
	}
	who, err := a.authority.IdentifyReader(c.UserContext(), token, rest.Address(c))
	if err != nil {
		return false, nil //nolint:nilerr // the read judges it
	}
	name, err := pathValue(c, nameParam)
	if err != nil {
		return false, err
	}
	return a.reads.Tools.MayReview(c.UserContext(), who, name)
}

// askTools queries the remote in the body, or without a body all of the version, and sends all lists.
func (a *API) askTools(c *fiber.Ctx, who authority.Caller) error {
	t, err := readTarget(c)
	if err != nil {
		return err
	}
	target := watching.Target{Name: t.Name, Version: t.Version}
	if len(c.Body()) > 0 {
		body, err := jsonbody.Read(c)
		if err != nil {
			return err
		}
		target.Remote = body.OptionalText("remote")
		if err := body.Err(); err != nil {
			return err
		}
	}
	lists, err := a.config.AskTools(c.UserContext(), who, target)
	return sendTools(c, lists, err)
}

// sendTools sends lists to who may read all of them, or returns err.
func sendTools(c *fiber.Ctx, lists []tools.Shown, err error) error {
	if err != nil {
		return err
	}
	body, err := encodeTools(lists, true)
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.Send(body)
}

// recordTools stores the list in the body, and sends all lists of the version.
func (a *API) recordTools(c *fiber.Ctx, w write) error {
	recorded, err := a.config.RecordTools(c.UserContext(), w.who, w.request.Body, w.target)
	if err != nil {
		return err
	}
	if recorded.First {
		c.Status(http.StatusCreated)
	}
	return sendTools(c, recorded.Lists, nil)
}

// makeTools returns the body of the answer to a read of tool lists.
func (a *API) makeTools(ctx context.Context, version registry.Record) ([]byte, error) {
	lists, err := a.reads.Tools.Of(ctx, version)
	if err != nil {
		return nil, err
	}
	return encodeTools(lists, false)
}

// encodeTools returns tool lists as JSON, with what is wrong with remotes, or that they could not be asked.
func encodeTools(lists []tools.Shown, detailed bool) ([]byte, error) {
	all := make(jsonvalue.List, len(lists))
	for i, l := range lists {
		if l.Problem == "" {
			all[i] = describeTools(l)
			continue
		}
		if !detailed {
			l.Problem = "could not be asked"
		}
		all[i] = jsonvalue.Object{
			"remote": jsonvalue.Text(l.Remote), "source": jsonvalue.Text(l.Source), "state": jsonvalue.Text("error"),
			"error": jsonvalue.Text(l.Problem), "at": jsonvalue.Text(jsonstring.FormatTime(l.At)),
			"tools": jsonvalue.List{}, "prompts": jsonvalue.List{}, "resourceTemplates": jsonvalue.List{},
		}
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
