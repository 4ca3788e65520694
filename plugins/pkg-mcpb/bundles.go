// Command pkg-mcpb is the ownership plugin for registry type "mcpb", MCPB files. The identifier is
// the file's https URL, and the plugin checks that the file there has the SHA-256 checksum of the
// server document (contract R-57). It computes the checksum while it downloads, up to
// MCPB_MAX_BYTES (64 MiB), and does not store or open the file.
//
// The allowed files are releases and packages of github.com and gitlab.com, and files below a base
// URL of TOLLGATE_PACKAGE_REGISTRIES. The plugin follows no redirect to another host, except from
// github.com and gitlab.com to the known hosts where they store files, at public addresses only.
package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// maxShown is the length limit of a URL in a message, in bytes.
const maxShown = 160

// bundles checks claims of MCPB files.
type bundles struct {
	client   *registryclient.Client
	hosts    []publicHost
	maxBytes int64 // bytes of a file
}

// RegistryTypes implements [sdk.Ownership].
func (bundles) RegistryTypes() []string { return []string{"mcpb"} }

// Check implements [sdk.Ownership].
func (b bundles) Check(ctx context.Context, c sdk.Claim) error {
	ctx, cancel := registryclient.Within(ctx)
	defer cancel()
	want, err := hex.DecodeString(c.FileSHA256)
	if err != nil || len(want) != sha256.Size {
		return sdk.Refuse(
			"fileSha256 of the MCPB file is missing or malformed: add the SHA-256 checksum, 64 hexadecimal digits, to the server document")
	}
	f, err := b.findFile(c)
	if err != nil {
		return err
	}
	sum := sha256.New()
	options := registryclient.Options{MaxBytes: b.maxBytes, RedirectHosts: f.stores}
	err = f.base.Fetch(ctx, c.Identifier, options, func(body io.Reader) error {
		_, err := io.Copy(sum, body)
		return err
	})
	if err != nil {
		return downloadError(err, c.Identifier)
	}
	got := sum.Sum(nil)
	if subtle.ConstantTimeCompare(got, want) != 1 {
		return sdk.Refuse(
			"the file at %q has the SHA-256 checksum %x, but fileSha256 is %x: correct the one that is wrong",
			shortenURL(c.Identifier), got, want)
	}
	return nil
}

// downloadError returns the error for a download that failed: a refusal if the file does not exist
// or is not public.
func downloadError(err error, address string) error {
	switch {
	case registryclient.Is(err, registryclient.NotFound):
		return sdk.Refuse("there is no file at %q: publish it, or correct the identifier in the server document",
			shortenURL(address))
	case registryclient.Is(err, registryclient.Denied):
		return sdk.Refuse("the file at %q is not public: publish it for everyone", shortenURL(address))
	}
	return registryclient.Verdict(fmt.Errorf("file at %q: %w", shortenURL(address), err))
}

// file is where a file may be downloaded.
type file struct {
	base   *registryclient.Base
	stores []string // other hosts that a redirect may lead to
}

// findFile returns the file that a claim names. It returns a refusal if the URL is malformed or its
// host is not allowed.
func (b bundles) findFile(c sdk.Claim) (file, error) {
	address, err := url.Parse(c.Identifier)
	if err != nil || address.Host == "" {
		return file{}, sdk.Refuse("identifier %q is not the https URL of an MCPB file", shortenURL(c.Identifier))
	}
	if err := checkBelow(address, c.RegistryBaseURL); err != nil {
		return file{}, err
	}
	base, err := b.client.At(c.Identifier)
	if err != nil {
		return file{}, err
	}
	if _, err := b.client.Base(base.URL()); err != nil { // At accepts every public host
		return file{},
			sdk.Refuse("MCPB files of %.200q are not accepted: use a release download of github.com or gitlab.com, "+
				"or a host that the operator configured", address.Host)
	}
	f := file{base: base}
	for _, h := range b.hosts {
		if h.base != base.URL() || !base.Credentials().Empty() {
			continue
		}
		if !h.paths.MatchString(address.EscapedPath()) {
			return file{}, sdk.Refuse("%q is not a release download: use the URL of a file in a release",
				shortenURL(c.Identifier))
		}
		f.stores = h.stores
	}
	return f, nil
}

// checkBelow returns a refusal if the file is not below the base URL of its own document. Most
// documents have no base URL.
func checkBelow(address *url.URL, base string) error {
	if base == "" {
		return nil
	}
	at, err := url.Parse(base)
	if err != nil || at.Scheme != address.Scheme || !strings.EqualFold(at.Host, address.Host) ||
		!strings.HasPrefix(address.Path, strings.TrimRight(at.Path, "/")+"/") {
		return sdk.Refuse("the file %q is not below registryBaseUrl %q: correct one of them",
			shortenURL(address.String()), shortenURL(base))
	}
	return nil
}

// shortenURL cuts a URL to a length that fits a message.
func shortenURL(address string) string {
	if len(address) > maxShown {
		return strings.ToValidUTF8(address[:maxShown], "") + "…"
	}
	return address
}

func main() { os.Exit(sdk.RunOwnership(openBundles(os.Getenv))) }

func openBundles(environment func(string) string) (bundles, error) {
	most, err := parseMaxBytes(environment(maxBytesVariable))
	if err != nil {
		return bundles{}, err
	}
	hosts := publicHosts()
	var bases []string
	for _, h := range hosts {
		bases = append(bases, h.base)
	}
	client, err := registryclient.Open(registryclient.Config{Defaults: bases, Environment: environment})
	if err != nil {
		return bundles{}, err
	}
	return bundles{client: client, hosts: hosts, maxBytes: most}, nil
}

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
