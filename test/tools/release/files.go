package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// file is a file of a release.
type file struct {
	from       string // where it is now
	name       string // in an archive
	installed  string // the path that deb and rpm install it as; empty: not in packages
	rpmPath    string // the path for rpm if it is another one
	executable bool
	config     bool // people change it
}

// libraryPath is where packages install the programs. The service finds its plugins next to it.
const libraryPath = "/usr/lib/tollgate"

// completionFiles are the scripts of 'tollgate completion' by shell.
var completionFiles = []struct{ shell, name, installed, rpmPath string }{
	{shell: "bash", name: "tollgate.bash", installed: "/usr/share/bash-completion/completions/tollgate"},
	{
		shell: "zsh", name: "_tollgate", installed: "/usr/share/zsh/vendor-completions/_tollgate",
		rpmPath: "/usr/share/zsh/site-functions/_tollgate",
	},
	{shell: "fish", name: "tollgate.fish", installed: "/usr/share/fish/vendor_completions.d/tollgate.fish"},
	{shell: "powershell", name: "tollgate.ps1"},
}

// linuxFiles are files of the repository that only a machine with the service needs.
var linuxFiles = []file{
	{
		from: "deploy/systemd/tollgate.service", name: "systemd/tollgate.service",
		installed: "/usr/lib/systemd/system/tollgate.service",
	},
	{
		from: "deploy/systemd/tollgate.sysusers", name: "systemd/tollgate.sysusers",
		installed: "/usr/lib/sysusers.d/tollgate.conf",
	},
	{
		from: "deploy/systemd/tollgate.tmpfiles", name: "systemd/tollgate.tmpfiles",
		installed: "/usr/lib/tmpfiles.d/tollgate.conf",
	},
	{
		from: "deploy/packages/tollgate.env", name: "tollgate.env",
		installed: "/etc/tollgate/tollgate.env", config: true,
	},
}

// documents are files of the repository for everybody.
var documents = []file{
	{
		from: "LICENSE", name: "LICENSE", installed: "/usr/share/doc/tollgate/copyright",
		rpmPath: "/usr/share/licenses/tollgate/LICENSE",
	},
	{from: "README.md", name: "README.md", installed: "/usr/share/doc/tollgate/README.md"},
	{from: "CHANGELOG.md", name: "CHANGELOG.md", installed: "/usr/share/doc/tollgate/CHANGELOG.md"},
}

// collect returns the files for a target. The programs are in a folder, as build writes them.
func (s source) collect(t target, programs, completions string) ([]file, error) {
	suffix := ""
	if t.os == "windows" {
		suffix = ".exe"
	}
	list := []file{
		{name: "tollgate" + suffix, installed: libraryPath + "/tollgate"},
		{name: "ratelimit-client" + suffix, installed: "/usr/bin/ratelimit-client"},
	}
	if t.os == "linux" {
		plugins, err := pluginPackages(s.root)
		if err != nil {
			return nil, err
		}
		for _, path := range plugins {
			name := "plugins/" + filepath.Base(path)
			list = append(list, file{name: name, installed: libraryPath + "/" + name})
		}
	}
	for i := range list {
		list[i].from, list[i].executable = filepath.Join(programs, list[i].name), true
	}
	for _, one := range completionFiles {
		list = append(list, file{
			from: filepath.Join(completions, one.name), name: "completions/" + one.name,
			installed: one.installed, rpmPath: one.rpmPath,
		})
	}
	repository := documents
	if t.os == "linux" {
		repository = append(repository[:len(repository):len(repository)], linuxFiles...)
	}
	for _, one := range repository {
		one.from = filepath.Join(s.root, one.from)
		list = append(list, one)
	}
	return list, nil
}

// writeCompletions lets a program that runs on this machine write its completions, which are the
// same for all systems, into a folder below another one, and returns it.
func writeCompletions(ctx context.Context, programs, parent string) (folder string, err error) {
	folder = filepath.Join(parent, "completions")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	for _, one := range completionFiles {
		text, err := exec.CommandContext(ctx, filepath.Join(programs, "tollgate"), "completion", one.shell).Output()
		if err != nil {
			return "", fmt.Errorf("tollgate completion %s: %w", one.shell, err)
		}
		if err := os.WriteFile(filepath.Join(folder, one.name), text, 0o600); err != nil {
			return "", err
		}
	}
	return folder, nil
}
