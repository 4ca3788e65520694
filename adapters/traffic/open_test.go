package traffic

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	metrics "github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestOpen requires that a service that does not record uses the decider itself, and
// that hashed values need a secret.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	on := Config{File: filepath.Join(dir, "r.jsonl"), Sample: 1, MaxBytes: 1}
	hashed := on
	hashed.Hash = true
	missing := on
	missing.File = filepath.Join(dir, "missing", "r.jsonl")
	for name, test := range map[string]struct {
		config   Config
		secret   string
		recorded bool
		err      string
	}{
		"off":                  {Config{}, "", false, ""},
		"off with a hash":      {Config{Hash: true}, "", false, ""},
		"on":                   {on, "", true, ""},
		"hashed":               {hashed, strings.Repeat("k", 32), true, ""},
		"hashed, no secret":    {hashed, "", false, "RATELIMIT_RECORD_HASH: set SECRET_KEY"},
		"a folder is missing":  {missing, "", false, "RATELIMIT_RECORD: open"},
		"hashed, short secret": {hashed, "short", false, "RATELIMIT_RECORD_HASH: set SECRET_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &decide.Decider{}
			got, cleanup, err := Open(test.config, d.Decide, Sources{
				Root: auth.RootSecret(test.secret), Clock: system.Clock{}, Metrics: metrics.NewRegistry(),
				Log: logrus.NewEntry(logrus.New()),
			})
			if test.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.err) {
					t.Errorf("got %v, want %s", err, test.err)
				}
				return
			}
			must.Succeed(t, err)
			defer cleanup()
			if own := isMethod(got, d.Decide); own == test.recorded ||
				isMethod(got, new(Recorder).Decide) != test.recorded {
				t.Errorf("the decider itself decides: %v", own)
			}
		})
	}
}

// isMethod reports whether a function is the method of another one, of any receiver.
func isMethod(f, method decide.Func) bool {
	return reflect.ValueOf(f).Pointer() == reflect.ValueOf(method).Pointer()
}
