// Command pkg-oci is the ownership plugin for registry type "oci", container images: an image
// claims a server with the label io.modelcontextprotocol.server.name in its configuration (contract
// For an image with several platforms, the label of one platform is enough. The plugin reads
// only manifests and configurations, not layers.
//
// The allowed registries are docker.io, ghcr.io, quay.io, gcr.io, mcr.microsoft.com, those below
// pkg.dev, and private ones that TOLLGATE_PACKAGE_REGISTRIES lists with their base URL and optional
// credentials: a username and a password, or a token.
//
// The plugin connects to three kinds of hosts: the registry; the token service that the registry
// names, with credentials only if the operator listed its host in tokenHosts, otherwise only over
// https and at a public address; and the known hosts where the public registries store their blobs.
// It follows no redirect to any other host.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
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

func main() { os.Exit(sdk.RunOwnership(openRegistries(os.Getenv))) }

func openRegistries(environment func(string) string) (registries, error) {
	client, err := registryclient.Open(registryclient.Config{Environment: environment})
	return registries{client: client}, err
}

// maxBody is the size limit of each manifest, configuration and token, in bytes.
const maxBody = 4 << 20

// maxRedirects is the largest number of redirects of one request.
const maxRedirects = 3

// guard is the HTTP transport of one check. It allows requests to the registry, to the token
// service that the registry names, and redirects to the hosts where the registry stores its blobs.
type guard struct {
	base   *registryclient.Base
	scheme string
	host   string   // the host of the registry's API
	blobs  []string // as in [publicRegistry]

	tokenHosts []string // known hosts of token services

	mu   sync.Mutex
	seen observed
}

// observed is what the library's errors do not contain.
type observed struct {
	deniedHost string        // a token service that the plugin may not use
	realmHosts []string      // the hosts of the token services that the registry named
	wait       time.Duration // the longest delay that a host requested
}

// observe records what change adds.
func (g *guard) observe(change func(*observed)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.seen)
}

// observed returns what was recorded.
func (g *guard) observed() (seen observed) {
	g.observe(func(o *observed) { seen = *o })
	return seen
}

// RoundTrip implements [http.RoundTripper].
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	host := hostWithoutPort(r.URL)
	if host == g.host && r.URL.Scheme != g.scheme {
		// The library tries both schemes for a host that looks local. The other scheme is not a
		// failure of the registry.
		return nil, errors.New("the base URL of the registry does not use " + r.URL.Scheme)
	}
	switch redirected := countRedirects(r); {
	case redirected > maxRedirects:
		return nil, g.newError(registryclient.ForbiddenRedirect, fmt.Errorf("more than %d redirects", maxRedirects))
	case redirected > 0 && !g.mayRedirectTo(r.URL):
		return nil, g.redirectError(host)
	case redirected == 0 && host != g.host && !g.mayRequestTokens(r.URL):
		g.observe(func(o *observed) { o.deniedHost = host })
		return nil, g.newError(registryclient.ForbiddenURL, fmt.Errorf("the host is %.100q", host))
	}
	response, err := g.base.Transport(maxBody, host).RoundTrip(r)
	if err != nil {
		if countRedirects(r) == 0 && host != g.host && registryclient.Is(err, registryclient.ForbiddenAddress) {
			g.observe(func(o *observed) { o.deniedHost = host })
		}
		return nil, err //nolint:wrapcheck // already classified, with the host in its text
	}
	// checked here because the library would hide the reason
	if next := redirectTarget(response); next != nil && !g.mayRedirectTo(next) {
		_ = response.Body.Close() // the body is not needed
		return nil, g.redirectError(hostWithoutPort(next))
	}
	g.observe(func(o *observed) {
		o.wait = max(o.wait, registryclient.RetryAfter(response.Header))
		if host == g.host && response.StatusCode == http.StatusUnauthorized {
			o.addRealms(response.Header)
		}
	})
	return response, nil
}

