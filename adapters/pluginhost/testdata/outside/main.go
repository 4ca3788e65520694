// Command outside is a plugin as its author writes it: in a module of its own that requires the
// SDK.
package main

import (
	"context"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

type courier struct{}

func (courier) Channels() []sdk.Channel { return []sdk.Channel{sdk.SMS} }

func (courier) Deliver(ctx context.Context, _ sdk.Message) error { return ctx.Err() }

func main() { sdk.ServeCourier(courier{}) }
