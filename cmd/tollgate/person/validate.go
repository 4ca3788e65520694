package person

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/registryjson"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// verdict is the result of the validation of one file.
type verdict struct {
	File   string                 `json:"file"`
	Valid  bool                   `json:"valid"`
	Issues []tollgateclient.Issue `json:"issues"`
}

// NewValidate returns the command 'tollgate registry validate', which is a command of publishers
// with a name among those of operators.
func NewValidate(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check server documents against the rules",
		Long: "Check server documents against the rules of the registry, and report the same\n" +
			"errors as publishing would. A FILE of - is standard input. Exits with 1 if a\n" +
			"document breaks a rule or cannot be read; warnings do not change the exit code.",
		Example: "  tollgate registry validate server.json\n" +
			"  tollgate registry validate --output json servers/*.json",
		Args: cobra.MinimumNArgs(1),
	}
	o := cli.AddOutput(c)
	c.RunE = func(c *cobra.Command, names []string) error {
		verdicts := make([]verdict, 0, len(names))
		bad := 0
		for _, name := range names {
			v := validateFile(c.Context(), p, name)
			if err := c.Context().Err(); err != nil {
				return err
			}
			if !v.Valid {
				bad++
			}
			verdicts = append(verdicts, v)
		}
		if err := o.PrintResult(p.Stdout, verdictTable(verdicts)); err != nil {
			return err
		}
		return countInvalid(bad, len(names))
	}
	return c
}

// countInvalid returns an error if some of the checked documents are invalid.
func countInvalid(bad, all int) error {
	switch {
	case bad == 0:
		return nil
	case all == 1:
		return errors.New("the document is not valid")
	case bad == 1:
		return fmt.Errorf("1 of %d documents is not valid", all)
	}
	return fmt.Errorf("%d of %d documents are not valid", bad, all)
}

func verdictTable(verdicts []verdict) cli.Table {
	t := cli.Table{Header: []string{"FILE", "SEVERITY", "PATH", "MESSAGE", "RULE"}, Value: verdicts}
	for _, v := range verdicts {
		for _, i := range v.Issues {
			t.Rows = append(t.Rows, []string{v.File, i.Severity, i.Path, i.Message, i.Reference})
		}
		if v.Valid {
			t.Rows = append(t.Rows, []string{v.File, "ok", "", "", ""})
		}
	}
	return t
}

func validateFile(ctx context.Context, p cli.Process, name string) verdict {
	v := verdict{File: name, Valid: true, Issues: []tollgateclient.Issue{}}
	text, err := readDocument(ctx, p, name)
	if err != nil {
		v.addReadError(err)
		return v
	}
	draft, err := registry.ParseDraft(text)
	if err != nil {
		v.addReadError(err)
		return v
	}
	for _, i := range draft.Issues() {
		v.Issues = append(v.Issues, tollgateclient.Issue{
			Type: string(i.Type), Path: i.Path, Message: i.Message, Severity: string(i.Severity),
			Reference: i.Reference,
		})
		v.Valid = v.Valid && i.Severity != registry.SeverityError
	}
	return v
}

// addReadError records that the document could not be read or parsed.
func (v *verdict) addReadError(err error) {
	v.Valid = false
	v.Issues = append(v.Issues, tollgateclient.Issue{
		Type: string(registry.IssueJSON), Message: cli.ErrorSentence(err), Severity: string(registry.SeverityError),
		Reference: "json",
	})
}

func readDocument(ctx context.Context, p cli.Process, name string) ([]byte, error) {
	in := p.OpenStdin(ctx)
	if name != registryjson.Stdin {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was opened for reading
		in = f
	}
	return registryjson.ReadDocument(in)
}
