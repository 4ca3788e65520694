package operator

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
)

func newPlugins(p cli.Process) *cobra.Command {
	return newSettingsCommand(p, &cobra.Command{
		Use:     "plugins",
		Short:   "List the plugins and check each one by starting it",
		Example: "  tollgate plugins --output json",
	}, func(r run) (cli.Table, error) {
		found, err := pluginhost.Inspect(r.ctx, r.settings.Plugins, pluginhost.CourierConfig{
			Email: r.settings.Couriers.Email, SMS: r.settings.Couriers.SMS,
		}, operatorLog(r.settings, p))
		if err == nil && len(found) == 0 {
			// the empty table shows it too
			_, _ = fmt.Fprintf(p.Stderr, "There is no plugin in %s (PLUGIN_DIR).\n", r.settings.Plugins.Dir)
		}
		return pluginTable(found), err
	})
}

func pluginTable(plugins []pluginhost.Status) cli.Table {
	type row struct {
		Name      string `json:"name"                column:"NAME"`
		Kind      string `json:"kind"                column:"KIND"`
		Version   string `json:"version,omitempty"   column:"VERSION"`
		State     string `json:"state"               column:"STATE"`
		Restarts  int    `json:"restarts"            column:"RESTARTS"`
		LastError string `json:"lastError,omitempty" column:"LAST ERROR"`
	}
	return cli.TableOf(plugins, func(s *pluginhost.Status) row {
		return row{s.Name, s.Kind, s.Version, string(s.State), s.Restarts, s.LastError}
	})
}
