package registryapi

import (
	"context"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/packed"
	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/allowlistjson"
	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

// skippedHeader says how many remotes, packages and servers the format of an allow list cannot
// express.
const skippedHeader = "X-Tollgate-Skipped"

// getAllowList sends an allow list. If the client goes away
// while the list is compiled, it is not compiled for it.
func (a *API) getAllowList(c *fiber.Ctx, v *view.View) error {
	var files []string
	var format allowlist.Format
	for _, f := range allowlist.Formats() {
		files = append(files, f.File())
		if f.File() == c.Params(fileParam) {
			format = f
		}
	}
	if format == "" {
		return fault.Newf(fault.NotFound, "allow list not found: there are %s", strings.Join(files, ", "))
	}
	ctx, end := rest.WatchClient(c)
	defer end()
	err := a.sendAnswerTo(ctx, c, read{kind: readAllowList, view: v, format: string(format)})
	if err != nil && ctx.Err() != nil {
		return fiber.ErrRequestTimeout // no one reads it
	}
	return err
}

// group returns the read of the lists of all formats of a view, which are compiled together.
func (r read) group() (read, bool) {
	return read{kind: readAllowList, view: r.view}, r.kind == readAllowList
}

// compileLists makes the answers to the reads of all formats of a view, in one pass over its
// servers.
func (a *API) compileLists(ctx context.Context, group read) (map[read]answer, error) {
	encoder := allowlistjson.NewEncoder()
	lists, err := a.reads.Lists.In(*group.view).Compile(ctx, allowlist.Output{Define: encoder.Define},
		allowlist.Formats()...)
	if err != nil {
		return nil, err
	}
	answers := map[read]answer{}
	for _, f := range allowlist.Formats() {
		if f == allowlist.Gemini { // it has no entries, and neither have those after it
			lists.ForgetEntries()
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		to := packed.NewWriter()
		if err := encoder.Encode(to, lists, f); err != nil {
			return nil, err
		}
		body, err := to.Close()
		if err != nil {
			return nil, err
		}
		r := group
		r.format = string(f)
		shared, err := responsebody.NewPacked(allowlistjson.ListType(f), body,
			append(a.config.publicHeaders(&r), skippedHeader, strconv.Itoa(lists.Skipped(f)))...)
		if err != nil {
			return nil, err
		}
		answers[r] = answer{Body: shared}
	}
	return answers, nil
}
