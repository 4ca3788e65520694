package main

import (
	"slices"
	"strings"
)

// publicRegistry is a registry that is allowed without being configured.
type publicRegistry struct {
	host  string   // a name, or "*." and the end of one
	blobs []string // the hosts that it redirects to for blobs; names, or "*." and the end of one
	token string   // the host of its token service, where that is another
}

// publicRegistries lists them. Those without blobs serve them from their own host.
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

// public returns the public registry at a host; ok is false if it is none.
func public(host string) (registry publicRegistry, ok bool) {
	all := publicRegistries()
	i := slices.IndexFunc(all, func(r publicRegistry) bool { return matches(r.host, host) })
	if i < 0 {
		return publicRegistry{}, false
	}
	return all[i], true
}

// publicNames names them for a sentence.
func publicNames() string {
	var names []string
	for _, r := range publicRegistries() {
		names = append(names, r.host)
	}
	return strings.Join(names, ", ")
}

// matches compares a host with a name, or with "*." and the end of one.
func matches(pattern, host string) bool {
	if end, wild := strings.CutPrefix(pattern, "*"); wild {
		return strings.HasSuffix(host, end) && !strings.HasPrefix(host, ".")
	}
	return pattern == host
}
