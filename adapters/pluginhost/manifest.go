package pluginhost

import (
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

	"github.com/tollgate-dev/tollgate/plugins/handshake"
	"github.com/tollgate-dev/tollgate/plugins/pluginclient"
)

const (
	manifestFile     = "plugins.yaml"
	maxManifestBytes = 1 << 20
	maxManifestTime  = 10 * time.Minute
	sha256Bytes      = 32
)

// variable is the form of an environment variable's name.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// manifestForm is the shape of plugins.yaml.
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

// manifest reads the manifest of the folder; found is false when there is none.
func manifest(cfg Config) (specs []spec, found bool, err error) {
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
	defer func() { _ = file.Close() }() // read only: nothing is lost
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode()&everyone != 0 {
		return nil, errors.New("everyone may write to it: take the right away (chmod o-w)")
	}
	text, err := io.ReadAll(io.LimitReader(file, maxManifestBytes+1))
	if err == nil && len(text) > maxManifestBytes {
		err = fmt.Errorf("it is longer than %d bytes", maxManifestBytes)
	}
	return text, err
}

// parseManifest checks the whole manifest and reports everything that is wrong with it.
func parseManifest(text []byte, cfg Config) ([]spec, error) {
	var form manifestForm
	if err := yaml.Load(text, &form, yaml.WithKnownFields(), yaml.WithUniqueKeys()); err != nil {
		return nil, fmt.Errorf("not of the form of a manifest: %w", err)
	}
	var (
		specs []spec
		wrong []error
		seen  = map[string]bool{}
	)
	for i, entry := range form.Plugins {
		s, err := entry.spec(cfg)
		if err == nil && seen[s.name] {
			err = errors.New("the name occurs twice")
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

func (f pluginForm) spec(cfg Config) (spec, error) {
	if !pluginName.MatchString(f.Name) {
		return spec{}, errors.New("name must be 1 to 64 lower-case letters, digits, dots, dashes and underscores, the first a letter or digit")
	}
	s := spec{name: f.Name}
	var wrong [5]error
	s.kind, wrong[0] = f.kind()
	s.path, wrong[1] = f.path(cfg.Dir)
	s.sum, wrong[2] = f.sum()
	s.env, wrong[3] = f.env(cfg.Env[f.Name])
	s.limits, wrong[4] = f.Limits.over(cfg.limits())
	return s, errors.Join(wrong[:]...)
}

func (f pluginForm) kind() (pluginclient.Kind, error) {
	switch kind := pluginclient.Kind(f.Kind); kind {
	case pluginclient.Courier, pluginclient.Ownership:
		return kind, nil
	case "":
		if kind, ok := kindOf(f.Name); ok {
			return kind, nil
		}
	}
	return "", fmt.Errorf("kind must be %s or %s; it may be left out for names that begin with otp- or pkg-", pluginclient.Courier, pluginclient.Ownership)
}

func (f pluginForm) path(dir string) (string, error) {
	file := f.File
	if file == "" {
		file = f.Name
	}
	if filepath.Base(file) != file || file == "." || file == ".." || strings.ContainsRune(file, 0) {
		return "", fmt.Errorf("file %q must be the name of a file in the folder", file)
	}
	return filepath.Join(dir, file), nil
}

func (f pluginForm) sum() ([]byte, error) {
	if f.SHA256 == "" {
		return nil, nil
	}
	sum, err := hex.DecodeString(f.SHA256)
	if err != nil || len(sum) != sha256Bytes {
		return nil, errors.New("sha256 must be 64 hexadecimal digits")
	}
	return sum, nil
}

// env returns given with the manifest's variables added; where both name one, the manifest's stands.
func (f pluginForm) env(given []string) ([]string, error) {
	merged := slices.DeleteFunc(slices.Clone(given), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		_, replaced := f.Env[name]
		return replaced
	})
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(f.Env)) {
		switch {
		case !variable.MatchString(name):
			wrong = append(wrong, fmt.Errorf("env: %q is not a valid name of a variable", name))
		case strings.HasPrefix(name, "PLUGIN_"), strings.HasPrefix(name, handshake.CookieKey):
			wrong = append(wrong, fmt.Errorf("env: names that begin with PLUGIN_ or %s are the host's, %q is one", handshake.CookieKey, name))
		case strings.ContainsRune(f.Env[name], 0):
			wrong = append(wrong, fmt.Errorf("env: the value of %s has a NUL", name))
		}
		merged = append(merged, name+"="+f.Env[name])
	}
	return merged, errors.Join(wrong...)
}

// over returns the host's limits with the manifest's in place of those it names.
func (f limitsForm) over(l limits) (limits, error) {
	var wrong [3]error
	l.start, wrong[0] = timeLimit("start_timeout", f.StartTimeout, l.start)
	l.call, wrong[1] = timeLimit("call_timeout", f.CallTimeout, l.call)
	if f.MaxMessageBytes != 0 {
		l.message = f.MaxMessageBytes
	}
	if l.message < 1024 || l.message > handshake.MaxMessageBytes {
		wrong[2] = fmt.Errorf("limits: max_message_bytes must be 1024 to %d", handshake.MaxMessageBytes)
	}
	return l, errors.Join(wrong[:]...)
}

func timeLimit(name, text string, otherwise time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > maxManifestTime {
		return 0, fmt.Errorf("limits: %s must be a duration above 0 and at most %v, for example 5s", name, maxManifestTime)
	}
	return d, nil
}
