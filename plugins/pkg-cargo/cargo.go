package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/mcpname"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// Bounds, in bytes.
const (
	maxName    = 64 // the registry's own rule
	maxVersion = 256
	maxReadme  = 8 << 20
)

var (
	nameForm    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
	versionForm = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
)

// The public registry, and where it keeps readmes.
const (
	publicAPI     = "https://crates.io"
	publicStorage = "https://static.crates.io"
)

// registry checks claims of crates.
type registry struct {
	api     *registryclient.Client
	storage *registryclient.Base // of the public registry's readmes
}

func open(environment func(string) string) (registry, error) {
	// A cargo token is sent as it is, without a scheme before it.
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
	if err := wellFormed(c); err != nil {
		return err
	}
	at, err := r.api.Base(c.RegistryBaseURL)
	if err != nil {
		return err
	}
	ctx, cancel := registryclient.Within(ctx)
	defer cancel()
	if err := published(ctx, at, c); err != nil {
		return registryclient.Verdict(err)
	}
	text, err := r.readme(ctx, at, c)
	if err != nil {
		return registryclient.Verdict(err)
	}
	return claims(text, c)
}

func wellFormed(c sdk.Claim) error {
	switch {
	case len(c.Identifier) > maxName || !nameForm.MatchString(c.Identifier):
		return sdk.Refuse("identifier %.80q is not the name of a crate", c.Identifier)
	case c.Version == "":
		return sdk.Refuse("crate %q needs a version", c.Identifier)
	case len(c.Version) > maxVersion || !versionForm.MatchString(c.Version):
		return sdk.Refuse("version %.80q of crate %q is not a semantic version", c.Version, c.Identifier)
	}
	return nil
}

// published returns nil when the version is there, and a refusal when it or the crate is not.
func published(ctx context.Context, at *registryclient.Base, c sdk.Claim) error {
	var answer struct {
		Version *struct {
			Num string `json:"num"`
		} `json:"version"`
	}
	err := at.JSON(ctx, versionPath(c), registryclient.Options{}, &answer)
	switch {
	case registryclient.Is(err, registryclient.NotFound):
		return missing(ctx, at, c)
	case err != nil:
		return err
	case answer.Version == nil:
		return fmt.Errorf("%s answers without the metadata of crate %q", at.URL(), c.Identifier)
	case answer.Version.Num != c.Version:
		return sdk.Refuse("crate %q has no version %q", c.Identifier, c.Version)
	}
	return nil
}

// missing tells what is: the crate or its version.
func missing(ctx context.Context, at *registryclient.Base, c sdk.Claim) error {
	there, err := at.Exists(ctx, cratePath(c), registryclient.Options{})
	switch {
	case err != nil && !registryclient.Is(err, registryclient.TooLarge):
		return err
	case err == nil && !there:
		return sdk.Refuse("there is no crate %q", c.Identifier)
	}
	return sdk.Refuse("crate %q has no version %q", c.Identifier, c.Version)
}

// readme returns the readme of the version, empty for none. The registry answers with it, or, asked for JSON, with the address
// where it keeps it: on its own host, or where the public registry keeps all.
func (r registry) readme(ctx context.Context, at *registryclient.Base, c sdk.Claim) (string, error) {
	body, err := at.Get(ctx, versionPath(c)+"/readme", registryclient.Options{MaxBytes: maxReadme, Accept: "application/json"})
	if err != nil {
		return "", unlessMissing(err)
	}
	elsewhere := addressIn(body)
	if elsewhere == "" {
		return string(body), nil
	}
	body, err = r.keeper(at, elsewhere).Get(ctx, elsewhere, registryclient.Options{MaxBytes: maxReadme})
	if err != nil {
		return "", unlessMissing(err)
	}
	return string(body), nil
}

// addressIn returns the address that an answer about a readme holds, empty when it is the readme itself.
func addressIn(body []byte) string {
	var answer struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return ""
	}
	return answer.URL
}

// keeper returns the registry to ask for the readme at the address: the public registry's storage for what the public registry
// keeps there, else at itself, which refuses the addresses of other hosts.
func (r registry) keeper(at *registryclient.Base, address string) *registryclient.Base {
	if at.URL() == publicAPI && strings.HasPrefix(address, r.storage.URL()+"/") {
		return r.storage
	}
	return at
}

// unlessMissing returns err, but nil where it means that there is no readme: storage without a listing denies what it does not
// have.
func unlessMissing(err error) error {
	if registryclient.Is(err, registryclient.NotFound) || registryclient.Is(err, registryclient.Denied) {
		return nil
	}
	return err
}

func cratePath(c sdk.Claim) string { return "api/v1/crates/" + url.PathEscape(c.Identifier) }

func versionPath(c sdk.Claim) string { return cratePath(c) + "/" + url.PathEscape(c.Version) }

func claims(readme string, c sdk.Claim) error {
	if mcpname.Claims(readme, c.ServerName) {
		return nil
	}
	if names := mcpname.Names(readme); len(names) > 0 {
		return sdk.Refuse("crate %q version %s claims %.80q in its readme, not %q", c.Identifier, c.Version, names[0], c.ServerName)
	}
	return sdk.Refuse("crate %q version %s does not claim the server: its readme needs \"mcp-name: %s\"",
		c.Identifier, c.Version, c.ServerName)
}
