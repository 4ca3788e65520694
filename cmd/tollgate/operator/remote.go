package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/person"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/wiring"
)

// api calls the API of a service, or the same handlers in this process.
type api struct {
	request func(context.Context, tollgateclient.Request, any) error
	emails  map[string]string // of people by their ids, as far as they were needed
	managed bool              // change what a file manages too
}

// localAPI returns the API on an open database; it is not used without one.
func localAPI(op *wiring.Operator) api {
	if op == nil {
		return api{}
	}
	client := tollgateclient.NewLocal(op.API)
	return api{func(ctx context.Context, q tollgateclient.Request, into any) error {
		return client.Call(ctx, "", q, into)
	}, map[string]string{}, true}
}

// addRemote adds the remote form to a command, or without one the refusal of --server.
func addRemote(p cli.Process, c *cobra.Command, far []func(run) error) *cobra.Command {
	target, local := person.AddTarget(p, c), c.RunE
	if c.ValidArgsFunction == nil && (strings.Contains(c.Use, "NAME") || strings.Contains(c.Use, "ID")) {
		c.ValidArgsFunction = completeFrom(p, target)
	}
	if c.Flags().Lookup("email") != nil && c.Name() != "add" {
		// fails only for an unknown flag
		_ = c.RegisterFlagCompletionFunc("email", func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			return complete(p, target, c, completion{at("people"), "people", "email"}, begun), cobra.ShellCompDirectiveNoFileComp
		})
	}
	if len(far) == 0 {
		for _, flag := range []string{"server", "ca-cert", "context"} {
			_ = c.Flags().MarkHidden(flag) // fails only for an unknown flag
		}
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
		if err := refuseLocal(c); err != nil {
			return err
		}
		service, err := target.Open()
		if err != nil {
			return err
		}
		managed, _ := c.Flags().GetBool(managedFlag) // fails without the flag
		at := api{service.Call, map[string]string{}, managed}
		return person.ExitError(far[0](run{api: at, ctx: c.Context(), args: args}))
	}
	return c
}

// managedFlag is the flag of commands that may change what a file manages.
const managedFlag = "managed"

// addManaged adds the flag that changes what a file manages, which the local form always does.
func addManaged(c *cobra.Command) *cobra.Command {
	c.Flags().Bool(managedFlag, false, "do it even if a state file manages the object; always so without --server")
	return c
}

// localAnnotation marks flags that work on the database only.
const localAnnotation = "tollgate_local"

// localOnly marks flags that work on the database only.
func localOnly(c *cobra.Command, flags ...string) {
	for _, name := range flags {
		_ = c.Flags().SetAnnotation(name, localAnnotation, nil) // fails only for unknown flags
	}
}

// refuseLocal returns an error if a flag is given that works on the database only.
func refuseLocal(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if _, marked := f.Annotations[localAnnotation]; marked {
			err = onlyLocal("--" + f.Name + " works on the database: leave out --server and " + person.ServerVariable)
		}
	})
	return err
}

// onlyLocal returns the error for what a command does on the database only, or at a service only.
func onlyLocal(message string) error { return misused(errors.New(message)) }

// misused returns the error for wrong use of a remote form.
func misused(err error) error { return &cli.CodedError{Code: cli.ExitUsage, Err: err} }

// at returns a path of the administration API; empty parts are left out.
func at(parts ...string) string {
	path := "/admin/v1"
	for _, part := range parts {
		if part != "" {
			path += "/" + url.PathEscape(part)
		}
	}
	return path
}

// send makes a call with a body and decodes the answer into into, unless that is nil.
func (r run) send(method, path string, body, into any) error {
	return r.call(tollgateclient.Request{Method: method, Path: path, Body: body}, into)
}

func (r run) call(q tollgateclient.Request, into any) error {
	if r.managed && q.Method != http.MethodGet && q.Header["If-None-Match"] == "" {
		query := url.Values{"force": {"true"}}
		maps.Copy(query, q.Query)
		q.Query = query
	}
	return r.request(r.ctx, q, into)
}

// listOf returns all items of a list of the API.
func listOf[T any](r run, path, member string, query url.Values) ([]T, error) {
	return person.List[T](r.call, tollgateclient.Request{Method: http.MethodGet, Path: path, Query: query}, member)
}

// listed returns the form of a command that prints a list whose items are its rows.
func listed[R any](member string, path func(run) string) finder {
	return func(r run) (cli.Table, error) {
		rows, err := listOf[R](r, path(r), member, nil)
		return cli.ListTable(rows), err
	}
}

// posted returns the form of a command that adds an object and prints it as a row.
func posted[R any](path string, body func(run) any) finder {
	return func(r run) (cli.Table, error) {
		rows := make([]R, 1)
		err := r.send(http.MethodPost, path, body(r), &rows[0])
		return cli.ListTable(rows), err
	}
}

// newRemoval returns the command that removes what its first argument, an id, names of a subject of the API.
func newRemoval(p cli.Process, subject, short, example string) *cobra.Command {
	return newPlainCommand(p, addManaged(&cobra.Command{
		Use: "remove ID", Short: short, Example: "  tollgate " + example,
	}), removed(subject))
}

// removed returns the form of a command that removes what its first argument names.
func removed(subject string) func(run) error {
	return func(r run) error { return r.send(http.MethodDelete, at(subject, r.args[0]), nil, nil) }
}

