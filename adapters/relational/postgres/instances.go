package postgres

import (
	"fmt"
	"os"

	"github.com/uptrace/bun/driver/pgdriver"
)

// instances is database.Dialect.Instances. The server knows who is connected, so that nothing is
// stored, and an instance that ends is gone.
const instances = `SELECT substr(application_name, 10), min(backend_start) FROM pg_stat_activity
	WHERE datname = current_database() AND application_name LIKE 'tollgate %'
	GROUP BY application_name ORDER BY 2, 1 LIMIT 100`

// appName is the name of connections, unless DATABASE_URL has another one.
const appName = "tollgate"

// nameInstance returns the settings of the connection that listens, by whose name others know an
// instance. The server cuts a name after 63 bytes.
func nameInstance(c Config, config *pgdriver.Config) *pgdriver.Config {
	if c.Version == "" || config.AppName != appName {
		return config
	}
	named := *config
	host, _ := os.Hostname() // may be empty
	named.AppName = fmt.Sprintf(appName+" %s %d %s", c.Version, os.Getpid(), host)
	return &named
}
