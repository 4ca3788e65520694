package main

import (
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

// digestPrefix starts what names an image by its contents.
const digestPrefix = "sha256:"

// defaultHost is the registry of identifiers that name none, as container clients have it.
const defaultHost = "docker.io"

// image is what an identifier and a version name together. Its parts are as the publisher wrote them, unchecked.
type image struct {
	scheme     string // empty where no base URL tells it
	host       string // in its canonical form
	repository string
	tag        string // empty when none is named
	digest     string // empty when none is named
}

// imageOf reads the image that a claim names. The identifier is an image reference; the version, where there is one, stands for
// the tag or the digest that the identifier leaves out, and the base URL for the host. Where two of them tell the same thing they
// must tell it alike: a client that reads the one would otherwise run what was checked by the other.
func imageOf(c sdk.Claim) (image, error) {
	i := split(c.Identifier)
	if err := i.at(c.RegistryBaseURL); err != nil {
		return image{}, err
	}
	if err := i.version(c.Version); err != nil {
		return image{}, err
	}
	if i.host == "" {
		i.host = defaultHost
	}
	return i, nil
}

// split takes an image reference apart as container clients do: what stands before the first slash is a host when it has a dot
// or a colon or is localhost.
func split(reference string) image {
	var i image
	i.repository, i.digest, _ = strings.Cut(reference, "@")
	if colon := strings.LastIndexByte(i.repository, ':'); colon > strings.LastIndexByte(i.repository, '/') {
		i.repository, i.tag = i.repository[:colon], i.repository[colon+1:]
	}
	first, rest, found := strings.Cut(i.repository, "/")
	if found && (strings.ContainsAny(first, ".:") || first == "localhost") {
		i.host, i.repository = canonicalHost(first), rest
	}
	return i
}

// at gives the image the host of the base URL, or checks that it has it already.
func (i *image) at(base string) error {
	if base == "" {
		return nil
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return sdk.Refuse("registryBaseUrl %q is not the address of a registry", base)
	}
	if i.host != "" && i.host != canonicalHost(u.Host) {
		return sdk.Refuse("the identifier names an image of %s, but registryBaseUrl is %q", i.host, base)
	}
	folder := strings.Trim(u.Path, "/")
	if i.host == "" && folder != "" {
		i.repository = folder + "/" + i.repository
	} else if folder != "" && !strings.HasPrefix(i.repository, folder+"/") {
		return sdk.Refuse("the image %s is not below registryBaseUrl %q", i.repository, base)
	}
	i.scheme, i.host = u.Scheme, canonicalHost(u.Host)
	return nil
}

// version merges the version of the package into the image.
func (i *image) version(version string) error {
	switch {
	case version == "":
	case strings.HasPrefix(version, digestPrefix) && i.digest == "":
		i.digest = version
	case strings.HasPrefix(version, digestPrefix) && i.digest != version:
		return sdk.Refuse("the identifier names the digest %s, but the version is %s", i.digest, version)
	case strings.HasPrefix(version, digestPrefix):
	case i.tag == "":
		i.tag = version
	case i.tag != version:
		return sdk.Refuse("the identifier names the tag %q, but the version is %q: leave one of them out, or make them equal",
			i.tag, version)
	}
	return nil
}

// String names the image without tag and digest.
func (i image) String() string { return i.host + "/" + i.repository }

// reference returns what to ask the registry for: the digest where one is named, since it is what a client then runs, else the
// tag, else, as container clients do, the tag "latest". insecure means a registry reached by plain HTTP.
func (i image) reference(insecure bool) (name.Reference, error) {
	text := i.explicitHost(insecure) + "/" + i.repository
	switch {
	case i.digest != "":
		text += "@" + i.digest
	case i.tag != "":
		text += ":" + i.tag
	}
	options := []name.Option{name.WeakValidation}
	if insecure {
		options = append(options, name.Insecure)
	}
	reference, err := name.ParseReference(text, options...)
	if err != nil {
		return nil, sdk.Refuse("%.300q is not the reference of an image", text)
	}
	return reference, nil
}

// explicitHost is the host in a form that no parser takes for the first part of a repository.
func (i image) explicitHost(insecure bool) string {
	switch {
	case strings.ContainsAny(i.host, ".:") || i.host == "localhost":
		return i.host
	case insecure:
		return i.host + ":80"
	}
	return i.host + ":443"
}

// canonicalHost makes the names of one registry equal.
func canonicalHost(host string) string {
	switch host = strings.TrimSuffix(strings.ToLower(host), ":443"); host {
	case "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com", "hub.docker.com":
		return defaultHost
	}
	return host
}
