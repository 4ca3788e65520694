package person

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/credentialfile"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
)

// newContext returns the commands about contexts: sign-ins at services, each with a name.
func newContext(p cli.Process) *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List the contexts, the one in use first", Example: "  tollgate context list"}
	o := cli.AddOutput(list)
	list.RunE = func(*cobra.Command, []string) error {
		_, contents, err := openFile(p)
		if err != nil {
			return err
		}
		type row struct {
			Name     string `json:"name"     column:"NAME"`
			URL      string `json:"url"      column:"SERVICE"`
			Email    string `json:"email"    column:"EMAIL"`
			InUse    answer `json:"inUse"    column:"IN USE"`
			SignedIn answer `json:"signedIn" column:"SIGNED IN"`
		}
		return o.PrintResult(p.Stdout, cli.TableOf(contents.All(), func(s **credentialfile.SignIn) row {
			return row{(*s).ContextName(), (*s).URL, (*s).Email, *s == contents.SignIn, (*s).Tokens != nil}
		}))
	}
	use := newContextChange(p, "use", "Use the sign-in of a context from now on", func(c *credentialfile.Contents, s *credentialfile.SignIn) { c.Use(s) })
	remove := newContextChange(p, "remove", "Sign out of a context, and forget it", (*credentialfile.Contents).Remove)
	return cli.NewGroup("context", "Choose between sign-ins at several services", list, use, remove)
}

// newContextChange returns the command that changes a context in the file. One that is removed is signed
// out first, as far as its service can be reached.
func newContextChange(
	p cli.Process, use, short string, change func(*credentialfile.Contents, *credentialfile.SignIn),
) *cobra.Command {
	return &cobra.Command{
		Use: use + " NAME", Short: short, Example: "  tollgate context " + use + " tollgate.example.com",
		ValidArgsFunction: func(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
			_, contents, _ := openFile(p) // without a file nothing is completed
			for _, s := range contents.All() {
				names = append(names, s.ContextName())
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			u, err := newPublisher(p, args[0])
			if err != nil {
				return err
			}
			if use == "remove" && u.last.Tokens != nil {
				err = u.signOut(c.Context())
			}
			if err != nil {
				u.PrintNote("%s", cli.ErrorSentence(explainSignOut(err)))
			}
			return u.file.Update(c.Context(), func(all *credentialfile.Contents) {
				if s := all.Context(args[0]); s != nil {
					change(all, s)
				}
			})
		},
	}
}

// signOut ends the session of the context.
func (u *publisherRun) signOut(ctx context.Context) error {
	who, err := u.lastAccount(serviceAddress{url: u.last.URL})
	if err == nil {
		err = who.SignOut(ctx)
	}
	if err != nil {
		return fmt.Errorf("sign out: %w", err)
	}
	return nil
}
