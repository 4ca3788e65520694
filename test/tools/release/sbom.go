package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// bill is the list of the programs of a release and of the modules in each.
type bill struct {
	source
	programs []cyclonedx.Component
	modules  map[string]cyclonedx.Component // by package URL
	uses     []cyclonedx.Dependency
}

func newBill(s source) *bill { return &bill{source: s, modules: map[string]cyclonedx.Component{}} }

// addPrograms adds the programs of a target with the modules that Go has recorded in them.
func (b *bill) addPrograms(t target, files []file) error {
	for _, f := range files {
		if !f.executable {
			continue
		}
		info, err := buildinfo.ReadFile(f.from)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		ref := t.String() + "/" + f.name
		b.programs = append(b.programs, cyclonedx.Component{
			BOMRef: ref, Type: cyclonedx.ComponentTypeApplication, Name: f.name, Version: b.version,
			Description: "for " + t.String(),
			Hashes:      hashes(fmt.Sprintf("%x", sha256.Sum256(content))),
		})
		uses := []string{b.addStandardLibrary(info.GoVersion)}
		for _, m := range info.Deps {
			module, err := b.addModule(m)
			if err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			uses = append(uses, module)
		}
		slices.Sort(uses)
		b.uses = append(b.uses, cyclonedx.Dependency{Ref: ref, Dependencies: &uses})
	}
	return nil
}

// addStandardLibrary adds the standard library of a version of Go, and returns its reference.
func (b *bill) addStandardLibrary(version string) string {
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "go"), " ")
	ref := packageURL("std", version)
	b.modules[ref] = cyclonedx.Component{
		BOMRef: ref, Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: version, PackageURL: ref,
	}
	return ref
}

// addModule adds a module and returns its reference. A folder of this repository has the version of
// the release.
func (b *bill) addModule(m *debug.Module) (ref string, err error) {
	path, version, sum := m.Path, m.Version, m.Sum
	if m.Replace != nil {
		if m.Replace.Version == "" {
			version, sum = b.version, ""
		} else {
			path, version, sum = m.Replace.Path, m.Replace.Version, m.Replace.Sum
		}
	}
	ref = packageURL(path, version)
	c := cyclonedx.Component{
		BOMRef: ref, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: ref,
	}
	if encoded, ok := strings.CutPrefix(sum, "h1:"); ok {
		decoded, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return "", fmt.Errorf("sum of %s: %w", path, err)
		}
		c.Hashes = hashes(hex.EncodeToString(decoded))
	}
	b.modules[ref] = c
	return ref, nil
}

func hashes(sum string) *[]cyclonedx.Hash {
	return &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}}
}

// packageURL returns the package URL (purl) of a version of a Go module.
func packageURL(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(url.PathEscape(version), "+", "%2B")
}

// write writes the list as CycloneDX JSON. It has no serial number, which would be another one for
// each build.
func (b *bill) write(path string) (err error) {
	name := packageURL("github.com/tollgate-dev/tollgate", b.version)
	components := append([]cyclonedx.Component(nil), b.programs...)
	for _, ref := range slices.Sorted(maps.Keys(b.modules)) {
		components = append(components, b.modules[ref])
	}
	parts := make([]string, 0, len(b.programs))
	for _, c := range b.programs {
		parts = append(parts, c.BOMRef)
	}
	uses := append([]cyclonedx.Dependency{{Ref: name, Dependencies: &parts}}, b.uses...)
	list := cyclonedx.NewBOM()
	list.Metadata = &cyclonedx.Metadata{
		Timestamp: b.committed.UTC().Format(time.RFC3339),
		Component: &cyclonedx.Component{
			BOMRef: name, Type: cyclonedx.ComponentTypeApplication, Name: "tollgate", Version: b.version,
			PackageURL: name, Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
		},
	}
	list.Components, list.Dependencies = &components, &uses
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	encoder := cyclonedx.NewBOMEncoder(f, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	return encoder.EncodeVersion(list, cyclonedx.SpecVersion1_6)
}
