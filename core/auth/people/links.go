package people

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// linkPages are the pages of links, below the console. Their secret is in the parameter code.
var linkPages = map[auth.LinkPurpose]string{
	auth.LinkSetup: "setup", auth.LinkInvitation: "invitation", auth.LinkReset: "reset-password",
}

// Link is a link that was just made. Its URL is as secret as a password, and is not stored.
type Link struct {
	URL       string
	ExpiresAt time.Time
	Delivered bool // it was sent to the person
}

// String returns a placeholder.
func (Link) String() string { return "[link]" }

// makeLink stores a link, in the transaction of the context.
func (s *Service) makeLink(
	ctx context.Context, purpose auth.LinkPurpose, user auth.UserID, lifetime time.Duration,
) (Link, error) {
	secret, now := secrets.NewSecret[auth.LinkSecret](s.ports.Entropy), s.ports.Clock.Now()
	l := auth.Link{
		Hash: auth.HashSecret(secret), Purpose: purpose, UserID: user, CreatedAt: now, ExpiresAt: now.Add(lifetime),
	}
	address := string(s.config.Console) + linkPages[purpose] + "?" + url.Values{"code": {string(secret)}}.Encode()
	return Link{URL: address, ExpiresAt: l.ExpiresAt}, s.ports.Links.Put(ctx, l)
}

// MakeSetupLink returns a new link to the page on which the first account is made. It returns
// fault.Conflict if there is an account.
func (s *Service) MakeSetupLink(ctx context.Context) (Link, error) {
	return transaction.Do(ctx, s.ports.Transaction, func(ctx context.Context) (Link, error) {
		if err := s.ports.Operators.Lock(ctx); err != nil {
			return Link{}, err
		}
		if err := s.CheckEmpty(ctx); err != nil {
			return Link{}, err
		}
		return s.makeLink(ctx, auth.LinkSetup, "", auth.SetupTTL)
	})
}

// Invitation is the input of Invite.
type Invitation struct {
	Email  auth.Email
	Name   string // 1 to 200 characters
	Grants []authority.GrantText
}

// Invite creates an account without a password, with grants, and sends the person a link to the
// page that sets one. The errors are those of Add, and fault.Invalid for a wrong grant.
func (s *Service) Invite(ctx context.Context, in Invitation) (auth.Account, Link, error) {
	a, err := s.newInvited(in.Email, in.Name)
	if err != nil {
		return a, Link{}, err
	}
	link, err := transaction.Do(ctx, s.ports.Transaction, func(ctx context.Context) (Link, error) {
		if err := s.create(ctx, a, audit.Change{Action: "invite", ByOperator: true}); err != nil {
			return Link{}, err
		}
		if err := s.ports.Grants.GiveGrants(ctx, string(a.ID), in.Grants); err != nil {
			return Link{}, err
		}
		return s.makeLink(ctx, auth.LinkInvitation, a.ID, s.config.InvitationTTL)
	})
	if err != nil {
		return a, Link{}, err
	}
	link.Delivered = s.sendInvitation(ctx, &a, link, in.Grants) == nil
	return a, link, nil
}

// InviteAgain makes another link for a person who is invited and has the grants, and the earlier ones dead. It returns
// fault.Conflict for everybody else.
func (s *Service) InviteAgain(ctx context.Context, email auth.Email, grants []authority.GrantText) (link Link, err error) {
	var a auth.Account
	err = s.changeAccount(ctx, email, accountChange{
		category: audit.AccountChange, action: "invitation",
		alter: func(stored *auth.Account) error {
			if a = *stored; a.State != auth.AccountInvited {
				return fault.Newf(fault.Conflict, "the account is %s, not invited", a.State)
			}
			return nil
		},
		after: func(ctx context.Context, a *auth.Account) error {
			err := s.ports.Links.RemoveAll(ctx, a.ID, auth.LinkInvitation)
			if err == nil {
				link, err = s.makeLink(ctx, auth.LinkInvitation, a.ID, s.config.InvitationTTL)
			}
			return err
		},
	})
	if err != nil {
		return Link{}, err
	}
	link.Delivered = s.sendInvitation(ctx, &a, link, grants) == nil
	return link, nil
}

// MakeResetLink returns a link by which a person sets another password, for an operator to hand
// over. It returns fault.Conflict for an account without sign-in.
func (s *Service) MakeResetLink(ctx context.Context, email auth.Email) (link Link, err error) {
	err = s.changeAccount(ctx, email, s.resetLinkChange(&link, "reset_link"))
	return link, err
}

