// Command tollgate is the service and its operator commands. Each command's
// --help shows an example.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/program"
)

// version, revision and committed, the time of the commit, are set by the build.
var version, revision, committed string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := program.Run(ctx, cli.Process{
		Args: commandArguments(os.Args), Environ: os.Environ(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Build: buildInfo(), Exit: os.Exit,
	})
	stop()
	os.Exit(code)
}

// ratelimitName is the name of the Envoy rate limit service's program.
const ratelimitName = "ratelimit"

// commandArguments returns the arguments of a command line. If the program's name is ratelimit, as
// with the link /bin/ratelimit in the image, it runs the command 'tollgate ratelimit'.
func commandArguments(line []string) []string {
	if len(line) == 0 {
		return nil
	}
	if filepath.Base(line[0]) == ratelimitName {
		return append([]string{ratelimitName}, line[1:]...)
	}
	return line[1:]
}

// buildVersion returns the version that the build set, or else the one that Go recorded.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// buildInfo returns what the service says about the program. What the build did not set is what Go
// recorded, or empty.
func buildInfo() registryapi.Build {
	b := registryapi.Build{Version: buildVersion(), Revision: revision, Time: committed}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision" && b.Revision == "":
				b.Revision = s.Value
			case s.Key == "vcs.time" && b.Time == "":
				b.Time = s.Value
			}
		}
	}
	return b
}
