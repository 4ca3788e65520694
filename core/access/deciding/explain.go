package deciding

import (
	"context"
	"net/netip"
	"net/url"
	"strings"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

// Draft is a question of an operator about a call, in words.
type Draft struct {
	Subject string // person:EMAIL, service:NAME, group:PROVIDER/GROUP, everyone or anyone
	Trust   string // of the subject; empty for the level that it has
	Server  string // its name; empty for the one at URL
	URL     string
	Method  string // of MCP; tools/call if it is empty and there is a Name
	Name    string // of the tool
	Address string // of the client; optional
	// Client and Resource are those of a token of the authorization server: the name of the client or the URL
	// of its document, and the URL of the resource. Both are optional.
	Client, Resource string
}

// ParseQuestion returns the question that a draft describes, for Explain. It returns fault.Invalid,
// about the field, if one is wrong.
func ParseQuestion(d Draft) (Who, Question, error) {
	who, q := Who{Client: d.Client, Resource: d.Resource}, Question{Server: d.Server}
	var err error
	if who.Subject, err = access.ParseSelector(d.Subject); err != nil {
		return who, q, fault.In("subject", err)
	}
	if kind := who.Subject.Kind; d.Client+d.Resource != "" && kind != access.SelectPerson && kind != access.SelectEveryone {
		return who, q, fields.Invalid("subject", ": only a person calls by a token of a client, or for a resource")
	}
	if d.Trust != "" {
		if who.Trust, err = trustlevel.Parse(d.Trust); err != nil {
			return who, q, fault.In("trust", err)
		}
	}
	if d.Address != "" {
		if q.From, err = netip.ParseAddr(d.Address); err != nil {
			return who, q, fields.Invalid("address", " must be an IP address")
		}
	}
	if (d.Server == "") == (d.URL == "") {
		return who, q, fields.Invalid("server", ": give either server or url")
	}
	if d.URL != "" {
		u, err := url.Parse(d.URL)
		if err != nil || u.Host == "" {
			return who, q, fields.Invalid("url", " must be a URL, for example https://tools.example.com/mcp")
		}
		q.Address = access.Address{Scheme: u.Scheme, Host: u.Host, Path: u.EscapedPath()}
	}
	if d.Method == "" && d.Name != "" {
		d.Method = string(access.CallsTools)
	}
	q.Call = access.NewCall(d.Method, d.Name)
	return who, q, nil
}

// Who names whose call is explained.
type Who struct {
	// Subject is person:EMAIL, service:NAME, group:PROVIDER/GROUP, everyone or anyone.
	Subject access.Selector
	// Trust replaces the level that the subject has; 0 for that one.
	Trust trustlevel.Level
	// Client and Resource are those of Draft.
	Client, Resource string
	// Trial is a rule that is not stored, by which the call is decided as well; nil without one.
	Trial *access.Rule
}

// Named returns the subject of a type (person, service or jwt) and an id, for Question.Subject: the
// e-mail address of a person, the name of a service account, or issuer and subject of a foreign token
// with a space between them, which is the person to whom the identity is linked. There is no proof that it is them, so that a person counts as UNVERIFIED
// (contract Z-2). One who is not active is refused, as with a token. It returns fault.Invalid for
// another type or an id that cannot be one.
func (s *Service) Named(ctx context.Context, kind, id string) (access.Subject, error) {
	if kind == "jwt" {
		issuer, subject, ok := strings.Cut(id, " ")
		if !ok || issuer == "" || subject == "" {
			return access.Subject{}, fields.Invalid("subject.id", " must be the issuer and the subject of the token, with a space between them")
		}
		found, err := s.ports.Members.FindLinked(ctx, issuer, subject)
		if fault.Is(err, fault.NotFound) {
			found, err = access.NewSubject(access.Member{Kind: access.Foreign, ID: id}), nil
		}
		return found.WithTrust(trustlevel.Unverified), err
	}
	if kind != string(access.SelectPerson) && kind != string(access.SelectService) {
		return access.Subject{}, fields.Invalid("subject.type", " must be person, service or jwt")
	}
	who, err := access.ParseSelector(kind + ":" + id)
	if err != nil {
		return access.Subject{}, fault.In("subject.id", err)
	}
	found, err := s.ports.Members.FindNamed(ctx, who)
	switch {
	case fault.Is(err, fault.NotFound):
		return access.Refused(), nil
	case err == nil && found.Kind() == access.Person:
		found = found.WithTrust(trustlevel.Unverified)
	}
	return found, err
}

// Explain answers a question about a subject that is named, with the reasons, as Decide would answer
// it. Caller and Refusal of the question do not matter. It returns fault.Violated for a subject or a
// resource that does not exist.
func (s *Service) Explain(ctx context.Context, who Who, q Question) (access.Explanation, error) {
	snapshot, err := s.snapshot(ctx)
	if err != nil {
		return access.Explanation{}, err
	}
	subject, err := s.named(ctx, who)
	if err == nil {
		subject, err = s.granted(ctx, who, subject)
	}
	if err != nil {
		return access.Explanation{}, err
	}
	if who.Trial != nil {
		snapshot = snapshot.WithRule(who.Trial)
	}
	e := snapshot.Explain(s.questionOf(&q, &subject))
	if kind := who.Subject.Kind; who.Trust == 0 && (kind == access.SelectPerson || kind == access.SelectService) {
		e.Reasons, err = s.ports.Members.Reasons(ctx, who.Subject)
	}
	return e, err
}

// named returns the subject that somebody names.
func (s *Service) named(ctx context.Context, who Who) (access.Subject, error) {
	var subject access.Subject
	switch who.Subject.Kind {
	case access.SelectAnyone:
		return subject, nil
	case access.SelectEveryone:
		subject = access.NewSubject(access.Member{Kind: access.Foreign, Trust: trustlevel.Unverified})
	case access.SelectGroup: // somebody of the group, of whom nothing else is known
		provider, name, _ := strings.Cut(who.Subject.Value, "/")
		subject = access.NewSubject(access.Member{
			Kind: access.Foreign, Groups: []access.Group{{Provider: provider, Name: name}}, Trust: trustlevel.FullTrust,
		})
	case access.SelectPerson, access.SelectService:
		found, err := s.ports.Members.FindNamed(ctx, who.Subject)
		if fault.Is(err, fault.NotFound) {
			err = fault.In("subject", fault.Violated("subject: there is no active %s", who.Subject))
		}
		if err != nil {
			return subject, err
		}
		subject = found
	default:
		return subject, fault.In("subject",
			fault.New(fault.Invalid, "subject must be person:EMAIL, service:NAME, group:PROVIDER/GROUP, everyone or anyone"))
	}
	if who.Trust != 0 {
		subject = subject.WithTrust(who.Trust)
	}
	return subject, nil
}
