// Package tokenlist has what the pages with the tokens of a person and of a service account share.
package tokenlist

import (
	"context"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/tokens"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/scope"
)

// List are the tokens of an owner on the page of their address. The template "tokens" shows them.
type List struct {
	Tokens  []auth.APIToken
	Address string
	Add     site.FormView
}

var inputs = []site.Input{
	{Name: "name", Label: "Name of the token", Hint: "What it is for.", Required: true},
	{Name: "scopes", Label: "It may", Kind: "choices", Options: scopeOptions()},
	{Name: "expiresAt", Label: "End", Kind: "date", Hint: "It is good to the end of this day, UTC. Empty for 90 days."},
	{
		Name: "networks", Label: "Networks",
		Hint: "From which it is good, such as 192.0.2.0/24, with spaces between them. Empty for everywhere.",
	},
}

// scopeOptions returns the scopes to choose from, with what they allow.
func scopeOptions() (all []site.Option) {
	for _, one := range []struct {
		scope scope.Scope
		words string
	}{
		{scope.Read, "read the registry, where that needs a sign-in"}, {scope.Publish, "publish versions"},
		{scope.Edit, "change documents and statuses"}, {scope.Review, "decide about reviews, and put servers in quarantine"},
		{scope.AdminRead, "read what operators see"}, {scope.Admin, "do what operators do"},
		{scope.Audit, "read the audit log of everybody"}, {scope.Decide, "ask whether a call is allowed"},
	} {
		all = append(all, site.Option{Value: string(one.scope), Text: one.words + " (" + string(one.scope) + ")"})
	}
	return all
}

// Read returns the tokens of an owner whose forms are below an address.
func Read(
	v *site.Visit, s *tokens.Service, owner auth.Owner, address string, problems site.Problems,
) (List, error) {
	all, err := s.List(v.UserContext(), owner, "", 2*owner.MaxTokens())
	add := v.Fill(site.Form{Action: address, Button: "Make this token", Inputs: inputs}, nil, problems)
	return List{Tokens: all, Address: address, Add: add}, err
}

// Makers are the use cases that make a token in a session.
type Makers struct {
	Tokens      *tokens.Service
	Credentials *credentials.Service
}

// Add makes the token of an owner that a form describes, and shows it.
func Add(ctx context.Context, v *site.Visit, m Makers, owner auth.Owner, back site.Link) error {
	added, secret, err := m.add(ctx, v, owner)
	if err != nil {
		return err
	}
	return v.ShowOnce(site.Secret{
		Title: "The token " + added.Name, Value: string(secret), Back: back,
		Hint: "Clients send it in the header Authorization: Bearer.",
	})
}

func (m Makers) add(
	ctx context.Context, v *site.Visit, owner auth.Owner,
) (t auth.APIToken, secret auth.APISecret, err error) {
	who, err := v.Caller()
	if err != nil {
		return t, "", err
	}
	maker, err := who.RequireFullTrust()
	if err != nil {
		return t, "", err
	}
	if t, err = parse(v, m.Tokens); err != nil {
		return t, "", err
	}
	err = m.Credentials.AddToken(auditing.By(ctx, who.Actor()), v.Session.ID, func(ctx context.Context) (_ auth.APIToken, err error) {
		t, secret, err = m.Tokens.Add(ctx, owner, auth.Owner(maker), t)
		return t, err
	})
	return t, secret, err
}

// parse returns the token that a form describes.
func parse(v *site.Visit, s *tokens.Service) (auth.APIToken, error) {
	d := auth.APITokenDraft{
		Name: v.Trimmed("name"), Scopes: v.Form["scopes"], Networks: strings.Fields(v.Form.Get("networks")),
	}
	if text := v.Form.Get("expiresAt"); text != "" {
		day, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return auth.APIToken{}, fault.New(fault.Invalid, "expiresAt must be a day such as 2027-01-31")
		}
		d.ExpiresAt = day.Add(24*time.Hour - time.Second)
	}
	return s.Parse(d)
}

// Remove removes the token of an owner that the path names.
func Remove(ctx context.Context, v *site.Visit, s *tokens.Service, owner auth.Owner) error {
	id, err := v.Param("token")
	if err != nil {
		return err
	}
	who, err := v.Caller()
	if err == nil {
		_, err = who.RequireReader()
	}
	if err != nil {
		return err
	}
	return s.Remove(auditing.By(ctx, who.Actor()), owner, auth.APITokenID(id))
}
