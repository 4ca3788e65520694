package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sassoftware/go-rpmutils"

	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

const root = "../../.."

// here is the system that the tests run on.
var here = target{runtime.GOOS, runtime.GOARCH}

// built is what the tests share: the programs, small ones under their names, and a release of these.
var built struct {
	programs, small, release sync.Once
	folder, smallFolder      string
	err                      error
	files                    map[string][]byte
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, folder := range []string{built.folder, built.smallFolder} {
		if folder != "" {
			_ = os.RemoveAll(folder) // the system removes what is left of a temporary folder
		}
	}
	os.Exit(code)
}

// programs returns a folder with the programs for this system, as the tests of the service build
// them, so that most are built only once. They are not those of a release: see TestEqualBuilds.
func programs(t *testing.T) string {
	t.Helper()
	if here.os != "linux" {
		t.Skip("needs Linux")
	}
	built.programs.Do(func() {
		if built.folder, built.err = instance.NewFolder("tollgate-release"); built.err != nil {
			return
		}
		built.err = instance.Build(root, filepath.Join(built.folder, here.os, here.arch), false, packages()...)
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.folder
}

// packages returns the packages of the programs.
func packages() []string {
	list := []string{"cmd/tollgate", "cmd/ratelimit-client"}
	for _, name := range bundled {
		list = append(list, "plugins/"+name)
	}
	return list
}

// smallPrograms returns a folder like that of programs, in which each is a program that only prints
// its arguments: to compress the real ones takes half a minute, and what is packed is not their
// content.
func smallPrograms(t *testing.T) string {
	t.Helper()
	if here.os != "linux" {
		t.Skip("needs Linux")
	}
	built.small.Do(func() {
		if built.smallFolder, built.err = instance.NewFolder("tollgate-release-small"); built.err == nil {
			built.err = linkSmallPrograms(built.smallFolder)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.smallFolder
}

func linkSmallPrograms(folder string) error {
	const text = "package main\n\nimport \"os\"\n\nfunc main() { println(len(os.Args)) }\n"
	code, program := filepath.Join(folder, "main.go"), filepath.Join(folder, "program")
	if err := os.WriteFile(code, []byte(text), 0o600); err != nil {
		return err
	}
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, code).CombinedOutput(); err != nil {
		return fmt.Errorf("build a small program: %w\n%s", err, out)
	}
	for _, path := range packages() {
		name := strings.TrimPrefix(path, "cmd/")
		target := filepath.Join(folder, here.os, here.arch, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o700), os.Link(program, target)); err != nil {
			return err
		}
	}
	return nil
}

// bundled are the plugins that the tests pack: those that other tests build too.
var bundled = []string{"otp-email", "otp-log", "pkg-npm"}

// example returns a source for tests, in a new folder: files of this repository with a version of
// their own.
func example(t *testing.T) source {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "source")
	copyTree(t, root, folder, "deploy", "LICENSE", "README.md", "CHANGELOG.md")
	for _, name := range bundled {
		must.Succeed(t, os.MkdirAll(filepath.Join(folder, "plugins", name), 0o755))
	}
	committed := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return source{root: folder, version: "v1.2.3", revision: "abc", committed: committed}
}

// packed returns the files of a release of small programs for this system by name.
func packed(t *testing.T) map[string][]byte {
	t.Helper()
	folder := smallPrograms(t)
	built.release.Do(func() { built.files = pack(t, example(t), folder, here) })
	if built.files == nil {
		t.Fatal("another test could not write the release")
	}
	return built.files
}

// pack writes a release of programs and returns the files by name.
func pack(t *testing.T, s source, programs string, list ...target) map[string][]byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "dist")
	must.Succeed(t, s.write(t.Context(), programs, out, list))
	return readFolder(t, out)
}

