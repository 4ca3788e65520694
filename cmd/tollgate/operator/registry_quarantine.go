package operator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
)

func newRegistryQuarantine(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "quarantine {NAME [--version V] --reason R | --list}",
		Short: "Hide a server or one version of it at once, or list what is hidden",
		Long: "Put the server NAME in quarantine, or one version of it: from the next second on\n" +
			"no list, search or allow list has it, a read by name is 404, and publishers cannot\n" +
			"change it or add versions. Reads that include deleted versions show it as deleted,\n" +
			"with the reason. 'tollgate registry release' restores it. For one version, standard\n" +
			"error names the versions that stay listed with the same remote or package.",
		Example: "  tollgate registry quarantine com.example/weather --reason 'it sends what it reads to another host'\n" +
			"  tollgate registry quarantine com.example/weather --version 1.0.0 --reason 'CVE-2026-1234'\n" +
			"  tollgate registry quarantine --list --output json",
	}
	var version, reason string
	var list bool
	c.Flags().StringVar(&version, "version", "", "version to hide; default: the whole server, also versions to come")
	c.Flags().StringVar(&reason, "reason", "",
		"why, at most 500 characters; publishers and readers of deleted versions see it")
	c.Flags().BoolVar(&list, "list", false, "list everything that is in quarantine")
	c.MarkFlagsOneRequired("reason", "list")
	c.MarkFlagsMutuallyExclusive("reason", "list")
	c.MarkFlagsMutuallyExclusive("version", "list")
	c.Args = func(c *cobra.Command, args []string) error {
		if list {
			return cobra.NoArgs(c, args)
		}
		return cobra.ExactArgs(1)(c, args)
	}
	return newTableCommand(p, c, func(r run) (cli.Table, error) {
		if list {
			rows, err := listOf[quarantineRow](r, quarantinePath, "quarantined", nil)
			return quarantineTable(r, rows), err
		}
		body := map[string]string{"serverName": r.args[0], "reason": reason}
		if version != "" {
			body["version"] = version
		}
		rows := make([]quarantineRow, 1)
		err := r.send(http.MethodPost, quarantinePath, body, &rows[0])
		if err == nil && version != "" {
			left, err := r.remaining(r.args[0], version)
			noteRemaining(p, left, err)
		}
		return quarantineTable(r, rows), err
	})
}

func newRegistryRelease(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "release NAME [--version V]",
		Short: "Release a server or one version of it from quarantine",
		Long: "End the quarantine of the server NAME, or of one version of it. Versions get the\n" +
			"status and the message that they had before, unless they are in quarantine\n" +
			"otherwise: a version is hidden while it or its server is in quarantine.",
		Example: "  tollgate registry release com.example/weather\n" +
			"  tollgate registry release com.example/weather --version 1.0.0",
		Args: cobra.ExactArgs(1),
	}
	var version string
	c.Flags().StringVar(&version, "version", "",
		"version to release; default: the server, if it is in quarantine as a whole")
	return newPlainCommand(p, c, func(r run) error {
		query := url.Values{"serverName": {r.args[0]}}
		if version != "" {
			query.Set("version", version)
		}
		return r.call(tollgateclient.Request{Method: http.MethodDelete, Path: quarantinePath, Query: query}, nil)
	})
}

// quarantineRow is what is in quarantine in the output of commands.
type quarantineRow struct {
	ServerName string  `json:"serverName" column:"SERVER"`
	Version    *string `json:"version"` // nil for the whole server
	Versions   string  `json:"-"          column:"VERSION"`
	Reason     string  `json:"reason"     column:"REASON"`
	Since      stamp   `json:"since"      column:"SINCE"`
	By         string  `json:"by"         column:"BY"`
}

// quarantinePath is the path of the API of reviewers.
const quarantinePath = "/v0.1/x/dev.tollgate/quarantine"

// quarantineTable completes entries of the API with what only the table shows.
func quarantineTable(r run, rows []quarantineRow) cli.Table {
	for i := range rows {
		row := &rows[i]
		row.By, row.Versions = r.emailOf(row.By), "all"
		if row.Version != nil {
			row.Versions = *row.Version
		}
	}
	return cli.ListTable(rows)
}

// noteRemaining prints what stays listed and offers the same as a version that is hidden now.
func noteRemaining(p cli.Process, left []registry.Shared, err error) {
	text := ""
	for i, s := range left {
		if i == 5 {
			text += " and " + strconv.Itoa(len(left)-i) + " more"
			break
		}
		text += " " + s.Version.String() + " (" + strings.Join(s.Offers, ", ") + ")"
	}
	switch { // the command continues without the note
	case err != nil:
		_, _ = fmt.Fprintf(p.Stderr, "It is hidden. What stays listed could not be read: %s\n", cli.ErrorSentence(err))
	case text != "":
		_, _ = fmt.Fprintf(p.Stderr, "Listed with the same remote or package:%s. Without --version the whole server is hidden.\n", text)
	}
}

// remaining returns what is still listed and offers the same as a version.
func (r run) remaining(name, version string) ([]registry.Shared, error) {
	if r.Operator != nil {
		return r.Quarantine.Remaining(r.ctx, quarantining.Target{ServerName: name, Version: version})
	}
	var found struct {
		Servers []struct {
			Server json.RawMessage
			Meta   struct {
				Official struct{ Status string } `json:"io.modelcontextprotocol.registry/official"`
			} `json:"_meta"`
		}
	}
	err := r.call(tollgateclient.Request{
		Method: http.MethodGet, Path: "/v0.1/servers/" + url.PathEscape(name) + "/versions",
		Query: url.Values{"include_deleted": {"true"}},
	}, &found)
	var target registry.Record
	var all []registry.Record
	for _, s := range found.Servers {
		draft, broken := registry.ParseDraft(s.Server)
		v, noVersion := registry.ParseVersion(draft.Version())
		if broken != nil || noVersion != nil {
			continue // of another registry
		}
		one := registry.Record{Release: registry.Release{Version: v, Status: registry.Status(s.Meta.Official.Status)}, Document: s.Server}
		if all = append(all, one); v.String() == version {
			target = one
		}
	}
	return registry.SharedWith(target, all), err
}
