package runtimedir

import (
	"errors"
	"path/filepath"
)

// Config names the folder of the files (contract L-33).
type Config struct {
	Root           string `env:"RUNTIME_ROOT" envDefault:"/srv/runtime_data/current" desc:"root of the rate limit configuration, often a symbolic link that is replaced on a change"`
	Subdirectory   string `env:"RUNTIME_SUBDIRECTORY" desc:"a folder below RUNTIME_ROOT"`
	AppDirectory   string `env:"RUNTIME_APPDIRECTORY" envDefault:"config" desc:"the folder with the YAML files, below the other two"`
	IgnoreDotFiles bool   `env:"RUNTIME_IGNOREDOTFILES" envDefault:"false" desc:"ignore files and folders whose names begin with a dot"`
	WatchRoot      bool   `env:"RUNTIME_WATCH_ROOT" envDefault:"true" desc:"watch for a replaced RUNTIME_ROOT, in addition to changed files; false = watch only the files"`
}

// Validate returns an error that names the setting that is wrong.
func (c Config) Validate() error {
	if c.Root == "" {
		return errors.New("RUNTIME_ROOT must not be empty")
	}
	return nil
}

// Path returns the folder of the rule files.
func (c Config) Path() string {
	return filepath.Join(c.Root, c.Subdirectory, c.AppDirectory)
}
