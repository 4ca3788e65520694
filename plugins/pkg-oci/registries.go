package main

import (
	"context"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

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
