package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// domain is the one below which the public registry stands.
const domain = "npmjs.org"

// Bounds. A manifest is a package.json and little more; the document of a whole package holds one for each version.
const (
	maxName     = 214 // bytes, npm's own rule
	maxVersion  = 256 // bytes, npm's own rule
	maxManifest = 4 << 20
	maxPackage  = 32 << 20
	maxWhole    = 2 // documents of whole packages in memory at once
)

var (
	// nameForm is a name, scoped or not. Names begin with neither a dot nor an underscore (npm's own rule), so that none is a
	// dot segment.
	nameForm    = regexp.MustCompile(`^(@[A-Za-z0-9~-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~-][A-Za-z0-9._~-]*$`)
	versionForm = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
)

// registry checks claims of npm packages.
type registry struct {
	client *registryclient.Client
	whole  chan struct{} // holds one for each document of a whole package in memory
}

// manifest is the part of a version's package.json that counts.
type manifest struct {
	Version string `json:"version"`
	MCPName any    `json:"mcpName"` // anything: a number there is the publisher's mistake, not the registry's
}

func open(environment func(string) string) (registry, error) {
	client, err := registryclient.Open(registryclient.Config{
		Defaults: []string{"https://registry." + domain}, Environment: environment,
	})
	return registry{client, make(chan struct{}, maxWhole)}, err
}

// RegistryTypes implements [sdk.Ownership].
func (registry) RegistryTypes() []string { return []string{"npm"} }

// Check implements [sdk.Ownership].
func (r registry) Check(ctx context.Context, c sdk.Claim) error {
	if err := wellFormed(c); err != nil {
		return err
	}
	at, err := r.client.Base(c.RegistryBaseURL)
	if err != nil {
		return err
	}
	ctx, cancel := registryclient.Within(ctx)
	defer cancel()
	m, err := r.find(ctx, at, c)
	if err != nil {
		return registryclient.Verdict(err)
	}
	return m.claims(c)
}

func wellFormed(c sdk.Claim) error {
	switch {
	case len(c.Identifier) > maxName || !nameForm.MatchString(c.Identifier) || c.Identifier == "-": // which is where the API stands
		return sdk.Refuse("identifier %.80q is not the name of an npm package", c.Identifier)
	case c.Version == "":
		return sdk.Refuse("npm package %q needs a version", c.Identifier)
	case len(c.Version) > maxVersion || !versionForm.MatchString(c.Version):
		return sdk.Refuse("version %.80q of npm package %q is not a semantic version", c.Version, c.Identifier)
	}
	return nil
}

// find returns the manifest of the version. Registries that have no address for one version alone, or do not find the version
// there, are asked for the whole package.
func (r registry) find(ctx context.Context, at *registryclient.Base, c sdk.Claim) (manifest, error) {
	var m manifest
	err := at.JSON(ctx, escaped(c.Identifier)+"/"+url.PathEscape(c.Version), registryclient.Options{MaxBytes: maxManifest}, &m)
	if err == nil && m.Version == c.Version {
		return m, nil
	}
	if err != nil && !registryclient.Is(err, registryclient.NotFound) {
		return manifest{}, err
	}
	return r.findInWhole(ctx, at, c)
}

// findInWhole looks for the version in the document of the whole package.
func (r registry) findInWhole(ctx context.Context, at *registryclient.Base, c sdk.Claim) (manifest, error) {
	select {
	case r.whole <- struct{}{}:
		defer func() { <-r.whole }()
	case <-ctx.Done():
		return manifest{}, ctx.Err()
	}
	var whole struct {
		Name     string                     `json:"name"`
		Versions map[string]json.RawMessage `json:"versions"`
	}
	err := at.JSON(ctx, escaped(c.Identifier), registryclient.Options{MaxBytes: maxPackage}, &whole)
	switch {
	case registryclient.Is(err, registryclient.NotFound):
		return manifest{}, sdk.Refuse("there is no npm package %q", c.Identifier)
	case registryclient.Is(err, registryclient.TooLarge): // it is there, and the version was not found above
	case err != nil:
		return manifest{}, err
	case whole.Name == "":
		return manifest{}, fmt.Errorf("%s answers without the metadata of npm package %q", at.URL(), c.Identifier)
	}
	raw, there := whole.Versions[c.Version]
	var m manifest
	if !there || json.Unmarshal(raw, &m) != nil {
		return manifest{}, sdk.Refuse("npm package %q has no version %q", c.Identifier, c.Version)
	}
	return m, nil
}

// escaped returns the name as one segment of a path: the slash after a scope is no separator.
func escaped(name string) string {
	return strings.Replace(name, "/", "%2f", 1)
}

func (m manifest) claims(c sdk.Claim) error {
	switch name, _ := m.MCPName.(string); name {
	case c.ServerName:
		return nil
	case "":
		return sdk.Refuse("npm package %q version %s does not claim the server: its package.json needs \"mcpName\": %q",
			c.Identifier, c.Version, c.ServerName)
	default:
		return sdk.Refuse("npm package %q version %s claims %.80q by its mcpName, not %q", c.Identifier, c.Version, name, c.ServerName)
	}
}