func readFolder(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	entries, err := os.ReadDir(folder)
	must.Succeed(t, err)
	for _, entry := range entries {
		if found[entry.Name()], err = os.ReadFile(filepath.Join(folder, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// TestEqualFiles packs the same programs from two folders of the repository, with other temporary
// folders, owners, modes and times of the files, and compares every byte.
func TestEqualFiles(t *testing.T) {
	folder := smallPrograms(t)
	first := packed(t)
	t.Setenv("TMPDIR", t.TempDir())
	other := t.TempDir()
	s := example(t)
	must.Succeed(t, os.Rename(s.root, filepath.Join(other, "source")))
	s.root = filepath.Join(other, "source")
	copyTree(t, folder, filepath.Join(other, "programs"), here.os)
	later := time.Now().Add(48 * time.Hour)
	err := filepath.WalkDir(other, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			err = errors.Join(os.Chmod(path, 0o700), os.Chtimes(path, later, later))
		}
		return err
	})
	must.Succeed(t, err)
	second := pack(t, s, filepath.Join(other, "programs"), here)
	compare(t, first, second)
}

// copyTree copies files and folders from one folder to another.
func copyTree(t *testing.T, from, to string, names ...string) {
	t.Helper()
	must.Succeed(t, os.MkdirAll(to, 0o755))
	for _, name := range names {
		if out, err := exec.Command("cp", "-rL", filepath.Join(from, name), to).CombinedOutput(); err != nil {
			t.Fatalf("copy %s: %v\n%s", name, err, out)
		}
	}
}

func compare(t *testing.T, first, second map[string][]byte) {
	t.Helper()
	if len(first) == 0 || len(first) != len(second) {
		t.Errorf("one release has %d files and the other %d", len(first), len(second))
	}
	for name, content := range first {
		if !bytes.Equal(content, second[name]) {
			t.Errorf("%s differs: %d bytes and %d bytes", name, len(content), len(second[name]))
		}
	}
}

// TestEqualBuilds builds for all systems from two folders, each with a build cache of its own, and
// compares every byte.
func TestEqualBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles everything ten times")
	}
	var releases []map[string][]byte
	for range 2 {
		folder := t.TempDir()
		copyTree(t, root, filepath.Join(folder, "source"), sourceFolders...)
		t.Setenv("GOCACHE", filepath.Join(folder, "cache"))
		t.Setenv("TMPDIR", folder)
		out := filepath.Join(folder, "dist")
		err := run(context.Background(), []string{
			"-root", filepath.Join(folder, "source"), "-out", out, "-version", "v1.2.3", "-revision", "abc",
			"-committed", "2026-01-02T03:04:05Z",
		})
		must.Succeed(t, err)
		releases = append(releases, readFolder(t, out))
		must.Succeed(t, os.RemoveAll(filepath.Join(folder, "cache")))
	}
	compare(t, releases[0], releases[1])
	checkNames(t, releases[0], targets...)
}

// sourceFolders are what a build reads.
var sourceFolders = []string{
	"adapters", "cmd", "core", "deploy", "docs", "plugins", "ports", "wiring", "go.mod", "go.sum",
	"LICENSE", "README.md", "CHANGELOG.md",
}

// checkNames checks that a release has the files for targets, and no other.
func checkNames(t *testing.T, release map[string][]byte, list ...target) {
	t.Helper()
	want := []string{"SHA256SUMS", "tollgate_1.2.3_sbom.cdx.json", "tollgate-1.2.3.tgz"}
	for _, one := range list {
		suffix := "tar.gz"
		if one.os == "windows" {
			suffix = "zip"
		}
		want = append(want, fmt.Sprintf("tollgate_1.2.3_%s_%s.%s", one.os, one.arch, suffix))
		if one.os == "linux" {
			rpmArch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[one.arch]
			want = append(want, "tollgate_1.2.3-1_"+one.arch+".deb", "tollgate-1.2.3-1."+rpmArch+".rpm")
		}
	}
	var found []string
	for name := range release {
		found = append(found, name)
	}
	slices.Sort(want)
	slices.Sort(found)
	if !slices.Equal(want, found) {
		t.Errorf("the release has\n%s\nwant\n%s", strings.Join(found, "\n"), strings.Join(want, "\n"))
	}
}

// TestArchives reads the archives back: the programs, the plugins next to them, completions and
// licence, each with the time of the commit.
func TestArchives(t *testing.T) {
	release, committed := packed(t), example(t).committed
	checkNames(t, release, here)
	prefix := fmt.Sprintf("tollgate_1.2.3_linux_%s", here.arch)
	compressed, err := gzip.NewReader(bytes.NewReader(release[prefix+".tar.gz"]))
	must.Succeed(t, err)
	found := map[string]int64{}
	for archive := tar.NewReader(compressed); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must.Succeed(t, err)
		if !h.ModTime.Equal(committed) {
			t.Errorf("%s has the time %v", h.Name, h.ModTime)
		}
		found[strings.TrimPrefix(h.Name, prefix+"/")] = h.Mode
	}
	for name, mode := range map[string]int64{
		"tollgate": 0o755, "ratelimit-client": 0o755, "plugins/otp-email": 0o755, "plugins/pkg-npm": 0o755,
		"LICENSE": 0o644, "README.md": 0o644, "completions/tollgate.bash": 0o644, "completions/_tollgate": 0o644,
		"systemd/tollgate.service": 0o644,
	} {
		if found[name] != mode {
			t.Errorf("%s has mode %o, want %o", name, found[name], mode)
		}
	}
	sums := string(release["SHA256SUMS"])
	if strings.Count(sums, "\n") != len(release)-1 || !strings.Contains(sums, "  "+prefix+".tar.gz\n") {
		t.Errorf("SHA256SUMS has\n%s", sums)
	}
}

