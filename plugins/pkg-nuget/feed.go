package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// fetchReadme returns the readme of a version.
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
