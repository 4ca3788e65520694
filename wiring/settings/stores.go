package settings

import (
	"errors"
	"fmt"
)

// The kinds of counter store (contract L-39).
const (
	// Kvstore is Valkey if KVSTORE_URL is set, else counters in the process.
	Kvstore = "kvstore"
	// Memstore is memcached.
	Memstore = "memstore"
)

func checkBackend(b string) error {
	if b != Kvstore && b != Memstore {
		return fmt.Errorf("BACKEND_TYPE: %q is neither kvstore (redis) nor memstore (memcache)", b)
	}
	return nil
}

// validateStores validates settings that depend on the kind of counter store.
func (s *Settings) validateStores() error {
	if s.RateLimit.Backend == Memstore && !s.Memcached.Configured() {
		return errors.New("MEMSTORE_HOST_PORT: BACKEND_TYPE=memstore needs it, or MEMSTORE_SRV")
	}
	return nil
}

// warnOfUnusedStores warns of a counter store that is configured and not used.
func (s *Settings) warnOfUnusedStores() {
	memcached := s.RateLimit.Backend == Memstore
	if s.Memcached.Configured() && !memcached {
		s.Warnings = append(s.Warnings,
			"MEMSTORE_HOST_PORT or MEMSTORE_SRV is set and BACKEND_TYPE is not memstore: memcached is not used")
	}
	if s.PerSecond.Enabled && memcached {
		s.Warnings = append(s.Warnings,
			"KVSTORE_PERSECOND is set and BACKEND_TYPE is memstore: all limits are counted on memcached")
	}
}

// warnOfUnusedTLS warns of settings for client certificates if the gRPC listener does not use TLS.
func (s *Settings) warnOfUnusedTLS() {
	t := s.RateLimitAPI.TLS
	if !t.Enabled && (t.ClientCA != "" || t.ClientSAN != "") {
		s.Warnings = append(s.Warnings,
			"GRPC_CLIENT_TLS_CACERT and GRPC_CLIENT_TLS_SAN are not used: GRPC_SERVER_USE_TLS is not true, so no certificate of a client is checked")
	}
}
