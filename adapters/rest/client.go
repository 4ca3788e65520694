package rest

import (
	"context"
	"net"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/pause"
	"github.com/tollgate-dev/tollgate/adapters/internal/socket"
)

// clientInterval is how often WatchClient looks whether the client is there.
const clientInterval = 250 * time.Millisecond

// WatchClient returns the context of a request, which ends when the client closes its connection,
// and a function that ends the watch. The handler must call it before it returns. It is for
// requests that may wait for long: the server itself notices the end of a connection only when it
// writes.
func WatchClient(c *fiber.Ctx) (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancel(c.UserContext())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		cancelWhenGone(ctx, c.Context().Conn(), cancel)
	}()
	return ctx, func() {
		cancel()
		<-stopped
	}
}

func cancelWhenGone(ctx context.Context, conn net.Conn, gone context.CancelFunc) {
	for pause.For(ctx, clientInterval) {
		if socket.Peek(conn) == socket.Closed {
			gone()
		}
	}
}
