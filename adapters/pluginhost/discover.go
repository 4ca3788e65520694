package pluginhost

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/plugins/pluginclient"
)

const (
	writableByAll fs.FileMode = 0o002 // the permission bit for other users to write
	executable    fs.FileMode = 0o111
)

// ownershipPrefix begins the names of plugins that check packages. The registry type follows it.
const ownershipPrefix = "pkg-"

// pluginName matches a valid name of a plugin.
var pluginName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// spec is the specification of a plugin, from its file or the manifest.
type spec struct {
	name   string
	kind   pluginclient.Kind
	path   string
	sum    []byte   // SHA-256 checksum that the binary must have; nil to accept any
	env    []string // KEY=VALUE
	limits limits
	owners owners // whose settings begin how
}

// discoverPlugins returns the plugins of the folder: those of the manifest, or without a manifest
// every executable file whose name begins with otp- or pkg-. It returns none for a folder that does
// not exist, and an error if the folder cannot be read, every user may write to it, or the manifest
// is wrong.
func discoverPlugins(cfg Config, log *logrus.Entry) ([]spec, error) {
	if cfg.FolderMissing() {
		log.WithField("dir", cfg.Dir).Warn("the plugin folder does not exist, so no plugins are loaded")
		return nil, nil
	}
	info, err := os.Stat(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("PLUGIN_DIR: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("PLUGIN_DIR is %s, it must be a folder", cfg.Dir)
	}
	if info.Mode()&writableByAll != 0 {
		return nil, fmt.Errorf(
			"PLUGIN_DIR: every user may write to %s and could add a plugin: remove the permission (chmod o-w)",
			cfg.Dir)
	}
	specs, found, err := loadManifest(cfg)
	if found || err != nil {
		return specs, err
	}
	return scanFolder(cfg, log)
}

func scanFolder(cfg Config, log *logrus.Entry) ([]spec, error) {
	entries, err := os.ReadDir(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("PLUGIN_DIR: %w", err)
	}
	var specs []spec
	for _, entry := range entries {
		name := entry.Name()
		path := filepath.Join(cfg.Dir, name)
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Mode()&executable == 0 {
			continue
		}
		kind, ok := kindFromName(name)
		if !ok || !pluginName.MatchString(name) {
			log.WithField("file", name).
				Warn(
					"a file in the plugin folder is ignored: its name must begin with otp- or pkg- and have only lower-case letters, digits, dots, dashes and underscores")
			continue
		}
		specs = append(specs, spec{name: name, kind: kind, path: path, env: cfg.Env[name], limits: cfg.defaultLimits()})
	}
	return specs, nil
}

// kindFromName returns the kind of a plugin from the prefix of its name.
func kindFromName(name string) (pluginclient.Kind, bool) {
	switch {
	case strings.HasPrefix(name, "otp-"):
		return pluginclient.Courier, true
	case strings.HasPrefix(name, ownershipPrefix):
		return pluginclient.Ownership, true
	}
	return "", false
}

// verifyBinary checks the binary before each start. It returns an error if the file is not a
// regular file, every user may write to it, or its checksum is not that of the manifest.
func (s spec) verifyBinary() error {
	file, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // only read
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", s.path)
	}
	if info.Mode()&writableByAll != 0 {
		return fmt.Errorf("every user may write to %s, so it is not started: remove the permission (chmod o-w)", s.path)
	}
	if s.sum == nil {
		return nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return err
	}
	if got := hash.Sum(nil); subtle.ConstantTimeCompare(got, s.sum) != 1 {
		return fmt.Errorf(
			"the SHA-256 checksum of %s is %x, but the manifest has %x, so it is not started: restore the file or correct the manifest", s.path, got, s.sum)
	}
	return nil
}
