package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/exportfile"
	"github.com/tollgate-dev/tollgate/core/registry/transfer"
	"github.com/tollgate-dev/tollgate/wiring"
)

// maxTold is the most records that the end of an import names one by one.
const maxImportLines = 10_000

func newRegistryImport(p process) *cobra.Command {
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
			"_meta is active and published now. The registry determines the latest version\n" +
			"again. A version that exists with the same document is skipped, so running the\n" +
			"import again changes nothing. A version that exists with another document is\n" +
			"refused, since a version can be published only once. A refused record does not\n" +
			"stop the import of the others. Consecutive versions of one server are stored\n" +
			"together. Package ownership is not checked. The service may run meanwhile; if\n" +
			"there is no database, the command creates it.\n\n" +
			"Documents must follow the rules of this registry. Other registries contain\n" +
			"documents that do not: --lenient imports those too, if name and version are\n" +
			"valid and no property occurs twice in an object. Readers get these documents\n" +
			"unchanged, even if they do not match the description of the API; importing an\n" +
			"export of them needs --lenient again.\n\n" +
			"Exits with 1 if a source could not be read to its end, or if every record was\n" +
			"refused; with --strict also if any record was refused.",
		Example: "  tollgate registry import backup.json\n" +
			"  tollgate registry import --lenient https://registry.example/v0.1/servers\n" +
			"  tollgate registry import --strict --output json servers/",
		Args: cobra.ExactArgs(1),
	}
	o := addOutput(c)
	c.Flags().BoolVar(&lenient, "lenient", false, "also import documents that break rules")
	c.Flags().BoolVar(&strict, "strict", false, "exit with 1 if any record was refused")
	c.RunE = func(c *cobra.Command, args []string) error {
		src, err := exportfile.Open(args[0], p.openStdin(c.Context()))
		if err != nil {
			return fmt.Errorf("import: %w", err)
		}
		defer func() { _ = src.Close() }() // it was only read
		return withCreatedOperator(c, p, func(op *wiring.Operator) error {
			i := &importReport{bar: newProgressBar(p.stderr, src)}
			counts, err := op.Transfer.Import(c.Context(), src, transfer.Options{Lenient: lenient, Observe: i.observe})
			i.bar.finish()
			if errors.Is(err, context.Canceled) {
				err = errors.New("interrupted: imported records stay, and another run continues from there")
			}
			return cmp.Or(o.printResult(p.stdout, i.table(counts)), err, checkImport(counts, strict)) // one of them is told
		})
	}
	return c
}

// judge reports whether an import that came to its end failed.
func checkImport(n transfer.Counts, strict bool) error {
	switch {
	case n.Broken > 0:
		return fmt.Errorf("%s could not be read to the end", formatCount(n.Broken, "file", "files"))
	case n.Refused > 0 && (strict || n.Taken+n.Skipped == 0):
		return fmt.Errorf("%s refused", formatCount(n.Refused, "record was", "records were"))
	}
	return nil
}

// imported gathers what an import is to tell at its end.
type importReport struct {
	bar  *progressBar
	told []importLine
	more int
}

// telling is a record that an operator is told of.
type importLine struct {
	Verdict string `json:"verdict"`
	Server  string `json:"server"`
	Version string `json:"version"`
	Origin  string `json:"origin"`
	Reason  string `json:"reason"`
}

// observe gathers those that were refused, or differ from what is here.
func (i *importReport) observe(o transfer.Outcome) {
	i.bar.update()
	switch {
	case o.Reason == "":
	case len(i.told) >= maxImportLines:
		i.more++
	default:
		i.told = append(i.told, importLine{string(o.Verdict), o.Name, o.Version, o.Origin, o.Reason})
	}
}

func (i *importReport) table(n transfer.Counts) table {
	t := table{header: []string{"RESULT", "RECORD", "WHY"}}
	for _, told := range i.told {
		server := told.Origin
		if told.Server != "" {
			server = told.Server + "@" + told.Version
		}
		t.rows = append(t.rows, []string{told.Verdict, server, told.Reason})
	}
	if i.more > 0 {
		t.rows = append(t.rows, []string{"", "and " + strconv.Itoa(i.more) + " more", ""})
	}
	t.rows = append(t.rows,
		[]string{"taken", "in all " + strconv.Itoa(n.Taken), ""}, []string{"skipped", "in all " + strconv.Itoa(n.Skipped), ""},
		[]string{"refused", "in all " + strconv.Itoa(n.Refused), ""})
	told := i.told
	if told == nil {
		told = []importLine{}
	}
	t.value = map[string]any{
		"taken": n.Taken, "skipped": n.Skipped, "refused": n.Refused, "unfinished": n.Broken, "records": told, "more": i.more,
	}
	return t
}
