package person

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/registryjson"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/account"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
)

func newPublish(p cli.Process) *cobra.Command {
	var onlyValidate, byIdentity bool
	c := &cobra.Command{
		Use:   "publish FILE",
		Short: "Publish a version of a server",
		Long: "Publish the version of a server that the document in FILE describes; - is\n" +
			"standard input. The service first checks the document: an error ends the\n" +
			"command, a warning does not. If the trust level of the session is too low, the\n" +
			"command offers a step-up on a terminal.\n\n" +
			"With --oidc a CI job publishes without a sign-in, if a policy of the service allows\n" +
			"its identity ('tollgate publisher add'): in GitHub Actions the command requests an\n" +
			"ID token, elsewhere it uses the ID token in TOLLGATE_ID_TOKEN. Its audience must be\n" +
			"the address of the service, without a path.\n\n" +
			"Exits with 0 if the version is published or waits for review, 1 if it is refused\n" +
			"or the service fails, 3 if a sign-in or a step-up is needed first. With\n" +
			"--validate-only the command publishes nothing and needs no sign-in.",
		Example: "  tollgate publish server.json\n  tollgate publish --validate-only server.json\n" +
			"  tollgate publish --oidc --url https://tools.example.com server.json",
	}
	o := cli.AddOutput(c)
	a := addAddress(c)
	c.Flags().BoolVar(&onlyValidate, "validate-only", false, "check the document and publish nothing")
	c.Flags().BoolVar(&byIdentity, "oidc", false, "publish as the CI job that runs the command, by its ID token")
	c.MarkFlagsMutuallyExclusive("oidc", "validate-only")
	c.RunE = func(c *cobra.Command, args []string) error {
		u, err := newPublisher(p, a.context)
		if err != nil {
			return err
		}
		d, err := u.openSubmission(c.Context(), *a, args[0])
		if err != nil {
			return err
		}
		if onlyValidate {
			return d.runValidate(c.Context(), o)
		}
		return d.runPublish(c.Context(), o, byIdentity)
	}
	return c
}

// submission is a document to be checked or published at a service.
type submission struct {
	*publisherRun

	who  *account.Account
	file string
	text []byte
}

// openSubmission reads the document in a file.
func (u *publisherRun) openSubmission(ctx context.Context, a serviceAddress, file string) (submission, error) {
	who, err := u.lastAccount(a)
	if err != nil {
		return submission{}, err
	}
	text, err := readDocument(ctx, u.Process, file)
	if err != nil {
		return submission{}, err
	}
	if file == registryjson.Stdin {
		u.Disable()
	}
	return submission{u, who, file, text}, nil
}

// checkDocument validates the document at the service.
func (s submission) checkDocument(ctx context.Context) (verdict, error) {
	found, err := s.who.Client().Validate(ctx, s.text)
	v := verdict{s.file, found.Valid, append([]tollgateclient.Issue{}, found.Issues...)}
	return v, nameSubject(describeDocument(s.file), err)
}

// describeDocument returns how messages name the document of a file.
func describeDocument(file string) string {
	if file == registryjson.Stdin {
		return "the document on standard input"
	}
	return file
}

func (s submission) runValidate(ctx context.Context, o *cli.Output) error {
	v, err := s.checkDocument(ctx)
	if err != nil {
		return err
	}
	if err := o.PrintResult(s.Stdout, verdictTable([]verdict{v})); err != nil {
		return err
	}
	return v.invalidError()
}

// invalidError returns an error if the document breaks a rule.
func (v verdict) invalidError() error {
	if v.Valid {
		return nil
	}
	return errors.New(describeDocument(v.File) + " is not valid")
}

// published is the JSON form of a published version.
type published struct {
	Name        string                 `json:"name"`
	Version     string                 `json:"version"`
	IsLatest    bool                   `json:"isLatest"`
	Status      string                 `json:"status"`
	PublishedAt string                 `json:"publishedAt"`
	Warnings    []tollgateclient.Issue `json:"warnings"`
	Review      string                 `json:"review,omitempty"` // the ID of the review that it waits for
}

// runPublish publishes the document: as the person who is signed in, or by the identity of the job
// that runs the command.
func (s submission) runPublish(ctx context.Context, o *cli.Output, byIdentity bool) error {
	v, err := s.checkDocument(ctx)
	if err != nil {
		return err
	}
	for _, i := range v.Issues {
		s.PrintNote("%s: %s %s", i.Severity, cli.ReplaceControls(i.Path), cli.ReplaceControls(i.Message))
	}
	if err := v.invalidError(); err != nil {
		return fmt.Errorf("nothing was published: %w", err)
	}
	r, err := s.sendDocument(ctx, byIdentity)
	if err != nil {
		return nameSubject(describeDocument(s.file), err)
	}
	value := published{r.Name, r.Version, r.IsLatest, r.Status, r.PublishedAt, v.Issues, r.Review}
	if r.Review != "" {
		s.PrintNote("the version is listed after a reviewer has approved it")
		return o.PrintResult(s.Stdout, cli.Table{
			Header: []string{"SERVER", "VERSION", "REVIEW"}, Rows: [][]string{{r.Name, r.Version, r.Review}},
			Value: value,
		})
	}
	return o.PrintResult(s.Stdout, cli.Table{
		Header: []string{"SERVER", "VERSION", "LATEST", "STATUS", "PUBLISHED"},
		Rows:   [][]string{{r.Name, r.Version, yesNo(r.IsLatest), r.Status, r.PublishedAt}},
		Value:  value,
	})
}

// sendDocument publishes the document at the service.
func (s submission) sendDocument(ctx context.Context, byIdentity bool) (r tollgateclient.Record, err error) {
	client := s.who.Client()
	if byIdentity {
		token, err := s.exchangeIdentity(ctx, client)
		if err != nil {
			return r, err
		}
		return client.Publish(ctx, token, s.text)
	}
	err = s.callWithStepUp(ctx, s.who, func(ctx context.Context, token string) error {
		r, err = client.Publish(ctx, token, s.text)
		return err
	})
	return r, err
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// The variables from which a job gets its ID token.
const (
	githubURLVariable   = "ACTIONS_ID_TOKEN_REQUEST_URL"
	githubTokenVariable = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
	idTokenVariable     = "TOLLGATE_ID_TOKEN"
)

// exchangeIdentity returns the token of a publisher for the identity of the job that runs the
// command: for an ID token of GitHub Actions, or else for that in TOLLGATE_ID_TOKEN.
func (u *publisherRun) exchangeIdentity(ctx context.Context, client *tollgateclient.Client) (string, error) {
	address, requestToken := u.Getenv(githubURLVariable), u.Getenv(githubTokenVariable)
	if address != "" && requestToken != "" {
		idToken, err := client.RequestGitHubToken(ctx, address, requestToken)
		if err != nil {
			return "", err
		}
		return client.ExchangeIDToken(ctx, tollgateclient.GitHubOIDC, idToken)
	}
	idToken := u.Getenv(idTokenVariable)
	if idToken == "" {
		audience, err := client.Audience()
		if err != nil {
			return "", err
		}
		return "",
			errors.New("there is no ID token: in GitHub Actions the job needs the permission id-token: write; elsewhere set " +
				idTokenVariable + " to an ID token whose audience is " + audience)
	}
	return client.ExchangeIDToken(ctx, tollgateclient.OIDC, idToken)
}
