package jwt

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

const (
	maxKeyFile  = 64 << 10 // bytes
	maxKeyFiles = 100
	madeRSA     = 2048 // bits of a key that the service creates
)

// signingKey is a key pair from a file.
type signingKey struct {
	id        authstore.KeyID
	algorithm string
	private   crypto.Signer
}

// keyFolder is a folder of key files. If makes is an algorithm, the folder belongs to the service,
// which creates its first key of the algorithm.
type keyFolder struct{ dir, makes string }

// load loads the keys of the folder, ordered by file name.
func (f keyFolder) load() ([]signingKey, error) {
	keys, err := f.read()
	made := func(k signingKey) bool { return k.algorithm == f.makes }
	if f.makes == "" || err != nil && !errors.Is(err, fs.ErrNotExist) || slices.ContainsFunc(keys, made) {
		return keys, err
	}
	if err := createKeyFile(f.dir, f.makes); err != nil {
		return nil, fmt.Errorf("create a signing key in %s: %w", f.dir, err)
	}
	return f.read()
}

func (f keyFolder) read() ([]signingKey, error) {
	names, err := listKeyFiles(f.dir)
	if err != nil {
		return nil, fmt.Errorf("signing keys in %s: %w", f.dir, err)
	}
	keys := make([]signingKey, len(names))
	for i, name := range names {
		if keys[i], err = readKeyFile(filepath.Join(f.dir, name)); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

func listKeyFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".pem") && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	if len(names) > maxKeyFiles {
		return nil, fmt.Errorf("found %d key files; the maximum is %d", len(names), maxKeyFiles)
	}
	slices.Sort(names)
	return names, nil
}

// warnOfAccess logs a warning for each key file that other users may use.
func warnOfAccess(dir string, log *logrus.Entry) {
	names, _ := listKeyFiles(dir) // load has returned the error
	for _, name := range names {
		if warning, err := files.CheckSecret(filepath.Join(dir, name)); err == nil && warning != "" {
			log.Warn("a signing key is not secret: " + warning)
		}
	}
}

// readKeyFile loads a PKCS#8 PEM file. It refuses a file that every user may write to. Its errors
// never quote the content.
func readKeyFile(path string) (signingKey, error) {
	if _, err := files.CheckSecret(path); err != nil {
		return signingKey{}, fmt.Errorf("signing key: %w", err)
	}
	text, err := files.Read(path, maxKeyFile)
	if err != nil {
		return signingKey{}, fmt.Errorf("signing key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return signingKey{}, fmt.Errorf("signing key %s contains no PEM block PRIVATE KEY (PKCS#8)", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return signingKey{}, fmt.Errorf("signing key %s is not in PKCS#8 form", path)
	}
	private, ok := parsed.(crypto.Signer)
	if !ok || authstore.Algorithm(private.Public()) == "" {
		return signingKey{}, fmt.Errorf("signing key %s is not an Ed25519, P-256 or RSA key of 2048 bits or more", path)
	}
	public := private.Public()
	id, err := thumbprint(public)
	return signingKey{id: id, algorithm: authstore.Algorithm(public), private: private}, err
}

// thumbprint returns the kid of a key: its JWK thumbprint (RFC 7638; RFC 8037, appendix A.3).
func thumbprint(public crypto.PublicKey) (authstore.KeyID, error) {
	sum, err := (&jose.JSONWebKey{Key: public}).Thumbprint(crypto.SHA256)
	if err != nil {
		return "", fmt.Errorf("thumbprint of a signing key: %w", err)
	}
	return authstore.KeyID(base64.RawURLEncoding.EncodeToString(sum)), nil
}

// createKey creates a private key, and returns it with the name of its file.
func createKey(algorithm string) (key any, name string, err error) {
	switch algorithm {
	case authstore.ES256:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		return key, "es256.pem", err //nolint:wrapcheck // the caller wraps it
	case authstore.RS256:
		key, err = rsa.GenerateKey(rand.Reader, madeRSA)
		return key, "rs256.pem", err //nolint:wrapcheck // the caller wraps it
	}
	_, key, err = ed25519.GenerateKey(rand.Reader)
	return key, "signing-0001.pem", err //nolint:wrapcheck // the caller wraps it
}

// createKeyFile creates a key file that only its owner may read. The file gets its name when it is
// complete. If several instances start at the same time, one of them creates the key and the others
// use it.
func createKeyFile(dir, algorithm string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	private, name, err := createKey(algorithm)
	if err != nil {
		return fmt.Errorf("key pair: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return fmt.Errorf("PKCS#8: %w", err)
	}
	draft, err := os.CreateTemp(dir, ".signing-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft.Name()) }() // a remaining file begins with a dot, so it is not read as a key
	if err := writeAndSync(draft, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})); err != nil {
		return err
	}
	err = os.Link(draft.Name(), filepath.Join(dir, name))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func writeAndSync(f *os.File, text []byte) error {
	_, err := f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}
