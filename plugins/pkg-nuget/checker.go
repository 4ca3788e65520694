package main

import (
	"context"
	"fmt"
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
func (f feedChecker) Check(ctx context.Context, c sdk.Claim) error {
	return f.client.CheckAt(ctx, c.RegistryBaseURL, func(ctx context.Context, base *registryclient.Base) error {
		id, version, err := parseClaim(c)
		if err != nil {
			return err
		}
		loaded, err := openFeed(ctx, base)
		if err != nil {
			return err
		}
		if err := loaded.checkVersion(ctx, id, version, c); err != nil {
			return err
		}
		return loaded.checkReadme(ctx, id, version, c)
	})
}

// parseClaim returns the id and the version of a claim in the form that URLs use. It returns a
// refusal if one of them is malformed.
func parseClaim(c sdk.Claim) (id, version string, err error) {
	if c.Version == "" {
		return "", "", sdk.Refuse("NuGet package %.100q has no version: add the version to the server document",
			c.Identifier)
	}
	if !isValidID(c.Identifier) {
		return "", "", sdk.Refuse("identifier %.100q is not a valid NuGet package id", c.Identifier)
	}
	version, ok := normalizeVersion(c.Version)
	if !ok {
		return "", "", sdk.Refuse("version %.100q of NuGet package %q is not valid: use the form 1.2.3", c.Version,
			c.Identifier)
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
		return sdk.Refuse("there is no NuGet package %q: publish it, or correct the identifier in the server document",
			c.Identifier)
	}
	if err != nil {
		return err
	}
	if !slices.Contains(versions, version) {
		return sdk.Refuse(
			"NuGet package %q has no version %.100q: publish it, or correct the version in the server document",
			c.Identifier, c.Version)
	}
	return nil
}

// checkReadme returns nil if the readme claims the server, and a refusal if it does not or there is
// no readme.
func (f feed) checkReadme(ctx context.Context, id, version string, c sdk.Claim) error {
	readme, err := f.fetchReadme(ctx, id, version)
	if registryclient.Is(err, registryclient.NotFound) {
		return sdk.Refuse("NuGet package %q version %.60s has no readme: publish a version whose readme contains %q",
			c.Identifier, c.Version, "mcp-name: "+c.ServerName)
	}
	if err != nil {
		return err
	}
	return mcpname.Check(readme, c.ServerName,
		fmt.Sprintf("the readme of NuGet package %q version %.60s", c.Identifier, c.Version))
}
