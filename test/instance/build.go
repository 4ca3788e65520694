package instance

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Build builds packages of the module at root into dir, with the layout that `make build` gives to
// bin: plugins are in a subfolder. Processes that build the same module share a temporary folder,
// in which the go command keeps programs that are still up to date; dir gets hard links to them. The
// processes of one test/run.sh build the same packages once.
func Build(root, dir string, race bool, packages ...string) error {
	store, err := sharedFolder(root, race)
	if err != nil {
		return err
	}
	unlock, err := LockFile(filepath.Join(store, "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if err := buildOnce(root, store, race, packages); err != nil {
		return err
	}
	for _, pkg := range packages {
		if err := linkProgram(store, dir, pkg); err != nil {
			return err
		}
	}
	return nil
}

// buildOnce builds the packages into store, unless another process of this run has done it.
func buildOnce(root, store string, race bool, packages []string) error {
	run := os.Getenv(runVariable)
	list := sha256.Sum256([]byte(strings.Join(packages, "\n")))
	built := filepath.Join(store, fmt.Sprintf("built-%x", list[:8]))
	if text, err := os.ReadFile(built); run != "" && err == nil && string(text) == run {
		return nil
	}
	byFolder := map[string][]string{}
	for _, pkg := range packages {
		folder := ""
		if filepath.Dir(pkg) == "plugins" {
			folder = "plugins"
		}
		byFolder[folder] = append(byFolder[folder], "./"+pkg)
	}
	for folder, list := range byFolder {
		target := filepath.Join(store, folder)
		if err := os.MkdirAll(target, 0o700); err != nil {
			return fmt.Errorf("folder of the programs: %w", err)
		}
		if err := runBuild(root, race, append([]string{"-o", target + "/"}, list...)...); err != nil {
			return err
		}
	}
	if err := os.WriteFile(built, []byte(run), 0o600); err != nil {
		return fmt.Errorf("note what was built: %w", err)
	}
	return nil
}

// sharedFolder returns the folder of the built programs of a module. Only the user can read it.
func sharedFolder(root string, race bool) (string, error) {
	path, err := filepath.Abs(root)
	if err != nil {
		return "", fmt.Errorf("root of the module: %w", err)
	}
	sum := sha256.Sum256([]byte(path))
	folder := filepath.Join(os.TempDir(), fmt.Sprintf("tollgate-programs-%d-%x", os.Getuid(), sum[:8]))
	if race {
		folder += "-race"
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("folder of the programs: %w", err)
	}
	return folder, nil
}

// linkProgram links the program of a package into dir. A later build replaces the file in store and
// does not change the file in dir.
func linkProgram(store, dir, pkg string) error {
	name := filepath.Base(pkg)
	if filepath.Dir(pkg) == "plugins" {
		name = pkg
	}
	target := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return fmt.Errorf("folder of the programs: %w", err)
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace a program: %w", err)
	}
	err := os.Link(filepath.Join(store, name), target)
	if errors.Is(err, syscall.EXDEV) { // GOTMPDIR is on another file system
		err = exec.Command("cp", filepath.Join(store, name), target).Run()
	}
	if err != nil {
		return fmt.Errorf("link a program: %w", err)
	}
	return nil
}

// LockFile waits until this process alone holds the lock on a file, and creates the file if it does
// not exist. The lock ends with unlock, or with the process.
func LockFile(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		_ = file.Close() // the first error counts
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = file.Close() }, nil // closing ends the lock
}
