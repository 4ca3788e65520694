package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// serverLabel is the label in which an image names its server.
const serverLabel = "io.modelcontextprotocol.server.name"

// maxPlatforms is the largest number of images of a list that are read.
const maxPlatforms = 10

// pull is the check of one image.
type pull struct {
	image     image
	reference name.Reference
	options   []remote.Option
	guard     *guard
}

// checkImage returns nil if the image claims the server, and a refusal if it does not.
func (p pull) checkImage(server string) error {
	manifest, err := remote.Get(p.reference, p.options...)
	if err != nil {
		return p.manifestError(err)
	}
	switch {
	case manifest.MediaType.IsIndex():
		index, err := manifest.ImageIndex()
		if err != nil {
			return p.readError(err)
		}
		return p.checkIndex(index, server)
	case manifest.MediaType.IsImage():
		image, err := manifest.Image()
		if err != nil {
			return p.readError(err)
		}
		claimed, err := readLabel(image)
		if err != nil {
			return p.readError(err)
		}
		return p.compareLabel(claimed, server)
	}
	return sdk.Refuse("%.200s is not an image: its media type is %.80q", p.image, manifest.MediaType)
}

// checkIndex returns nil if an image of the list claims the server. If no image claims it,
// checkIndex returns an error if an image could not be read, and a refusal otherwise.
func (p pull) checkIndex(index v1.ImageIndex, server string) error {
	list, err := index.IndexManifest()
	if err != nil {
		return p.readError(err)
	}
	var (
		read  int
		other string // a label that names another server
		open  error
	)
	for _, entry := range list.Manifests {
		if !hasPlatform(entry) || read == maxPlatforms {
			continue
		}
		read++
		claimed, err := readEntryLabel(index, entry.Digest)
		switch {
		case err == nil && claimed == server:
			return nil
		case err == nil && claimed != "":
			other = claimed
		case err != nil && open == nil:
			open = err
		}
	}
	switch {
	case read == 0:
		return sdk.Refuse(
			"%.200s is a list of manifests that contains no image: publish an image for at least one platform", p.image)
	case open != nil:
		return p.readError(open)
	}
	return p.compareLabel(other, server)
}

// hasPlatform reports whether entry is an image. Lists also contain attestations and signatures.
func hasPlatform(entry v1.Descriptor) bool {
	return entry.MediaType.IsImage() && (entry.Platform == nil || entry.Platform.OS != "unknown")
}

// readEntryLabel returns the label of the image with that digest in a list.
func readEntryLabel(index v1.ImageIndex, digest v1.Hash) (string, error) {
	image, err := index.Image(digest)
	if err != nil {
		return "", fmt.Errorf("manifest %s: %w", digest, err)
	}
	return readLabel(image)
}

// readLabel returns the label of an image, or "" if it has no label.
func readLabel(image v1.Image) (string, error) {
	text, err := image.RawConfigFile()
	if err != nil {
		return "", fmt.Errorf("configuration: %w", err)
	}
	var configuration struct {
		Config struct {
			Labels map[string]string `json:"Labels"`
		} `json:"config"`
	}
	// the digest matches, so the image has no valid configuration and no label
	if json.Unmarshal(text, &configuration) != nil {
		configuration.Config.Labels = nil
	}
	return configuration.Config.Labels[serverLabel], nil
}

// compareLabel returns nil if the label claims the server, and a refusal otherwise.
func (p pull) compareLabel(claimed, server string) error {
	switch claimed {
	case server:
		return nil
	case "":
		return sdk.Refuse("image %.200s has no label %s: publish an image with the label %q", p.image,
			serverLabel, server)
	}
	return sdk.Refuse("label %s of image %.120s is %.80q, it must be %q", serverLabel, p.image, claimed, server)
}

// manifestError returns the error for a manifest that could not be read. Only for manifests are
// "not found" and "denied" refusals. Registries return "denied" for an image that does not exist
// and for a private one.
func (p pull) manifestError(err error) error {
	if host := p.guard.observed().deniedHost; host != "" {
		return sdk.Refuse("image %.200s cannot be read: %.100s names a token service on the host %.100q, which is not configured; "+
			"the operator can add it to tokenHosts of the registry", p.image, p.image.host, host)
	}
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return p.readError(err)
	}
	switch {
	case answer.StatusCode == http.StatusUnauthorized, answer.StatusCode == http.StatusForbidden:
		if hasCode(answer, transport.TooManyRequestsErrorCode) {
			return p.readError(err)
		}
		return sdk.Refuse(
			"there is no image %.300s, or it is not public: make it public, or correct the identifier in the server document", p.image)
	case !isManifestRequest(answer.Request) || isTransient(answer.StatusCode):
		return p.readError(err)
	case answer.StatusCode != http.StatusNotFound:
		return sdk.Refuse("%s returned status %d for image %.250s: correct the identifier in the server document",
			p.image.host, answer.StatusCode, p.image)
	case hasCode(answer, transport.NameUnknownErrorCode):
		return sdk.Refuse(
			"there is no image %.300s: publish it, or correct the identifier in the server document", p.image)
	case p.image.digest != "":
		return sdk.Refuse("image %.250s has no manifest with digest %.100s: correct the digest in the server document",
			p.image, p.image.digest)
	}
	return sdk.Refuse("image %.250s has no tag %.128q: publish it, or correct the version in the server document",
		p.image, p.reference.Identifier())
}

// isManifestRequest reports whether r requests a manifest. A 404 for another path means that the
// host is not a registry.
func isManifestRequest(r *http.Request) bool {
	return r != nil && strings.Contains(r.URL.Path, "/manifests/")
}

// isTransient reports whether a status says nothing about the image, so that a later try may
// succeed.
func isTransient(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status < http.StatusBadRequest || status >= http.StatusInternalServerError
}

func hasCode(answer *transport.Error, code transport.ErrorCode) bool {
	return slices.ContainsFunc(answer.Errors, func(d transport.Diagnostic) bool { return d.Code == code })
}

// readError returns the error for a response that did not arrive or could not be parsed: a refusal
// if a later try cannot succeed, for example after a forbidden redirect, otherwise err with the
// delay that the registry requests.
func (p pull) readError(err error) error {
	return sdk.RetryAfter(p.guard.observed().wait, registryclient.Verdict(fmt.Errorf("image %s: %w", p.image, err)))
}
