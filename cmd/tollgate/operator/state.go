package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/rest/statefile"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/registry/declaring"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

func newApply(p cli.Process) *cobra.Command {
	var q declaring.Request
	var file string
	c := &cobra.Command{
		Use:   "apply -f FILE|DIR [--dry-run] [--prune] [--owner NAME] [--adopt]",
		Short: "Make grants, views, mirrors and the rest what a file declares",
		Long: "Make the grants, service accounts, policies, views, mirrors, webhooks, review rules,\n" +
			"providers and access rules what a file in YAML or JSON declares, all or nothing, and print what has changed. -f\n" +
			"names a file, a folder whose files .yaml, .yml and .json are one state, or - for\n" +
			"standard input. What the file does not name stays, unless --prune is given.\n\n" +
			"What it makes is managed by the owner of the file: a change of it by hand is refused.\n" +
			"What was made by hand or has another owner is changed with --adopt only.\n\n" +
			"A secret is written as {env: VARIABLE} or {file: PATH}, which this command replaces.",
		Example: "  tollgate apply -f state.yaml --dry-run\n" +
			"  tollgate apply -f state --owner platform --prune",
	}
	flags := c.Flags()
	flags.StringVarP(&file, "file", "f", "", "file or folder with the state; - is standard input")
	flags.BoolVar(&q.DryRun, "dry-run", false, "print what would change, and change nothing")
	flags.BoolVar(&q.Prune, "prune", false, "delete what the owner manages and the state does not have")
	flags.BoolVar(&q.Adopt, "adopt", false, "take over what was made by hand or has another owner")
	flags.StringVar(&q.Owner, "owner", declaring.DefaultOwner, "owner of what the state declares")
	cli.RequireFlags(c, "file")
	return newDatabaseTable(p, c, func(r run) (cli.Table, error) {
		var err error
		if q.Document, err = readState(r.ctx, p, file); err != nil {
			return cli.Table{}, err
		}
		q.ApplyID, q.By, q.Operator = r.State.NewApplyID(), authority.Operator(), authority.Operator()
		changes, err := r.State.Apply(auditing.By(r.ctx, audit.Actor{ApplyID: q.ApplyID}), q)
		return changeTable(statefile.NewChanges(changes)), err
	}, func(r run) (cli.Table, error) {
		document, err := readState(r.ctx, p, file)
		if err != nil {
			return cli.Table{}, misused(err)
		}
		query := url.Values{"owner": {q.Owner}}
		for name, set := range map[string]bool{"dryRun": q.DryRun, "prune": q.Prune, "adopt": q.Adopt} {
			query.Set(name, strconv.FormatBool(set))
		}
		var answer statefile.Changes
		err = r.call(tollgateclient.Request{
			Method: http.MethodPost, Path: at("apply"), Query: query, Body: statefile.Encode(&document),
		}, &answer)
		return changeTable(answer), err
	})
}

func newExportState(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "export-state [--owner NAME]",
		Short: "Print the state that 'tollgate apply' reads",
		Long: "Print the grants, service accounts, policies, views, mirrors, webhooks, review rules,\n" +
			"providers and access rules as a file that 'tollgate apply' reads. To apply it changes nothing. It has no secrets:\n" +
			"one that is left out of a file is kept.",
		Example: "  tollgate export-state > state.yaml",
	}
	owner := c.Flags().String("owner", "", "only what this owner manages (default all)")
	o := cli.AddFormats(c, "output format: yaml or json", "yaml", "json")
	return newPlainCommand(p, c, func(r run) error {
		var document any
		err := r.call(tollgateclient.Request{
			Method: http.MethodGet, Path: at("state"), Query: url.Values{"owner": {*owner}},
		}, &document)
		if err != nil {
			return err
		}
		return o.PrintResult(p.Stdout, cli.Table{Value: document})
	})
}

// changeTable returns the table of what an apply has changed. Its JSON has everything that the API
// answers.
func changeTable(answer statefile.Changes) cli.Table {
	t := cli.Table{Header: []string{"KIND", "KEY", "CHANGE", "FIELDS"}, Value: answer}
	for _, c := range answer.Changes {
		if c.Change != string(declaring.Keep) {
			t.Rows = append(t.Rows, []string{c.Kind, c.Key, c.Change, strings.Join(slices.Sorted(maps.Keys(c.Fields)), ", ")})
		}
	}
	return t
}

// readState reads a file, or the files of a folder as one state, and puts secrets in the place of
// their references.
func readState(ctx context.Context, p cli.Process, path string) (declaring.Node, error) {
	files := []string{path}
	if info, err := os.Stat(path); path != "-" && err == nil && info.IsDir() {
		if files, err = stateFiles(path); err != nil {
			return declaring.Node{}, err
		}
	}
	var documents []declaring.Node
	size := 0
	for _, file := range files {
		text, err := readStateFile(ctx, p, file)
		if err != nil {
			return declaring.Node{}, err
		}
		if size += len(text); size > statefile.MaxBytes {
			return declaring.Node{}, fmt.Errorf("%s: the state is larger than %d bytes", path, statefile.MaxBytes)
		}
		isYAML := filepath.Ext(file) != ".json" && !strings.HasPrefix(strings.TrimSpace(string(text)), "{")
		document, err := statefile.Read(text, filepath.Base(file), isYAML)
		if err != nil {
			return declaring.Node{}, err
		}
		if err := statefile.Resolve(&document, p.Getenv, os.ReadFile); err != nil {
			return declaring.Node{}, err
		}
		documents = append(documents, document)
	}
	return statefile.Merge(documents), nil
}

// stateFiles returns the files of a folder with a state, ordered by name.
func stateFiles(folder string) (files []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(folder, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no file .yaml, .yml or .json", folder)
	}
	return files, nil
}

func readStateFile(ctx context.Context, p cli.Process, file string) ([]byte, error) {
	from := p.OpenStdin(ctx)
	if file != "-" {
		f, err := os.Open(file) // #nosec G304 -- the operator names the file
		if err != nil {
			return nil, errors.New(file + " cannot be read: " + errors.Unwrap(err).Error())
		}
		defer func() { _ = f.Close() }() // it was opened for reading
		from = f
	}
	return io.ReadAll(io.LimitReader(from, statefile.MaxBytes+1))
}
