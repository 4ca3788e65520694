package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/registryjson"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/person"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/core/registry/transferring"
)

func newRegistry(p cli.Process) *cobra.Command {
	return cli.NewGroup("registry", "Validate documents, import or export whole registries, and hide servers",
		person.NewValidate(p), newRegistryImport(p), newRegistryExport(p), newRegistryQuarantine(p),
		newRegistryRelease(p))
}

// maxImportLines is the maximum number of records that the report of an import lists.
const maxImportLines = 10_000

func newRegistryImport(p cli.Process) *cobra.Command {
	var lenient, strict bool
	c := &cobra.Command{
		Use:   "import FILE|DIR|URL",
		Short: "Import servers from files or from another registry",
		Long: "Import servers: from a FILE with one server document, a list or an export\n" +
			"({\"servers\":[{\"server\",\"_meta\"}]}); from all .json files in a folder DIR and\n" +
			"its subfolders; from the URL of one of these files, or of another registry's\n" +
			"list (https://registry.example/v0.1/servers), of which the command reads all\n" +
			"pages and requests deleted versions too; or, for -, from standard input.\n\n" +
			"Each version keeps the status, message and times in _meta; a document without\n" +
			"_meta becomes an active version, published now. The registry determines the\n" +
			"latest version again. A version that exists with the same document is skipped,\n" +
			"so running the import again changes nothing. A version that exists with another\n" +
			"document is refused, because a version can be published only once. The import\n" +
			"continues after a refused record. Consecutive versions of one server are stored\n" +
			"together. Package ownership is not checked. The service may run meanwhile; if\n" +
			"there is no database, the command creates it.\n\n" +
			"Documents must follow the rules of this registry. Other registries contain\n" +
			"documents that do not: --lenient imports those too, if name and version are\n" +
			"valid and no property occurs twice in an object. Clients read these documents\n" +
			"unchanged, even if they do not match the description of the API; importing an\n" +
			"export of them needs --lenient again.\n\n" +
			"Exits with 1 if a source could not be read to its end, or if every record was\n" +
			"refused; with --strict also if any record was refused.",
		Example: "  tollgate registry import backup.json\n" +
			"  tollgate registry import --lenient https://registry.example/v0.1/servers\n" +
			"  tollgate registry import --strict --output json servers/",
	}
	o := cli.AddOutput(c)
	c.Flags().BoolVar(&lenient, "lenient", false, "also import documents that break rules")
	c.Flags().BoolVar(&strict, "strict", false, "exit with 1 if any record was refused")
	c.RunE = func(c *cobra.Command, args []string) error {
		src, err := registryjson.Open(args[0], p.OpenStdin(c.Context()))
		if err != nil {
			return fmt.Errorf("import: %w", err)
		}
		defer func() { _ = src.Close() }() // it was opened for reading
		return runWith(p, openOrCreate(p), func(r run) error {
			i := &importReport{bar: cli.NewProgressBar(p.Stderr, src)}
			counts, err := r.Transfer.Import(r.ctx, src, transferring.Options{
				Lenient: lenient, Observe: i.observe,
			})
			i.bar.Finish()
			if errors.Is(err, context.Canceled) {
				err = errors.New(
					"interrupted: the records imported so far are stored; run the import again to continue")
			}
			// the first error is enough
			return cmp.Or(o.PrintResult(p.Stdout, i.table(counts)), err, checkImport(counts, strict))
		})(c, args)
	}
	return addRemote(p, c, nil)
}

// checkImport returns an error if a completed import counts as failed.
func checkImport(n transferring.Counts, strict bool) error {
	switch {
	case n.Broken > 0:
		return fmt.Errorf("%s could not be read to the end", cli.FormatCount(n.Broken, "file", "files"))
	case n.Refused > 0 && (strict || n.Taken+n.Skipped == 0):
		return fmt.Errorf("%s refused", cli.FormatCount(n.Refused, "record was", "records were"))
	}
	return nil
}

// importReport collects the report of an import.
type importReport struct {
	bar   *cli.ProgressBar
	lines []importLine
	more  int // records beyond maxImportLines
}