// redirectError returns the error for a redirect to a host that is not allowed.
func (g *guard) redirectError(host string) error {
	return g.newError(registryclient.ForbiddenRedirect, fmt.Errorf("it leads to another host, %.100q", host))
}

func (g *guard) newError(reason registryclient.Reason, cause error) error {
	return &registryclient.Error{Reason: reason, Host: g.host, Err: cause}
}

// mayRedirectTo reports whether a redirect to at may be followed.
func (g *guard) mayRedirectTo(at *url.URL) bool {
	host := hostWithoutPort(at)
	if host == g.host {
		return at.Scheme == g.scheme && at.User == nil
	}
	return at.Scheme == "https" && at.User == nil &&
		slices.ContainsFunc(g.blobs, func(pattern string) bool { return matchesPattern(pattern, host) })
}

// mayRequestTokens reports whether the plugin may request a token from at. The registry must have
// named the host as its token service. A configured host is always allowed; any other host only
// over https, and only if it is a known one or no credentials would be sent.
func (g *guard) mayRequestTokens(at *url.URL) bool {
	if at.User != nil || !slices.Contains(g.observed().realmHosts, hostWithoutPort(at)) {
		return false
	}
	if slices.Contains(g.base.TokenHosts(), hostWithoutPort(at)) {
		return true // the transport checks the scheme
	}
	return at.Scheme == "https" && (g.base.Credentials().Empty() || slices.Contains(g.tokenHosts, hostWithoutPort(at)))
}

// addRealms adds the hosts of the token services in the WWW-Authenticate headers of a response.
func (o *observed) addRealms(answer http.Header) {
	for _, challenge := range answer.Values("WWW-Authenticate") {
		_, rest, _ := strings.Cut(challenge, `realm="`)
		realm, _, _ := strings.Cut(rest, `"`)
		if at, err := url.Parse(realm); err == nil && at.Host != "" && len(o.realmHosts) < maxRedirects {
			o.realmHosts = append(o.realmHosts, hostWithoutPort(at))
		}
	}
}

// redirectTarget returns the URL that a response redirects to, or nil.
func redirectTarget(response *http.Response) *url.URL {
	if response.StatusCode < 300 || response.StatusCode >= 400 {
		return nil
	}
	next, err := response.Location()
	if err != nil {
		return nil
	}
	return next
}

// countRedirects returns the number of redirects that led to r.
func countRedirects(r *http.Request) int {
	hops := 0
	for r.Response != nil && r.Response.Request != nil && hops <= maxRedirects {
		r = r.Response.Request
		hops++
	}
	return hops
}

// hostWithoutPort returns the host of at in lower case, without the default port of its scheme.
func hostWithoutPort(at *url.URL) string {
	host := strings.ToLower(at.Host)
	switch at.Scheme {
	case "https":
		return strings.TrimSuffix(host, ":443")
	case "http":
		return strings.TrimSuffix(host, ":80")
	}
	return host
}

// registries checks claims with all registries that are allowed.
type registries struct{ client *registryclient.Client }

// RegistryTypes implements [sdk.Ownership].
func (registries) RegistryTypes() []string { return []string{"oci"} }

// Check implements [sdk.Ownership].
func (r registries) Check(ctx context.Context, c sdk.Claim) error {
	ctx, cancel := registryclient.Within(ctx)
	defer cancel()
	i, err := parseImage(c)
	if err != nil {
		return err
	}
	base, err := r.findRegistry(i)
	if err != nil {
		return err
	}
	scheme, _, _ := strings.Cut(base.URL(), "://")
	reference, err := i.newReference(scheme == "http")
	if err != nil {
		return err
	}
	g := newGuard(base, reference.Context().Registry, scheme)
	p := pull{image: i, reference: reference, options: remoteOptions(ctx, g), guard: g}
	return p.checkImage(c.ServerName)
}

