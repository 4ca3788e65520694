package tlsfiles_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/tollgate-dev/tollgate/adapters/internal/tlsfiles"
	"github.com/tollgate-dev/tollgate/test/must"
)

// newCertificate returns a certificate that expires at end.
func newCertificate(t *testing.T, end time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Succeed(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must.Succeed(t, err)
	leaf, err := x509.ParseCertificate(der)
	must.Succeed(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// TestShowExpiry checks that the metric contains the expiry of the current certificate of each
// listener.
func TestShowExpiry(t *testing.T) {
	end := time.Unix(1_800_000_000, 0)
	renewed := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{
		newCertificate(t, end.Add(48*time.Hour)), newCertificate(t, end.Add(24*time.Hour)),
	}}
	present := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{newCertificate(t, end)}}
	f := &testFiles{dir: t.TempDir()}
	f.writeFile(t, "cert", "first")
	log, _ := test.NewNullLogger()
	c, err := tlsfiles.FollowFiles(log.WithField("part", "test"), func() (*tls.Config, error) { return present, nil },
		f.path("cert"))
	must.Succeed(t, err)
	r := prometheus.NewRegistry()
	tlsfiles.ShowExpiry(r, "api", c)
	tlsfiles.ShowExpiry(r, "grpc", &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return renewed, nil },
	})
	checkExpiry(t, r, map[string]time.Time{"api": end, "grpc": end.Add(24 * time.Hour)})
	present = renewed
	f.writeFile(t, "cert", "second")
	checkExpiry(t, r, map[string]time.Time{"api": end.Add(24 * time.Hour), "grpc": end.Add(24 * time.Hour)})
}

func checkExpiry(t *testing.T, r *prometheus.Registry, want map[string]time.Time) {
	t.Helper()
	families, err := r.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "tollgate_certificate_expiry_timestamp_seconds" {
		t.Fatalf("%v, %v", families, err)
	}
	for _, m := range families[0].GetMetric() {
		listener := m.GetLabel()[0].GetValue()
		if got := time.Unix(int64(m.GetGauge().GetValue()), 0); !got.Equal(want[listener]) {
			t.Errorf("%s expires at %v, want %v", listener, got, want[listener])
		}
		delete(want, listener)
	}
	if len(want) > 0 {
		t.Errorf("the metric is missing for %v", want)
	}
}
