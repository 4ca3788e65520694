// Package access is the model of decisions for proxies: may a caller use a method, and a tool, of a
// server now (contract Z-1)? Rules of operators say who may; a Snapshot has all of them in the form
// in which they are matched. It knows neither who a token belongs to nor what is stored.
package access

import (
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/email"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

// RuleName identifies a rule. It has the form of the name of a view.
type RuleName string

// Effect is what a rule does to a call, and what a decision says about it.
type Effect string

// The effects. Only a decision can be a Challenge: sign in, or reach a higher trust level.
const (
	Allow     Effect = "allow"
	Deny      Effect = "deny"
	Challenge Effect = "challenge"
)

// Mode says whether a rule decides. What observes is passed over, and what it would have done is
// counted (contract Z-14).
type Mode string

// The modes.
const (
	Enforce Mode = "enforce"
	Observe Mode = "observe"
)

// Rule allows or denies calls of servers (contract Z-2). ParseRule makes one.
type Rule struct {
	Name      RuleName
	Order     int
	Effect    Effect
	Subjects  []Selector
	Servers   []toolserver.Pattern
	Methods   []Class          // empty for all
	Tools     []string         // names, or prefixes with "*" at the end; empty for all
	Hints     []Hint           // that hold of the tool; empty for all
	MinTrust  trustlevel.Level // of a rule that allows; 0 for any
	Networks  []netip.Prefix   // from which the call comes; empty for all
	Clients   []string         // whose tokens of the authorization server call; empty for all tokens
	ExpiresAt time.Time        // zero for never
	Mode      Mode
	ManagedBy string // the owner of the file that manages it; empty if it was made by hand
}

// The bounds of rules.
const (
	MaxRules    = 10_000
	maxOrder    = 10_000
	maxSubjects = 100
	maxServers  = 100
	maxTools    = 500
	maxNetworks = 100
	maxClients  = 50
	maxClient   = 2048 // the length of the URL of a document
)

// ParseRule returns the rule that an object describes, as Fields returns it. It returns
// fault.Invalid, with the name of the field at the beginning, if one is wrong.
func ParseRule(given audit.Details) (Rule, error) {
	r := fields.Reader{Values: given}
	name := given.Text("name")
	r.Note(fields.CheckName(name))
	rule := Rule{
		Name: RuleName(name), Order: readOrder(&r), Effect: fields.Word(&r, "effect", "", Allow, Deny),
		Subjects: fields.Parsed(&r, "subjects", true, maxSubjects, ParseSelector),
		Servers:  fields.Parsed(&r, "servers", true, maxServers, toolserver.ParsePattern),
		Methods:  fields.Parsed(&r, "methods", false, len(Classes()), parseClass),
		Tools:    fields.Parsed(&r, "tools", false, maxTools, parseTool),
		Hints:    readHints(&r),
		Networks: r.Networks("networks", maxNetworks),
		Clients:  r.LongTexts("clients", maxClients, maxClient),
		Mode:     fields.Word(&r, "mode", Enforce, Enforce, Observe),
	}
	for i, client := range rule.Clients {
		if err := CheckClient(client); err != nil {
			r.Note(fields.Invalid(fields.Item("clients", i), " %s", fault.PublicMessage(err)))
		}
	}
	if level := given.Text("minTrust"); level != "" {
		rule.MinTrust = readLevel(&r, level, rule.Effect)
	}
	if text := given.Text("expiresAt"); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			r.Note(fields.Invalid("expiresAt", " must be an RFC 3339 time, for example 2027-01-01T00:00:00Z"))
		}
		rule.ExpiresAt = at.UTC().Truncate(time.Microsecond)
	}
	return rule, r.Err
}

func readOrder(r *fields.Reader) int {
	n, ok := r.Values["order"].(audit.Number)
	if !ok || n < 0 || n > maxOrder || n != audit.Number(int(n)) {
		r.Note(fields.Invalid("order", " must be a whole number from 0 to %d", maxOrder))
		return 0
	}
	return int(n)
}

func readLevel(r *fields.Reader, name string, effect Effect) trustlevel.Level {
	level, err := trustlevel.Parse(name)
	switch {
	case err != nil:
		r.Note(fields.Invalid("minTrust", " must be HIGH_RISK, UNVERIFIED, LIMITED_TRUST or FULL_TRUST"))
	case effect == Deny:
		r.Note(fields.Invalid("minTrust", " is for rules that allow: leave it out of a rule that denies"))
	}
	return level
}

