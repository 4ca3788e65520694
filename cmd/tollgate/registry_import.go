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
const maxTold = 10_000

func newRegistryImport(p process) *cobra.Command {
	var lenient, strict bool
	c := &cobra.Command{
		Use:   "import FILE|DIR|URL",
		Short: "Take servers in from files or from another registry",
		Long: "Take servers in: from a FILE that holds one server document, a list or an export\n" +
			"({\"servers\":[{\"server\",\"_meta\"}]}); from all .json files of a folder DIR and those\n" +
			"in it; from the URL of such a file, or of another registry's list\n" +
			"(https://registry.example/v0.1/servers), whose pages are followed to the last and\n" +
			"which is asked for deleted versions too; or, for -, from standard input.\n\n" +
			"Each version keeps the status, message and times that _meta records; a document\n" +
			"without _meta is active and published now. Which version is latest is found anew.\n" +
			"A version that is here with the same document is skipped, so that running the\n" +
			"import again changes nothing; one that is here with another document is refused,\n" +
			"since a version is published once, for ever. A record that is refused does not\n" +
			"keep the others out. The versions of one server that stand together are stored\n" +
			"together. Package ownership is not checked. The service may run meanwhile; a\n" +
			"database that is not there is made.\n\n" +
			"Documents keep the rules of this registry. Other registries hold documents that\n" +
			"do not: --lenient takes those too, as long as name and version are good and no\n" +
			"property stands twice in an object. Readers get them as they are, also where that\n" +
			"is not as the API describes documents; their export needs --lenient to come in.\n\n" +
			"Exits with 1 when a source could not be read to its end, or when every record\n" +
			"was refused; with --strict also when any was.",
		Example: "  tollgate registry import backup.json\n" +
			"  tollgate registry import --lenient https://registry.example/v0.1/servers\n" +
			"  tollgate registry import --strict --output json servers/",
		Args: cobra.ExactArgs(1),
	}
	o := addOutput(c)
	c.Flags().BoolVar(&lenient, "lenient", false, "take documents that break rules, too")
	c.Flags().BoolVar(&strict, "strict", false, "exit with 1 when any record was refused")
	c.RunE = func(c *cobra.Command, args []string) error {
		src, err := exportfile.Open(args[0], p.input(c.Context()))
		if err != nil {
			return fmt.Errorf("import: %w", err)
		}
		defer func() { _ = src.Close() }() // it was only read
		return withNewOperator(c, p, func(op *wiring.Operator) error {
			i := &imported{bar: newBar(p.stderr, src)}
			counts, err := op.Transfer.Import(c.Context(), src, transfer.Options{Lenient: lenient, Observe: i.observe})
			i.bar.finish()
			if errors.Is(err, context.Canceled) {
				err = errors.New("interrupted: what was taken stays, and another run goes on from there")
			}
			return cmp.Or(o.print(p.stdout, i.table(counts)), err, judge(counts, strict)) // one of them is told
		})
	}
	return c
}

// judge tells whether an import that came to its end failed.
func judge(n transfer.Counts, strict bool) error {
	switch {
	case n.Broken > 0:
		return fmt.Errorf("%s could not be read to the end", count(n.Broken, "file", "files"))
	case n.Refused > 0 && (strict || n.Taken+n.Skipped == 0):
		return fmt.Errorf("%s refused", count(n.Refused, "record was", "records were"))
	}
	return nil
}

// imported gathers what an import is to tell at its end.
type imported struct {
	bar  *bar
	told []telling
	more int
}

// telling is a record that an operator is told of.
type telling struct {
	Verdict string `json:"verdict"`
	Server  string `json:"server"`
	Version string `json:"version"`
	Origin  string `json:"origin"`
	Reason  string `json:"reason"`
}

// observe gathers those that were refused, or differ from what is here.
func (i *imported) observe(o transfer.Outcome) {
	i.bar.move()
	switch {
	case o.Reason == "":
	case len(i.told) >= maxTold:
		i.more++
	default:
		i.told = append(i.told, telling{string(o.Verdict), o.Name, o.Version, o.Origin, o.Reason})
	}
}

func (i *imported) table(n transfer.Counts) table {
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
		told = []telling{}
	}
	t.value = map[string]any{
		"taken": n.Taken, "skipped": n.Skipped, "refused": n.Refused, "unfinished": n.Broken, "records": told, "more": i.more,
	}
	return t
}
