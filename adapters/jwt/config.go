package jwt

import (
	"errors"
	"path/filepath"
	"time"
)

// Config contains the settings of access tokens (contract A-22). DataDir and TokenLife come from
// other settings.
type Config struct {
	Issuer   string `env:"TOKEN_ISSUER" envDefault:"tollgate" desc:"issuer (iss) of access tokens"`
	Audience string `env:"TOKEN_AUDIENCE" envDefault:"tollgate" desc:"audience (aud) of access tokens"`
	KeysDir  string `env:"SIGNING_KEYS_DIR" desc:"folder of signing keys as PKCS#8 PEM files (Ed25519); the last file by name signs, all verify; default: a key is created in DATA_DIR/keys"`
	DataDir  string `env:"-"`
	// TokenLife is how long an access token is good, which another setting names. A key counts
	// longer than that after it was last announced.
	TokenLife time.Duration `env:"-"`
}

// Validate returns an error that names the variable whose value is out of range.
func (c Config) Validate() error {
	switch {
	case c.Issuer == "":
		return errors.New("TOKEN_ISSUER must not be empty")
	case c.Audience == "":
		return errors.New("TOKEN_AUDIENCE must not be empty")
	case c.KeysDir == "" && c.DataDir == "":
		return errors.New("SIGNING_KEYS_DIR must not be empty if DATA_DIR is empty")
	}
	return nil
}

// publicKeyTTL returns how long a key stays valid after its last announcement: longer than the life
// of a token signed just before the next announcement, and long enough that one announcement may
// fail.
func (c Config) publicKeyTTL() time.Duration { return max(minKeyLife, c.TokenLife+2*announceEvery) }

// keyFolder returns the folder of the keys, and whether the service may create a key in it.
func (c Config) keyFolder() (dir string, own bool) {
	if c.KeysDir != "" {
		return c.KeysDir, false
	}
	return filepath.Join(c.DataDir, "keys"), true
}