// TestZip writes the archive for Windows, with the programs of this system under its names.
func TestZip(t *testing.T) {
	folder, windows := smallPrograms(t), target{"windows", "amd64"}
	other := t.TempDir()
	for _, name := range []string{"tollgate", "ratelimit-client"} {
		program := filepath.Join(folder, here.os, here.arch, name)
		must.Succeed(t, os.Symlink(program, filepath.Join(other, name+".exe")))
	}
	completions, err := writeCompletions(t.Context(), filepath.Join(folder, here.os, here.arch), t.TempDir())
	must.Succeed(t, err)
	s := example(t)
	files, err := s.collect(windows, other, completions)
	must.Succeed(t, err)
	out := t.TempDir()
	must.Succeed(t, s.writeArchive(out, windows, files))
	archive, err := zip.OpenReader(filepath.Join(out, "tollgate_1.2.3_windows_amd64.zip"))
	must.Succeed(t, err)
	defer archive.Close()
	var names []string
	for _, f := range archive.File {
		names = append(names, strings.TrimPrefix(f.Name, "tollgate_1.2.3_windows_amd64/"))
		if !f.Modified.Equal(s.committed) {
			t.Errorf("%s has the time %v", f.Name, f.Modified)
		}
	}
	want := []string{
		"tollgate.exe", "ratelimit-client.exe", "completions/tollgate.bash", "completions/_tollgate",
		"completions/tollgate.fish", "completions/tollgate.ps1", "LICENSE", "README.md", "CHANGELOG.md",
	}
	if !slices.Equal(names, want) {
		t.Errorf("the archive has %v, want %v", names, want)
	}
}

// TestRPM reads the package back with a library: files, owners, scripts and what it needs.
func TestRPM(t *testing.T) {
	release := packed(t)
	for name, content := range release {
		if !strings.HasSuffix(name, ".rpm") {
			continue
		}
		r, err := rpmutils.ReadRpm(bytes.NewReader(content))
		must.Succeed(t, err)
		files, err := r.Header.GetFiles()
		must.Succeed(t, err)
		found := map[string]string{}
		for _, f := range files {
			if f.Name() == "/usr/bin/tollgate" && f.Linkname() != "../lib/tollgate/tollgate" {
				t.Errorf("%s is a link to %q", f.Name(), f.Linkname())
			}
			found[f.Name()] = fmt.Sprintf("%o %s:%s", f.Mode()&0o7777, f.UserName(), f.GroupName())
		}
		for path, want := range map[string]string{
			"/usr/lib/tollgate/tollgate": "755 root:root", "/usr/lib/tollgate/plugins/otp-email": "755 root:root",
			"/usr/bin/ratelimit-client": "755 root:root", "/etc/tollgate": "750 root:root",
			"/etc/tollgate/tollgate.env":               "640 root:root",
			"/usr/lib/systemd/system/tollgate.service": "644 root:root",
			"/usr/share/licenses/tollgate/LICENSE":     "644 root:root",
		} {
			if found[path] != want {
				t.Errorf("%s is %q, want %q", path, found[path], want)
			}
		}
		for tag, want := range map[int]string{
			rpmutils.POSTIN: "systemd-sysusers", rpmutils.PREUN: "systemctl stop", rpmutils.POSTUN: "daemon-reload",
			rpmutils.LICENSE: "Apache-2.0", rpmutils.BUILDHOST: "localhost", rpmutils.VERSION: "1.2.3",
		} {
			if text, err := r.Header.GetString(tag); err != nil || !strings.Contains(text, want) {
				t.Errorf("tag %d is %q (%v), want %q in it", tag, text, err, want)
			}
		}
		if payload, err := r.PayloadReaderExtended(); err != nil {
			t.Error(err)
		} else if _, err := payload.Next(); err != nil {
			t.Errorf("payload: %v", err)
		}
		return
	}
	t.Error("the release has no rpm")
}
