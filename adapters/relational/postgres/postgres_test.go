package postgres_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres"
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

const secret = "s3cret"

func config(address string) postgres.Config {
	return postgres.Config{
		URL: address, MaxConns: 4,
		Timeout: 10 * time.Second, DialTimeout: time.Second, StatementTimeout: time.Second,
		MigrationTimeout: time.Minute,
	}
}

func TestBadAddresses(t *testing.T) {
	cases := map[string]struct{ address, message string }{
		"no URL":       {"postgres://u:" + secret + "@h:port/db", "is not a URL"},
		"slash inside": {"postgres://u:" + secret + "/%zz@h/db", "is not a URL"},
		"other scheme": {"mysql://u:" + secret + "@h/db", "must begin with postgres://"},
		"words":        {"host=h password=" + secret, "must begin with postgres://"},
		"no host":      {"postgres:///db", "must name a host"},
		"no database":  {"postgres://u:" + secret + "@h", "must name a database"},
		"bad sslmode":  {"postgres://u:" + secret + "@h/db?sslmode=maybe", "maybe"},
		"bad duration": {"postgres://u:" + secret + "@h/db?timeout=soon", "timeout"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, err := postgres.Open(t.Context(), config(c.address))
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.message) ||
				!strings.Contains(err.Error(), "DATABASE_URL") {
				t.Errorf("got %v, want an error with the text %q", err, c.message)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error contains the password: %v", err)
			}
		})
	}
}

// silentServer returns the address of a server that accepts connections and never answers.
func silentServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	t.Cleanup(func() { _ = l.Close() }) // no connection is left
	return l.Addr().String()
}

func TestAServerThatIsAway(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	closed := l.Addr().String()
	must.Succeed(t, l.Close())
	for name, host := range map[string]string{"refuses": closed, "is silent": silentServer(t)} {
		t.Run(name, func(t *testing.T) {
			_, _, err := postgres.Open(t.Context(), config("postgres://u:"+secret+"@"+host+"/db?sslmode=disable"))
			if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), host) ||
				strings.Contains(err.Error(), secret) {
				t.Errorf("got %v, want an error with host and port", err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := postgres.Open(ctx, config("postgres://u@"+closed+"/db")); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}

func server(t *testing.T) *url.URL {
	t.Helper()
	address := os.Getenv("TEST_DATABASE_URL")
	if address == "" {
		t.Skip("TEST_DATABASE_URL is not set")
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal("TEST_DATABASE_URL is not a URL")
	}
	return u
}

func TestAServerThatRefuses(t *testing.T) {
	wrongPassword, wrongDatabase := *server(t), *server(t)
	wrongPassword.User = url.UserPassword(wrongPassword.User.Username(), secret)
	wrongDatabase.Path = "/tollgate_not_there"
	for name, u := range map[string]url.URL{"the password": wrongPassword, "the database": wrongDatabase} {
		t.Run(name, func(t *testing.T) {
			_, _, err := postgres.Open(t.Context(), config(u.String()))
			if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), u.Host) ||
				strings.Contains(err.Error(), secret) {
				t.Errorf("got %v, want an error with host and port", err)
			}
		})
	}
}

// TestStatementsHaveATimeLimit waits for a row that another transaction has locked.
func TestStatementsHaveATimeLimit(t *testing.T) {
	db := openMigrated(t)
	servers := registryrecords.NewServers(db, registryrecords.Config{})
	name, err := registry.ParseName("com.example/a")
	must.Succeed(t, err)
	lock := func(ctx context.Context) error {
		_, err := servers.Lock(ctx, name)
		return err
	}
	err = db.Atomically(t.Context(), func(ctx context.Context) error {
		if err := lock(ctx); err != nil {
			return err
		}
		if err := db.Atomically(t.Context(), lock); !fault.Is(err, fault.Unavailable) {
			t.Errorf("the waiting transaction ended with %v", err)
		}
		return nil
	})
	must.Succeed(t, err)
	if err := db.Atomically(t.Context(), lock); err != nil {
		t.Errorf("after the lock is gone: %v", err)
	}
}

// TestNothingIsCompiled: after a large import, and before there are statistics, the server would take a short
// statement for one that is worth compiling, which costs 75 ms.
func TestNothingIsCompiled(t *testing.T) {
	var jit string
	must.Succeed(t, openMigrated(t).ScanRow(t.Context(), database.Query{Text: "SELECT current_setting('jit')"}, &jit))
	if jit != "off" {
		t.Errorf("jit is %s", jit)
	}
}

// openMigrated returns a migrated database of the test. Its statements have a limit of one second.
func openMigrated(t *testing.T) *database.DB {
	t.Helper()
	db, closeDB, err := postgres.Open(t.Context(), config(postgrestest.NewEmpty(t)))
	must.Succeed(t, err)
	t.Cleanup(closeDB)
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestConfigValidate(t *testing.T) {
	good := config("postgres://u@h/db")
	must.Succeed(t, good.Validate())
	cases := map[string]func(*postgres.Config){
		"DATABASE_URL":               func(c *postgres.Config) { c.URL = "nowhere" },
		"DATABASE_MAX_CONNS":         func(c *postgres.Config) { c.MaxConns = 1 },
		"DATABASE_TIMEOUT":           func(c *postgres.Config) { c.Timeout = 0 },
		"DATABASE_STATEMENT_TIMEOUT": func(c *postgres.Config) { c.StatementTimeout = time.Hour },
	}
	for variable, spoil := range cases {
		c := good
		spoil(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), variable) {
			t.Errorf("%s: %v", variable, err)
		}
	}
}

// TestReadyOfReadOnlyDatabase checks that a database whose transactions are read-only by default,
// as an administrator sets it for maintenance, is not ready.
func TestReadyOfReadOnlyDatabase(t *testing.T) {
	address := postgrestest.NewEmpty(t)
	for _, parameter := range []string{"off", "on"} {
		db, end, err := postgres.Open(t.Context(), config(address+"&default_transaction_read_only="+parameter))
		must.Succeed(t, err)
		if parameter == "off" {
			if _, err := db.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := db.Ready(t.Context()); (err == nil) != (parameter == "off") {
			t.Errorf("with default_transaction_read_only=%s: %v", parameter, err)
		}
		end()
	}
}

// TestInstances checks that the processes that listen are known to each other, with the version.
func TestInstances(t *testing.T) {
	c := config(server(t).String())
	c.Version = "v1.2.3-test"
	db, cleanup, err := postgres.Open(t.Context(), c)
	must.Succeed(t, err)
	defer cleanup()
	connected := func() (n int) {
		all, err := db.Instances(t.Context())
		must.Succeed(t, err)
		for _, i := range all {
			if i.Version == c.Version && i.Process == strconv.Itoa(os.Getpid()) && time.Since(i.Since) < time.Hour {
				n++
			}
		}
		return n
	}
	if n := connected(); n != 0 {
		t.Errorf("%d instances before one listens", n)
	}
	ctx, end := context.WithCancel(t.Context())
	var listening sync.WaitGroup
	listening.Go(func() { db.Listen(ctx, "tollgate_test", func(string) {}) })
	await.Until(t, "the instance is connected", func() bool { return connected() == 1 })
	end()
	listening.Wait()
	await.Until(t, "the instance is gone", func() bool { return connected() == 0 })
}
