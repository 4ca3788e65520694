package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// sdkPath is the import path of the SDK for plugins, which has the version of bundled plugins.
const sdkPath = "github.com/tollgate-dev/tollgate/plugins/sdk"

// build compiles the commands for a target into a folder, and for Linux the plugins into its folder
// plugins, with the flags of `make build`.
func (s source) build(ctx context.Context, t target, folder string) error {
	if err := s.compile(ctx, t, folder, "./cmd/tollgate", "./cmd/ratelimit-client"); err != nil {
		return err
	}
	if t.os != "linux" {
		return nil
	}
	plugins, err := pluginPackages(s.root)
	if err != nil {
		return err
	}
	return s.compile(ctx, t, filepath.Join(folder, "plugins"), plugins...)
}

// pluginPackages returns the packages of the bundled plugins.
func pluginPackages(root string) (packages []string, err error) {
	for _, pattern := range []string{"otp-*", "pkg-*"} {
		found, err := filepath.Glob(filepath.Join(root, "plugins", pattern))
		if err != nil {
			return nil, err
		}
		for _, folder := range found {
			packages = append(packages, "./plugins/"+filepath.Base(folder))
		}
	}
	if len(packages) == 0 {
		return nil, fmt.Errorf("%s has no plugins: -root must be the folder of the repository", root)
	}
	return packages, nil
}

// compile compiles packages into a folder. The environment of the caller changes where things are
// kept, but not what is built.
func (s source) compile(ctx context.Context, t target, folder string, packages ...string) error {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(absolute, 0o755); err != nil {
		return err
	}
	flags := fmt.Sprintf("-s -w -X main.version=%s -X main.revision=%s -X main.committed=%s -X %s.bundledVersion=%[1]s",
		s.version, s.revision, s.committed.UTC().Format(time.RFC3339), sdkPath)
	c := exec.CommandContext(ctx, "go", append([]string{
		"build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", absolute + "/",
	}, packages...)...)
	c.Dir = s.root
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0",
		"GOOS="+t.os, "GOARCH="+t.arch)
	if output, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build for %v: %w\n%s", t, err, output)
	}
	return nil
}
