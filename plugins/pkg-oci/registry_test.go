package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
	"github.com/tollgate-dev/tollgate/test/must"
)

const server = "io.github.example/weather"

// far is a fake registry in which tests store images and whose responses they replace.
type far struct {
	*httptest.Server
	host  string
	asked atomic.Int64
	// before handles a request and returns true, or returns false to let the registry handle it.
	before func(w http.ResponseWriter, r *http.Request) bool
}

func newFar(t *testing.T) *far {
	t.Helper()
	f := &far{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.asked.Add(1)
		if f.before == nil || !f.before(w, r) {
			inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(f.Close)
	f.host = strings.TrimPrefix(f.URL, "http://")
	return f
}

// plugin returns a plugin with f as a configured registry.
func (f *far) plugin(t *testing.T, credentials ...string) registries {
	t.Helper()
	entry := map[string]string{"baseUrl": f.URL}
	for i := 0; i+1 < len(credentials); i += 2 {
		entry[credentials[i]] = credentials[i+1]
	}
	configured, err := json.Marshal([]any{entry})
	must.Succeed(t, err)
	return openPlugin(t, string(configured))
}

func openPlugin(t *testing.T, configured string) registries {
	t.Helper()
	client, err := registryclient.Open(registryclient.Config{Environment: func(variable string) string {
		return map[string]string{registryclient.Variable: configured}[variable]
	}})
	must.Succeed(t, err)
	return registries{client: client}
}

func labelled(t *testing.T, labels map[string]string) v1.Image {
	t.Helper()
	image, err := mutate.Config(empty.Image, v1.Config{Labels: labels})
	must.Succeed(t, err)
	return image
}

// push stores an image for one platform, or a list with one image for each value, and returns its
// digest. An empty value means an image without the label.
func (f *far) push(t *testing.T, repository, tag string, values ...string) string {
	t.Helper()
	reference, err := name.ParseReference(f.host + "/" + repository + ":" + tag)
	must.Succeed(t, err)
	var images []v1.Image
	for i, value := range values {
		labels := map[string]string{"number": fmt.Sprint(i)}
		if value != "" {
			labels[serverLabel] = value
		}
		images = append(images, labelled(t, labels))
	}
	if len(images) == 1 {
		must.Succeed(t, remote.Write(reference, images[0]))
		digest, err := images[0].Digest()
		must.Succeed(t, err)
		return digest.String()
	}
	var index v1.ImageIndex = empty.Index
	for i, image := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{
				Platform: &v1.Platform{OS: "linux", Architecture: fmt.Sprint("a", i)},
			},
		})
	}
	must.Succeed(t, remote.WriteIndex(reference, index))
	digest, err := index.Digest()
	must.Succeed(t, err)
	return digest.String()
}

// claim returns a claim of an image of f.
func (f *far) claim(image string) sdk.Claim {
	return sdk.Claim{ServerName: server, RegistryType: "oci", Identifier: f.host + "/" + image}
}

// isRefusal reports whether err is a refusal and not a failure. A failure has a cause.
func isRefusal(err error) bool {
	var failure *registryclient.Error
	return err != nil && !errors.As(err, &failure) && errors.Unwrap(err) == nil
}

// wantRefusal checks that err is a refusal that contains the text.
func wantRefusal(t *testing.T, err error, text string) {
	t.Helper()
	if !isRefusal(err) || !strings.Contains(err.Error(), text) {
		t.Errorf("Check = %v, want a refusal with %q", err, text)
	}
}

// wantFailure checks that err is an error but not a refusal.
func wantFailure(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || isRefusal(err) || !strings.Contains(err.Error(), text) {
		t.Errorf("Check = %v, want a failure that is not a refusal, with %q", err, text)
	}
}
