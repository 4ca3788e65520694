package operating

import (
	"cmp"
	"context"
	"iter"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

const limitsPath = Path + "/limits"

var limitsPage = site.NewPage(templates, "templates/limits.html")

// Limits are the rate limits of this process.
type Limits struct {
	Rules     *reload.Rules
	Decisions *decide.Decider
}

// The bounds of the page.
const (
	rulesPerPage   = 100
	maxKeysShown   = 20
	maxExplained   = 10   // descriptors
	maxTriedShown  = 50   // rules of a descriptor
	maxDescriptors = 4096 // bytes of the text
)

// limitsView is the page with the rate limits.
type limitsView struct {
	Running, Loaded bool
	Refused, Most   []keyRow // keys over their limits, and those with the most hits
	Domains         []ratelimit.Domain
	Domain          ratelimit.Domain
	Rules           []ruleRow
	folder          string // of the files of rules
	Before, Next    string // the addresses of the other pages of rules
	Asked           ratelimit.Domain
	Descriptors     string // as written
	Explained       []explainedView
}

// keyRow is a key of a rule with its hits.
type keyRow struct {
	ratelimit.HotKey

	Domain ratelimit.Domain
	Rule   string
}

// ruleRow is a rule in words.
type ruleRow struct {
	Path, Limit, Name, Place string
	Modes                    []string
	Hits, Over               uint64
}

// explainedView is what decides about a descriptor.
type explainedView struct {
	Descriptor string
	Rule       *ruleRow // nil without a rule
	Why, Key   string
	ReplacedBy ratelimit.Name
	Tried      []triedRow
	More       bool
}

// triedRow is a rule that was compared with an entry; Number is that of its level, from 1.
type triedRow struct {
	ruleset.Tried

	Number int
}

func (p *Pages) limits(_ context.Context, v *site.Visit) error {
	view := limitsView{Asked: ratelimit.Domain(v.Text("for")), Descriptors: v.Text("descriptors")}
	var problems site.Problems
	if p.ports.Limits != nil {
		view.Running = true
		if set := p.ports.Limits.Rules.Current(); set != nil {
			view.Loaded, view.folder = true, folderOf(set.Rules())
			view.fillRules(v, set)
			view.fillKeys(p.ports.Limits.Decisions.HotKeys())
			problems = view.explain(p.ports.Limits.Decisions)
		}
	}
	return v.Render(limitsPage, site.Head{Title: "Limits", Problems: problems}, view)
}

// fillRules adds a page of the rules of a domain.
func (l *limitsView) fillRules(v *site.Visit, set *ruleset.Set) {
	l.Domains = set.Domains()
	if len(l.Domains) == 0 {
		return
	}
	l.Domain = ratelimit.Domain(v.Text("domain"))
	if !set.HasDomain(l.Domain) {
		l.Domain = l.Domains[0]
	}
	if l.Asked == "" {
		l.Asked = l.Domain
	}
	from, err := strconv.Atoi(v.Text("from"))
	if err != nil || from < 0 {
		from = 0
	}
	address := func(from int) string {
		return limitsPath + "?" + url.Values{
			"domain": {string(l.Domain)}, "from": {strconv.Itoa(from)},
		}.Encode() + "#rules"
	}
	if from > 0 {
		l.Before = address(max(from-rulesPerPage, 0))
	}
	n := 0
	for r := range set.Rules() {
		if r.Domain != l.Domain {
			continue
		}
		if n == from+rulesPerPage {
			l.Next = address(n)
			return
		}
		if n >= from {
			l.Rules = append(l.Rules, newRuleRow(r, l.folder))
		}
		n++
	}
}

// folderOf returns the folder that has the files of all rules, with a slash at its end; empty if
// they have none in common.
func folderOf(rules iter.Seq[*ratelimit.Rule]) string {
	folder, first := "", true
	for r := range rules {
		if first {
			folder, first = path.Dir(r.File)+"/", false
		}
		for folder != "" && !strings.HasPrefix(r.File, folder) {
			folder = folder[:strings.LastIndexByte(strings.TrimSuffix(folder, "/"), '/')+1]
		}
	}
	return folder
}

func newRuleRow(r *ratelimit.Rule, folder string) ruleRow {
	row := ruleRow{
		Path: strings.Join(r.Written, ", "), Name: string(r.Name), Place: strings.TrimPrefix(r.File, folder), Limit: "unlimited",
		Hits: r.Hits.Total(), Over: r.Hits.Over.Load(),
	}
	if r.Line > 0 {
		row.Place += ":" + strconv.Itoa(r.Line)
	}
	if !r.Unlimited {
		row.Limit = strconv.FormatUint(uint64(r.Limit.RequestsPerUnit), 10) + " per " + r.Limit.Unit.String()
	}
	if a := r.Limit.Algorithm; a != ratelimit.FixedWindow {
		mode := strings.ReplaceAll(a.String(), "_", " ")
		if r.Limit.Burst > 0 {
			mode += ", at most " + strconv.FormatUint(uint64(r.Limit.Burst), 10) + " at once"
		}
		row.Modes = append(row.Modes, mode)
	}
	if r.Shadow {
		row.Modes = append(row.Modes, "shadow mode")
	}
	if r.Quota {
		row.Modes = append(row.Modes, "quota mode")
	}
	for _, name := range r.Replaces {
		row.Modes = append(row.Modes, "replaces "+string(name))
	}
	return row
}

// fillKeys adds the keys that were refused, and those with the most hits.
func (l *limitsView) fillKeys(all []decide.RuleKeys) {
	for _, r := range all {
		for _, k := range r.Keys {
			row := keyRow{k, r.Rule.Domain, strings.Join(r.Rule.Written, ", ")}
			l.Most = append(l.Most, row)
			if k.Refused > 0 {
				l.Refused = append(l.Refused, row)
			}
		}
	}
	slices.SortStableFunc(l.Most, func(a, b keyRow) int { return cmp.Compare(b.Hits, a.Hits) })
	slices.SortStableFunc(l.Refused, func(a, b keyRow) int { return cmp.Compare(b.HotKey.Refused, a.HotKey.Refused) })
	l.Most, l.Refused = l.Most[:min(len(l.Most), maxKeysShown)], l.Refused[:min(len(l.Refused), maxKeysShown)]
}

// explain adds which rules decide about the descriptors that the person asks about, if any.
func (l *limitsView) explain(d *decide.Decider) site.Problems {
	if strings.TrimSpace(l.Descriptors) == "" {
		return nil
	}
	r, err := parseQuestion(l.Asked, l.Descriptors)
	if err != nil {
		return site.Problems{{Field: "descriptors", Text: fault.PublicMessage(err)}}
	}
	results, err := d.Explain(r)
	if err != nil {
		return site.Problems{{Field: "for", Text: fault.PublicMessage(err)}}
	}
	for i, result := range results {
		one := explainedView{
			Descriptor: ratelimit.FormatEntries(r.Descriptors[i].Entries), Why: result.Why, Key: result.CounterKey,
			ReplacedBy: result.ReplacedBy, More: result.More || len(result.Tried) > maxTriedShown,
		}
		for _, t := range result.Tried[:min(len(result.Tried), maxTriedShown)] {
			one.Tried = append(one.Tried, triedRow{t, t.Level + 1})
		}
		if result.Rule != nil {
			row := newRuleRow(result.Rule, l.folder)
			one.Rule = &row
		}
		l.Explained = append(l.Explained, one)
	}
	return nil
}

// parseQuestion returns a request with the descriptors of a text, one on each line.
func parseQuestion(domain ratelimit.Domain, text string) (*ratelimit.Request, error) {
	r := &ratelimit.Request{Domain: domain}
	if len(text) > maxDescriptors {
		return nil, fault.Newf(fault.Invalid, "The descriptors must have at most %d bytes.", maxDescriptors)
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		entries, err := ratelimit.ParseEntries(line)
		if err != nil {
			return nil, fault.New(fault.Invalid,
				"Write each descriptor on a line, as key=value,key=value: "+fault.PublicMessage(err)+".")
		}
		r.Descriptors = append(r.Descriptors, ratelimit.Descriptor{Entries: entries})
	}
	if len(r.Descriptors) > maxExplained {
		return nil, fault.Newf(fault.Invalid, "Ask about at most %d descriptors at once.", maxExplained)
	}
	return r, nil
}
