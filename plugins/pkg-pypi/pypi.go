// Command pkg-pypi is the ownership plugin for registry type "pypi": a version of a package claims
// a server with the token "mcp-name: NAME" in its description (contract R-57). The plugin reads
// only metadata and does not download packages.
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"regexp"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/mcpname"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// Limits, in bytes.
const (
	maxName    = 200
	maxVersion = 128
	maxRelease = 8 << 20
)

var (
	// nameForm matches a name of the packaging specification "Names and normalization".
	nameForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	// versionForm matches the characters of the packaging specification "Version specifiers". The
	// registry checks the rest.
	versionForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.!+_-]*$`)
)

// registry checks claims with PyPI registries.
type registry struct{ client *registryclient.Client }

func openRegistry(environment func(string) string) (registry, error) {
	client, err := registryclient.Open(registryclient.Config{
		Defaults: []string{"https://pypi.org"}, Environment: environment,
	})
	return registry{client}, err
}

// RegistryTypes implements [sdk.Ownership].
func (registry) RegistryTypes() []string { return []string{"pypi"} }

// Check implements [sdk.Ownership].
func (r registry) Check(ctx context.Context, c sdk.Claim) error {
	if err := checkForm(c); err != nil {
		return err
	}
	return r.client.CheckAt(ctx, c.RegistryBaseURL, func(ctx context.Context, base *registryclient.Base) error {
		description, err := fetchDescription(ctx, base, c)
		if err != nil {
			return err
		}
		place := fmt.Sprintf("the description of PyPI package %q version %s", c.Identifier, c.Version)
		return mcpname.Check(description, c.ServerName, place)
	})
}

func checkForm(c sdk.Claim) error {
	switch {
	case len(c.Identifier) > maxName || !nameForm.MatchString(c.Identifier):
		return sdk.Refuse("identifier %.80q is not a valid PyPI package name", c.Identifier)
	case c.Version == "":
		return sdk.Refuse("PyPI package %q has no version: add the version to the server document", c.Identifier)
	case len(c.Version) > maxVersion || !versionForm.MatchString(c.Version):
		return sdk.Refuse("version %.80q of PyPI package %q is not valid: use the form 1.2.3", c.Version, c.Identifier)
	}
	return nil
}

// fetchDescription returns the description of the version. It returns a refusal if the package or
// the version does not exist.
func fetchDescription(ctx context.Context, base *registryclient.Base, c sdk.Claim) (string, error) {
	var release struct {
		Info *struct {
			Description string `json:"description"`
		} `json:"info"`
	}
	project := "pypi/" + url.PathEscape(c.Identifier)
	err := base.JSON(ctx, project+"/"+url.PathEscape(c.Version)+"/json", registryclient.Options{
		MaxBytes: maxRelease,
	}, &release)
	switch {
	case registryclient.Is(err, registryclient.NotFound):
		return "", refuseMissing(ctx, base, project, c)
	case err != nil:
		return "", err
	case release.Info == nil:
		return "", fmt.Errorf("%s returned no metadata of PyPI package %q", base.URL(), c.Identifier)
	}
	return release.Info.Description, nil
}

// refuseMissing returns the refusal for a version that was not found: either the package or only
// the version is missing.
func refuseMissing(ctx context.Context, base *registryclient.Base, project string, c sdk.Claim) error {
	there, err := base.Exists(ctx, project+"/json", registryclient.Options{})
	switch {
	case err != nil && !registryclient.Is(err, registryclient.TooLarge):
		return err
	case err == nil && !there:
		return sdk.Refuse("there is no PyPI package %q: publish it, or correct the identifier in the server document",
			c.Identifier)
	}
	return sdk.Refuse("PyPI package %q has no version %q: publish it, or correct the version in the server document",
		c.Identifier, c.Version)
}

func main() { os.Exit(sdk.RunOwnership(openRegistry(os.Getenv))) }
