package site

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Problem is a mistake in a form.
type Problem struct {
	Field string // the id of its field; empty for the whole form
	Text  string
}

// Problems are the mistakes in a form.
type Problems []Problem

// Of returns the first problem of a field; otherwise empty.
func (p Problems) Of(field string) string {
	i := slices.IndexFunc(p, func(one Problem) bool { return one.Field == field })
	if i < 0 {
		return ""
	}
	return p[i].Text
}

// At returns the problems as those of one field.
func (p Problems) At(field string) Problems {
	moved := slices.Clone(p)
	for i := range moved {
		moved[i].Field = field
	}
	return moved
}

// inputs are the inputs of use cases that people fill in: how messages begin that are about one,
// the id of its field, and its name in the form.
var inputs = map[string]struct{ field, label string }{
	"email": {"email", "E-mail address"}, "this e-mail address": {"email", "This e-mail address"},
	"phone": {"phone", "Telephone"}, "password": {"password", "Password"}, "code": {"code", "Code"},
	"currentPassword": {"currentPassword", "Current password"}, "newPassword": {"newPassword", "New password"},
	"name": {"name", "Name"}, "the name of a view": {"name", "Name"}, "serverName": {"name", "Server"}, "version": {"version", "Version"},
	"reason": {"reason", "The reason"}, "mirror": {"mirror", "Mirror"}, "comment": {"comment", "Comment"}, "status": {"status", "Status"},
	"statusMessage": {"message", "Message"},
	"action":        {"action", "May"}, "resource pattern": {"resource", "The pattern of servers"},
	"the action operate": {"resource", "The action operate"},
	"include":            {"include", "Include"}, "exclude": {"exclude", "Exclude"}, "access": {"access", "Who may read it"},
	"people": {"people", "These people"}, "groups": {"groups", "These groups"},
	"deprecated": {"deprecated", "Deprecated versions"}, "search": {"q", "The search"}, "package_type": {"package", "Package"},
	"remote": {"remote", "Remote address"}, "url": {"url", "Address"}, "events": {"events", "Events"}, "interval": {"interval", "Interval"},
	"the name of a mirror": {"name", "Name"}, "the name of a token": {"token", "Name of the token"}, "publisher": {"publisher", "Publisher"},
	"method": {"method", "How"}, "pattern": {"pattern", "Servers"}, "actions": {"actions", "May"}, "domain": {"domain", "Domain"},
	"keyFingerprint": {"keyFingerprint", "Key"}, "issuer": {"issuer", "Issuer"}, "subject": {"subject", "Subject"},
	"scopes": {"scopes", "Scopes"}, "networks": {"networks", "Networks"}, "audience": {"audience", "Audience"},
	"description": {"description", "Description"}, "state": {"state", "State"},
	"displayName": {"displayName", "Text of its button"}, "clientId": {"clientId", "Client ID"},
	"clientSecret": {"clientSecret", "Client secret"}, "domains": {"domains", "E-mail domains"},
	"groupGrants": {"groupGrants", "Grants by groups"}, "requiredGroups": {"requiredGroups", "Required groups"},
	"enforce": {"enforce", "Passwords"}, "emailClaim": {"emailClaim", "Claim of the e-mail address"},
	"groupsClaim": {"groupsClaim", "Claim of the groups"}, "scopeClaim": {"scopeClaim", "Claim of the scopes"},
	"audiences": {"audiences", "Audiences of access tokens"}, "acr": {"acr", "Second factor: acr"},
	"amr": {"amr", "Second factor: amr"}, "recheck": {"recheck", "Check again every"},
	"maxSession": {"maxSession", "Longest session"}, "claims": {"claims", "Claims"},
	"order": {"order", "Order"}, "effect": {"effect", "Effect"}, "subjects": {"subjects", "Subjects"}, "servers": {"servers", "Servers"},
	"methods": {"methods", "Methods"}, "tools": {"tools", "Tools"}, "hints": {"hints", "Hints"}, "minTrust": {"minTrust", "Least trust"}, "mode": {"mode", "Mode"},
	"server": {"server", "Server"}, "confirm": {"confirm", "Confirmation"},
	"tool": {"tool", "Tool"}, "trust": {"trust", "Trust"}, "address": {"address", "Address of the client"}, "expiresAt": {"expiresAt", "End"}, "the owner": {"owner", "The owner"},
	"redirectUris": {"redirectUris", "Redirect URIs"}, "jwks": {"jwks", "Public keys"}, "jwksUri": {"jwksUri", "Address of the public keys"},
	"resources": {"resources", "Resources"}, "consent": {"consent", "Consent"}, "newSecret": {"newSecret", "Secret"},
	"introspectors": {"introspectors", "May introspect its tokens"}, "tokenTtl": {"tokenTtl", "Lifetime of tokens"},
	"clients": {"clients", "Clients"}, "refresh": {"refresh", "Renewal"},
}

// newProblem returns a problem from a message of a use case: that of an input, in the words of the
// form, if the message begins with one.
func newProblem(message string) Problem {
	for end := len(message); end > 0; end = strings.LastIndexAny(message[:end], " :[") {
		if in, known := inputs[message[:end]]; known {
			return Problem{in.field, asSentence(in.label + describeIndex(message[end:]))}
		}
	}
	return Problem{Text: asSentence(message)}
}

// describeIndex returns a message that begins with the index of an entry with its number in words.
func describeIndex(message string) string {
	index, rest, _ := strings.Cut(message, "]")
	n, err := strconv.Atoi(strings.TrimPrefix(index, "["))
	if err != nil {
		return message
	}
	return fmt.Sprintf(", entry %d, %s", n+1, strings.TrimLeft(rest, ".: "))
}

// ProblemsOf returns the problems that an error describes.
func ProblemsOf(f *fault.Error) (problems Problems) {
	fields := f.Details.Inner("fields")
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		p := newProblem(name + " " + fields.Text(name))
		if p.Field == "" {
			p.Field = name
		}
		problems = append(problems, p)
	}
	if len(problems) == 0 {
		problems = Problems{newProblem(f.Message + describeLock(f))}
	}
	return problems
}

// noEnd is a year that no lock of failed attempts reaches: an operator has locked the account.
const noEnd = 9000

// describeLock returns how long a locked account stays so; nothing for other errors.
func describeLock(f *fault.Error) string {
	until, err := time.Parse(time.RFC3339, f.Details.Text("lockoutUntil"))
	switch {
	case err != nil:
		return ""
	case until.Year() > noEnd:
		return ", until an operator unlocks it"
	}
	return " after too many wrong passwords or codes, until " + formatTime(until)
}

// Sentence returns the message of an error for people.
func Sentence(err error) string { return asSentence(fault.PublicMessage(err)) }

// asSentence returns a message of the core as a sentence.
func asSentence(message string) string {
	if message == "" {
		return ""
	}
	if first, _, _ := strings.Cut(message, " "); !strings.ContainsAny(first, "./[@") { // names keep their case
		message = strings.ToUpper(message[:1]) + message[1:]
	}
	if strings.HasSuffix(message, ".") {
		return message
	}
	return message + "."
}

// fieldView is a field of a form in a template: its id, which is also its name, its mistake, and
// the ids of what describes it.
type fieldView struct{ ID, Mistake, Described string }

// newFieldView returns a field that may have a hint.
func newFieldView(problems Problems, id string, hint ...string) fieldView {
	view := fieldView{ID: id, Mistake: problems.Of(id)}
	if view.Mistake != "" {
		hint = append(hint, id+"-mistake")
	}
	view.Described = strings.Join(hint, " ")
	return view
}
