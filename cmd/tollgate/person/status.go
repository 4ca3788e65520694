package person

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/account"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// statusRun is one run of the command, with its flags.
type statusRun struct {
	*publisherRun

	who     *account.Account
	out     *cli.Output
	target  string                      // NAME or NAME@VERSION, from the command line
	change  tollgateclient.StatusChange // Status is empty if the command changes nothing
	address serviceAddress
}

func newStatus(p cli.Process) *cobra.Command {
	var s statusRun
	c := &cobra.Command{
		Use:   "status [NAME[@VERSION]]",
		Short: "Show the service, or the versions of a server and their status",
		Long: "Without NAME, show the service at which you are signed in and whether it is\n" +
			"ready; exits with 1 if it is not. With NAME, show the versions of that server\n" +
			"with their status, including deleted ones, and what of it that you submitted or\n" +
			"may review waits for review or was refused, with the comment.\n\n" +
			"With --set, change the status of one version, or without VERSION of all versions\n" +
			"at once, to active, deprecated or deleted. The message of a deprecated or\n" +
			"deleted version gives users the reason; without --message the previous message\n" +
			"is removed.",
		Example: "  tollgate status\n" +
			"  tollgate status com.example/weather\n" +
			"  tollgate status com.example/weather@1.0.0 --set deprecated --message 'Use 1.1.0'",
		Args: cobra.MaximumNArgs(1),
	}
	s.out = cli.AddOutput(c)
	a := addAddress(c)
	c.Flags().StringVar(&s.change.Status, "set", "", "status to set: active, deprecated or deleted")
	c.Flags().StringVar(&s.change.Message, "message", "", "reason for the status, shown to users")
	c.RunE = func(c *cobra.Command, args []string) error {
		s.address = *a
		if len(args) > 0 {
			s.target = args[0]
			s.change.Name, s.change.Version, _ = strings.Cut(args[0], "@") // a name has no @
		}
		if err := s.checkFlags(args); err != nil {
			return err
		}
		var err error
		if s.publisherRun, err = newPublisher(p); err != nil {
			return err
		}
		if s.who, err = s.lastAccount(s.address); err != nil {
			return err
		}
		return s.run(c.Context())
	}
	return c
}

// checkFlags returns an error if the flags and arguments contradict each other.
func (s *statusRun) checkFlags(args []string) error {
	switch {
	case s.change.Status == "" && s.change.Message != "":
		return errors.New("--message needs --set: it is the reason for the new status")
	case s.change.Status != "" && len(args) == 0:
		return errors.New("--set needs the NAME of a server")
	case len(args) > 0 && (s.change.Name == "" || strings.HasSuffix(args[0], "@")):
		return fmt.Errorf("%q is not of the form NAME or NAME@VERSION", args[0])
	case s.change.Status == "":
		return nil
	}
	if _, err := registry.ParseStatus(s.change.Status); err != nil {
		return fmt.Errorf("--set: %q is not a status: use active, deprecated or deleted", s.change.Status)
	}
	return nil
}

func (s *statusRun) run(ctx context.Context) error {
	switch {
	case s.change.Name == "":
		return s.showService(ctx)
	case s.change.Status != "":
		return s.setStatus(ctx)
	}
	return s.showVersions(ctx)
}

// showVersions prints the versions of a server.
func (s *statusRun) showVersions(ctx context.Context) error {
	records, err := s.versions(ctx, s.who, s.change.Name, s.change.Version)
	if err != nil {
		return nameSubject(s.target, err)
	}
	return s.out.PrintResult(s.Stdout, recordTable(records))
}

// setStatus changes the status and prints the changed versions.
func (s *statusRun) setStatus(ctx context.Context) error {
	var changed []tollgateclient.Record
	err := s.callWithStepUp(ctx, s.who, func(ctx context.Context, token string) (err error) {
		changed, err = s.who.Client().SetStatus(ctx, token, s.change)
		return err
	})
	if err != nil {
		return nameSubject(s.target, err)
	}
	return s.out.PrintResult(s.Stdout, recordTable(changed))
}

func recordTable(records []tollgateclient.Record) cli.Table {
	type row struct {
		Name          string `json:"name"          column:"SERVER"`
		Version       string `json:"version"       column:"VERSION"`
		Status        string `json:"status"        column:"STATUS"`
		IsLatest      answer `json:"isLatest"      column:"LATEST"`
		PublishedAt   string `json:"publishedAt"   column:"PUBLISHED"`
		StatusMessage string `json:"statusMessage" column:"MESSAGE"`
		UpdatedAt     string `json:"updatedAt"`
		Review        string `json:"review,omitempty"`
	}
	return cli.TableOf(records, func(r *tollgateclient.Record) row {
		return row{
			r.Name, r.Version, r.Status, answer(r.IsLatest), r.PublishedAt, r.StatusMessage, r.UpdatedAt, r.Review,
		}
	})
}

