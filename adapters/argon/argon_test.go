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
)

func cheap() argon.Config {
	return argon.Config{MemoryKiB: 64, Iterations: 1, Parallelism: 1, Queue: 64}
}

func open(t *testing.T, c argon.Config) *argon.Hasher {
	t.Helper()
	h, err := argon.New(c, system.Entropy{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestContract(t *testing.T) {
	secretstest.RunPasswordHasher(t, func(t *testing.T) secrets.PasswordHasher { return open(t, cheap()) })
}

// The vector was made with the reference implementation of Argon2 (argon2id, salt "somesalt", 64
// KiB, 2 passes, 1 lane).
func TestVerifiesForeignHash(t *testing.T) {
	const foreign = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	match, stale, err := open(t, cheap()).Verify(context.Background(), foreign, secretstest.Password(t, "password"))
	if !match || stale || err != nil {
		t.Errorf("match %v, stale %v, error %v; want a match", match, stale, err)
	}
}

func TestStaleWhenAnyCostGrew(t *testing.T) {
	p := secretstest.Password(t, "Any Secret 1!")
	stored, err := open(t, cheap()).Hash(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		grow func(*argon.Config)
		want bool
	}{
		"the same":         {func(*argon.Config) {}, false},
		"more memory":      {func(c *argon.Config) { c.MemoryKiB++ }, true},
		"more iterations":  {func(c *argon.Config) { c.Iterations++ }, true},
		"more parallelism": {func(c *argon.Config) { c.Parallelism++ }, true},
		"less memory":      {func(c *argon.Config) { c.MemoryKiB-- }, false},
	} {
		t.Run(name, func(t *testing.T) {
			config := cheap()
			c.grow(&config)
			match, stale, err := open(t, config).Verify(context.Background(), stored, p)
			if !match || stale != c.want || err != nil {
				t.Errorf("match %v, stale %v, error %v; want a match, stale %v", match, stale, err, c.want)
			}
		})
	}
}

// Memory shows the work where time would not do so on every machine.
func TestRefusalByLesserHashDoesTheWorkOfPresentOne(t *testing.T) {
	stored, err := open(t, cheap()).Hash(context.Background(), secretstest.Password(t, "Any Secret 1!"))
	if err != nil {
		t.Fatal(err)
	}
	config := cheap()
	config.MemoryKiB, config.Iterations = 1024, 2
	h, wrong := open(t, config), secretstest.Password(t, "Another Secret 2!")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if match, _, err := h.Verify(context.Background(), stored, wrong); match || err != nil {
		t.Fatalf("match %v, error %v", match, err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got < 1024<<10 {
		t.Errorf("%d bytes taken, a present hash takes %d", got, 1024<<10)
	}
}

// A stored hash whose parameters would exhaust the machine is refused unread.
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
		_, _, err := open(t, cheap()).Verify(context.Background(), stored, secretstest.Password(t, "password"))
		if !fault.Is(err, fault.Internal) {
			t.Errorf("%s: %v, want fault.Internal", stored, err)
		}
	}
}

func TestBusyWhenQueueIsFull(t *testing.T) {
	config := argon.Config{MemoryKiB: 1 << 16, Iterations: 4, Parallelism: 1, Queue: 0}
	h, p := open(t, config), secretstest.Password(t, "Any Secret 1!")
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
			t.Errorf("error %v, want none or fault.Unavailable with RetryAfter", err)
		}
	}
	if busy == 0 {
		t.Error("none was turned away although nobody may wait")
	}
}

func TestConfigNamesVariable(t *testing.T) {
	for want, spoil := range map[string]func(*argon.Config){
		"ARGON2_MEMORY_KIB":  func(c *argon.Config) { c.MemoryKiB = 7 },
		"ARGON2_ITERATIONS":  func(c *argon.Config) { c.Iterations = 0 },
		"ARGON2_PARALLELISM": func(c *argon.Config) { c.Parallelism = 17 },
		"PASSWORD_QUEUE":     func(c *argon.Config) { c.Queue = -1 },
	} {
		c := cheap()
		spoil(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that names %s", err, want)
		}
	}
}
