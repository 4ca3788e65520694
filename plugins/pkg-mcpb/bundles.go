package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// maxShown bounds how much of a URL a sentence shows.
const maxShown = 160

// bundles answers for MCPB files.
type bundles struct {
	client *registryclient.Client
	hosts  []host
	most   int64 // bytes of a file
}

// RegistryTypes implements [sdk.Ownership].
func (bundles) RegistryTypes() []string { return []string{"mcpb"} }

// Check implements [sdk.Ownership].
func (b bundles) Check(ctx context.Context, c sdk.Claim) error {
	ctx, cancel := registryclient.Within(ctx)
	defer cancel()
	want, err := hex.DecodeString(c.FileSHA256)
	if err != nil || len(want) != sha256.Size {
		return sdk.Refuse("fileSha256 of an MCPB file is needed, 64 hexadecimal digits")
	}
	f, err := b.file(c)
	if err != nil {
		return err
	}
	sum := sha256.New()
	err = f.download(ctx, func(body io.Reader) error {
		_, err := io.Copy(sum, body)
		return err
	})
	if err != nil {
		return verdict(err, c.Identifier)
	}
	got := sum.Sum(nil)
	if subtle.ConstantTimeCompare(got, want) != 1 {
		return sdk.Refuse("the file at %q has the SHA-256 %x, but fileSha256 is %x", shown(c.Identifier), got, want)
	}
	return nil
}

// verdict has sentences of its own for what is not there, and for what may not be read.
func verdict(err error, address string) error {
	switch {
	case registryclient.Is(err, registryclient.NotFound):
		return sdk.Refuse("there is no file at %q", shown(address))
	case registryclient.Is(err, registryclient.Denied):
		return sdk.Refuse("the file at %q is not public", shown(address))
	}
	return registryclient.Verdict(fmt.Errorf("file at %q: %w", shown(address), err))
}

// file finds where a claim's file is, and refuses what is not allowed.
func (b bundles) file(c sdk.Claim) (file, error) {
	address, err := url.Parse(c.Identifier)
	if err != nil || address.Host == "" {
		return file{}, sdk.Refuse("the identifier of an MCPB file is its https URL, not %q", shown(c.Identifier))
	}
	if err := below(address, c.RegistryBaseURL); err != nil {
		return file{}, err
	}
	base, err := b.client.At(c.Identifier)
	if err != nil {
		return file{}, err
	}
	if _, err := b.client.Base(base.URL()); err != nil { // At takes every public host
		return file{}, sdk.Refuse("MCPB files of %.200q are not accepted, only release downloads of github.com and gitlab.com, "+
			"and files of hosts that the operator configured", address.Host)
	}
	f := file{base: base, address: c.Identifier, most: b.most}
	for _, h := range b.hosts {
		if h.base != base.URL() || !base.Credentials().Empty() {
			continue
		}
		if !h.paths.MatchString(address.EscapedPath()) {
			return file{}, sdk.Refuse("%q is not a release download", shown(c.Identifier))
		}
		f.stores = h.stores
	}
	return f, nil
}

// below refuses a file that is not below the base URL that its own document tells; none is told in most.
func below(address *url.URL, base string) error {
	if base == "" {
		return nil
	}
	at, err := url.Parse(base)
	if err != nil || at.Scheme != address.Scheme || !strings.EqualFold(at.Host, address.Host) ||
		!strings.HasPrefix(address.Path, strings.TrimRight(at.Path, "/")+"/") {
		return sdk.Refuse("the file %q is not below registryBaseUrl %q", shown(address.String()), shown(base))
	}
	return nil
}

// shown cuts a URL to a length that fits a sentence.
func shown(address string) string {
	if len(address) > maxShown {
		return strings.ToValidUTF8(address[:maxShown], "") + "…"
	}
	return address
}
