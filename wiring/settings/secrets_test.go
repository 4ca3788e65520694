package settings_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// TestSecretsFromFiles requires that each secret is read from the file of NAME_FILE, and is not
// shown.
func TestSecretsFromFiles(t *testing.T) {
	list, err := settings.Describe(nil)
	must.Succeed(t, err)
	forms := map[string]string{
		"DATABASE_URL": "postgres://user:secret@host:5432/database", "KVSTORE_URL": "host:6379",
		"KVSTORE_PERSECOND_URL":                     "host:6380",
		"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS": "Name: secret",
		"SECRET_KEY": "a-secret-of-more-than-32-characters",
	}
	secrets := 0
	for _, v := range list {
		if !v.Secret {
			continue
		}
		secrets++
		text, ok := forms[v.Name]
		if !ok {
			text = "name=secret"
		}
		path := filepath.Join(t.TempDir(), v.Name)
		must.Succeed(t, os.WriteFile(path, []byte(text+"\n"), 0o600))
		described, err := settings.Describe([]string{v.Name + "_FILE=" + path})
		if err != nil {
			t.Errorf("%s_FILE: %v", v.Name, err)
		}
		for _, d := range described {
			if d.Name == v.Name && d.Value != "(set)" {
				t.Errorf("%s_FILE sets %q", v.Name, d.Value)
			}
		}
	}
	if secrets < len(forms) {
		t.Errorf("there are %d secrets", secrets)
	}
}
