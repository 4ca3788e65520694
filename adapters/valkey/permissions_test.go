package valkey_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// documentedUser is the line of an ACL file in the documentation.
var documentedUser = regexp.MustCompile(`(?m)^ +(user tollgate on >secret .*)$`)

// TestDocumentedPermissions: a user with the permissions that the documentation names may count in every
// way.
func TestDocumentedPermissions(t *testing.T) {
	page, err := os.ReadFile("../../docs/ratelimit-failures.md")
	if err != nil {
		t.Fatal(err)
	}
	line := documentedUser.FindSubmatch(page)
	if line == nil {
		t.Fatal("the page has no line of an ACL file")
	}
	users := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(users, append([]byte("user default off\n"), append(line[1], '\n')...), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := newConfig(newServer(t, "--aclfile", users).start().Address)
	cfg.Auth = "tollgate:secret"
	store, key := open(t, cfg), newKeys()
	fixed := counter.Hit{Key: key("fixed"), Addend: 1, Limit: 9, Window: time.Minute, TTL: time.Minute}
	back, sliding, bucket := fixed, fixed, fixed
	back.Addend = -1
	sliding.Key, sliding.Algorithm = key("sliding"), ratelimit.SlidingWindow
	bucket.Key, bucket.Algorithm, bucket.Burst = key("bucket"), ratelimit.TokenBucket, 9
	slidingBack, bucketBack := sliding, bucket
	slidingBack.Addend, bucketBack.Addend = -1, -1
	windows, all := []counter.Hit{fixed, back, back}, []counter.Hit{fixed, sliding, bucket, slidingBack, bucketBack}
	after, results := make([]uint64, len(windows)), make([]counter.Admitted, len(all))
	for name, call := range map[string]func() error{
		"Add":               func() error { return store.Add(t.Context(), windows, after) },
		"AddUnlessOver":     func() error { return store.AddUnlessOver(t.Context(), windows, after) },
		"Admit":             func() error { return store.Admit(t.Context(), all, results) },
		"Admit of a window": func() error { return store.Admit(t.Context(), []counter.Hit{sliding}, results[:1]) },
		"Admit of a bucket": func() error { return store.Admit(t.Context(), []counter.Hit{bucketBack}, results[:1]) },
		"AdmitAll":          func() error { return store.AdmitAll(t.Context(), all, results) },
	} {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
