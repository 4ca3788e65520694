// Command pkg-npm is the ownership plugin for registry type "npm": a version of a package claims a
// server with the field mcpName of its package.json (contract R-57). The plugin reads only metadata
// and does not download packages.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// publicDomain is the domain of the public registry.
const publicDomain = "npmjs.org"

// Limits. A manifest is a package.json with a few additions; the document of a whole package
// contains the manifest of each version.
const (
	maxName           = 214 // bytes, npm's own rule
	maxVersion        = 256 // bytes, npm's own rule
	maxManifest       = 4 << 20
	maxPackage        = 32 << 20
	maxPackagesAtOnce = 2 // documents of whole packages in memory at the same time
)

var (
	// nameForm matches a name with or without a scope. A name does not begin with a dot or an
	// underscore (npm's own rule), so it is never a dot segment of a URL.
	nameForm    = regexp.MustCompile(`^(@[A-Za-z0-9~-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~-][A-Za-z0-9._~-]*$`)
	versionForm = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
)

// registry checks claims with npm registries.
type registry struct {
	client       *registryclient.Client
	packageSlots chan struct{} // has one element for each document of a whole package in memory
}

// manifest holds the fields of a version's package.json that the check needs.
type manifest struct {
	Version string `json:"version"`
	MCPName any    `json:"mcpName"` // any type: a number is the publisher's mistake, not a failure of the registry
}

func openRegistry(environment func(string) string) (registry, error) {
	client, err := registryclient.Open(registryclient.Config{
		Defaults: []string{"https://registry." + publicDomain}, Environment: environment,
	})
	return registry{client, make(chan struct{}, maxPackagesAtOnce)}, err
}

// RegistryTypes implements [sdk.Ownership].
func (registry) RegistryTypes() []string { return []string{"npm"} }

// Check implements [sdk.Ownership].
func (r registry) Check(ctx context.Context, c sdk.Claim) error {
	if err := checkForm(c); err != nil {
		return err
	}
	return r.client.CheckAt(ctx, c.RegistryBaseURL, func(ctx context.Context, base *registryclient.Base) error {
		m, err := r.findManifest(ctx, base, c)
		if err != nil {
			return err
		}
		return m.checkClaim(c)
	})
}

func checkForm(c sdk.Claim) error {
	switch {
	// the registry's API is below "-"
	case len(c.Identifier) > maxName || !nameForm.MatchString(c.Identifier) || c.Identifier == "-":
		return sdk.Refuse("identifier %.80q is not a valid npm package name", c.Identifier)
	case c.Version == "":
		return sdk.Refuse("npm package %q has no version: add the version to the server document", c.Identifier)
	case len(c.Version) > maxVersion || !versionForm.MatchString(c.Version):
		return sdk.Refuse("version %.80q of npm package %q is not a semantic version: use the form 1.2.3", c.Version,
			c.Identifier)
	}
	return nil
}

// findManifest returns the manifest of the version. If the registry has no document for a single
// version, it searches the document of the whole package.
func (r registry) findManifest(ctx context.Context, base *registryclient.Base, c sdk.Claim) (manifest, error) {
	var m manifest
	err := base.JSON(ctx, escapeName(c.Identifier)+"/"+url.PathEscape(c.Version), registryclient.Options{
		MaxBytes: maxManifest,
	}, &m)
	if err == nil && m.Version == c.Version {
		return m, nil
	}
	if err != nil && !registryclient.Is(err, registryclient.NotFound) {
		return manifest{}, err
	}
	return r.findInPackage(ctx, base, c)
}

// findInPackage searches the document of the whole package for the version. It returns a refusal if
// the package or the version does not exist.
func (r registry) findInPackage(ctx context.Context, base *registryclient.Base, c sdk.Claim) (manifest, error) {
	select {
	case r.packageSlots <- struct{}{}:
		defer func() { <-r.packageSlots }()
	case <-ctx.Done():
		return manifest{}, ctx.Err()
	}
	var whole struct {
		Name     string                     `json:"name"`
		Versions map[string]json.RawMessage `json:"versions"`
	}
	err := base.JSON(ctx, escapeName(c.Identifier), registryclient.Options{MaxBytes: maxPackage}, &whole)
	switch {
	case registryclient.Is(err, registryclient.NotFound):
		return manifest{},
			sdk.Refuse("there is no npm package %q: publish it, or correct the identifier in the server document",
				c.Identifier)
	case registryclient.Is(err, registryclient.TooLarge): // the package exists, and its version was not found before
	case err != nil:
		return manifest{}, err
	case whole.Name == "":
		return manifest{}, fmt.Errorf("%s returned no metadata of npm package %q", base.URL(), c.Identifier)
	}
	raw, there := whole.Versions[c.Version]
	var m manifest
	if !there || json.Unmarshal(raw, &m) != nil {
		return manifest{},
			sdk.Refuse("npm package %q has no version %q: publish it, or correct the version in the server document",
				c.Identifier, c.Version)
	}
	return m, nil
}

// escapeName returns the name as one segment of a path, with the slash after a scope escaped.
func escapeName(name string) string {
	return strings.Replace(name, "/", "%2f", 1)
}

func (m manifest) checkClaim(c sdk.Claim) error {
	switch name, _ := m.MCPName.(string); name {
	case c.ServerName:
		return nil
	case "":
		return sdk.Refuse("npm package %q version %s does not claim the server: publish a version with \"mcpName\": %q in package.json",
			c.Identifier, c.Version, c.ServerName)
	default:
		return sdk.Refuse("npm package %q version %s has the mcpName %.80q in package.json, it must be %q",
			c.Identifier, c.Version, name, c.ServerName)
	}
}

func main() { os.Exit(sdk.RunOwnership(openRegistry(os.Getenv))) }
