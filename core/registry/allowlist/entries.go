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

// parseKey returns the entry that has a key.
func parseKey(key string) Entry {
	kind, value, _ := strings.Cut(key, "\x00")
	switch kind {
	case "url":
		return Entry{URL: value}
	case "command":
		return Entry{Command: strings.Split(value, "\x00")}
	}
	return Entry{Name: value}
}

// urlKey is the beginning of the keys of URLs.
const urlKey = "url\x00"

// allowEntries adds the entries of a listed server.
func (c *Compiler) allowEntries(s server) {
	c.listed = append(c.listed, c.entries(func(f Format) []Entry {
		entries, reasons := s.allowed(f)
		c.skip(f, s.release.Name, s.release.Version, reasons...)
		return entries
	})...)
}

// denyEntries adds the entries of a version that was deleted.
func (c *Compiler) denyEntries(s server) {
	all := c.entries(func(f Format) []Entry {
		entries, reasons, _ := s.entries(f)
		if len(entries) == 0 {
			reasons = append(reasons,
				"it cannot be denied by its name, because servers that are allowed may have the same")
		}
		c.skip(f, s.release.Name, s.release.Version, reasons...)
		return entries
	})
	for _, e := range all {
		c.removed = append(c.removed, removal{e, s.release.Name.Clone(), s.release.Version.Clone()})
	}
}

// entries returns the entries that a version has in each format, those of several formats once.
func (c *Compiler) entries(in func(Format) []Entry) []keyed {
	var all []keyed
	for _, f := range []Format{Claude, VSCode} {
		if !c.has(f) {
			continue
		}
		for _, e := range in(f) {
			key := e.key()
			if at := slices.IndexFunc(all, func(other keyed) bool { return other.key == key }); at >= 0 {
				all[at].formats |= setOf(f)
				continue
			}
			all = append(all, keyed{key, setOf(f)})
		}
	}
	return all
}

// denied returns the entries of deleted versions that no allowed entry has or matches, compared as
// clients do.
func (c *Compiler) denied(allowed []keyed) []keyed {
	if len(c.removed) == 0 {
		return nil
	}
	urls := indexAddresses(allowed)
	var denied []keyed
	for _, e := range c.removed {
		for _, f := range []Format{Claude, VSCode} {
			if e.formats&setOf(f) == 0 {
				continue
			}
			at, equal := slices.BinarySearchFunc(allowed, e.key, func(a keyed, key string) int {
				return strings.Compare(a.key, key)
			})
			switch {
			case equal && allowed[at].formats&setOf(f) != 0: // a listed server has it
				e.formats &^= setOf(f)
			case urls.overlaps(e.key):
				e.formats &^= setOf(f)
				c.skip(f, e.name, e.version,
					e.key[len(urlKey):]+" cannot be denied, because the URL of a server that is allowed matches it")
			}
		}
		if e.formats != 0 {
			denied = append(denied, e.keyed)
		}
	}
	return mergeEqual(denied)
}

// addressIndex has the addresses of the allowed URLs, in order, those with a query also without it:
// Claude Code compares a denied entry with both. All formats have the same URLs.
type addressIndex struct {
	all      []string
	patterns map[string][]string // those with a "*", by what is before it
}

func indexAddresses(allowed []keyed) addressIndex {
	from, _ := slices.BinarySearchFunc(allowed, urlKey, func(a keyed, key string) int {
		return strings.Compare(a.key, key)
	})
	x := addressIndex{patterns: map[string][]string{}}
	add := func(text string) {
		x.all = append(x.all, text)
		if start, _, open := strings.Cut(text, anyText); open {
			x.patterns[start] = append(x.patterns[start], text)
		}
	}
	for _, e := range allowed[from:] {
		a := parseAddress(e.key[len(urlKey):])
		add(a.String())
		if a.query != "" {
			a.query = ""
			add(a.String())
		}
	}
	slices.Sort(x.all)
	return x
}

// overlaps reports whether a client that denies an entry would deny an address that is allowed.
func (x addressIndex) overlaps(key string) bool {
	pattern, isURL := strings.CutPrefix(key, urlKey)
	if !isURL {
		return false
	}
	denied := parseAddress(pattern)
	if denied.path == "" { // clients may take it for every path
		denied.path, denied.query = anyText, ""
	}
	text := denied.String()
	start, _, open := strings.Cut(text, anyText)
	for end := range len(start) + 1 { // the patterns that begin with a part of the address
		if slices.ContainsFunc(x.patterns[start[:end]], func(p string) bool { return overlap(text, p) }) {
			return true
		}
	}
	at, equal := slices.BinarySearch(x.all, start)
	if !open {
		return equal
	}
	for _, other := range x.all[at:] { // the addresses that begin with what the pattern begins with
		if !strings.HasPrefix(other, start) {
			return false
		}
		if overlap(text, other) {
			return true
		}
	}
	return false
}

// mayMatch reports whether there may be a text that both patterns match. Only patterns that begin
// or end differently before and after their first and last "*" surely do not.
func mayMatch(a, b string) bool {
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
// if it lacks them, and why others are missing. A server that was refused because an entry would allow
// more than it has no entry by its name, which allows anything.
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

// entries returns the entries of the remotes and packages of a server, why others are missing, and
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

// commands returns the commands by which users of a client start a package: for VS Code, that of
// its installer and that of the snippet. It returns an error if it does not exist.
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
