package postgres

import (
	"context"
	"database/sql"
	"net"
	"sync"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/driver/pgdriver"

	"github.com/tollgate-dev/tollgate/adapters/internal/pause"
)

// listenGap is the time between two tries to listen.
const listenGap = time.Second

// silentDriver keeps the driver from writing lines of its own to standard error.
type silentDriver struct{}

// Printf implements the logger of the driver.
func (silentDriver) Printf(context.Context, string, ...any) {}

var silenceDriver sync.Once //nolint:gochecknoglobals // the driver has one logger

// listen implements database.Dialect.Listen on a connection of its own.
func listen(c *pgdriver.Config) func(ctx context.Context, channel string, notify func(text string)) {
	silenceDriver.Do(func() { pgdriver.Logger = silentDriver{} })
	return func(ctx context.Context, channel string, notify func(text string)) {
		for {
			listenOnce(ctx, c, channel, notify)
			if !pause.For(ctx, listenGap) {
				return
			}
		}
	}
}

// listenOnce listens until the connection breaks or ctx ends.
func listenOnce(ctx context.Context, c *pgdriver.Config, channel string, notify func(text string)) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	config := *c
	config.Dialer = func(dialling context.Context, network, address string) (net.Conn, error) {
		socket, err := c.Dialer(dialling, network, address)
		if err == nil {
			context.AfterFunc(ctx, func() { _ = socket.Close() }) // ends the wait for a notification
		}
		return socket, err
	}
	pool := bun.NewDB(sql.OpenDB(pgdriver.NewConnector(pgdriver.WithConfig(&config))), pgdialect.New())
	defer func() { _ = pool.Close() }() // it opened no connection
	l := pgdriver.NewListener(pool)
	defer func() { _ = l.Close() }() // its connection is closed in any case
	if l.Listen(ctx, channel) != nil {
		return
	}
	for notify(""); ; { // what was sent before is lost
		_, text, err := l.Receive(ctx)
		if err != nil {
			return
		}
		notify(text)
	}
}
