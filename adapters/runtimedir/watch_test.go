package runtimedir

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// unheard is a log that nobody reads.
func unheard() *logrus.Entry {
	log, _ := logtest.NewNullLogger()
	return logrus.NewEntry(log)
}

// follow watches until the test ends and tells the domains of each load.
func follow(t *testing.T, c Config) <-chan []string {
	t.Helper()
	return followWith(t, c, unheard())
}

// followWith is follow with a log.
func followWith(t *testing.T, c Config, log *logrus.Entry) <-chan []string {
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
			t.Errorf("the watch ended with %v", err)
		}
	})
	return loads
}

// await waits for a load with exactly these domains; others may come before it.
func await(t *testing.T, loads <-chan []string, want ...string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	var got []string
	for {
		select {
		case got = <-loads:
			if slices.Equal(got, want) {
				return
			}
		case <-deadline:
			t.Fatalf("last loaded %q, want %q", got, want)
		}
	}
}

func TestWatchFollowsFiles(t *testing.T) {
	for _, watchRoot := range []bool{true, false} {
		root := t.TempDir()
		write(t, filepath.Join(root, "a.yaml"), "domain: a")
		loads := follow(t, Config{Root: root, WatchRoot: watchRoot})
		await(t, loads, "a")
		write(t, filepath.Join(root, "a.yaml"), "domain: b")
		await(t, loads, "b")
		write(t, filepath.Join(root, "new", "deep", "c.yaml"), "domain: c")
		await(t, loads, "b", "c")
		write(t, filepath.Join(root, "new", "deep", "d.yaml"), "domain: d")
		await(t, loads, "b", "c", "d")
		if err := os.Remove(filepath.Join(root, "a.yaml")); err != nil {
			t.Fatal(err)
		}
		await(t, loads, "c", "d")
		if err := os.Chmod(filepath.Join(root, "new", "deep", "d.yaml"), 0o640); err != nil {
			t.Fatal(err)
		}
		await(t, loads, "c", "d")
	}
}

func TestWatchAwaitsADirectory(t *testing.T) {
	for _, watchRoot := range []bool{true, false} {
		root := t.TempDir()
		loads := follow(t, Config{Root: filepath.Join(root, "current"), AppDirectory: "config", WatchRoot: watchRoot})
		write(t, filepath.Join(root, "current", "config", "a.yaml"), "domain: a")
		await(t, loads, "a")
	}
}

func TestWatchFollowsASwapOfTheRoot(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"one", "two"} {
		write(t, filepath.Join(root, name, "config", "r.yaml"), "domain: "+name)
	}
	link(t, "one", filepath.Join(root, "current"))
	loads := follow(t, Config{Root: filepath.Join(root, "current"), AppDirectory: "config", WatchRoot: true})
	await(t, loads, "one")
	link(t, "two", filepath.Join(root, "current"))
	await(t, loads, "two")
	write(t, filepath.Join(root, "two", "config", "r.yaml"), "domain: three")
	await(t, loads, "three")
}

func TestWatchFollowsKubernetes(t *testing.T) {
	root := t.TempDir()
	kubernetes(t, root, "one")
	loads := follow(t, Config{Root: root})
	await(t, loads, "one")
	kubernetes(t, root, "two")
	await(t, loads, "two")
}

func TestWatchKeepsWhatWasLoadedWhenTheDirectoryGoes(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "config", "a.yaml"), "domain: a")
	loads := follow(t, Config{Root: root, AppDirectory: "config", WatchRoot: true})
	await(t, loads, "a")
	if err := os.Rename(filepath.Join(root, "config"), filepath.Join(root, "away")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "away", "a.yaml"), "domain: b")
	if err := os.Rename(filepath.Join(root, "away"), filepath.Join(root, "config")); err != nil {
		t.Fatal(err)
	}
	await(t, loads, "b")
}

func TestMissingDirectoryIsToldOnce(t *testing.T) {
	root := t.TempDir()
	log, heard := logtest.NewNullLogger()
	loads := followWith(t, Config{Root: root, AppDirectory: "config", WatchRoot: true}, logrus.NewEntry(log))
	warned(t, heard, 1)
	write(t, filepath.Join(root, "other"), "") // a look at the way that finds nothing
	write(t, filepath.Join(root, "config", "a.yaml"), "domain: a")
	await(t, loads, "a")
	warned(t, heard, 1)
	if err := os.RemoveAll(filepath.Join(root, "config")); err != nil {
		t.Fatal(err)
	}
	warned(t, heard, 2)
}

// warned waits for so many warnings that the directory is not there.
func warned(t *testing.T, heard *logtest.Hook, want int) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for got := 0; ; time.Sleep(10 * time.Millisecond) {
		if got = len(heard.AllEntries()); got == want {
			return
		}
		if got > want || time.Now().After(deadline) {
			t.Fatalf("told %d times, want %d", got, want)
		}
	}
}
