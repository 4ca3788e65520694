package runtimedir

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// discardLog returns a log that is discarded.
func discardLog() *logrus.Entry {
	log, _ := logtest.NewNullLogger()
	return logrus.NewEntry(log)
}

// startWatch watches until the test ends, and sends the domains of each load.
func startWatch(t *testing.T, c Config) <-chan []string {
	t.Helper()
	return startWatchWithLog(t, c, discardLog())
}

// startWatchWithLog is startWatch with a log.
func startWatchWithLog(t *testing.T, c Config, log *logrus.Entry) <-chan []string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	loads := make(chan []string, 100)
	ended := make(chan error, 1)
	go func() {
		ended <- New(c, log).Watch(ctx, func(sources []ruleset.Source) error {
			names := []string{}
			for _, s := range sources {
				names = append(names, s.Domain.Value)
			}
			slices.Sort(names)
			loads <- names
			return nil
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Watch returned %v", err)
		}
	})
	return loads
}

// waitForLoad waits for a load with exactly these domains. Other loads may precede it.
func waitForLoad(t *testing.T, loads <-chan []string, want ...string) {
	t.Helper()
	for got := await.Receive(t, "a load", loads); !slices.Equal(got, want); {
		got = await.Receive(t, fmt.Sprintf("a load with the domains %q after one with %q", want, got), loads)
	}
}

func TestWatchFollowsFiles(t *testing.T) {
	for _, watchRoot := range []bool{true, false} {
		root := t.TempDir()
		writeFile(t, filepath.Join(root, "a.yaml"), "domain: a")
		loads := startWatch(t, Config{Root: root, WatchRoot: watchRoot})
		waitForLoad(t, loads, "a")
		writeFile(t, filepath.Join(root, "a.yaml"), "domain: b")
		waitForLoad(t, loads, "b")
		writeFile(t, filepath.Join(root, "new", "deep", "c.yaml"), "domain: c")
		waitForLoad(t, loads, "b", "c")
		writeFile(t, filepath.Join(root, "new", "deep", "d.yaml"), "domain: d")
		waitForLoad(t, loads, "b", "c", "d")
		must.Succeed(t, os.Remove(filepath.Join(root, "a.yaml")))
		waitForLoad(t, loads, "c", "d")
		must.Succeed(t, os.Chmod(filepath.Join(root, "new", "deep", "d.yaml"), 0o640))
		waitForLoad(t, loads, "c", "d")
	}
}

// TestSourcesAreNotKeptWhileTheyAreApplied checks that the memory of sources, 50 MiB for 100,000
// rules, can be freed as soon as they are compiled.
func TestSourcesAreNotKeptWhileTheyAreApplied(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "a.yaml"), "domain: a\n")
	ctx, stop := context.WithCancel(context.Background())
	kept := false
	err := New(Config{Root: dir}, discardLog()).Watch(ctx, func(sources []ruleset.Source) error {
		first := weak.Make(&sources[0])
		runtime.GC() // sources is not used after this line
		kept = first.Value() != nil
		stop()
		return nil
	})
	if err != nil || kept {
		t.Errorf("Watch returned %v, and the sources were kept: %v", err, kept)
	}
}

func TestWatchWaitsForTheDirectory(t *testing.T) {
	for _, watchRoot := range []bool{true, false} {
		root := t.TempDir()
		loads := startWatch(t, Config{
			Root: filepath.Join(root, "current"), AppDirectory: "config", WatchRoot: watchRoot,
		})
		writeFile(t, filepath.Join(root, "current", "config", "a.yaml"), "domain: a")
		waitForLoad(t, loads, "a")
	}
}

func TestWatchFollowsAReplacedRoot(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"one", "two"} {
		writeFile(t, filepath.Join(root, name, "config", "r.yaml"), "domain: "+name)
	}
	swapLink(t, "one", filepath.Join(root, "current"))
	loads := startWatch(t, Config{Root: filepath.Join(root, "current"), AppDirectory: "config", WatchRoot: true})
	waitForLoad(t, loads, "one")
	swapLink(t, "two", filepath.Join(root, "current"))
	waitForLoad(t, loads, "two")
	writeFile(t, filepath.Join(root, "two", "config", "r.yaml"), "domain: three")
	waitForLoad(t, loads, "three")
}

func TestWatchFollowsKubernetes(t *testing.T) {
	root := t.TempDir()
	mountConfigMap(t, root, "one")
	loads := startWatch(t, Config{Root: root})
	waitForLoad(t, loads, "one")
	mountConfigMap(t, root, "two")
	waitForLoad(t, loads, "two")
}

func TestWatchKeepsTheRulesOfARemovedDirectory(t *testing.T) {
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "config", "a.yaml"), "domain: a")
	loads := startWatch(t, Config{Root: root, AppDirectory: "config", WatchRoot: true})
	waitForLoad(t, loads, "a")
	must.Succeed(t, os.Rename(filepath.Join(root, "config"), filepath.Join(root, "away")))
	writeFile(t, filepath.Join(root, "away", "a.yaml"), "domain: b")
	must.Succeed(t, os.Rename(filepath.Join(root, "away"), filepath.Join(root, "config")))
	waitForLoad(t, loads, "b")
}

func TestMissingDirectoryIsLoggedOnce(t *testing.T) {
	root := t.TempDir()
	log, hook := logtest.NewNullLogger()
	loads := startWatchWithLog(t, Config{Root: root, AppDirectory: "config", WatchRoot: true}, logrus.NewEntry(log))
	waitForWarnings(t, hook, 1)
	writeFile(t, filepath.Join(root, "other"), "") // causes a round that does not find the directory
	writeFile(t, filepath.Join(root, "config", "a.yaml"), "domain: a")
	waitForLoad(t, loads, "a")
	waitForWarnings(t, hook, 1)
	must.Succeed(t, os.RemoveAll(filepath.Join(root, "config")))
	waitForWarnings(t, hook, 2)
}

// waitForWarnings waits for a number of warnings that the directory does not exist.
func waitForWarnings(t *testing.T, hook *logtest.Hook, want int) {
	t.Helper()
	await.Until(t, fmt.Sprintf("%d warnings", want), func() bool {
		got := len(hook.AllEntries())
		if got > want {
			t.Fatalf("logged %d times, want %d", got, want)
		}
		return got == want
	})
}