// MailResetLink is MakeResetLink for an operator who must not have the link: it is sent to the person. It
// returns fault.Conflict also if no courier for e-mail is configured.
func (s *Service) MailResetLink(ctx context.Context, email auth.Email) (Link, error) {
	if !s.CanMail() {
		return Link{}, fault.New(fault.Conflict, "a token gets no link, and no courier for e-mail is configured: sign in")
	}
	a, err := s.ByEmail(ctx, email)
	if err != nil {
		return Link{}, err
	}
	link, err := s.MakeResetLink(ctx, email)
	if err == nil {
		link.Delivered = s.sendLink(ctx, &a, notices.PasswordLink, notices.LinkText{URL: link.URL}) == nil
	}
	return link, err
}

// resetLinkChange returns the change that makes a link to set another password.
func (s *Service) resetLinkChange(link *Link, action audit.Action) accountChange {
	return accountChange{
		category: audit.CredentialChange, action: action,
		alter: func(stored *auth.Account) error {
			if !stored.State.HasSignIn() {
				return fault.Newf(fault.Conflict, "the account is %s", stored.State)
			}
			return nil
		},
		after: func(ctx context.Context, a *auth.Account) (err error) {
			*link, err = s.makeLink(ctx, auth.LinkReset, a.ID, auth.ResetTTL)
			return err
		},
	}
}

// SendResetLink sends a person a link by which they set another password. It returns fault.NotFound
// for an address without an account and fault.Conflict for an account without sign-in.
func (s *Service) SendResetLink(ctx context.Context, email auth.Email) error {
	a, err := s.ByEmail(ctx, email)
	if err != nil {
		return err
	}
	var link Link
	change := s.resetLinkChange(&link, "forgot_password")
	change.byPerson = true
	if err := s.changeAccount(ctx, email, change); err != nil {
		return err
	}
	return s.sendLink(ctx, &a, notices.PasswordLink, notices.LinkText{URL: link.URL})
}

// AcceptInvitation sets the first password of a person, in the transaction of the context. It
// returns the account after it, and fault.NotFound if the person is not invited any more.
func (s *Service) AcceptInvitation(
	ctx context.Context, email auth.Email, hash auth.PasswordHash,
) (accepted auth.Account, err error) {
	_, _, err = s.alterAccount(ctx, email, accountChange{
		category: audit.AccountChange, action: "accept_invitation", byPerson: true,
		alter: func(a *auth.Account) error {
			if a.State != auth.AccountInvited {
				return auth.NotFound("link")
			}
			SetHash(a, hash)
			accepted = *a
			return nil
		},
	})
	return accepted, err
}

// ResetPassword sets another password, in the transaction of the context. It ends the logins that
// wait for a second factor, the links of the person, and all sessions, which it returns: the caller
// must drop their copies. It returns fault.NotFound for an account without sign-in.
func (s *Service) ResetPassword(
	ctx context.Context, email auth.Email, hash auth.PasswordHash,
) ([]auth.SessionID, error) {
	_, ended, err := s.alterAccount(ctx, email, accountChange{
		category: audit.CredentialChange, action: "password_reset", byPerson: true,
		after: s.dropLogins, endReason: auth.EndPassword,
		alter: func(a *auth.Account) error {
			if !a.State.HasSignIn() {
				return auth.NotFound("link")
			}
			SetHash(a, hash)
			return nil
		},
	})
	return ended, err
}

// CountingKey returns the key under which requests for an address are counted. It does not show the
// address.
func (s *Service) CountingKey(email auth.Email) string {
	return string(auth.EmailLockout(s.lockoutKey, email))
}

// CanMail reports whether links can be sent to people.
func (s *Service) CanMail() bool { return s.ports.Mail.Courier != nil }

// sendInvitation sends a person a link with who invites, what the person may do, and until when the link is good.
func (s *Service) sendInvitation(ctx context.Context, a *auth.Account, link Link, grants []authority.GrantText) error {
	text := notices.LinkText{URL: link.URL, Until: link.ExpiresAt}
	for _, g := range grants {
		text.Rights = append(text.Rights, g.Words())
	}
	who := auditing.ActorOf(ctx).Who
	if name, ok := strings.CutPrefix(who, audit.ServiceActor); ok {
		text.By = "The service account " + name
	} else if by, err := s.ports.Accounts.Get(ctx, auth.UserID(strings.TrimPrefix(who, audit.PersonActor))); who != "" && err == nil {
		text.By, text.Email = by.Name, string(by.Email)
	}
	return s.sendLink(ctx, a, notices.Invitation, text)
}

// sendLink sends a person a link. It returns an error if there is no courier.
func (s *Service) sendLink(ctx context.Context, a *auth.Account, kind notices.Kind, l notices.LinkText) error {
	if !s.CanMail() {
		return fault.New(fault.Unsupported, "no courier for e-mail is configured")
	}
	subject, text := notices.FormatLink(kind, s.config.Product, l)
	return s.ports.Mail.Deliver(ctx, courier.Message{
		Kind: courier.Notice, Channel: courier.Email, Recipient: string(a.Email), Subject: subject, Text: text, Link: l.URL,
	})
}
