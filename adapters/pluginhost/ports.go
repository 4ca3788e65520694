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

// Courier implements the courier port with one plugin.
type Courier struct{ plugin *supervisor }

// Deliver implements [courier.Courier].
func (c *Courier) Deliver(ctx context.Context, m courier.Message) error {
	if err := m.Validate(); err != nil {
		return err
	}
	err := c.plugin.callPlugin(ctx,
		func(ctx context.Context, conn grpc.ClientConnInterface, d pluginclient.Description) error {
			return pluginclient.Deliver(ctx, conn, d, m)
		})
	return toFault(ctx, err, pluginclient.DeliveryFailed)
}

// Channels returns the channels that the plugin supports; empty until its first successful start.
func (c *Courier) Channels() []courier.Channel {
	if d := c.plugin.lastDescription(); d != nil {
		return slices.Clone(d.Channels)
	}
	return nil
}

// Checker implements the ownership port with all ownership plugins.
type Checker struct{ plugins []*supervisor }

// Check implements [ownership.Checker].
func (c *Checker) Check(ctx context.Context, claim ownership.Claim) error {
	if err := claim.Validate(); err != nil {
		return err
	}
	v, err := c.findPlugin(ctx, claim.RegistryType)
	if err != nil {
		return err
	}
	err = v.callPlugin(ctx, func(ctx context.Context, conn grpc.ClientConnInterface, d pluginclient.Description) error {
		return pluginclient.CheckOwnership(ctx, conn, d, claim)
	})
	return toFault(ctx, err, pluginclient.CheckFailed)
}

// findPlugin returns the plugin for a registry type. It waits for plugins that start for the first
// time. A plugin that has never started is found by its name, "pkg-" and the type. It returns a
// fault if no plugin supports the type.
func (c *Checker) findPlugin(ctx context.Context, registryType string) (*supervisor, error) {
	for _, v := range c.plugins {
		if err := c.awaitFirstStart(ctx, v); err != nil {
			return nil, pluginclient.CheckFailed(err)
		}
		d := v.lastDescription()
		if d == nil && v.spec.name == ownershipPrefix+registryType ||
			d != nil && slices.Contains(d.RegistryTypes, registryType) {
			return v, nil
		}
	}
	return nil, pluginclient.UnsupportedType(registryType, c.Types())
}

func (c *Checker) awaitFirstStart(ctx context.Context, v *supervisor) error {
	ctx, cancel := context.WithTimeout(ctx, v.spec.limits.call)
	defer cancel()
	return v.awaitFirstStart(ctx)
}

// Types implements [ownership.Checker].
func (c *Checker) Types() []string {
	types := []string{}
	for _, v := range c.plugins {
		if d := v.lastDescription(); d != nil {
			types = append(types, d.RegistryTypes...)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// toFault converts err to a fault. Errors of package pluginclient are faults already; any other
// error means that the plugin could not be called. The result matches the error of ctx by errors.Is
// if ctx has ended.
func toFault(ctx context.Context, err error, unavailable func(error) *fault.Error) error {
	if err == nil {
		return nil
	}
	if _, ok := fault.As(err); !ok {
		f := unavailable(err)
		var d *downError
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
