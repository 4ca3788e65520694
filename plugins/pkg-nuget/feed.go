// Command pkg-nuget is the ownership plugin for registry type "nuget": a package claims a server
// with the token "mcp-name: NAME" in its readme (contract R-57). The plugin reads only the feed's
// service index, its list of versions and the readme, and does not download packages.
//
// The public feed is api.nuget.org. The base URL of a private feed in TOLLGATE_PACKAGE_REGISTRIES
// is that of its service index; v3/index.json is appended to a base URL that does not end in
// ".json". All URLs in a service index must be on the host of the index.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/mcpname"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// indexPath is the usual path of a feed's service index.
const indexPath = "/v3/index.json"

// The types of the resources that the plugin uses, without the version after the slash (NuGet
// documentation, "Service index").
const (
	packageContent = "PackageBaseAddress"
	readmeTemplate = "ReadmeUriTemplate"
)

// feed is a registry whose service index is loaded.
type feed struct {
	base     *registryclient.Base
	packages string // base address of package content, without a slash at its end
	readme   string // template of a readme's address
}

// openFeed loads the service index of a registry.
func openFeed(ctx context.Context, base *registryclient.Base) (feed, error) {
	address := base.URL()
	if !strings.HasSuffix(address, ".json") {
		address += indexPath
	}
	var index serviceIndex
	if err := base.JSON(ctx, address, registryclient.Options{}, &index); err != nil {
		return feed{}, fmt.Errorf("service index: %w", err)
	}
	f := feed{
		base: base, packages: strings.TrimRight(index.findResource(packageContent), "/"),
		readme: index.findResource(readmeTemplate),
	}
	if f.packages == "" {
		return feed{}, &registryclient.Error{
			Reason: registryclient.Malformed, Host: base.URL(),
			Err: errors.New("the service index lists no resource of type " + packageContent),
		}
	}
	if f.readme == "" { // the path on the public feed; older feeds use it without listing it
		f.readme = f.packages + "/{lower_id}/{lower_version}/readme"
	}
	return f, nil
}

// listVersions returns the versions of a package in normalized form.
func (f feed) listVersions(ctx context.Context, id string) ([]string, error) {
	var list struct {
		Versions []string `json:"versions"`
	}
	if err := f.base.JSON(ctx, f.packages+"/"+id+"/index.json", registryclient.Options{}, &list); err != nil {
		return nil, err
	}
	for i, version := range list.Versions {
		if canonical, ok := normalizeVersion(version); ok {
			list.Versions[i] = canonical
		}
	}
	return list.Versions, nil
}

func (f feed) fetchReadme(ctx context.Context, id, version string) (string, error) {
	address := strings.NewReplacer("{lower_id}", id, "{lower_version}", version).Replace(f.readme)
	body, err := f.base.Get(ctx, address, registryclient.Options{})
	return string(body), err
}

// serviceIndex is the document that lists the URLs of a feed's resources.
type serviceIndex struct {
	Resources []struct {
		ID    string        `json:"@id"`
		Types resourceTypes `json:"@type"`
	} `json:"resources"`
}

// findResource returns the URL of the first resource of a type in any version, or "" if the index
// lists no such resource.
func (s serviceIndex) findResource(kind string) string {
	for _, resource := range s.Resources {
		if slices.ContainsFunc(resource.Types, func(t string) bool {
			return t == kind || strings.HasPrefix(t, kind+"/")
		}) {
			return resource.ID
		}
	}
	return ""
}

// resourceTypes holds the types of a resource: JSON-LD allows a string or a list of strings.
type resourceTypes []string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *resourceTypes) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*t = resourceTypes{one}
		return nil
	}
	var list []string
	err := json.Unmarshal(text, &list)
	*t = list
	return err
}

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

// normalizeVersion returns version in the form that feeds use in lists and URLs: three or four
// numbers without leading zeros, the fourth left out if it is zero, then the pre-release label in
// lower case, without build metadata (NuGet documentation, "Package versioning", "Normalized
// version numbers"). ok is false if version is malformed.
func normalizeVersion(version string) (canonical string, ok bool) {
	version, metadata, hasMetadata := strings.Cut(version, "+")
	if hasMetadata && !isLabelList(metadata) {
		return "", false
	}
	numbers, label, hasLabel := strings.Cut(version, "-")
	if hasLabel && !isLabelList(label) {
		return "", false
	}
	parts := strings.Split(numbers, ".")
	if len(parts) > 4 {
		return "", false
	}
	for i, part := range parts {
		if part == "" || strings.Trim(part, "0123456789") != "" {
			return "", false
		}
		parts[i] = withoutLeadingZeros(part)
	}
	for len(parts) < 3 {
		parts = append(parts, "0")
	}
	if len(parts) == 4 && parts[3] == "0" {
		parts = parts[:3]
	}
	canonical = strings.Join(parts, ".")
	if hasLabel {
		canonical += "-" + strings.ToLower(label)
	}
	return canonical, true
}

func withoutLeadingZeros(digits string) string {
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return "0"
	}
	return digits
}

// isLabelList reports whether s may follow "-" or "+" in a version: parts of letters, digits and
// hyphens, separated by dots.
func isLabelList(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		if part == "" {
			return false
		}
		for _, r := range part {
			if !isAlphanumeric(r) && r != '-' {
				return false
			}
		}
	}
	return true
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// publicFeed is the URL of the public feed. Server documents use it with and without the path of
// the service index.
const publicFeed = "https://api.nuget.org"

func main() { os.Exit(sdk.RunOwnership(openFeeds(os.Getenv))) }

func openFeeds(environment func(string) string) (feedChecker, error) {
	client, err := registryclient.Open(registryclient.Config{
		Defaults: []string{publicFeed + indexPath, publicFeed}, Environment: environment,
	})
	return feedChecker{client: client}, err
}