// importLine is one record in the report.
type importLine struct {
	Verdict string `json:"verdict"`
	Server  string `json:"server"`
	Version string `json:"version"`
	Origin  string `json:"origin"`
	Reason  string `json:"reason"`
}

// observe adds a record that was refused or differs from the stored version.
func (i *importReport) observe(o transferring.Outcome) {
	i.bar.Update()
	switch {
	case o.Reason == "":
	case len(i.lines) >= maxImportLines:
		i.more++
	default:
		i.lines = append(i.lines, importLine{string(o.Verdict), o.Name, o.Version, o.Origin, o.Reason})
	}
}

func (i *importReport) table(n transferring.Counts) cli.Table {
	t := cli.Table{Header: []string{"RESULT", "RECORD", "WHY"}, Rows: i.groupRows()}
	if i.more > 0 {
		t.Rows = append(t.Rows, []string{"", "and " + strconv.Itoa(i.more) + " more", ""})
	}
	t.Rows = append(t.Rows, []string{"taken", "total " + strconv.Itoa(n.Taken), ""},
		[]string{"skipped", "total " + strconv.Itoa(n.Skipped), ""},
		[]string{"refused", "total " + strconv.Itoa(n.Refused), lenientHint(n)})
	t.Value = map[string]any{
		"taken": n.Taken, "skipped": n.Skipped, "refused": n.Refused, "refusedUnlessLenient": n.Lenient, "unfinished": n.Broken,
		"records": append([]importLine{}, i.lines...), "more": i.more,
	}
	return t
}

// groupRows returns the rows of the records. Those with the same reason are one row, at the place of
// the first one; JSON has each of them.
func (i *importReport) groupRows() (rows [][]string) {
	places, sizes := map[[2]string]int{}, []int{}
	for _, l := range i.lines {
		key := [2]string{l.Verdict, l.Reason}
		if at, known := places[key]; known {
			sizes[at]++
			continue
		}
		places[key], sizes = len(rows), append(sizes, 0)
		record := l.Origin
		if l.Server != "" {
			record = l.Server + "@" + l.Version
		}
		rows = append(rows, []string{l.Verdict, record, l.Reason})
	}
	for at, more := range sizes {
		if more > 0 {
			rows[at][1] += " and " + cli.FormatCount(more, "other", "others")
		}
	}
	return rows
}

// lenientHint says how many of the refused records an import with --lenient takes.
func lenientHint(n transferring.Counts) string {
	if n.Lenient == 0 {
		return ""
	}
	return "--lenient imports " + strconv.Itoa(n.Lenient) + " of them"
}

func newRegistryExport(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Export every version of every server, including deleted ones",
		Long: "Write every version of every server, including deleted ones, ordered by name\n" +
			"and version, in the form that import reads: {\"servers\":[{\"server\",\"_meta\"}]}.\n" +
			"Without FILE the export goes to standard output. FILE must not exist unless\n" +
			"--force is given, and appears only when the export is complete. The service may\n" +
			"run meanwhile. The same registry always produces the same bytes.",
		Example: "  tollgate registry export backup.json\n" +
			"  tollgate registry export | gzip > backup.json.gz",
		Args: cobra.MaximumNArgs(1),
	}
	o := cli.AddOutput(c)
	force := addForce(c)
	return newDatabaseCommand(p, c, func(r run) error {
		if len(r.args) == 0 || r.args[0] == registryjson.Stdin {
			w := registryjson.NewWriter(p.Stdout)
			if _, err := r.Transfer.Export(r.ctx, w.Write); err != nil {
				return err
			}
			return w.Close()
		}
		var n int
		err := registryjson.WriteFile(r.args[0], *force, func(w *registryjson.Writer) (err error) {
			n, err = r.Transfer.Export(r.ctx, w.Write)
			return err
		})
		if err != nil {
			return fmt.Errorf("export: %w", suggestForce(r.args[0], err))
		}
		type row struct {
			File     string `json:"file"     column:"FILE"`
			Versions int    `json:"versions" column:"VERSIONS"`
		}
		return o.PrintResult(p.Stdout, cli.RowTable(row{r.args[0], n}))
	})
}

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
