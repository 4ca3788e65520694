package people

import (
	"cmp"
	"context"
	"net/mail"
	"slices"
	"strings"
	"sync"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// MaxInvited is how many people one text names.
const MaxInvited = 50

// atOnce is how many mails wait for their server at the same time.
const atOnce = 8

// Invited is one of the people whom a text names, and what became of the invitation.
type Invited struct {
	Text  string // as it was written
	Email auth.Email
	Name  string
	Link  Link
	Err   error // why there is no invitation
}

// ParseInvited returns the people whom a text names, each once: an address or "Name <address>", one per line or
// separated by commas or semicolons. What is no address has an error. A name besides is for one address; among many,
// an address is its own name. It returns fault.Invalid for no address and for more than MaxInvited.
func ParseInvited(text, name string) (all []Invited, err error) {
	for _, one := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\n,;", r) }) {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		in := parseInvited(one)
		if slices.ContainsFunc(all, func(i Invited) bool { return in.Err == nil && i.Email == in.Email || i.Text == one }) {
			continue
		}
		if all = append(all, in); len(all) > MaxInvited {
			return nil, fault.Newf(fault.Invalid, "email must have at most %d addresses", MaxInvited)
		}
	}
	switch {
	case len(all) == 0:
		_, err = auth.ParseEmail("")
	case len(all) == 1:
		all[0].Name, err = ParseName(cmp.Or(name, all[0].Name))
	case strings.TrimSpace(name) != "":
		err = fault.New(fault.Invalid, "name is that of one person: write Name <address> for each")
	}
	return all, err
}

// parseInvited returns the person whom a line names.
func parseInvited(line string) (in Invited) {
	in.Text = line
	named, err := mail.ParseAddress(line)
	if err == nil && strings.Contains(line, "<") {
		in.Name, line = named.Name, named.Address
	}
	in.Email, in.Err = auth.ParseEmail(line)
	return in
}

// InviteMany invites the people who have no error, each as Invite does, and adds the link or why there is none. One
// does not stop the others.
func (s *Service) InviteMany(ctx context.Context, all []Invited, grants []authority.GrantText) {
	var sent sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range all {
		if one := &all[i]; one.Err == nil {
			slots <- struct{}{}
			sent.Go(func() {
				_, one.Link, one.Err = s.Invite(ctx, Invitation{one.Email, cmp.Or(one.Name, string(one.Email)), grants})
				<-slots
			})
		}
	}
	sent.Wait()
}

// Left returns the lines of the people whom another attempt may invite: all with an error but those who have an account.
func Left(all []Invited) string {
	var lines []string
	for _, one := range all {
		if one.Err != nil && !fault.Is(one.Err, fault.Conflict) {
			lines = append(lines, one.Text)
		}
	}
	return strings.Join(lines, "\n")
}
