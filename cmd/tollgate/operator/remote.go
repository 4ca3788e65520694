package operator

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/person"
)

// remote is the service that the remote form of a command calls.
type remote struct {
	service *person.Service
}

// addRemote adds the remote form to a command, or without one the refusal of --server.
func addRemote(p cli.Process, c *cobra.Command, far []func(run) error) *cobra.Command {
	target, local := person.AddTarget(p, c), c.RunE
	if len(far) == 0 {
		_, _ = c.Flags().MarkHidden("server"), c.Flags().MarkHidden("ca-cert") // fail only for unknown flags
		cli.CheckFirst(c, func() error {
			if target.Address() == "" {
				return nil
			}
			return onlyLocal("this command works on the database: leave out --server and " + person.ServerVariable)
		})
		return c
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if target.Address() == "" {
			return local(c, args)
		}
		service, err := target.Open()
		if err != nil {
			return err
		}
		return person.ExitError(far[0](run{remote: remote{service}, ctx: c.Context(), args: args}))
	}
	return c
}

// onlyLocal returns the error for what a command cannot do from afar.
func onlyLocal(message string) error { return misused(errors.New(message)) }

// misused returns the error for wrong use of a remote form.
func misused(err error) error { return &cli.CodedError{Code: cli.ExitUsage, Err: err} }

// at returns a path of the administration API.
func at(parts ...string) string {
	path := "/admin/v1"
	for _, part := range parts {
		path += "/" + url.PathEscape(part)
	}
	return path
}

// send makes a call with a body and decodes the answer into into, unless that is nil.
func (r run) send(method, path string, body, into any) error {
	return r.call(tollgateclient.Request{Method: method, Path: path, Body: body}, into)
}

func (r run) call(q tollgateclient.Request, into any) error { return r.service.Call(r.ctx, q, into) }

// create makes an object that must not exist.
func (r run) create(path string, body, into any, exists string) error {
	err := r.call(tollgateclient.Request{
		Method: http.MethodPut, Path: path, Body: body, Header: map[string]string{"If-None-Match": "*"},
	}, into)
	if tollgateclient.HasCode(err, "precondition_failed") {
		return errors.New(exists)
	}
	return err
}

// listOf returns all items of a list of the API.
func listOf[T any](r run, path, member string, query url.Values) ([]T, error) {
	return person.List[T](r.call, tollgateclient.Request{Method: http.MethodGet, Path: path, Query: query}, member)
}

// listed returns the remote form of a command that prints a list whose items are its rows.
func listed[R any](member string, path func(run) string) finder {
	return func(r run) (cli.Table, error) {
		rows, err := listOf[R](r, path(r), member, nil)
		return cli.ListTable(rows), err
	}
}

// posted returns the remote form of a command that adds an object and prints it as a row.
func posted[R any](path string, body func(run) any) finder {
	return func(r run) (cli.Table, error) {
		rows := make([]R, 1)
		err := r.send(http.MethodPost, path, body(r), &rows[0])
		return cli.ListTable(rows), err
	}
}

// removed returns the remote form of a command that removes what its first argument names.
func removed(subject string) func(run) error {
	return func(r run) error { return r.send(http.MethodDelete, at(subject, r.args[0]), nil, nil) }
}
