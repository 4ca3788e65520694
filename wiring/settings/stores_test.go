package settings_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// TestMemcached requires that both names select memcached, and that it has the timeout of all
// counter stores.
func TestMemcached(t *testing.T) {
	for _, environ := range [][]string{
		{"BACKEND_TYPE=memstore", "MEMSTORE_HOST_PORT=a:1,b:2", "KVSTORE_TIMEOUT=70ms"},
		{"BACKEND_TYPE=memcache", "MEMCACHE_HOST_PORT=a:1,b:2", "REDIS_TIMEOUT=70ms", "MEMCACHE_MAX_IDLE_CONNS=2"},
	} {
		s, err := settings.Read(environ)
		must.Succeed(t, err)
		if s.RateLimit.Backend != settings.Memstore || len(s.Memcached.HostPort) != 2 ||
			s.Memcached.Timeout != 70*time.Millisecond ||
			s.Service.Environment != settings.Production || len(s.Warnings) != 0 {
			t.Errorf("%q: %+v %+v, environment %s, warnings %q", environ, s.RateLimit, s.Memcached,
				s.Service.Environment, s.Warnings)
		}
	}
	s, err := settings.Read([]string{"BACKEND_TYPE=redis"})
	if err != nil || s.RateLimit.Backend != settings.Kvstore || s.Service.Environment != settings.Embedded {
		t.Errorf("redis: %+v, %v", s.RateLimit, err)
	}
}

// TestWrongMemcachedSettings requires that the error begins with the variable.
func TestWrongMemcachedSettings(t *testing.T) {
	for variable, environ := range map[string][]string{
		"MEMSTORE_HOST_PORT":  {"BACKEND_TYPE=memstore"},
		"MEMSTORE_HOST_PORT ": {"BACKEND_TYPE=memstore", "MEMSTORE_HOST_PORT=a:1", "MEMSTORE_SRV=_m._tcp.example.org"},
		"ENVIRONMENT":         {"BACKEND_TYPE=memstore", "MEMSTORE_HOST_PORT=a:1", "ENVIRONMENT=embedded"},
	} {
		if _, err := settings.Read(environ); err == nil || !strings.HasPrefix(err.Error(), variable) {
			t.Errorf("%q: %v, want an error that begins with %s", environ, err, variable)
		}
	}
}

// TestUnusedStores requires a warning of a store that is configured and not used.
func TestUnusedStores(t *testing.T) {
	for variable, environ := range map[string][]string{
		"MEMSTORE_HOST_PORT": {"MEMSTORE_HOST_PORT=a:1"},
		"KVSTORE_PERSECOND": {
			"BACKEND_TYPE=memstore", "MEMSTORE_HOST_PORT=a:1", "KVSTORE_PERSECOND=true", "KVSTORE_PERSECOND_URL=b:2",
		},
	} {
		s, err := settings.Read(environ)
		if err != nil || len(s.Warnings) != 1 || !strings.HasPrefix(s.Warnings[0], variable) {
			t.Errorf("%q: %v, warnings %q", environ, err, s.Warnings)
		}
	}
}
