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

// indexPath is where a feed has its service index by custom.
const indexPath = "/v3/index.json"

// The resources of a service index that are used, without the version behind the slash (NuGet documentation, "Service index").
const (
	packageContent = "PackageBaseAddress"
	readmeTemplate = "ReadmeUriTemplate"
)

// feed is a registry whose service index has been read.
type feed struct {
	base     *registryclient.Base
	packages string // base address of package content, without a slash at its end
	readme   string // template of a readme's address
}

// openFeed reads the service index of a registry.
func openFeed(ctx context.Context, base *registryclient.Base) (feed, error) {
	address := base.URL()
	if !strings.HasSuffix(address, ".json") {
		address += indexPath
	}
	var index serviceIndex
	if err := base.JSON(ctx, address, registryclient.Options{}, &index); err != nil {
		return feed{}, fmt.Errorf("service index: %w", err)
	}
	f := feed{base: base, packages: strings.TrimRight(index.find(packageContent), "/"), readme: index.find(readmeTemplate)}
	if f.packages == "" {
		return feed{}, &registryclient.Error{
			Reason: registryclient.Malformed, Host: base.URL(), Err: errors.New("service index names no " + packageContent),
		}
	}
	if f.readme == "" { // as the public feed lays it out; older feeds serve it there without naming it
		f.readme = f.packages + "/{lower_id}/{lower_version}/readme"
	}
	return f, nil
}

// versions lists the versions of a package, in their normalized form.
func (f feed) versions(ctx context.Context, id string) ([]string, error) {
	var list struct {
		Versions []string `json:"versions"`
	}
	if err := f.base.JSON(ctx, f.packages+"/"+id+"/index.json", registryclient.Options{}, &list); err != nil {
		return nil, err
	}
	for i, version := range list.Versions {
		if canonical, ok := normalized(version); ok {
			list.Versions[i] = canonical
		}
	}
	return list.Versions, nil
}

// readmeOf returns the readme of a version.
func (f feed) readmeOf(ctx context.Context, id, version string) (string, error) {
	address := strings.NewReplacer("{lower_id}", id, "{lower_version}", version).Replace(f.readme)
	body, err := f.base.Get(ctx, address, registryclient.Options{})
	return string(body), err
}

// serviceIndex is the document through which a feed tells what it has where.
type serviceIndex struct {
	Resources []struct {
		ID    string `json:"@id"`
		Types types  `json:"@type"`
	} `json:"resources"`
}

// find returns the address of the first resource of a type, in any version of it; "" if there is none.
func (s serviceIndex) find(kind string) string {
	for _, resource := range s.Resources {
		if slices.ContainsFunc(resource.Types, func(t string) bool { return t == kind || strings.HasPrefix(t, kind+"/") }) {
			return resource.ID
		}
	}
	return ""
}

// types are the types of a resource: a string, or a list of strings as JSON-LD allows.
type types []string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *types) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*t = types{one}
		return nil
	}
	var list []string
	err := json.Unmarshal(text, &list)
	*t = list
	return err
}
