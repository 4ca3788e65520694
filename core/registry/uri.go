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

// RemoteURL is the address of a remote in the form in which it is compared: scheme and host in
// lower case, the default port left out (contract R-33).
type RemoteURL string

// uri returns the rule of an absolute URI (contract R-50), with one of the schemes if any are
// given. Schemes are compared in any case, as url.Parse does.
func uri(schemes ...string) func(string) *problem {
	return func(s string) *problem {
		u, why := parseURI(s)
		switch {
		case why != "":
			return schemaProblem("uri", "must be an absolute URI: %s", why)
		case len(schemes) > 0 && !slices.Contains(schemes, u.Scheme):
			return schemaProblem("uri", "must be an absolute URI that begins with %s", strings.Join(schemes, ":// or ")+"://")
		}
		return nil
	}
}

var web = []string{"http", "https"}

// parseURI reads an absolute URI, or tells what is wrong with it. Beyond
// url.Parse it refuses what RFC 3986 leaves no place for: white space, control and
// format characters, quotes, brackets, an empty host, a port out of range.
func parseURI(s string) (*url.URL, string) {
	if s == "" {
		return nil, "it is empty"
	}
	if i := strings.IndexFunc(s, neverInURI); i >= 0 {
		return nil, "it holds the character " + strconv.QuoteRune([]rune(s[i:])[0])
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, quote(s) + " cannot be read as one"
	case !u.IsAbs():
		return nil, "it has no scheme such as https"
	case u.Host == "" && u.Opaque == "" && u.Path == "", slices.Contains(web, u.Scheme) && u.Hostname() == "":
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
	return r <= ' ' || isInvisible(r) || unicode.IsSpace(r) || strings.ContainsRune("\"<>\\^`{|}", r)
}

var (
	ownerOrRepo = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	templated   = regexp.MustCompile(`^(?i:https?://|\{[^{}]+\})`)
)

// repositoryURL checks the address against the hosting service that source names (contract R-41).
// Any host is accepted, because services run on premises too.
func repositoryURL(r *report, at place, v *node) {
	address, _ := v.str("url")
	source, known := v.str("source")
	u, why := parseURI(address)
	if why != "" || !known {
		return // reported already, or nothing to compare with
	}
	segments := strings.Split(strings.Trim(u.Path, "/"), "/")
	clean := !slices.ContainsFunc(segments, func(s string) bool { return s == "" || s == "." || s == ".." })
	var p *problem
	switch source {
	case "github":
		if len(segments) != 2 || !clean || !ownerOrRepo.MatchString(segments[0]) || !ownerOrRepo.MatchString(segments[1]) {
			p = semanticProblem("github", "must be https://HOST/OWNER/REPOSITORY for the source github")
		}
	case "gitlab":
		if len(segments) < 2 || !clean || slices.Contains(segments, "-") {
			p = semanticProblem("gitlab", "must be https://HOST/GROUP/PROJECT for the source gitlab, with more groups or not, and without \"/-/\"")
		}
	}
	r.add(orSelf(v.get("url"), v), at.key("url").under("Repository/url"), p)
}

// subfolder is the rule of Repository.subfolder.
func subfolder(s string) *problem {
	switch {
	case strings.HasPrefix(s, "/"):
		return schemaProblem("relative", "must be a path relative to the repository's root, without a \"/\" at the start")
	case strings.Contains(s, `\`):
		return schemaProblem("clean", "must separate folders by \"/\", not by a backslash")
	}
	for segment := range strings.SplitSeq(s, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return schemaProblem("clean", "must be a clean path: none of its parts may be empty, \".\" or \"..\"")
		}
	}
	return nil
}

// template is the rule of a transport's url: how it begins, and that it parses
// with a plausible value for every variable.
func template(s string) *problem {
	if !templated.MatchString(s) {
		return schemaProblem("pattern", "must begin with http://, https:// or a {variable}")
	}
	if _, why := parseURI(fillIn(s)); why != "" {
		return schemaProblem("uri", "must be a URL once its variables are replaced: %s", why)
	}
	return nil
}

// fillIn replaces variables by plausible values: at the start an origin, or a
// scheme where "://" follows; elsewhere a digit, which may stand in a host, a
// port, a path and a query.
func fillIn(s string) string {
	var b strings.Builder
	for before, name := range variables(s) {
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

// hasVariable tells whether a template has any variable.
func hasVariable(s string) bool {
	for _, name := range variables(s) {
		return name != ""
	}
	return false
}

// variablesIn returns the names of the variables of a template, each once.
func variablesIn(s string) []string {
	var names []string
	for _, name := range variables(s) {
		if name != "" {
			names = append(names, name[1:len(name)-1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// variables yields the parts of a template: each variable, with its braces,
// and the text before it; last the text behind all, with no variable. A
// variable is a name, which holds no brace, between braces.
func variables(s string) iter.Seq2[string, string] {
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

// remoteURL returns the form in which addresses of remotes are compared. One
// that begins with a variable stays as it is.
func remoteURL(s string) RemoteURL {
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

func orSelf(v, self *node) *node {
	if v == nil {
		return self
	}
	return v
}
