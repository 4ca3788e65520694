package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	nfpmfiles "github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format
)

// ownFolders are the folders that belong to the packages, and are removed with them if they are
// empty.
var ownFolders = []string{libraryPath, libraryPath + "/plugins", "/usr/share/doc/tollgate", "/etc/tollgate"}

// writePackages writes the packages for a target.
func (s source) writePackages(out string, t target, files []file) error {
	for _, format := range []string{"deb", "rpm"} {
		if err := s.writePackage(out, format, t, files); err != nil {
			return err
		}
	}
	return nil
}

func (s source) writePackage(out, format string, t target, files []file) (err error) {
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	info := nfpm.WithDefaults(s.describePackage(t))
	info.Contents = s.contents(format, files)
	f, err := os.Create(filepath.Join(out, packager.ConventionalFileName(info)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return packager.Package(info, f)
}

// describePackage returns what a package says about itself.
func (s source) describePackage(t target) *nfpm.Info {
	script := func(name string) string { return filepath.Join(s.root, "deploy", "packages", name) }
	return &nfpm.Info{
		Name: "tollgate", Arch: t.arch, Version: s.plainVersion(), VersionSchema: "none", Release: "1",
		Section: "net", Priority: "optional", Maintainer: "Tollgate <tollgate@localhost>",
		Description: "Registry, sign-in and rate limits for an organisation's tool servers\n" +
			"The service keeps the registry of tool servers, decides who may change it,\n" +
			"and limits how often clients may make calls.",
		Homepage: "https://github.com/tollgate-dev/tollgate", License: "Apache-2.0",
		MTime: s.committed, DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Depends: []string{"systemd", "ca-certificates"},
			Scripts: nfpm.Scripts{
				PostInstall: script("postinstall.sh"), PreRemove: script("preremove.sh"),
				PostRemove: script("postremove.sh"),
			},
			RPM: nfpm.RPM{BuildHost: "localhost"}, // not the machine's name: releases are equal
		},
	}
}

// contents returns the files of a package.
func (s source) contents(format string, files []file) (list nfpmfiles.Contents) {
	add := func(kind, from, to string, mode os.FileMode) {
		list = append(list, &nfpmfiles.Content{
			Source: from, Destination: to, Type: kind,
			FileInfo: &nfpmfiles.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: s.committed},
		})
	}
	for _, path := range ownFolders {
		mode := os.FileMode(0o755)
		if path == "/etc/tollgate" {
			mode = 0o750
		}
		add(nfpmfiles.TypeDir, "", path, mode)
	}
	if format == "rpm" {
		add(nfpmfiles.TypeDir, "", "/usr/share/licenses/tollgate", 0o755)
	}
	add(nfpmfiles.TypeSymlink, "../lib/tollgate/tollgate", "/usr/bin/tollgate", 0o777)
	for _, f := range files {
		path := f.installed
		if format == "rpm" && f.rpmPath != "" {
			path = f.rpmPath
		}
		switch {
		case path == "":
		case f.config: // settings may be secrets
			add(nfpmfiles.TypeConfigNoReplace, f.from, path, 0o640)
		default:
			add(nfpmfiles.TypeFile, f.from, path, f.mode())
		}
	}
	return list
}
