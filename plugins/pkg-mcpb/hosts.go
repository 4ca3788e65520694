package main

import (
	"fmt"
	"regexp"
	"strconv"
)

// maxBytesVariable bounds a file; [defaultMaxBytes] where it is not set.
const maxBytesVariable = "MCPB_MAX_BYTES"

const (
	defaultMaxBytes = 64 << 20
	mostMaxBytes    = 1 << 30
)

// maxBytes reads the bound of a file, 1 byte to 1 GiB.
func maxBytes(value string) (int64, error) {
	if value == "" {
		return defaultMaxBytes, nil
	}
	most, err := strconv.ParseInt(value, 10, 64)
	if err != nil || most < 1 || most > mostMaxBytes {
		return 0, fmt.Errorf("%s is a number of bytes from 1 to %d, not %q", maxBytesVariable, mostMaxBytes, value)
	}
	return most, nil
}

// host is a place that is allowed without being configured.
type host struct {
	base   string         // its base URL
	paths  *regexp.Regexp // of the files that it serves, escaped
	stores []string       // the hosts that it redirects to for files
}

// publicHosts lists them: release downloads of GitHub; release downloads, package files and generic packages of GitLab.
func publicHosts() []host {
	return []host{
		{
			base:   "https://github.com",
			paths:  regexp.MustCompile(`^/[^/]+/[^/]+/releases/download/[^/]+/[^/]+$`),
			stores: []string{"release-assets.githubusercontent.com", "objects.githubusercontent.com"},
		},
		{
			base: "https://gitlab.com",
			paths: regexp.MustCompile(`^/[^/]+(/[^/]+)+/-/(releases/[^/]+/downloads/.+|package_files/[0-9]+/download)$` +
				`|^/api/v4/projects/[^/]+/packages/generic/[^/]+/[^/]+/[^/]+$`),
			stores: []string{"cdn.artifacts.gitlab-static.net"},
		},
	}
}
