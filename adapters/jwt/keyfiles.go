package jwt

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
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

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

const (
	madeKeyName = "signing-0001.pem"
	maxKeyFile  = 64 << 10 // bytes
	maxKeyFiles = 100
)

// signingKey is a key pair from a file.
type signingKey struct {
	id      authstore.KeyID
	private ed25519.PrivateKey
}

// publicKey returns the public key, the last part of a private key of RFC 8032.
func (k signingKey) publicKey() ed25519.PublicKey {
	return ed25519.PublicKey(k.private[ed25519.SeedSize:])
}

// loadKeys loads the keys of a folder, ordered by file name. If own is true, the folder belongs to
// the service, and loadKeys creates the first key.
func loadKeys(dir string, own bool) ([]signingKey, error) {
	names, err := listKeyFiles(dir)
	if own && (errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0) {
		if err := createKeyFile(dir); err != nil {
			return nil, fmt.Errorf("create a signing key in %s: %w", dir, err)
		}
		names, err = listKeyFiles(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("signing keys in %s: %w", dir, err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("SIGNING_KEYS_DIR: no file in %s ends in .pem", dir)
	}
	keys := make([]signingKey, len(names))
	for i, name := range names {
		if keys[i], err = readKeyFile(filepath.Join(dir, name)); err != nil {
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
	names, _ := listKeyFiles(dir) // loadKeys has returned the error
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
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return signingKey{}, fmt.Errorf("signing key %s is not an Ed25519 key", path)
	}
	k := signingKey{private: private}
	k.id = thumbprint(k.publicKey())
	return k, nil
}

// thumbprint returns the kid of a key: its JWK thumbprint (RFC 7638; RFC 8037, appendix A.3).
func thumbprint(public ed25519.PublicKey) authstore.KeyID {
	sum := sha256.Sum256(
		[]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(public) + `"}`))
	return authstore.KeyID(base64.RawURLEncoding.EncodeToString(sum[:]))
}

// createKeyFile creates a key file that only its owner may read. The file gets its name when it is
// complete. If several instances start at the same time, one of them creates the key and the others
// use it.
func createKeyFile(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
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
	err = os.Link(draft.Name(), filepath.Join(dir, madeKeyName))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func writeAndSync(f *os.File, text []byte) error {
	_, err := f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}
