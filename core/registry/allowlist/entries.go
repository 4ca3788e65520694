package allowlist

import (
	"errors"
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
		entries, reasons := s.allowed(c.format)
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
		entries, reasons, _ := s.entries(c.format)
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

// allowed returns the entries of a listed server: those of its remotes and packages, or of its name
// if it has none, and why others have none. A server that was refused because an entry would allow
// more than it has none by its name, which allows anything.
func (s server) allowed(f Format) (entries []Entry, reasons []string) {
	entries, reasons, refused := s.entries(f)
	usual := len(entries)
	if f == VSCode && usual > 0 { // what a snippet makes may have no entry, even if what VS Code itself makes has one
		others, _, _ := s.entries(Claude)
		usual = len(others)
	}
	if usual > 0 || refused {
		return entries, reasons
	}
	if f == VSCode { // where users install it, it has its full name; in snippets the last part of it
		entries = append(entries, Entry{Name: s.release.Name.String()})
	}
	if name := lastPart(s.release.Name); entryName.MatchString(name) {
		entries = append(entries, Entry{Name: name})
	}
	if len(entries) > 0 {
		return entries, nil
	}
	return nil, append(reasons, "its name has a character that the client does not accept")
}

// entries returns the entries of the remotes and packages of a server, why others have none, and
// whether one was refused.
func (s server) entries(f Format) (entries []Entry, reasons []string, refused bool) {
	note := func(err error) {
		reasons = append(reasons, err.Error())
		var r refusal
		refused = refused || errors.As(err, &r)
	}
	for _, r := range s.remotes {
		pattern, err := r.pattern()
		if err != nil {
			note(err)
			continue
		}
		entries = append(entries, Entry{URL: pattern})
	}
	for _, p := range s.packages {
		commands, err := p.commands(f)
		if err != nil {
			note(err)
			continue
		}
		for _, argv := range commands {
			entries = append(entries, Entry{Command: argv})
		}
	}
	if len(s.remotes)+len(s.packages) == 0 {
		reasons = append(reasons, nothingToStart)
	}
	return entries, reasons, refused
}

// commands returns the commands by which users of a client start a package: for VS Code, that of its
// installer and that of the snippet. It returns an error if there is none.
func (p pkg) commands(f Format) (all [][]string, err error) {
	usual, err := p.command(nil)
	if err == nil {
		all = append(all, usual)
	}
	if f != VSCode {
		return all, err
	}
	installed, installErr := p.vscodeCommand()
	switch {
	case installErr == nil && !slices.Equal(usual, installed):
		return append(all, installed), nil
	case len(all) > 0:
		return all, nil
	}
	return nil, err
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
