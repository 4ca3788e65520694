package iplists

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

// Config names the lists (contract A-30).
type Config struct {
	Lists []string `env:"IP_REPUTATION_LISTS" desc:"files with one address or CIDR per line, # starts a comment, in the form listed=FILE,tor=FILE,proxy=FILE,hosting=FILE; a path without a class is listed; reloaded on change"`
}

// listFile is a file and the class of the addresses in it.
type listFile struct {
	class risk.AddressClass
	path  string
}

// className matches the text before the = of a list. Text that does not match is part of a path.
var className = regexp.MustCompile(`^[A-Za-z0-9_-]*$`)

// Validate returns an error that names what is wrong with the setting. It reads no file.
func (c Config) Validate() error {
	_, err := c.parseLists()
	return err
}

// Files returns the paths of the lists.
func (c Config) Files() []string {
	lists, _ := c.parseLists() // Validate has reported the error
	files := make([]string, len(lists))
	for i := range lists {
		files[i] = lists[i].path
	}
	return files
}

// parseLists parses the setting.
func (c Config) parseLists() ([]listFile, error) {
	lists := make([]listFile, 0, len(c.Lists))
	for _, entry := range c.Lists {
		l := listFile{class: risk.Listed, path: strings.TrimSpace(entry)}
		if name, path, ok := strings.Cut(l.path, "="); ok && className.MatchString(name) {
			if l.class, ok = risk.ParseAddressClass(name); !ok || l.class == risk.Clean {
				return nil, fmt.Errorf("IP_REPUTATION_LISTS: %q is not listed, tor, proxy or hosting", name)
			}
			l.path = strings.TrimSpace(path)
		}
		if l.path == "" {
			return nil, fmt.Errorf("IP_REPUTATION_LISTS: %q names no file", entry)
		}
		lists = append(lists, l)
	}
	return lists, nil
}