// answer is a flag that tables show as a word.
type answer bool

// String returns yes or no.
func (a answer) String() string { return yesNo(bool(a)) }

// listTable returns the table of servers, each with its latest version.
func listTable(records []tollgateclient.Record) cli.Table {
	type row struct {
		Name          string `json:"name"          column:"NAME"`
		Version       string `json:"version"       column:"VERSION"`
		UpdatedAt     string `json:"updatedAt"     column:"UPDATED"`
		Description   string `json:"description"   column:"DESCRIPTION"`
		Title         string `json:"title"`
		Status        string `json:"status"`
		StatusMessage string `json:"statusMessage"`
		IsLatest      bool   `json:"isLatest"`
		PublishedAt   string `json:"publishedAt"`
	}
	t := cli.TableOf(records, func(r *tollgateclient.Record) row {
		return row{r.Name, r.Version, r.UpdatedAt, r.Description, r.Title, r.Status, r.StatusMessage, r.IsLatest, r.PublishedAt}
	})
	t.Cut = true
	return t
}

// serviceStatus is the readiness of a service, and the sign-in there.
type serviceStatus struct {
	URL          string            `json:"url"`
	Email        string            `json:"email"` // empty if the person is not signed in
	TrustLevel   string            `json:"trustLevel"`
	Status       string            `json:"status"`
	Dependencies map[string]string `json:"dependencies"`
}

// showService prints whether the service is ready, and who is signed in there.
func (s *statusRun) showService(ctx context.Context) error {
	ready, err := s.who.Client().GetReadiness(ctx)
	if err != nil {
		return err
	}
	state := serviceStatus{URL: s.who.Client().URL(), Status: ready.Status, Dependencies: ready.Dependencies}
	var session tollgateclient.Session
	err = s.who.Do(ctx, func(ctx context.Context, token string) (err error) {
		session, err = s.who.Client().GetSession(ctx, token)
		return err
	})
	var notSignedIn *account.SignInNeeded
	switch {
	case err == nil:
		state.Email, state.TrustLevel = s.who.Email(), session.TrustLevel
	case state.Status == "ok" && !errors.As(err, &notSignedIn): // a service that is not ready may fail here
		return err
	}
	if err := s.out.PrintResult(s.Stdout, state.table()); err != nil {
		return err
	}
	if state.Status != "ok" {
		return fmt.Errorf("%s is not ready", state.URL)
	}
	return nil
}

func (s serviceStatus) table() cli.Table {
	parts := make([]string, 0, len(s.Dependencies))
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		parts = append(parts, name+" "+s.Dependencies[name])
	}
	who, trust := s.Email, s.TrustLevel
	if who == "" {
		who, trust = "(not signed in)", "-"
	}
	return cli.Table{
		Header: []string{"SERVICE", "READY", "SIGNED IN", "TRUST", "DEPENDENCIES"},
		Rows:   [][]string{{s.URL, yesNo(s.Status == "ok"), who, trust, strings.Join(parts, ", ")}},
		Value:  s,
	}
}

func newWhoami(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "whoami",
		Short: "Show who is signed in, and the trust level of the session",
		Long: "Show who is signed in at the service and the trust level of the session. Exits\n" +
			"with 3 if you are not signed in. The command does not show which servers you may\n" +
			"publish: operators see that with 'tollgate grant list'.",
		Example: "  tollgate whoami\n  tollgate whoami --output json",
	}
	o, a := cli.AddOutput(c), addAddress(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		u, err := newPublisher(p)
		if err != nil {
			return err
		}
		who, err := u.lastAccount(*a)
		if err != nil {
			return err
		}
		var s tollgateclient.Session
		err = who.Do(c.Context(), func(ctx context.Context, token string) (err error) {
			s, err = who.Client().GetSession(ctx, token)
			return err
		})
		if err != nil {
			return err
		}
		return o.PrintResult(p.Stdout, whoamiTable(who.Client().URL(), who.Email(), s))
	}
	return c
}

func whoamiTable(url, email string, s tollgateclient.Session) cli.Table {
	return cli.Table{
		Header: []string{"SERVICE", "EMAIL", "TRUST", "SIGNED IN", "UNTIL", "USER"},
		Rows:   [][]string{{url, email, s.TrustLevel, s.CreatedAt, s.ExpiresAt, s.UserID}},
		Value: struct {
			URL   string `json:"url"`
			Email string `json:"email"`
			tollgateclient.Session
		}{url, email, s},
	}
}
