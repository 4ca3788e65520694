package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/rest/allowlistjson"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

func newAllowList(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "allowlist --for FORMAT [--view NAME]",
		Short: "Print the servers of the registry as the allow list of a client",
		Long: "Print an allow list, by which a client restricts the servers that its users may run.\n" +
			"The latest version of each server is allowed; deleted versions are denied. What the\n" +
			"format cannot express is listed on standard error. The same registry always gives\n" +
			"the same bytes. The service sends the same lists: /registries/NAME/allowlist/FORMAT.json,\n" +
			"and codex.toml.\n" +
			"\n" +
			"Formats:\n" +
			"  claude      allowedMcpServers and deniedMcpServers of Claude Code's managed settings\n" +
			"  vscode      the same properties, for GitHub Copilot in VS Code\n" +
			"  gemini      mcp and mcpServers of Gemini CLI's settings\n" +
			"  kiro        the MCP registry file of Kiro\n" +
			"  codex       mcp_servers of Codex's requirements.toml; it has remotes only\n" +
			"  claude-mcp  managed-mcp.json of Claude Code: these servers for everybody, and no others",
		Example: "  tollgate allowlist --for claude > managed-settings.json\n" +
			"  tollgate allowlist --for vscode --view data",
	}
	format := c.Flags().String("for", "", "claude, vscode, gemini, kiro, codex or claude-mcp (required)")
	name := c.Flags().String("view", view.All, "name of a view")
	cli.RequireFlags(c, "for")
	var f allowlist.Format
	c.PreRunE = func(*cobra.Command, []string) (err error) {
		if f, err = allowlist.ParseFormat(*format); err != nil {
			return fmt.Errorf("--for: %w", err)
		}
		return nil
	}
	return newDatabaseCommand(p, c, func(r run) error {
		v, err := r.Views.Find(r.ctx, *name)
		if err != nil {
			return err
		}
		return writeAllowList(r.ctx, p, r.AllowLists.In(v), f)
	})
}

// writeAllowList writes a list to standard output, and what it does not have to standard error.
func writeAllowList(ctx context.Context, p cli.Process, servers *allowlist.Source, f allowlist.Format) error {
	encoder := allowlistjson.NewEncoder()
	var skipped []allowlist.Skipped
	list, err := servers.Compile(ctx, allowlist.Output{
		Define: encoder.Define,
		Skip:   func(_ allowlist.Format, s allowlist.Skipped) { skipped = append(skipped, s.Clone()) },
	}, f)
	if err != nil {
		return err
	}
	slices.SortStableFunc(skipped, func(a, b allowlist.Skipped) int {
		return cmp.Or(strings.Compare(a.Name.String(), b.Name.String()),
			strings.Compare(a.Version.String(), b.Version.String()))
	})
	for _, s := range skipped {
		if _, err := fmt.Fprintf(p.Stderr, "not in the list: %s %s: %s\n", s.Name, s.Version, s.Reason); err != nil {
			return fmt.Errorf("write to standard error: %w", err)
		}
	}
	return encoder.Encode(p.Stdout, list, f)
}
