package pluginhost

import (
	"context"
	"errors"
	"fmt"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Inspect starts every plugin once and returns the status of each. It returns fault.NotFound if the
// plugin folder does not exist, although the service starts without plugins then.
func Inspect(ctx context.Context, c Config, log *logrus.Entry) ([]Status, error) {
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
	return host.Status(), nil
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
