package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// label is where an image names the server that it holds.
const label = "io.modelcontextprotocol.server.name"

// maxPlatforms bounds how many images of a list are read.
const maxPlatforms = 10

// pull reads one image.
type pull struct {
	image     image
	reference name.Reference
	options   []remote.Option
	guard     *guard
}

// verdict reports whether the image claims the server.
func (p pull) verdict(server string) error {
	manifest, err := remote.Get(p.reference, p.options...)
	if err != nil {
		return p.missing(err)
	}
	switch {
	case manifest.MediaType.IsIndex():
		index, err := manifest.ImageIndex()
		if err != nil {
			return p.unread(err)
		}
		return p.anyOf(index, server)
	case manifest.MediaType.IsImage():
		image, err := manifest.Image()
		if err != nil {
			return p.unread(err)
		}
		claimed, err := labelOf(image)
		if err != nil {
			return p.unread(err)
		}
		return p.compared(claimed, server)
	}
	return sdk.Refuse("%.200s is not an image, but of media type %.80q", p.image, manifest.MediaType)
}

// anyOf reports whether an image of the list claims the server. One that does suffices; otherwise an image that could not be read
// leaves the question open.
func (p pull) anyOf(index v1.ImageIndex, server string) error {
	list, err := index.IndexManifest()
	if err != nil {
		return p.unread(err)
	}
	var (
		read  int
		other string // a label that names another server
		open  error
	)
	for _, entry := range list.Manifests {
		if !platform(entry) || read == maxPlatforms {
			continue
		}
		read++
		claimed, err := labelIn(index, entry.Digest)
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
		return sdk.Refuse("%.200s is a list without an image for any platform", p.image)
	case open != nil:
		return p.unread(open)
	}
	return p.compared(other, server)
}

// platform tells an image from the attestations and signatures that lists hold beside it.
func platform(entry v1.Descriptor) bool {
	return entry.MediaType.IsImage() && (entry.Platform == nil || entry.Platform.OS != "unknown")
}

// labelIn reads the label of an image of a list.
func labelIn(index v1.ImageIndex, digest v1.Hash) (string, error) {
	image, err := index.Image(digest)
	if err != nil {
		return "", fmt.Errorf("manifest %s: %w", digest, err)
	}
	return labelOf(image)
}

// labelOf reads the label of an image; it is empty where there is none.
func labelOf(image v1.Image) (string, error) {
	text, err := image.RawConfigFile()
	if err != nil {
		return "", fmt.Errorf("configuration: %w", err)
	}
	var configuration struct {
		Config struct {
			Labels map[string]string `json:"Labels"`
		} `json:"config"`
	}
	if json.Unmarshal(text, &configuration) != nil { // its digest was right: it is no configuration of an image, and claims nothing
		configuration.Config.Labels = nil
	}
	return configuration.Config.Labels[label], nil
}

// compared returns the verdict on a label.
func (p pull) compared(claimed, server string) error {
	switch claimed {
	case server:
		return nil
	case "":
		return sdk.Refuse("image %.200s has no label %s; it must be %q", p.image, label, server)
	}
	return sdk.Refuse("label %s of image %.120s is %.80q, not %q", label, p.image, claimed, server)
}

// missing returns the answer for a manifest that was not got: here, and nowhere else, "not found" and "denied" are verdicts.
// Registries deny what does not exist as they deny what is private.
func (p pull) missing(err error) error {
	if host := p.guard.deniedTokens(); host != "" {
		return sdk.Refuse("image %.200s cannot be read: the token service of %.100s is on a host that is not configured, %.100q; "+
			"the operator can name it in tokenHosts of the registry", p.image, p.image.host, host)
	}
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return p.unread(err)
	}
	switch {
	case answer.StatusCode == http.StatusUnauthorized, answer.StatusCode == http.StatusForbidden:
		if has(answer, transport.TooManyRequestsErrorCode) {
			return p.unread(err)
		}
		return sdk.Refuse("there is no image %.300s, or it is not public", p.image)
	case !forManifest(answer.Request) || passing(answer.StatusCode):
		return p.unread(err)
	case answer.StatusCode != http.StatusNotFound:
		return sdk.Refuse("%s answers %d for image %.250s", p.image.host, answer.StatusCode, p.image)
	case has(answer, transport.NameUnknownErrorCode):
		return sdk.Refuse("there is no image %.300s", p.image)
	case p.image.digest != "":
		return sdk.Refuse("image %.250s has no manifest with digest %.100s", p.image, p.image.digest)
	}
	return sdk.Refuse("image %.250s has no tag %.128q", p.image, p.reference.Identifier())
}

// forManifest reports whether a request was for a manifest, and not for what stands before: a 404 there means that the host is no
// registry.
func forManifest(r *http.Request) bool {
	return r != nil && strings.Contains(r.URL.Path, "/manifests/")
}

// passing reports whether a status says nothing about the image.
func passing(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status < http.StatusBadRequest || status >= http.StatusInternalServerError
}

func has(answer *transport.Error, code transport.ErrorCode) bool {
	for _, diagnostic := range answer.Errors {
		if diagnostic.Code == code {
			return true
		}
	}
	return false
}

// unread returns the answer for what was not got or not understood: a refusal where no later try will change that, such as a
// forbidden redirect, else the error, with the time that the registry asks to wait.
func (p pull) unread(err error) error {
	return sdk.RetryAfter(p.guard.waits(), registryclient.Verdict(fmt.Errorf("image %s: %w", p.image, err)))
}
