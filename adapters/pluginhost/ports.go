package pluginhost

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/plugins/pluginclient"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/ownership"
)

var (
	_ courier.Courier   = (*Courier)(nil)
	_ ownership.Checker = (*Checker)(nil)
)

// Courier answers the courier port with one plugin.
type Courier struct{ plugin *supervisor }

// Deliver implements [courier.Courier].
func (c *Courier) Deliver(ctx context.Context, m courier.Message) error {
	if err := m.Validate(); err != nil {
		return err
	}
	err := c.plugin.use(ctx, func(ctx context.Context, conn grpc.ClientConnInterface, d pluginclient.Description) error {
		return pluginclient.Deliver(ctx, conn, d, m)
	})
	return answered(ctx, err, pluginclient.Undelivered)
}

// Channels lists the channels that the plugin serves; empty until it has first run.
func (c *Courier) Channels() []courier.Channel {
	if d := c.plugin.described(); d != nil {
		return slices.Clone(d.Channels)
	}
	return nil
}

// Checker answers the ownership port with all ownership plugins.
type Checker struct{ plugins []*supervisor }

// Check implements [ownership.Checker].
func (c *Checker) Check(ctx context.Context, claim ownership.Claim) error {
	if err := claim.Validate(); err != nil {
		return err
	}
	v, err := c.pick(ctx, claim.RegistryType)
	if err != nil {
		return err
	}
	err = v.use(ctx, func(ctx context.Context, conn grpc.ClientConnInterface, d pluginclient.Description) error {
		return pluginclient.Check(ctx, conn, d, claim)
	})
	return answered(ctx, err, pluginclient.Unchecked)
}

// pick returns the plugin for a registry type. Plugins that are coming up for the first time are waited for; one that never came
// up is known by its name only, "pkg-" and the type.
func (c *Checker) pick(ctx context.Context, registryType string) (*supervisor, error) {
	for _, v := range c.plugins {
		if err := c.settled(ctx, v); err != nil {
			return nil, pluginclient.Unchecked(err)
		}
		d := v.described()
		if d == nil && v.spec.name == "pkg-"+registryType || d != nil && slices.Contains(d.RegistryTypes, registryType) {
			return v, nil
		}
	}
	return nil, pluginclient.UnsupportedType(registryType, c.Types())
}

func (c *Checker) settled(ctx context.Context, v *supervisor) error {
	ctx, cancel := context.WithTimeout(ctx, v.spec.limits.call)
	defer cancel()
	return v.settle(ctx)
}

// Types implements [ownership.Checker].
func (c *Checker) Types() []string {
	types := []string{}
	for _, v := range c.plugins {
		if d := v.described(); d != nil {
			types = append(types, d.RegistryTypes...)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// answered makes a fault of every error: those of package pluginclient are one already, the others mean that the plugin could not be
// called. The end of the caller's context is kept findable.
func answered(ctx context.Context, err error, unavailable func(error) *fault.Error) error {
	if err == nil {
		return nil
	}
	if _, ok := fault.As(err); !ok {
		f := unavailable(err)
		var d *down
		if errors.As(err, &d) && d.retryIn > 0 {
			f = f.After(d.retryIn)
		}
		err = f
	}
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) && fault.Is(err, fault.Unavailable) {
		return unavailable(errors.Join(cause, err))
	}
	return err
}
