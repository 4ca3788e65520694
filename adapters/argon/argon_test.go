package argon_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/argon"
	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// cheapConfig returns low costs, so that tests are fast.
func cheapConfig() argon.Config {
	return argon.Config{MemoryKiB: 64, Iterations: 1, Parallelism: 1, Queue: 64}
}

func openHasher(t *testing.T, c argon.Config) *argon.Hasher {
	t.Helper()
	h, err := argon.New(c, system.Entropy{})
	must.Succeed(t, err)
	return h
}

func TestContract(t *testing.T) {
	secretstest.RunPasswordHasher(t, func(t *testing.T) secrets.PasswordHasher { return openHasher(t, cheapConfig()) })
}

// TestVerifiesReferenceHash checks a hash of the reference implementation of Argon2 (argon2id, salt
// "somesalt", 64 MiB, 2 passes, 1 lane).
func TestVerifiesReferenceHash(t *testing.T) {
	const stored = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	match, stale, err := openHasher(t, cheapConfig()).Verify(context.Background(), stored,
		secretstest.Password(t, "password"))
	if !match || stale || err != nil {
		t.Errorf("match %v, stale %v, error %v; want a match", match, stale, err)
	}
}

// TestStaleHashes checks that a hash is stale if any cost in the settings is higher than its own.
func TestStaleHashes(t *testing.T) {
	p := secretstest.Password(t, "Any Secret 1!")
	stored, err := openHasher(t, cheapConfig()).Hash(context.Background(), p)
	must.Succeed(t, err)
	for name, c := range map[string]struct {
		grow func(*argon.Config)
		want bool
	}{
		"the same costs":   {func(*argon.Config) {}, false},
		"more memory":      {func(c *argon.Config) { c.MemoryKiB++ }, true},
		"more iterations":  {func(c *argon.Config) { c.Iterations++ }, true},
		"more parallelism": {func(c *argon.Config) { c.Parallelism++ }, true},
		"less memory":      {func(c *argon.Config) { c.MemoryKiB-- }, false},
	} {
		t.Run(name, func(t *testing.T) {
			config := cheapConfig()
			c.grow(&config)
			match, stale, err := openHasher(t, config).Verify(context.Background(), stored, p)
			if !match || stale != c.want || err != nil {
				t.Errorf("match %v, stale %v, error %v; want a match, stale %v", match, stale, err, c.want)
			}
		})
	}
}

// TestRefusalByCheaperHashDoesFullWork checks that the refusal of a wrong password costs the work
// of the current settings, also if the stored hash has lower costs. It measures memory, because
// times differ between machines.
func TestRefusalByCheaperHashDoesFullWork(t *testing.T) {
	stored, err := openHasher(t, cheapConfig()).Hash(context.Background(), secretstest.Password(t, "Any Secret 1!"))
	must.Succeed(t, err)
	config := cheapConfig()
	config.MemoryKiB, config.Iterations = 1024, 2
	h, wrong := openHasher(t, config), secretstest.Password(t, "Another Secret 2!")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if match, _, err := h.Verify(context.Background(), stored, wrong); match || err != nil {
		t.Fatalf("match %v, error %v", match, err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got < 1024<<10 {
		t.Errorf("Verify allocated %d bytes, want at least the %d bytes of a hash with the current settings",
			got, 1024<<10)
	}
}

// TestRefusesExcessiveStoredParameters checks that Verify returns an error of kind Internal if the
// parameters of the stored hash are malformed or would exhaust the machine.
func TestRefusesExcessiveStoredParameters(t *testing.T) {
	for _, stored := range []auth.PasswordHash{
		"$argon2id$v=19$m=4294967295,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=64,t=4294967295,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=64,t=0,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=64,t=1,p=0$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=064,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2i$v=19$m=64,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=16$m=64,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=64,t=1,p=1$$",
	} {
		_, _, err := openHasher(t, cheapConfig()).Verify(context.Background(), stored,
			secretstest.Password(t, "password"))
		if !fault.Is(err, fault.Internal) {
			t.Errorf("%s: %v, want fault.Internal", stored, err)
		}
	}
}

// TestBusyWhenQueueIsFull checks that some of many concurrent calls are refused if no call may
// wait.
func TestBusyWhenQueueIsFull(t *testing.T) {
	config := argon.Config{MemoryKiB: 1 << 16, Iterations: 4, Parallelism: 1, Queue: 0}
	h, p := openHasher(t, config), secretstest.Password(t, "Any Secret 1!")
	calls := 8 * runtime.GOMAXPROCS(0)
	results := make(chan error, calls)
	start := make(chan struct{})
	for range calls {
		go func() { <-start; results <- h.VerifyNone(context.Background(), p) }()
	}
	close(start)
	busy := 0
	for range calls {
		err := <-results
		f, ok := fault.As(err)
		switch {
		case err == nil:
		case ok && f.Kind == fault.Unavailable && f.RetryAfter > 0:
			busy++
		default:
			t.Errorf("error %v, want no error or fault.Unavailable with RetryAfter", err)
		}
	}
	if busy == 0 {
		t.Error("no call was refused although no call may wait")
	}
}

// TestConfigErrorsNameVariable checks that the error about a setting contains the name of its
// variable.
func TestConfigErrorsNameVariable(t *testing.T) {
	for want, change := range map[string]func(*argon.Config){
		"ARGON2_MEMORY_KIB": func(c *argon.Config) { c.MemoryKiB = 7 },
		"ARGON2_ITERATIONS": func(c *argon.Config) { c.Iterations = 0 },
	} {
		c := cheapConfig()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want an error that contains %s", err, want)
		}
	}
}
