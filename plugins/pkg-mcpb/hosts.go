package main

import (
	"fmt"
	"regexp"
	"strconv"
)

// maxBytesVariable is the environment variable with the size limit of a file; its default is
// [defaultMaxBytes].
const maxBytesVariable = "MCPB_MAX_BYTES"

const (
	defaultMaxBytes = 64 << 20
	largestMaxBytes = 1 << 30
)

// parseMaxBytes returns the size limit of a file. It returns an error unless the value is empty or
// 1 byte to 1 GiB.
func parseMaxBytes(value string) (int64, error) {
	if value == "" {
		return defaultMaxBytes, nil
	}
	most, err := strconv.ParseInt(value, 10, 64)
	if err != nil || most < 1 || most > largestMaxBytes {
		return 0, fmt.Errorf("%s is %q, it must be a number of bytes from 1 to %d", maxBytesVariable, value,
			largestMaxBytes)
	}
	return most, nil
}

// publicHost is a host that is allowed without configuration.
type publicHost struct {
	base   string         // its base URL
	paths  *regexp.Regexp // matches the escaped paths of the files that it serves
	stores []string       // the hosts that it redirects to for files
}

// publicHosts returns the hosts that are allowed without configuration: release downloads of
// GitHub; release downloads, package files and generic packages of GitLab.
func publicHosts() []publicHost {
	return []publicHost{
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
