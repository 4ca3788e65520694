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

// registries answers for all registries that may be asked.
type registries struct{ client *registryclient.Client }

// RegistryTypes implements [sdk.Ownership].
func (registries) RegistryTypes() []string { return []string{"oci"} }

// Check implements [sdk.Ownership].
func (r registries) Check(ctx context.Context, c sdk.Claim) error {
	ctx, cancel := registryclient.Within(ctx)
	defer cancel()
	i, err := imageOf(c)
	if err != nil {
		return err
	}
	base, err := r.place(i)
	if err != nil {
		return err
	}
	scheme, _, _ := strings.Cut(base.URL(), "://")
	reference, err := i.reference(scheme == "http")
	if err != nil {
		return err
	}
	g := newGuard(base, reference.Context().Registry, scheme)
	p := pull{image: i, reference: reference, options: options(ctx, g), guard: g}
	return p.verdict(c.ServerName)
}

// place returns the registry that holds the image: a configured one, else a public one.
func (r registries) place(i image) (*registryclient.Base, error) {
	_, known := public(i.host)
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
	return nil, sdk.Refuse("images of %.200q are not accepted, only those of %s, and of registries that the operator configured",
		i.host, publicNames())
}

// options makes the library reach the registry through a guard, with the registry's credentials, once and without trying again:
// the caller is told that a failure is transient, and has little time.
func options(ctx context.Context, g *guard) []remote.Option {
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

// newGuard returns the guard of one check of an image of the registry.
func newGuard(base *registryclient.Base, at name.Registry, scheme string) *guard {
	known, _ := public(canonicalHost(at.RegistryStr()))
	g := &guard{base: base, scheme: scheme, host: hostOf(&url.URL{Scheme: scheme, Host: at.RegistryStr()}), blobs: known.blobs}
	if known.token != "" {
		g.tokens = []string{known.token}
	}
	return g
}
