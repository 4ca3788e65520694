package main

import (
	"context"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/mcpname"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// maxID is the length limit of a package's id, in bytes, on the public feed.
const maxID = 100

// feedChecker checks claims with all feeds that are allowed.
type feedChecker struct{ client *registryclient.Client }

// RegistryTypes implements [sdk.Ownership].
func (feedChecker) RegistryTypes() []string { return []string{"nuget"} }

// Check implements [sdk.Ownership].
func (g feedChecker) Check(ctx context.Context, c sdk.Claim) error {
	ctx, cancel := registryclient.Within(ctx)
	defer cancel()
	base, err := g.client.Base(c.RegistryBaseURL)
	if err != nil {
		return err
	}
	id, version, err := parseClaim(c)
	if err != nil {
		return err
	}
	at, err := openFeed(ctx, base)
	if err != nil {
		return registryclient.Verdict(err)
	}
	if err := at.checkVersion(ctx, id, version, c); err != nil {
		return err
	}
	return at.checkReadme(ctx, id, version, c)
}

// parseClaim returns the id and the version of a claim in the form that URLs use. It returns a
// refusal if one of them is malformed.
func parseClaim(c sdk.Claim) (id, version string, err error) {
	if c.Version == "" {
		return "", "", sdk.Refuse("NuGet package %.100q has no version: add the version to the server document", c.Identifier)
	}
	if !isValidID(c.Identifier) {
		return "", "", sdk.Refuse("identifier %.100q is not a valid NuGet package id", c.Identifier)
	}
	version, ok := normalizeVersion(c.Version)
	if !ok {
		return "", "", sdk.Refuse("version %.100q of NuGet package %q is not valid: use the form 1.2.3", c.Version, c.Identifier)
	}
	return strings.ToLower(c.Identifier), version, nil
}

func isValidID(id string) bool {
	if id == "" || len(id) > maxID || strings.Trim(id, ".") != id {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune("._-", r) })
}

// checkVersion returns nil if the feed has the version, and a refusal if the package or the version
// does not exist.
func (f feed) checkVersion(ctx context.Context, id, version string, c sdk.Claim) error {
	versions, err := f.listVersions(ctx, id)
	if registryclient.Is(err, registryclient.NotFound) || err == nil && len(versions) == 0 {
		return sdk.Refuse("there is no NuGet package %q: publish it, or correct the identifier in the server document", c.Identifier)
	}
	if err != nil {
		return registryclient.Verdict(err)
	}
	if !slices.Contains(versions, version) {
		return sdk.Refuse("NuGet package %q has no version %.100q: publish it, or correct the version in the server document", c.Identifier, c.Version)
	}
	return nil
}

// checkReadme returns nil if the readme claims the server, and a refusal if it does not or there is
// no readme.
func (f feed) checkReadme(ctx context.Context, id, version string, c sdk.Claim) error {
	readme, err := f.fetchReadme(ctx, id, version)
	if registryclient.Is(err, registryclient.NotFound) {
		return sdk.Refuse("version %.60s of NuGet package %q has no readme: publish a version whose readme contains %q",
			c.Version, c.Identifier, "mcp-name: "+c.ServerName)
	}
	if err != nil {
		return registryclient.Verdict(err)
	}
	if !mcpname.Claims(readme, c.ServerName) {
		return sdk.Refuse("the readme of version %.60s of NuGet package %q does not claim the server: publish a version whose readme contains %q",
			c.Version, c.Identifier, "mcp-name: "+c.ServerName)
	}
	return nil
}
