package main

import (
	"slices"
	"strings"
)

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
