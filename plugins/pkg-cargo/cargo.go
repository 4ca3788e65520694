// Command pkg-cargo is the ownership plugin for registry type "cargo": a version of a crate claims
// a server with the token "mcp-name: NAME" in its readme (contract R-57). The plugin reads only
// metadata and the readme, and does not download crates.
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
	"github.com/tollgate-dev/tollgate/plugins/sdk/mcpname"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// Limits, in bytes.
const (
	maxName    = 64 // the registry's own rule
	maxVersion = 256
	maxReadme  = 8 << 20
)

var (
	nameForm    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
	versionForm = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
)

// The public registry, and the host where it stores readmes.
const (
	publicAPI     = "https://crates.io"
	publicStorage = "https://static.crates.io"
)

// registry checks claims with cargo registries.
type registry struct {
	api     *registryclient.Client
	storage *registryclient.Base // the host of the public registry's readmes
}

func openRegistry(environment func(string) string) (registry, error) {
	// A cargo token is sent without the word "Bearer".
	api, err := registryclient.Open(registryclient.Config{
		Defaults: []string{publicAPI}, Environment: environment, RawToken: true,
	})
	if err != nil {
		return registry{}, err
	}
	readmes, err := registryclient.Open(registryclient.Config{Defaults: []string{publicStorage}})
	if err != nil {
		return registry{}, err
	}
	storage, err := readmes.Base("")
	return registry{api: api, storage: storage}, err
}

// RegistryTypes implements [sdk.Ownership].
func (registry) RegistryTypes() []string { return []string{"cargo"} }

// Check implements [sdk.Ownership].
func (r registry) Check(ctx context.Context, c sdk.Claim) error {
	if err := checkForm(c); err != nil {
		return err
	}
	return r.api.CheckAt(ctx, c.RegistryBaseURL, func(ctx context.Context, base *registryclient.Base) error {
		if err := checkPublished(ctx, base, c); err != nil {
			return err
		}
		readme, err := r.fetchReadme(ctx, base, c)
		if err != nil {
			return err
		}
		return mcpname.Check(readme, c.ServerName,
			fmt.Sprintf("the readme of crate %q version %s", c.Identifier, c.Version))
	})
}

func checkForm(c sdk.Claim) error {
	switch {
	case len(c.Identifier) > maxName || !nameForm.MatchString(c.Identifier):
		return sdk.Refuse("identifier %.80q is not a valid crate name", c.Identifier)
	case c.Version == "":
		return sdk.Refuse("crate %q has no version: add the version to the server document", c.Identifier)
	case len(c.Version) > maxVersion || !versionForm.MatchString(c.Version):
		return sdk.Refuse("version %.80q of crate %q is not a semantic version: use the form 1.2.3", c.Version,
			c.Identifier)
	}
	return nil
}

// checkPublished returns nil if the version exists, and a refusal if the crate or the version does
// not exist.
func checkPublished(ctx context.Context, base *registryclient.Base, c sdk.Claim) error {
	var answer struct {
		Version *struct {
			Num string `json:"num"`
		} `json:"version"`
	}
	err := base.JSON(ctx, versionPath(c), registryclient.Options{}, &answer)
	switch {
	case registryclient.Is(err, registryclient.NotFound):
		return refuseMissing(ctx, base, c)
	case err != nil:
		return err
	case answer.Version == nil:
		return fmt.Errorf("%s returned no metadata of crate %q", base.URL(), c.Identifier)
	case answer.Version.Num != c.Version:
		return sdk.Refuse("crate %q has no version %q", c.Identifier, c.Version)
	}
	return nil
}

// refuseMissing returns the refusal for a version that was not found: either the crate or only the
// version is missing.
func refuseMissing(ctx context.Context, base *registryclient.Base, c sdk.Claim) error {
	there, err := base.Exists(ctx, cratePath(c), registryclient.Options{})
	switch {
	case err != nil && !registryclient.Is(err, registryclient.TooLarge):
		return err
	case err == nil && !there:
		return sdk.Refuse("there is no crate %q: publish it, or correct the identifier in the server document",
			c.Identifier)
	}
	return sdk.Refuse("crate %q has no version %q", c.Identifier, c.Version)
}

// fetchReadme returns the readme of the version, otherwise "". The registry returns
// either the readme itself or JSON with its URL, which is on the registry's own host or, for the
// public registry, on [publicStorage].
func (r registry) fetchReadme(ctx context.Context, base *registryclient.Base, c sdk.Claim) (string, error) {
	body, err := base.Get(ctx, versionPath(c)+"/readme", registryclient.Options{
		MaxBytes: maxReadme, Accept: "application/json",
	})
	if err != nil {
		return "", ignoreMissing(err)
	}
	elsewhere := readmeURL(body)
	if elsewhere == "" {
		return string(body), nil
	}
	body, err = r.readmeHost(base, elsewhere).Get(ctx, elsewhere, registryclient.Options{MaxBytes: maxReadme})
	if err != nil {
		return "", ignoreMissing(err)
	}
	return string(body), nil
}

// readmeURL returns the URL in a response about a readme, or "" if the response is the readme
// itself.
func readmeURL(body []byte) string {
	var answer struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return ""
	}
	return answer.URL
}

// readmeHost returns the host to download the readme at address from: the storage of the public
// registry if the address is there, otherwise base, which refuses the addresses of other hosts.
func (r registry) readmeHost(base *registryclient.Base, address string) *registryclient.Base {
	if base.URL() == publicAPI && strings.HasPrefix(address, r.storage.URL()+"/") {
		return r.storage
	}
	return base
}

// ignoreMissing returns nil if err means that there is no readme, and err otherwise. Storage that
// does not list its files returns "denied" for a missing file.
func ignoreMissing(err error) error {
	if registryclient.Is(err, registryclient.NotFound) || registryclient.Is(err, registryclient.Denied) {
		return nil
	}
	return err
}

func cratePath(c sdk.Claim) string { return "api/v1/crates/" + url.PathEscape(c.Identifier) }

func versionPath(c sdk.Claim) string { return cratePath(c) + "/" + url.PathEscape(c.Version) }

func main() { os.Exit(sdk.RunOwnership(openRegistry(os.Getenv))) }
