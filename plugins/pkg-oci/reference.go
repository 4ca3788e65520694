package main

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

// digestPrefix is the start of a digest.
const digestPrefix = "sha256:"

// defaultHost is the registry of an identifier without a host, as in container clients.
const defaultHost = "docker.io"

// image is the image that an identifier and a version name together. Its parts are not validated.
type image struct {
	scheme     string // empty without a base URL
	host       string // in canonical form
	repository string
	tag        string // may be empty
	digest     string // may be empty
}

// parseImage returns the image that a claim names. The identifier is an image reference. The
// version is the tag or the digest if the identifier has none, and the base URL is the host if the
// identifier has none. It returns a refusal if two of them contradict each other, because a client
// might then run another image than the one that was checked.
func parseImage(c sdk.Claim) (image, error) {
	i := splitReference(c.Identifier)
	if err := i.applyBaseURL(c.RegistryBaseURL); err != nil {
		return image{}, err
	}
	if err := i.applyVersion(c.Version); err != nil {
		return image{}, err
	}
	i.host = cmp.Or(i.host, defaultHost)
	return i, nil
}

// splitReference splits an image reference as container clients do: the part before the first slash
// is a host if it contains a dot or a colon or is localhost.
func splitReference(reference string) image {
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

// applyBaseURL sets the host of the image to that of the base URL. It returns a refusal if the
// image already has another host or is not below the base URL.
func (i *image) applyBaseURL(base string) error {
	if base == "" {
		return nil
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return sdk.Refuse(
			"registryBaseUrl %q is not the URL of a registry: use the form https://registry.example.com", base)
	}
	if i.host != "" && i.host != canonicalHost(u.Host) {
		return sdk.Refuse("the identifier names an image of %s, but registryBaseUrl is %q: make them equal",
			i.host, base)
	}
	folder := strings.Trim(u.Path, "/")
	if i.host == "" && folder != "" {
		i.repository = folder + "/" + i.repository
	} else if folder != "" && !strings.HasPrefix(i.repository, folder+"/") {
		return sdk.Refuse("image %s is not below registryBaseUrl %q: correct one of them", i.repository, base)
	}
	i.scheme, i.host = u.Scheme, canonicalHost(u.Host)
	return nil
}

// applyVersion sets the tag or the digest of the image to version. It returns a refusal if the
// image already has another one.
func (i *image) applyVersion(version string) error {
	switch {
	case version == "":
	case strings.HasPrefix(version, digestPrefix) && i.digest == "":
		i.digest = version
	case strings.HasPrefix(version, digestPrefix) && i.digest != version:
		return sdk.Refuse(
			"the identifier names the digest %s, but the version is %s: omit one of them, or make them equal",
			i.digest, version)
	case strings.HasPrefix(version, digestPrefix):
	case i.tag == "":
		i.tag = version
	case i.tag != version:
		return sdk.Refuse("the identifier names the tag %q, but the version is %q: omit one of them, or make them equal",
			i.tag, version)
	}
	return nil
}

// String returns the image without its tag and digest.
func (i image) String() string { return i.host + "/" + i.repository }

// newReference returns the reference to request from the registry: by the digest if the image has
// one, because that is what clients run, otherwise by the tag, and without both by the tag
// "latest", as in container clients. insecure means a registry over plain HTTP.
func (i image) newReference(insecure bool) (name.Reference, error) {
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
		return nil, sdk.Refuse("%.300q is not an image reference: use the form host/repository:tag", text)
	}
	return reference, nil
}

// explicitHost returns the host in a form that parsers do not confuse with the first part of a
// repository.
func (i image) explicitHost(insecure bool) string {
	switch {
	case strings.ContainsAny(i.host, ".:") || i.host == "localhost":
		return i.host
	case insecure:
		return i.host + ":80"
	}
	return i.host + ":443"
}

// canonicalHost returns one name for all names of the same registry.
func canonicalHost(host string) string {
	switch host = strings.TrimSuffix(strings.ToLower(host), ":443"); host {
	case "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com", "hub.docker.com":
		return defaultHost
	}
	return host
}
