package people_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestParseInvited: each address once, with the name next to it, or else its own; what is no address stays as it was
// written. A name besides is for one address.
func TestParseInvited(t *testing.T) {
	for _, c := range []struct{ text, name, want, problem string }{
		{"ada@example.com", "Ada", "ada@example.com Ada", ""},
		{"ada@example.com", "", "", "name must not be empty"},
		{"Ada L <Ada@Example.com>", "", "ada@example.com Ada L", ""},
		{" ada@example.com,bea@example.com;\n\nAda@example.com\r\n", "", "ada@example.com|bea@example.com", ""},
		{"no\nAda <no>\n\"A, B\" <c@example.com>\nno", "", "!no|!Ada <no>|!\"A|!B\" <c@example.com>", ""},
		{"=?utf-8?q?A=0AB?= <a@example.com>", "", "", "name must be text without control characters"},
		{"a@example.com\nb@example.com", "Ada", "", "name is that of one person"},
		{" ,;\n", "", "", "email must not be empty"},
		{strings.Repeat("a@example.com\n", 1000) + "b@example.com", "", "a@example.com|b@example.com", ""},
		{many(50), "", strings.TrimSuffix(strings.ReplaceAll(many(50), "\n", "|"), "|"), ""},
		{many(51), "", "", "email must have at most 50 addresses"}, {many(1000), "", "", "email must have at most 50 addresses"},
	} {
		all, err := people.ParseInvited(c.text, c.name)
		if c.problem != "" {
			if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.PublicMessage(err), c.problem) {
				t.Errorf("%q: %v, want %s", c.text, err, c.problem)
			}
			continue
		}
		must.Succeed(t, err)
		var got []string
		for _, one := range all {
			if one.Err != nil {
				got = append(got, "!"+one.Text)
				continue
			}
			got = append(got, strings.TrimSpace(string(one.Email)+" "+one.Name))
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d@example.com\n", i)
	}
	return b.String()
}

// mailbox keeps messages by recipient, and refuses those to one of them.
type mailbox struct {
	mu      sync.Mutex
	by      map[string]courier.Message
	refuses string
}

func (m *mailbox) Deliver(_ context.Context, c courier.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by[c.Recipient] = c; c.Recipient == m.refuses {
		return errors.New("full")
	}
	return c.Validate()
}

// TestInviteMany: one that cannot be invited stops no other one, and stays for another attempt, but who has an account.
// Two operators who send one list at once invite each person once.
func TestInviteMany(t *testing.T) {
	fx, box := newFixture(t), &mailbox{by: map[string]courier.Message{}, refuses: "3@example.com"}
	fx.ports.Mail = people.Mail{Courier: box}
	fx.startService()
	fx.addAnna()
	grants := []authority.GrantText{{Action: "publish", Resource: "com.example/*"}}
	var lists [2][]people.Invited
	var both sync.WaitGroup
	for i := range lists {
		var err error
		lists[i], err = people.ParseInvited(string(anna)+"\nnobody\n"+many(40), "")
		must.Succeed(t, err)
		both.Go(func() { fx.service.InviteMany(t.Context(), lists[i], grants) })
	}
	both.Wait()
	if got := people.Left(lists[0]); got != "nobody" {
		t.Errorf("what is left is %q", got)
	}
	made := map[auth.Email]int{}
	for _, list := range lists {
		for _, one := range list {
			if one.Err == nil {
				made[one.Email]++
				if one.Link.Delivered == (one.Email == "3@example.com") || one.Link.URL == "" {
					t.Errorf("%s: delivered %t", one.Email, one.Link.Delivered)
				}
			}
		}
	}
	if len(made) != 40 || len(box.by) != 40 {
		t.Errorf("%d people, %d messages", len(made), len(box.by))
	}
	for email, n := range made {
		if n != 1 {
			t.Errorf("%s is invited %d times", email, n)
		}
	}
	if list, err := people.ParseInvited("a@example.com\nb@example.com", ""); err == nil {
		fx.service.InviteMany(t.Context(), list, []authority.GrantText{{Action: "rule"}})
		if got := people.Left(list); got != "a@example.com\nb@example.com" {
			t.Errorf("of a list that failed is left %q", got)
		}
	}
}

// TestInvitationSays: the mail says who invites, to what until when, and another one what is granted then. A name
// reaches no header, and brings no line of its own.
func TestInvitationSays(t *testing.T) {
	fx, box := newFixture(t), &mailbox{by: map[string]courier.Message{}}
	fx.ports.Mail = people.Mail{Courier: box}
	fx.startService()
	other := fx.newAnna()
	other.Name = "Olga\u2028{until}\u202e Operator"
	olga, err := fx.service.Add(t.Context(), other)
	must.Succeed(t, err)
	grants := []authority.GrantText{{Action: "publish", Resource: "com.example/*"}, {Action: "operate"}}
	for who, want := range map[string]string{
		audit.PersonActor + string(olga.ID): "Olga {until}  Operator (anna@example.com) invites you to Tools: you may publish com.example/*, operate the service.\n\n" +
			"Open this address, and set your password. It is good until 21 November 2026, 13:00 UTC.\n\nhttps://",
		audit.ServiceActor + "ci":    "The service account ci invites you to Tools: ",
		audit.PersonActor + "nobody": "An operator invites you to Tools: ", "": "An operator invites you to Tools: ",
	} {
		ctx := auditing.By(t.Context(), audit.Actor{Who: who})
		email := auth.Email(fmt.Sprintf("%d@example.com", len(box.by)))
		_, _, err := fx.service.Invite(ctx, people.Invitation{Email: email, Name: "Ivy\u2028x", Grants: grants})
		must.Succeed(t, err)
		if m := box.by[string(email)]; !strings.HasPrefix(m.Text, want) || m.Subject != "Tools: Invitation" {
			t.Errorf("%s: %q: %q, want %q", who, m.Subject, m.Text, want)
		}
		_, err = fx.service.InviteAgain(ctx, email, nil)
		must.Succeed(t, err)
		if m := box.by[string(email)]; !strings.HasPrefix(m.Text, want[:strings.Index(want, " to Tools")]+" to Tools.\n") {
			t.Errorf("again, of %s: %q", who, m.Text)
		}
	}
	if _, err := fx.service.InviteAgain(t.Context(), "0@example.com", make([]authority.GrantText, 23)); err != nil ||
		!strings.Contains(box.by["0@example.com"].Text, ", 3 more.\n") {
		t.Errorf("with 23 grants: %q, %v", box.by["0@example.com"].Text, err)
	}
}