// shownPerson is a person as the API shows one.
type shownPerson struct {
	ID           string      `json:"id"`
	Email        string      `json:"email"`
	Name         string      `json:"name"`
	State        string      `json:"state"`
	Phone        string      `json:"phone"`
	SecondFactor bool        `json:"secondFactor"`
	CreatedAt    string      `json:"createdAt"`
	UpdatedAt    string      `json:"updatedAt"`
	Grants       []grantText `json:"grants"`

	SecondFactorPending    bool   `json:"secondFactorPending"`
	SecondFactorEnrolledAt string `json:"secondFactorEnrolledAt"`
	RecoveryCodes          int    `json:"recoveryCodes"`
}

// mfa returns the state of the person's authenticator.
func (p *shownPerson) mfa() string {
	switch {
	case p.SecondFactor:
		return mfaActive
	case p.SecondFactorPending:
		return mfaPending
	}
	return mfaNone
}

// person returns the person with an e-mail address.
func (r run) person(email auth.Email) (shownPerson, error) {
	found, err := listOf[shownPerson](r, at("people"), "people", url.Values{"q": {string(email)}})
	for i := range found {
		if found[i].Email == string(email) {
			return found[i], nil
		}
	}
	if err == nil {
		err = fmt.Errorf("there is no user %s", email)
	}
	return shownPerson{}, err
}

// maxKeptEmails is how many e-mail addresses a command keeps.
const maxKeptEmails = 10_000

// emailOf returns the e-mail address of a person, or the id if the account does not exist.
func (r run) emailOf(id string) string {
	if _, err := auth.ParseUUID[auth.UserID]("id", id); err != nil {
		return id // of an operator or a service account
	}
	email, known := r.emails[id]
	if !known {
		found := shownPerson{Email: id}
		_ = r.send(http.MethodGet, at("people", id), nil, &found) // the id stays
		if email = found.Email; len(r.emails) >= maxKeptEmails {
			clear(r.emails)
		}
		r.emails[id] = email
	}
	return email
}

// manyEmails is from how many e-mail addresses on one call for each costs more than the list of people.
const manyEmails = 200

// readEmails prepares emailOf for n people.
func (r run) readEmails(n int) {
	if n < manyEmails {
		return
	}
	type address struct{ ID, Email string }
	all, _ := listOf[address](r, at("people"), "people", nil) // emailOf reads what is missing
	for _, one := range all {
		r.emails[one.ID] = one.Email
	}
}

// personFinder returns the output of a run about one person of the API.
type personFinder func(run, shownPerson) (cli.Table, error)

// onPerson returns the form of a command about the person with an e-mail address.
func onPerson(email *auth.Email, find personFinder) finder {
	return func(r run) (cli.Table, error) {
		p, err := r.person(*email)
		if err != nil {
			return cli.Table{}, err
		}
		return find(r, p)
	}
}

// changedPerson returns the form of a command that changes a person and prints the new state.
func changedPerson(method, action string, body func() any) personFinder {
	return func(r run, p shownPerson) (cli.Table, error) {
		var content any
		if body != nil {
			content = body()
		}
		err := r.send(method, at("people", p.ID, action), content, &p)
		return cli.ListTable([]userRow{p.row()}), err
	}
}

// ofPerson returns the form of a command that lists what a person has.
func ofPerson[R any](member string) personFinder {
	return func(r run, a shownPerson) (cli.Table, error) {
		rows, err := listOf[R](r, at("people", a.ID, member), member, nil)
		return cli.ListTable(rows), err
	}
}

// completion is a list of the API whose items complete the first argument of the commands in a group.
type completion struct{ path, member, key string }

// completions returns the lists that complete arguments, by the path of the group.
func completions() map[string]completion {
	return map[string]completion{
		"token": {at("me", "tokens"), "tokens", "id"}, "webhook": {at("webhooks"), "webhooks", "id"},
		"publisher": {at("policies"), "policies", "id"}, "review rule": {at("review-rules"), "reviewRules", "id"},
		"review": {reviewPath(), "reviews", "id"},
	}
}

// completeFrom returns a function that completes the first argument of a command from the service, or
// without one from the database.
func completeFrom(p cli.Process, target *person.Target) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		_, group, _ := strings.Cut(c.Parent().CommandPath(), " ")
		from, known := completions()[group]
		for g := c.Parent(); g != nil && !known; g = g.Parent() {
			list := g.Annotations[kindAnnotation]
			from, known = completion{at((&kinds.Kind{List: list}).Path()), list, g.Annotations[keyAnnotation]}, list != ""
		}
		if !known || len(args) > 0 || c.Name() == "add" && group != "view token" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(p, target, c, from, begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// complete returns the names of a list that begin with a text. Without an answer there are none; also if the database
// lacks a migration.
func complete(p cli.Process, target *person.Target, c *cobra.Command, from completion, begun string) (names []string) {
	find := func(r run) error {
		query := url.Values{}
		if begun != "" && from.member == "people" {
			query.Set("q", begun)
		}
		list, err := listOf[map[string]any](r, from.path, from.member, query)
		for _, one := range list {
			if name := fmt.Sprint(one[from.key]); strings.HasPrefix(name, begun) {
				names = append(names, name)
			}
		}
		return err
	}
	if target.Address() == "" {
		p.Stderr = io.Discard
		p.Environ = append(slices.Clone(p.Environ), "MIGRATE_ON_START=false") // the key Tab changes no database
		_ = runWith(p, wiring.OpenOperator, find)(c, nil)
	} else if service, err := target.Open(); err == nil {
		_ = find(run{api: api{request: service.Call}, ctx: c.Context()})
	}
	return names
}
