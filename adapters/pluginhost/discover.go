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
	everyone   fs.FileMode = 0o002 // the bit by which everyone may write
	executable fs.FileMode = 0o111
)

// pluginName is the form of a plugin's name.
var pluginName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// spec is what is known of a plugin before it starts.
type spec struct {
	name   string
	kind   pluginclient.Kind
	path   string
	sum    []byte   // SHA-256 that the binary must have; nil for any
	env    []string // KEY=VALUE
	limits limits
}

// discover lists the plugins of the folder: those of the manifest where there is one, else every executable file whose name
// tells its kind. A folder that is not there holds none.
func discover(cfg Config, log *logrus.Entry) ([]spec, error) {
	if cfg.Missing() {
		log.WithField("dir", cfg.Dir).Warn("the plugin folder does not exist, so there are no plugins")
		return nil, nil
	}
	info, err := os.Stat(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("PLUGIN_DIR: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("PLUGIN_DIR: %s is not a folder", cfg.Dir)
	}
	if info.Mode()&everyone != 0 {
		return nil, fmt.Errorf("PLUGIN_DIR: everyone may write to %s, so anyone could add a plugin: remove the permission (chmod o-w)", cfg.Dir)
	}
	specs, found, err := manifest(cfg)
	if found || err != nil {
		return specs, err
	}
	return scan(cfg, log)
}

func scan(cfg Config, log *logrus.Entry) ([]spec, error) {
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
		kind, ok := kindOf(name)
		if !ok || !pluginName.MatchString(name) {
			log.WithField("file", name).Warn("file in the plugin folder is ignored: its name does not begin with otp- or pkg-")
			continue
		}
		specs = append(specs, spec{name: name, kind: kind, path: path, env: cfg.Env[name], limits: cfg.limits()})
	}
	return specs, nil
}

// kindOf tells a plugin's kind by its name.
func kindOf(name string) (pluginclient.Kind, bool) {
	switch {
	case strings.HasPrefix(name, "otp-"):
		return pluginclient.Courier, true
	case strings.HasPrefix(name, "pkg-"):
		return pluginclient.Ownership, true
	}
	return "", false
}

// verify checks the binary before each start: that not everyone may write to it, and that its sum is the pinned one.
func (s spec) verify() error {
	file, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // read only: nothing is lost
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", s.path)
	}
	if info.Mode()&everyone != 0 {
		return fmt.Errorf("everyone may write to %s, so it is not started: remove the permission (chmod o-w)", s.path)
	}
	if s.sum == nil {
		return nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return err
	}
	if got := hash.Sum(nil); subtle.ConstantTimeCompare(got, s.sum) != 1 {
		return fmt.Errorf("SHA-256 of %s is %x, the manifest has %x, so it is not started", s.path, got, s.sum)
	}
	return nil
}
