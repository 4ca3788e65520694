package access

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

// Sentence returns what the rule does in words, for example "Allows people of acme/platform to call
// the tools search and read_* of com.example/*, from 10.0.0.0/8, until 1 March 2027." Long lists are
// shortened; of an unfinished rule, … is what it lacks.
func (r *Rule) Sentence() string {
	verb := map[Effect]string{Allow: "Allows", Deny: "Forbids"}[r.Effect]
	if r.Mode == Observe {
		verb = map[Effect]string{Allow: "Would allow", Deny: "Would forbid"}[r.Effect]
	}
	who, servers := make([]string, len(r.Subjects)), make([]string, len(r.Servers))
	for i, one := range r.Subjects {
		who[i] = one.words()
	}
	for i, p := range r.Servers {
		if servers[i] = p.String(); p.IsEverything() {
			servers[i] = "every server"
		}
	}
	if len(who) == 0 { // of a rule that somebody writes
		who = []string{"…"}
	}
	if len(servers) == 0 {
		servers = []string{"…"}
	}
	acts := r.acts()
	if acts != "" {
		acts += " of "
	} else {
		acts = "use "
	}
	sentence := verb + " " + enumerate(who, "and") + " to " + acts + enumerate(servers, "and") + r.conditions() + "."
	return strings.ReplaceAll(sentence, " ….", " …")
}

// words returns whom the selector selects.
func (s Selector) words() string {
	switch s.Kind {
	case SelectGroup:
		return "people of " + s.Value
	case SelectGrant:
		return "people with the grant " + s.Value
	case SelectService:
		return "the service account " + s.Value
	case SelectEveryone:
		return "everybody with a valid token"
	case SelectAnyone:
		return "anybody, also without a token,"
	}
	return s.Value
}

// classWords are what a caller does with the methods of a class.
var classWords = map[Class]string{
	CallsTools: "call tools", ListsTools: "list tools", Prompts: "use prompts", Resources: "read resources",
	Other: "use other methods",
}

// acts returns what the rule is about, of a server; empty for everything.
func (r *Rule) acts() string {
	switch {
	case r.isNever():
		return "call no tool, because its methods lack tools/call,"
	case len(r.Hints) > 0 && (len(r.Tools) == 0 || slices.Contains(r.Tools, toolserver.Everything)):
		return "call " + hintedTools(r.Hints)
	case len(r.Hints) > 0:
		return "call those of the tools " + enumerate(r.Tools, "and") + " that are " + describeHints(r.Hints)
	case slices.Contains(r.Tools, toolserver.Everything):
		return classWords[CallsTools]
	case len(r.Tools) == 1:
		return "call the tool " + r.Tools[0]
	case len(r.Tools) > 1:
		return "call the tools " + enumerate(r.Tools, "and")
	}
	words := make([]string, len(r.Methods))
	for i, c := range r.Methods {
		words[i] = classWords[c]
	}
	return enumerate(words, "and")
}

// isNever reports whether no call matches the rule: tools are those of calls of tools.
func (r *Rule) isNever() bool {
	return len(r.Tools)+len(r.Hints) > 0 && len(r.Methods) > 0 && !slices.Contains(r.Methods, CallsTools)
}

// levelWords returns a trust level in words: full trust.
func levelWords(l trustlevel.Level) string {
	return strings.ToLower(strings.ReplaceAll(l.String(), "_", " "))
}

// conditions returns the other conditions, each after a comma.
func (r *Rule) conditions() (words string) {
	if r.MinTrust != 0 {
		words = ", at " + levelWords(r.MinTrust) + " or above"
	}
	if len(r.Networks) > 0 {
		words += ", from " + enumerate(fields.NetworkTexts(r.Networks), "or")
	}
	if len(r.Clients) > 0 {
		words += ", with a token of " + enumerate(shortTexts(r.Clients), "or")
	}
	if !r.ExpiresAt.IsZero() {
		words += ", until " + dayOf(r.ExpiresAt)
	}
	return words
}

