package main

import (
	"context"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/mcpname"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// maxID bounds a package's id, in bytes, as the public feed does.
const maxID = 100

// gallery answers for all feeds that may be asked.
type gallery struct{ client *registryclient.Client }

// RegistryTypes implements [sdk.Ownership].
func (gallery) RegistryTypes() []string { return []string{"nuget"} }

// Check implements [sdk.Ownership].
func (g gallery) Check(ctx context.Context, c sdk.Claim) error {
	ctx, cancel := registryclient.Within(ctx)
	defer cancel()
	base, err := g.client.Base(c.RegistryBaseURL)
	if err != nil {
		return err
	}
	id, version, err := named(c)
	if err != nil {
		return err
	}
	at, err := openFeed(ctx, base)
	if err != nil {
		return registryclient.Verdict(err)
	}
	if err := at.has(ctx, id, version, c); err != nil {
		return err
	}
	return at.claims(ctx, id, version, c)
}

// named returns the id and the version that a claim names, in the form that addresses have.
func named(c sdk.Claim) (id, version string, err error) {
	if c.Version == "" {
		return "", "", sdk.Refuse("the version of NuGet package %.100q is missing", c.Identifier)
	}
	if !validID(c.Identifier) {
		return "", "", sdk.Refuse("%.100q is not the id of a NuGet package", c.Identifier)
	}
	version, ok := normalized(c.Version)
	if !ok {
		return "", "", sdk.Refuse("%.100q is not a version of a NuGet package", c.Version)
	}
	return strings.ToLower(c.Identifier), version, nil
}

func validID(id string) bool {
	if id == "" || len(id) > maxID || strings.Trim(id, ".") != id {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool { return !alphanumeric(r) && !strings.ContainsRune("._-", r) })
}

// has reports whether the feed has the version.
func (f feed) has(ctx context.Context, id, version string, c sdk.Claim) error {
	versions, err := f.versions(ctx, id)
	if registryclient.Is(err, registryclient.NotFound) || err == nil && len(versions) == 0 {
		return sdk.Refuse("there is no NuGet package %q", c.Identifier)
	}
	if err != nil {
		return registryclient.Verdict(err)
	}
	if !slices.Contains(versions, version) {
		return sdk.Refuse("NuGet package %q has no version %.100q", c.Identifier, c.Version)
	}
	return nil
}

// claims reports whether the readme names the server.
func (f feed) claims(ctx context.Context, id, version string, c sdk.Claim) error {
	readme, err := f.readmeOf(ctx, id, version)
	if registryclient.Is(err, registryclient.NotFound) {
		return sdk.Refuse("version %.60s of NuGet package %q has no readme; it must have one with %q",
			c.Version, c.Identifier, "mcp-name: "+c.ServerName)
	}
	if err != nil {
		return registryclient.Verdict(err)
	}
	if !mcpname.Claims(readme, c.ServerName) {
		return sdk.Refuse("the readme of version %.60s of NuGet package %q does not have %q",
			c.Version, c.Identifier, "mcp-name: "+c.ServerName)
	}
	return nil
}
