// Command release builds what people download: programs for several systems in archives, packages
// for Debian and for systems with RPM, the Helm chart, a list of all modules in them (SBOM), and
// the checksums.
//
//	go -C test/tools run ./release -root ../.. -out ../../dist -version v1.2.3 \
//	  -revision HASH -committed 2026-01-02T15:04:05Z
//
// Two releases of one commit are equal, byte by byte: all times are that of the commit, and nothing
// in a file depends on the machine. It does not publish anything.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// source is a commit of the repository.
type source struct {
	root      string // the folder of the repository
	version   string
	revision  string
	committed time.Time
}

// target is a system that programs are built for.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// targets are all systems that a release is built for.
var targets = []target{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
}

func run(ctx context.Context, args []string) error {
	var s source
	f := flag.NewFlagSet("release", flag.ContinueOnError)
	f.StringVar(&s.root, "root", ".", "folder of the repository")
	f.StringVar(&s.version, "version", "unversioned", "version, as git describe prints it")
	f.StringVar(&s.revision, "revision", "", "commit")
	committed := f.String("committed", "", "time of the commit, as 2026-01-02T15:04:05Z")
	out := f.String("out", "dist", "folder to write to, which must be empty or missing")
	only := f.String("only", "", "systems to build for, such as linux/amd64,linux/arm64; empty: all")
	if err := f.Parse(args); err != nil {
		return err
	}
	var err error
	if s.committed, err = time.Parse(time.RFC3339, *committed); err != nil {
		return fmt.Errorf("-committed: %w", err)
	}
	list, err := selectTargets(*only)
	if err != nil {
		return err
	}
	programs, err := os.MkdirTemp("", "tollgate-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(programs) }() // the system removes what is left of a temporary folder
	for _, t := range list {
		fmt.Println("building for", t)
		if err := s.build(ctx, t, filepath.Join(programs, t.os, t.arch)); err != nil {
			return err
		}
	}
	return s.write(ctx, programs, *out, list)
}

// selectTargets returns the targets that a list names. The completions come from a program that
// runs here, so the list must have the system of this machine.
func selectTargets(only string) ([]target, error) {
	if only == "" {
		return targets, nil
	}
	var list []target
	for word := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(targets, func(t target) bool { return t.String() == word })
		if i < 0 {
			return nil, fmt.Errorf("-only: %q is not one of %v", word, targets)
		}
		list = append(list, targets[i])
	}
	if !slices.Contains(list, target{runtime.GOOS, runtime.GOARCH}) {
		return nil, errors.New("-only: the system of this machine must be among them")
	}
	return list, nil
}

// write writes the files of a release of programs, which are in a folder OS/ARCH for each target.
func (s source) write(ctx context.Context, programs, out string, list []target) error {
	if found, err := os.ReadDir(out); err == nil && len(found) > 0 {
		return fmt.Errorf("the folder %s is not empty", out)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	completions, err := writeCompletions(ctx, filepath.Join(programs, runtime.GOOS, runtime.GOARCH), programs)
	if err != nil {
		return err
	}
	b := newBill(s)
	for _, t := range list {
		folder := filepath.Join(programs, t.os, t.arch)
		files, err := s.collect(t, folder, completions)
		if err != nil {
			return err
		}
		if err := s.writeArchive(out, t, files); err != nil {
			return fmt.Errorf("archive for %v: %w", t, err)
		}
		if t.os == "linux" {
			if err := s.writePackages(out, t, files); err != nil {
				return fmt.Errorf("packages for %v: %w", t, err)
			}
		}
		if err := b.addPrograms(t, files); err != nil {
			return fmt.Errorf("modules for %v: %w", t, err)
		}
	}
	if err := b.write(filepath.Join(out, "tollgate_"+s.plainVersion()+"_sbom.cdx.json")); err != nil {
		return fmt.Errorf("list of modules: %w", err)
	}
	if err := s.writeChart(out, programs); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	return writeSums(out)
}
