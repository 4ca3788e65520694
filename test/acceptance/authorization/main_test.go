// Package authorization tests the authorization server as clients, tool servers and people use it.
package authorization

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
)

// authorities is the file of the certificate authorities that this process trusts. TestDocuments writes it.
var authorities = filepath.Join(os.TempDir(), "tollgate-authorities-"+filepath.Base(os.Args[0])+".pem")

func TestMain(m *testing.M) {
	_ = os.Setenv("SSL_CERT_FILE", authorities) // a valid name
	openapi.Main(m)
}
