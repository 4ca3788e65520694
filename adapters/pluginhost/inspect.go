package pluginhost

import (
	"context"
	"errors"
	"fmt"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/plugins/pluginclient"
)

// Inspect starts every plugin once and returns the status of each. A courier that does not start and
// is not one of the couriers in use is Idle: it may have no settings. Inspect returns fault.NotFound
// if the plugin folder does not exist, although the service starts without plugins then.
func Inspect(ctx context.Context, c Config, used CourierConfig, log *logrus.Entry) ([]Status, error) {
	if c.FolderMissing() {
		return nil, fault.Newf(fault.NotFound, "the plugin folder %s (PLUGIN_DIR) does not exist", c.Dir)
	}
	host, cleanup, err := Open(c, log)
	if err != nil {
		return nil, fmt.Errorf("plugins: %w", err)
	}
	defer cleanup()
	if err := host.StartAll(ctx); err != nil {
		return nil, fmt.Errorf("plugins: %w", err)
	}
	all := host.Status()
	for i := range all {
		s := &all[i]
		if s.Kind == string(pluginclient.Courier) && s.State == Failed && s.Name != used.Email && s.Name != used.SMS {
			s.State, s.LastError = Idle, ""
		}
	}
	return all, nil
}

// Unused reports whether nothing has used the plugin of a name.
func (h *Host) Unused(plugin string) bool {
	for _, status := range h.Status() {
		if status.Name == plugin {
			return status.State == Idle
		}
	}
	return false
}

// CheckFailed returns an error if the plugin of a name has failed. A plugin that has not been
// started yet has not failed.
func (h *Host) CheckFailed(plugin string) error {
	for _, status := range h.Status() {
		if status.Name == plugin && status.State == Failed {
			return errors.New("plugin " + plugin + " has failed")
		}
	}
	return nil
}