// maxShort is how many bytes of the URL of a client are in a sentence.
const maxShort = 80

func shortTexts(all []string) []string {
	all = slices.Clone(all)
	for i, text := range all {
		if len(text) > maxShort {
			all[i] = strings.ToValidUTF8(text[:maxShort], "") + "…"
		}
	}
	return all
}

// dayOf returns a time in words: the day alone if it is the beginning of one.
func dayOf(t time.Time) string {
	t = t.UTC()
	if t.Equal(t.Truncate(24 * time.Hour)) {
		return t.Format("2 January 2006")
	}
	return t.Format("2 January 2006, 15:04:05 UTC")
}

// maxWords is how many entries of a list are in a sentence.
const maxWords = 5

// enumerate returns a list in words, shortened if it is long.
func enumerate(all []string, last string) (words string) {
	if len(all) > maxWords {
		all = append(slices.Clone(all[:maxWords-1]), strconv.Itoa(len(all)-maxWords+1)+" more")
		last = "and"
	}
	for i, one := range all {
		switch {
		case i == 0:
		case i == len(all)-1:
			words += " " + last + " "
		default:
			words += ", "
		}
		words += one
	}
	return words
}

// Sentence returns why the decision is what it is, in words.
func (d *Decision) Sentence() string {
	switch d.Reason {
	case ByRule:
		return "The rule " + string(d.Rule) + " " + map[Effect]string{
			Allow: "allows the call.", Deny: "denies the call.",
			Challenge: "denies the call, and there is no token: the caller is asked to sign in.",
		}[d.Effect]
	case InsufficientTrust:
		if d.Rule == "" {
			return "The session is at high risk, and no rule opens anything to it: the caller is asked to sign in again."
		}
		return fmt.Sprintf("The rule %s allows the call at %s or above: the caller is asked for more trust.", d.Rule, levelWords(d.Required))
	case ByDefault:
		return "No rule decides the call, and the default " + map[Effect]string{
			Allow: "allows it.", Deny: "denies it.",
			Challenge: "denies it. There is no token: the caller is asked to sign in.",
		}[d.Effect]
	case NotListed:
		return "The server is not listed, and such servers are " + map[Effect]string{Allow: "allowed.", Deny: "denied."}[d.Effect]
	}
	return reasonWords[d.Reason]
}

var reasonWords = map[Reason]string{
	Disputed:       "Programs disagree where the address leads, and may take it for that of a server: it is denied.",
	Quarantined:    "All versions of the server are in quarantine: every call is denied.",
	InvalidToken:   "The token is not valid, is for other servers, or its owner is not active: the caller is asked to sign in.",
	Unreadable:     "The call cannot be read, and rules distinguish the calls of this caller: it is denied.",
	ToolChanged:    "The tool is not as it was approved: every call of it is denied.",
	HeaderMismatch: "The headers state another call than the body: it is denied.",
	Away:           "The database is away, and the call is allowed then.",
}

// Sentence returns what holds of the tool, and by which list; empty for no tool.
func (f *ToolFacts) Sentence() string {
	if f == nil {
		return ""
	}
	words := describeHints(f.Hints)
	if f.List == nil {
		return "No approved list has it, so it counts as " + words + "."
	}
	text := fmt.Sprintf("It is %s, by the approved list of %s, %s, of %s.", words, f.List.Version, f.List.Place, dayOf(f.List.At))
	if f.Refused {
		text += " The server shows it otherwise now."
	}
	return text
}

// Sentence returns why a rule did not decide: the first condition that failed, in words.
func (c Condition) Sentence() string {
	return map[Condition]string{
		OnSubject: "It is not about this subject.", OnClient: "It is not about tokens of this client.",
		OnServer: "It is not about this server.",
		OnMethod: "It is not about this method.", OnTool: "It is not about this tool.",
		OnHint:    "It is about tools with other hints.",
		OnNetwork: "It is not about this address.", OnTime: "It has ended.",
		OnMode: "It matches, and only observes.",
	}[c]
}
