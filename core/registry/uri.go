package registry

import (
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// RemoteURL is the URL of a remote in the form that is compared: scheme and host in lower case,
// without the default port (contract R-33).
type RemoteURL string

// uriRule returns the rule of an absolute URI (contract R-50), with one of the given schemes if
// there are any. Schemes are case-insensitive, as in url.Parse.
func uriRule(schemes ...string) func(string) *problem {
	return func(s string) *problem {
		u, reason := parseURI(s)
		switch {
		case reason != "":
			return schemaProblem("uri", "must be an absolute URI: %s", reason)
		case len(schemes) > 0 && !slices.Contains(schemes, u.Scheme):
			return schemaProblem("uri", "must be an absolute URI that begins with %s",
				strings.Join(schemes, ":// or ")+"://")
		}
		return nil
	}
}

var webSchemes = []string{"http", "https"}

// parseURI returns an absolute URI, or the reason why s is not valid. It is stricter than
// url.Parse: RFC 3986 does not allow white space, control and format characters, quotes, some
// brackets, an empty host, and a port out of range.
func parseURI(s string) (*url.URL, string) {
	if s == "" {
		return nil, "it is empty"
	}
	if i := strings.IndexFunc(s, neverInURI); i >= 0 {
		return nil, "it contains the character " + strconv.QuoteRune([]rune(s[i:])[0])
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, quote(s) + " cannot be read as one"
	case !u.IsAbs():
		return nil, "it has no scheme (for example https)"
	case u.Host == "" && u.Opaque == "" && u.Path == "", slices.Contains(webSchemes, u.Scheme) && u.Hostname() == "":
		return nil, "nothing or no host follows the scheme"
	}
	if port := u.Port(); port != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return nil, "port " + shorten(port) + " is out of range"
		}
	}
	return u, ""
}

func neverInURI(r rune) bool {
	return r <= ' ' || IsInvisible(r) || unicode.IsSpace(r) || strings.ContainsRune("\"<>\\^`{|}", r)
}

var (
	ownerOrRepo   = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	templateStart = regexp.MustCompile(`^(?i:https?://|\{[^{}]+\})`)
)

// repositoryURLCheck checks that the URL has the form of the hosting service that source names
// (contract R-41). Any host is accepted, because these services can run on premises.
func repositoryURLCheck(r *report, at location, v *node) {
	address, _ := v.stringProperty("url")
	source, known := v.stringProperty("source")
	u, reason := parseURI(address)
	if reason != "" || !known {
		return // the URL has a problem already, or there is no source
	}
	segments := strings.Split(strings.Trim(u.Path, "/"), "/")
	clean := !slices.ContainsFunc(segments, func(s string) bool { return s == "" || s == "." || s == ".." })
	var p *problem
	switch source {
	case "github":
		if len(segments) != 2 || !clean || !ownerOrRepo.MatchString(segments[0]) ||
			!ownerOrRepo.MatchString(segments[1]) {
			p = semanticProblem("github", "must be https://HOST/OWNER/REPOSITORY for the source github")
		}
	case "gitlab":
		if len(segments) < 2 || !clean || slices.Contains(segments, "-") {
			p = semanticProblem("gitlab",
				"must be https://HOST/GROUP/PROJECT for the source gitlab, with more groups or not, and without \"/-/\"")
		}
	}
	r.addProblem(orSelf(v.property("url"), v), at.key("url").withRule("Repository/url"), p)
}

// subfolderProblem is the rule of Repository.subfolder.
func subfolderProblem(s string) *problem {
	switch {
	case strings.HasPrefix(s, "/"):
		return schemaProblem("relative",
			"must be a path relative to the repository's root, without a \"/\" at the start")
	case strings.Contains(s, `\`):
		return schemaProblem("clean", "must separate folders by \"/\", not by a backslash")
	}
	for segment := range strings.SplitSeq(s, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return schemaProblem("clean", "must be a clean path: no part of it may be empty, \".\" or \"..\"")
		}
	}
	return nil
}

// templateProblem is the rule of the url of a transport: it has a valid beginning, and is a valid
// URL with a plausible value for every variable.
func templateProblem(s string) *problem {
	if !templateStart.MatchString(s) {
		return schemaProblem("pattern", "must begin with http://, https:// or a {variable}")
	}
	if _, reason := parseURI(fillVariables(s)); reason != "" {
		return schemaProblem("uri", "must be a URL once its variables are replaced: %s", reason)
	}
	return nil
}

// fillVariables replaces variables by plausible values: at the beginning an origin, or a scheme if
// "://" follows; elsewhere a digit, which is valid in a host, a port, a path and a query.
func fillVariables(s string) string {
	var b strings.Builder
	for before, name := range templateParts(s) {
		b.WriteString(before)
		s = s[len(before)+len(name):]
		switch {
		case name == "":
		case b.Len() > 0:
			b.WriteString("1")
		case strings.HasPrefix(s, "://"):
			b.WriteString("https")
		default:
			b.WriteString("https://host.example")
		}
	}
	return b.String()
}

// hasVariable reports whether a template has a variable.
func hasVariable(s string) bool {
	for _, name := range templateParts(s) {
		return name != ""
	}
	return false
}

// variablesIn returns the names of the variables of a template, each once.
func variablesIn(s string) []string {
	var names []string
	for _, name := range templateParts(s) {
		if name != "" {
			names = append(names, name[1:len(name)-1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// templateParts returns an iterator over the parts of a template: each variable with its braces,
// and the text before it; last the text after all variables, with an empty variable. A variable is
// a name without braces, between braces.
func templateParts(s string) iter.Seq2[string, string] {
	return func(yield func(text, variable string) bool) {
		from := 0
		for at := 0; at < len(s); {
			end := strings.IndexByte(s[at:], '}')
			if end < 0 {
				break
			}
			end += at + 1
			if start := strings.LastIndexByte(s[at:end], '{'); start >= 0 && at+start+2 < end {
				if !yield(s[from:at+start], s[at+start:end]) {
					return
				}
				from = end
			}
			at = end
		}
		yield(s[from:], "")
	}
}

// ComparableURL returns the form in which URLs of remotes are compared. A URL that begins with a
// variable is not changed.
func ComparableURL(s string) RemoteURL {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || strings.ContainsAny(scheme, "{/?#") {
		return RemoteURL(s)
	}
	scheme = strings.ToLower(scheme)
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, path := rest[:end], rest[end:]
	user := strings.LastIndexByte(authority, '@') + 1
	host := strings.TrimSuffix(strings.ToLower(authority[user:]), defaultPort(scheme))
	host = strings.TrimSuffix(host, ":")
	return RemoteURL(scheme + "://" + authority[:user] + host + path)
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return ":443"
	}
	return ":80"
}

// orSelf returns v, or self when v is nil.
func orSelf(v, self *node) *node {
	if v == nil {
		return self
	}
	return v
}
