package allowlist

import (
	"regexp"
	"slices"
	"strings"
)

// key returns a text that only equal entries have. Entries are ordered by it.
func (e Entry) key() string {
	switch {
	case e.URL != "":
		return "url\x00" + e.URL
	case len(e.Command) > 0:
		return "command\x00" + strings.Join(e.Command, "\x00")
	}
	return "name\x00" + e.Name
}

// entryName is the form of the names that both clients accept.
var entryName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// addEntries adds the entries of what was added. Nothing is denied that is allowed.
func (c *Compiler) addEntries(list *List) {
	allowed := allowedEntries{byKey: map[string]Entry{}}
	for _, s := range c.listed {
		entries, reasons := s.entries()
		if len(entries) == 0 {
			if name := lastPart(s.release.Name); entryName.MatchString(name) {
				entries, reasons = []Entry{{Name: name}}, nil
			} else {
				reasons = append(reasons, "its name has a character that the client does not accept")
			}
		}
		c.skipAll(s, reasons)
		for _, e := range entries {
			allowed.byKey[e.key()] = e
			if strings.Contains(e.URL, anyText) {
				allowed.patterns = append(allowed.patterns, e.URL)
			}
		}
	}
	denied := map[string]Entry{}
	for _, s := range c.removed {
		entries, reasons := s.entries()
		if len(entries) == 0 {
			reasons = append(reasons, "it cannot be denied by its name, because servers that are allowed may have the same")
		}
		for _, e := range entries {
			_, equal := allowed.byKey[e.key()]
			switch {
			case equal: // a listed server has it
			case allowed.overlap(e):
				reasons = append(reasons, e.URL+" cannot be denied, because the URL of a server that is allowed matches it")
			default:
				denied[e.key()] = e
			}
		}
		c.skipAll(s, reasons)
	}
	list.Allowed, list.Denied = sortedEntries(allowed.byKey), sortedEntries(denied)
}

// allowedEntries are the entries that must not be denied.
type allowedEntries struct {
	byKey    map[string]Entry
	patterns []string // the URLs with a "*"
}

// overlap reports whether denying e would deny a URL that is allowed by another pattern.
func (a *allowedEntries) overlap(e Entry) bool {
	if e.URL == "" {
		return false
	}
	if slices.ContainsFunc(a.patterns, func(p string) bool { return overlaps(e.URL, p) }) {
		return true
	}
	if strings.Contains(e.URL, anyText) {
		for _, other := range a.byKey {
			if other.URL != "" && overlaps(e.URL, other.URL) {
				return true
			}
		}
	}
	return false
}

// overlaps reports whether there may be a text that both patterns match. Only patterns that begin
// or end differently before and after their first and last "*" surely have none.
func overlaps(a, b string) bool {
	aStart, _, aOpen := strings.Cut(a, anyText)
	bStart, _, bOpen := strings.Cut(b, anyText)
	if !aOpen && !bOpen {
		return a == b
	}
	aEnd, bEnd := a[strings.LastIndex(a, anyText)+1:], b[strings.LastIndex(b, anyText)+1:]
	begins := strings.HasPrefix(aStart, bStart) || strings.HasPrefix(bStart, aStart)
	ends := strings.HasSuffix(aEnd, bEnd) || strings.HasSuffix(bEnd, aEnd)
	return begins && ends
}

// entries returns an Entry for each remote and package of a server, and why others have none.
func (s server) entries() (entries []Entry, reasons []string) {
	for _, r := range s.remotes {
		pattern, err := r.pattern()
		if err != nil {
			reasons = append(reasons, err.Error())
			continue
		}
		entries = append(entries, Entry{URL: pattern})
	}
	for _, p := range s.packages {
		argv, err := p.command(nil)
		if err != nil {
			reasons = append(reasons, err.Error())
			continue
		}
		entries = append(entries, Entry{Command: argv})
	}
	if len(s.remotes)+len(s.packages) == 0 {
		reasons = append(reasons, nothingToStart)
	}
	return entries, reasons
}

func (c *Compiler) skipAll(s server, reasons []string) {
	for _, reason := range reasons {
		c.skip(s.release, reason)
	}
}

func sortedEntries(byKey map[string]Entry) []Entry {
	all := make([]Entry, 0, len(byKey))
	for _, e := range byKey {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.key(), b.key()) })
	return all
}