// findRegistry returns the registry of the image: a configured one or a public one. It returns a
// refusal if the registry is not allowed.
func (r registries) findRegistry(i image) (*registryclient.Base, error) {
	_, known := findPublic(i.host)
	for _, scheme := range []string{"https", "http"} {
		if i.scheme != "" && i.scheme != scheme {
			continue
		}
		base, err := r.client.At(scheme + "://" + i.String())
		if err != nil {
			continue
		}
		if _, err := r.client.Base(base.URL()); known || err == nil {
			return base, nil
		}
	}
	return nil, sdk.Refuse("images of %.200q are not accepted: use %s, or a registry that the operator configured",
		i.host, listPublicNames())
}

// remoteOptions returns the options with which the library connects through a guard, with the
// registry's credentials. It does not retry, because the time is short and the caller learns that a
// failure is transient.
func remoteOptions(ctx context.Context, g *guard) []remote.Option {
	auth := authn.Anonymous
	if credentials := g.base.Credentials(); !credentials.Empty() {
		auth = authn.FromConfig(authn.AuthConfig{
			Username: credentials.Username, Password: credentials.Password, RegistryToken: credentials.Token,
		})
	}
	return []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(g), remote.WithAuth(auth), remote.WithRetryStatusCodes(),
		remote.WithRetryPredicate(func(error) bool { return false }),
	}
}

// newGuard returns the guard of one check of an image in the registry.
func newGuard(base *registryclient.Base, at name.Registry, scheme string) *guard {
	known, _ := findPublic(canonicalHost(at.RegistryStr()))
	g := &guard{
		base: base, scheme: scheme, host: hostWithoutPort(&url.URL{Scheme: scheme, Host: at.RegistryStr()}),
		blobs: known.blobs,
	}
	if known.token != "" {
		g.tokenHosts = []string{known.token}
	}
	return g
}

// publicRegistry is a registry that is allowed without configuration.
type publicRegistry struct {
	host  string   // a name, or "*." and the end of a name
	blobs []string // the hosts that it redirects to for blobs, in the form of host
	token string   // the host of its token service, if it is another host
}

// publicRegistries returns the registries that are allowed without configuration. A registry
// without blobs serves them from its own host.
func publicRegistries() []publicRegistry {
	return []publicRegistry{
		{host: defaultHost, token: "auth.docker.io", blobs: []string{
			"production.cloudflare.docker.com", "production.cloudfront.docker.com",
			"docker-images-prod.6aa30f8b08e16409b46e0173d6de2f56.r2.cloudflarestorage.com",
		}},
		{host: "ghcr.io", blobs: []string{"pkg-containers.githubusercontent.com"}},
		{host: "quay.io", blobs: []string{"*.quay.io", "quayio-production-s3.s3.amazonaws.com"}},
		{host: "gcr.io", blobs: []string{"storage.googleapis.com"}},
		{host: "mcr.microsoft.com", blobs: []string{"*.data.mcr.microsoft.com"}},
		{host: "*.pkg.dev"},
	}
}

// findPublic returns the public registry at host; ok is false if host is not a public registry.
func findPublic(host string) (registry publicRegistry, ok bool) {
	all := publicRegistries()
	i := slices.IndexFunc(all, func(r publicRegistry) bool { return matchesPattern(r.host, host) })
	if i < 0 {
		return publicRegistry{}, false
	}
	return all[i], true
}

// listPublicNames returns the hosts of the public registries, separated by commas.
func listPublicNames() string {
	var names []string
	for _, r := range publicRegistries() {
		names = append(names, r.host)
	}
	return strings.Join(names, ", ")
}

// matchesPattern reports whether host is pattern, or a host below it if pattern begins with "*.".
func matchesPattern(pattern, host string) bool {
	if end, wild := strings.CutPrefix(pattern, "*"); wild {
		return strings.HasSuffix(host, end) && !strings.HasPrefix(host, ".")
	}
	return pattern == host
}
