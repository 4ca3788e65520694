package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// Packages holds the settings of package checks (contract R-56).
type Packages struct {
	Registries string `env:"PACKAGE_REGISTRIES" desc:"JSON or YAML file of private package registries: for each registryType, a list of baseUrl with username and password, or token; for oci also tokenHosts"`
}

// maxRegistriesFile is the greatest size of the file of PACKAGE_REGISTRIES, in bytes.
const maxRegistriesFile = 1 << 20

// packagePlugin is the prefix of the names of ownership plugins. The registryType follows it.
const packagePlugin = "pkg-"

// privateRegistry is a package registry of the file.
type privateRegistry struct {
	BaseURL  string `json:"baseUrl" yaml:"baseUrl"`
	Username string `json:"username,omitempty" yaml:"username"`
	Password string `json:"password,omitempty" yaml:"password"`
	Token    string `json:"token,omitempty" yaml:"token"`
	// TokenHosts are other hosts of the token service of an OCI registry. They get the credentials
	// too.
	TokenHosts []string `json:"tokenHosts,omitempty" yaml:"tokenHosts"`
}

// environment returns environment variables by the name of the plugin that gets them. A plugin gets
// the registries of its own type only, so that it has no credentials of others.
func (p Packages) environment() (map[string][]string, error) {
	if p.Registries == "" {
		return nil, nil
	}
	content, err := readFile(p.Registries, maxRegistriesFile)
	if err != nil {
		return nil, fmt.Errorf("PACKAGE_REGISTRIES: %s: %w", p.Registries, err)
	}
	byType, err := parseRegistries(content)
	if err != nil {
		return nil, fmt.Errorf("PACKAGE_REGISTRIES: %s: %w", p.Registries, err)
	}
	environ := make(map[string][]string, len(byType))
	for kind, list := range byType {
		encoded, err := json.Marshal(list)
		if err != nil {
			return nil, fmt.Errorf("PACKAGE_REGISTRIES: %w", err)
		}
		environ[packagePlugin+kind] = []string{registryclient.Variable + "=" + string(encoded)}
	}
	return environ, nil
}

// readFile returns the content of a file. Its errors do not have the path, which the caller adds.
func readFile(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, newReadError(err)
	}
	if info.Size() > most {
		return nil, fmt.Errorf("is larger than %d bytes", most)
	}
	content, err := os.ReadFile(path) // #nosec G304 -- the operator names the file
	if err != nil {
		return nil, newReadError(err)
	}
	return content, nil
}

// newReadError returns the error of a file that cannot be read, without the path, which the caller
// adds.
func newReadError(err error) error {
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return fmt.Errorf("cannot be read: %w", err)
}

// parseRegistries parses YAML, of which JSON is a subset. Its errors contain no values, because
// these may be passwords.
func parseRegistries(content []byte) (map[string][]privateRegistry, error) {
	byType := map[string][]privateRegistry{}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(&byType); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.New(
			"is not a list of baseUrl, username, password, token and tokenHosts for each registryType")
	}
	for _, kind := range slices.Sorted(maps.Keys(byType)) {
		for i, r := range byType[kind] {
			if err := r.validate(); err != nil {
				return nil, fmt.Errorf("%s[%d]: %w", kind, i, err)
			}
			if len(r.TokenHosts) > 0 && kind != "oci" {
				return nil, fmt.Errorf("%s[%d]: tokenHosts is for registries of type oci", kind, i)
			}
		}
	}
	return byType, nil
}

func (r privateRegistry) validate() error {
	u, err := url.Parse(r.BaseURL)
	switch {
	case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https":
		return errors.New("baseUrl is not an http or https URL")
	case u.User != nil:
		return errors.New("baseUrl must not contain credentials: use the fields username and password, or token")
	case u.RawQuery != "", u.Fragment != "":
		return errors.New("baseUrl must have no query and no fragment")
	}
	for _, host := range r.TokenHosts {
		if at, err := url.Parse("https://" + host); err != nil || at.Host != host || at.Hostname() == "" {
			return errors.New("tokenHosts must be names of hosts, with a port where it is not 443")
		}
	}
	return registryclient.Credentials{Username: r.Username, Password: r.Password, Token: r.Token}.ValidateFor(u)
}
