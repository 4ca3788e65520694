package valkey_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/must"
)

// documentedUser is the line of an ACL file in the documentation.
var documentedUser = regexp.MustCompile(`(?m)^ +(user tollgate on >secret .*)$`)

// TestDocumentedPermissions: a user with the permissions that the documentation names may count in
// every way.
func TestDocumentedPermissions(t *testing.T) {
	page, err := os.ReadFile("../../docs/ratelimit-failures.md")
	must.Succeed(t, err)
	line := documentedUser.FindSubmatch(page)
	if line == nil {
		t.Fatal("the page has no line of an ACL file")
	}
	users := filepath.Join(t.TempDir(), "users.acl")
	must.Succeed(t, os.WriteFile(users, append([]byte("user default off\n"), append(line[1], '\n')...), 0o600))
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
	for _, hits := range [][]counter.Hit{
		{fixed}, {fixed, fixed}, {fixed, back, back}, {sliding}, {bucketBack}, {
			fixed, sliding, bucket, slidingBack, bucketBack,
		},
	} {
		for _, m := range []counter.Mode{counter.Each, counter.AllOrNone} {
			if err := store.Count(t.Context(), hits, make([]counter.Result, len(hits)), m); err != nil {
				t.Errorf("%s of %d hits: %v", counter.Operation(hits, m), len(hits), err)
			}
		}
	}
}
