package pluginhost

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/plugins/pluginclient"
	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
)

const (
	manifestFile     = "plugins.yaml"
	maxManifestBytes = 1 << 20
	maxManifestTime  = 10 * time.Minute
	sha256Bytes      = 32
)

// variableName matches a valid name of an environment variable.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// manifestForm is the structure of plugins.yaml.
type manifestForm struct {
	Plugins []pluginForm `yaml:"plugins"`
}

type pluginForm struct {
	Name   string            `yaml:"name"`
	Kind   string            `yaml:"kind"`
	File   string            `yaml:"file"`
	SHA256 string            `yaml:"sha256"`
	Env    map[string]string `yaml:"env"`
	Limits limitsForm        `yaml:"limits"`
}

type limitsForm struct {
	StartTimeout    string `yaml:"start_timeout"`
	CallTimeout     string `yaml:"call_timeout"`
	MaxMessageBytes int    `yaml:"max_message_bytes"`
}

// loadManifest returns the plugins of the folder's manifest. found is false if the folder has no
// manifest. It returns an error if the manifest cannot be read or is wrong.
func loadManifest(cfg Config) (specs []spec, found bool, err error) {
	path := filepath.Join(cfg.Dir, manifestFile)
	text, err := readManifest(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, true, fmt.Errorf("plugin manifest %s: %w", path, err)
	}
	specs, err = parseManifest(text, cfg)
	if err != nil {
		return nil, true, fmt.Errorf("plugin manifest %s: %w", path, err)
	}
	return specs, true, nil
}

func readManifest(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode()&writableByAll != 0 {
		return nil, errors.New("every user may write to it: remove the permission (chmod o-w)")
	}
	text, err := io.ReadAll(io.LimitReader(file, maxManifestBytes+1))
	if err == nil && len(text) > maxManifestBytes {
		err = fmt.Errorf("it must be at most %d bytes", maxManifestBytes)
	}
	return text, err
}

// parseManifest returns the plugins of a manifest. It checks the whole manifest and returns an
// error with all problems.
func parseManifest(text []byte, cfg Config) ([]spec, error) {
	var form manifestForm
	if err := yaml.Load(text, &form, yaml.WithKnownFields(), yaml.WithUniqueKeys()); err != nil {
		return nil, fmt.Errorf("it is not a valid manifest: %w", err)
	}
	var (
		specs []spec
		wrong []error
		seen  = map[string]bool{}
	)
	for i, entry := range form.Plugins {
		s, err := entry.parseSpec(cfg)
		if err == nil && seen[s.name] {
			err = errors.New("another plugin has the same name")
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("plugins[%d] %q: %w", i, entry.Name, err))
			continue
		}
		seen[s.name] = true
		specs = append(specs, s)
	}
	return specs, errors.Join(wrong...)
}

func (f pluginForm) parseSpec(cfg Config) (spec, error) {
	if !pluginName.MatchString(f.Name) {
		return spec{}, errors.New(
			"name must be 1 to 64 lower-case letters, digits, dots, dashes and underscores, the first a letter or digit")
	}
	s := spec{name: f.Name}
	var wrong [5]error
	s.kind, wrong[0] = f.parseKind()
	s.path, wrong[1] = f.binaryPath(cfg.Dir)
	s.sum, wrong[2] = f.parseSum()
	s.env, wrong[3] = f.mergeEnv(cfg.Env[f.Name])
	s.limits, wrong[4] = f.Limits.applyTo(cfg.defaultLimits())
	return s, errors.Join(wrong[:]...)
}

func (f pluginForm) parseKind() (pluginclient.Kind, error) {
	switch kind := pluginclient.Kind(f.Kind); kind {
	case pluginclient.Courier, pluginclient.Ownership:
		return kind, nil
	case "":
		if kind, ok := kindFromName(f.Name); ok {
			return kind, nil
		}
	}
	return "", fmt.Errorf("kind must be %s or %s; it is optional for names that begin with otp- or pkg-",
		pluginclient.Courier,
		pluginclient.Ownership)
}

func (f pluginForm) binaryPath(dir string) (string, error) {
	file := cmp.Or(f.File, f.Name)
	if filepath.Base(file) != file || file == "." || file == ".." || strings.ContainsRune(file, 0) {
		return "", fmt.Errorf("file %q must be the name of a file in the plugin folder, without a path", file)
	}
	return filepath.Join(dir, file), nil
}

func (f pluginForm) parseSum() ([]byte, error) {
	if f.SHA256 == "" {
		return nil, nil
	}
	sum, err := hex.DecodeString(f.SHA256)
	if err != nil || len(sum) != sha256Bytes {
		return nil, errors.New("sha256 must be 64 hexadecimal digits")
	}
	return sum, nil
}

// mergeEnv returns given with the manifest's variables. A variable of the manifest replaces one of
// given with the same name. It returns an error for names and values that are not allowed.
func (f pluginForm) mergeEnv(given []string) ([]string, error) {
	merged := slices.DeleteFunc(slices.Clone(given), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		_, replaced := f.Env[name]
		return replaced
	})
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(f.Env)) {
		switch {
		case !variableName.MatchString(name):
			wrong = append(wrong, fmt.Errorf("env: %q is not a valid name of an environment variable", name))
		case strings.HasPrefix(name, "PLUGIN_"), strings.HasPrefix(name, handshake.CookieKey):
			wrong = append(wrong,
				fmt.Errorf(
					"env: %[2]q must be removed, names that begin with PLUGIN_ or %[1]s are reserved for the host",
					handshake.CookieKey, name))
		case strings.ContainsRune(f.Env[name], 0):
			wrong = append(wrong, fmt.Errorf("env: the value of %s must not contain a NUL character", name))
		}
		merged = append(merged, name+"="+f.Env[name])
	}
	return merged, errors.Join(wrong...)
}

// applyTo returns l with the limits that the manifest sets. It returns an error for limits that are
// out of range.
func (f limitsForm) applyTo(l limits) (limits, error) {
	var wrong [3]error
	l.start, wrong[0] = parseTimeLimit("start_timeout", f.StartTimeout, l.start)
	l.call, wrong[1] = parseTimeLimit("call_timeout", f.CallTimeout, l.call)
	if f.MaxMessageBytes != 0 {
		l.message = f.MaxMessageBytes
	}
	if l.message < 1024 || l.message > handshake.MaxMessageBytes {
		wrong[2] = fmt.Errorf("limits: max_message_bytes must be 1024 to %d", handshake.MaxMessageBytes)
	}
	return l, errors.Join(wrong[:]...)
}

func parseTimeLimit(name, text string, otherwise time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > maxManifestTime {
		return 0, fmt.Errorf("limits: %s must be a duration above 0 and at most %v, for example 5s", name,
			maxManifestTime)
	}
	return d, nil
}
