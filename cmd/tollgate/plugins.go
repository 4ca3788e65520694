package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/wiring"
)

func newPlugins(p process) *cobra.Command {
	c := &cobra.Command{
		Use:     "plugins",
		Short:   "List the plugins; starts each one to check that it answers",
		Example: "  tollgate plugins --output json",
		Args:    cobra.NoArgs,
	}
	o := addOutput(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := readSettings(p)
		if err != nil {
			return err
		}
		found, err := wiring.Plugins(c.Context(), s, operatorLog(s, p))
		if err != nil {
			return err
		}
		if len(found) == 0 {
			_, _ = fmt.Fprintf(p.stderr, "There is no plugin in %s (PLUGIN_DIR).\n", s.Plugins.Dir) // the empty table says it too
		}
		type row struct {
			Name      string `json:"name"`
			Kind      string `json:"kind"`
			Version   string `json:"version,omitempty"`
			State     string `json:"state"`
			Restarts  int    `json:"restarts"`
			LastError string `json:"lastError,omitempty"`
		}
		list := make([]row, 0, len(found))
		rows := make([][]string, 0, len(found))
		for _, f := range found {
			list = append(list, row{f.Name, f.Kind, f.Version, string(f.State), f.Restarts, f.LastError})
			rows = append(rows, []string{f.Name, f.Kind, f.Version, string(f.State), strconv.Itoa(f.Restarts), f.LastError})
		}
		return o.printResult(p.stdout, table{
			header: []string{"NAME", "KIND", "VERSION", "STATE", "RESTARTS", "LAST ERROR"}, rows: rows, value: list,
		})
	}
	return c
}