// parseTool checks the name of a tool, or a prefix of names with "*" at the end.
func parseTool(s string) (string, error) {
	if strings.Contains(strings.TrimSuffix(s, "*"), "*") {
		return "", fault.New(fault.Invalid, `a "*" must be at the end`)
	}
	return s, nil
}

// CheckClient returns fault.Invalid for a text that is neither the name of a registered client nor the
// URL of the document of another one.
func CheckClient(s string) error {
	if strings.HasPrefix(s, "https://") && !strings.Contains(s, " ") || clientName.MatchString(s) {
		return nil
	}
	return fault.New(fault.Invalid, "must be the name of a client, or the https URL of its document")
}

// clientName is the pattern of the names of registered clients (contract T-5).
var clientName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]{0,199}$`)

// SelectorKind is the first word of a Selector.
type SelectorKind string

// The kinds of selectors (contract Z-2).
const (
	SelectPerson   SelectorKind = "person"
	SelectGroup    SelectorKind = "group"
	SelectGrant    SelectorKind = "grant"
	SelectService  SelectorKind = "service"
	SelectEveryone SelectorKind = "everyone" // with any valid token
	SelectAnyone   SelectorKind = "anyone"   // also without one
)

// Selector selects subjects: person:EMAIL, group:PROVIDER/GROUP, grant:ACTION, service:NAME,
// everyone or anyone. ParseSelector makes one.
type Selector struct {
	Kind  SelectorKind
	Value string
}

// ParseSelector returns the selector that s contains, or fault.Invalid.
func ParseSelector(s string) (Selector, error) {
	kind, value, _ := strings.Cut(s, ":")
	one := Selector{SelectorKind(kind), value}
	var problem string
	switch one.Kind {
	case SelectPerson:
		if one.Value = email.Canonical(value); len(one.Value) > email.Max || !email.IsAddress(one.Value) {
			problem = "person: must be followed by an e-mail address"
		}
	case SelectGroup:
		provider, group, _ := strings.Cut(value, "/")
		if fields.CheckName(provider) != nil || !fields.IsText(group, fields.MaxText) {
			problem = "group: must be followed by the name of a provider, a slash and a group"
		}
	case SelectGrant:
		if _, err := toolserver.ParseAction(value); err != nil {
			problem = "grant: must be followed by publish, edit, review or operate"
		}
	case SelectService:
		if fields.CheckName(value) != nil {
			problem = "service: must be followed by the name of a service account"
		}
	case SelectEveryone, SelectAnyone:
		if s != kind {
			problem = kind + " must not be followed by anything"
		}
	default:
		problem = "must be person:EMAIL, group:PROVIDER/GROUP, grant:ACTION, service:NAME, everyone or anyone"
	}
	if problem != "" {
		return Selector{}, fault.New(fault.Invalid, problem)
	}
	return one, nil
}

// String returns the selector as ParseSelector reads it.
func (s Selector) String() string {
	if s.Value == "" {
		return string(s.Kind)
	}
	return string(s.Kind) + ":" + s.Value
}

// Fields returns the rule as ParseRule reads it, without empty fields.
func (r *Rule) Fields() audit.Details {
	subjects := each.Texts(r.Subjects)
	all := audit.Details{
		"name": audit.Text(r.Name), "order": audit.Number(r.Order), "effect": audit.Text(r.Effect),
		"subjects": audit.Texts(subjects), "servers": audit.Texts(each.Texts(r.Servers)),
		"mode": audit.Text(r.Mode),
	}
	fields.SetTexts(all, "methods", r.Methods)
	fields.SetTexts(all, "tools", r.Tools)
	fields.SetTexts(all, "hints", r.Hints)
	fields.SetTexts(all, "networks", fields.NetworkTexts(r.Networks))
	fields.SetTexts(all, "clients", r.Clients)
	all.Set("minTrust", r.MinTrust.String())
	if !r.ExpiresAt.IsZero() {
		all["expiresAt"] = audit.Text(r.ExpiresAt.Format(time.RFC3339Nano))
	}
	return all
}

// Object returns the rule as an object of its kind.
func (r *Rule) Object() audit.Object {
	return audit.Object{Kind: RuleKind.Name, Key: string(r.Name), Fields: r.Fields()}
}

// precedes orders rules as they are tried: the lowest order first, at one order those that deny, and
// then by name (contract Z-3).
func precedes(a, b *Rule) int {
	if a.Order != b.Order {
		return a.Order - b.Order
	}
	if a.Effect != b.Effect {
		if a.Effect == Deny {
			return -1
		}
		return 1
	}
	return strings.Compare(string(a.Name), string(b.Name))
}
