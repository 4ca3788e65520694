package wiring

import (
	"context"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// How long the address of the setup waits for the service to be ready, so that it is among the last
// lines of the log of a start.
const (
	readyChecks   = 50
	readyInterval = 100 * time.Millisecond
)

// announceSetup logs the address on which the first account is made, unless there is an account. On
// a terminal it is also printed by itself.
func (a apiParts) announceSetup(ctx context.Context, health *rest.Health) {
	for range readyChecks {
		if status, _ := health.States(ctx); status != "unavailable" || !a.Waiter.Wait(ctx, readyInterval) {
			break
		}
	}
	if a.Pages.Announce {
		a.Waiter.Wait(ctx, time.Second) // for the lines of plugins and rules
	}
	link, err := a.People.MakeSetupLink(ctx)
	switch {
	case fault.Is(err, fault.Conflict), ctx.Err() != nil:
		return
	case err != nil:
		a.Log.WithError(err).Error("the address of the setup cannot be made; tollgate setup-link prints another one")
		return
	}
	a.Log.WithField("setup", link.URL).Warn("there is no account yet: open the address of the setup to make the first one")
	if a.Pages.Announce {
		_, _ = fmt.Fprintf(a.Log.Logger.Out, "\nSet up Tollgate in your browser:\n%s\n", link.URL) // it is in the log
	}
}
