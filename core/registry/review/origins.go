package review

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// Origins is everything in a document that decides what code a client runs and where data goes. It
// is the whole document without what the contract lists as free (contract C-15): a property that
// this package does not know counts, so that a new one cannot pass unseen.
type Origins struct {
	fixed  string          // the JSON of the document without what is free
	stayed string          // likewise, with the versions that arguments and URLs name
	hosts  map[string]bool // scheme, "://" and host of each URL in a text of the document
	open   bool            // a remote may have any host
}

// The values that stand for free ones, so that it still counts whether there is one. No document
// has a NUL.
const (
	anyVersion = "\x00version"
	anyHash    = "\x00hash"
)

var (
	// versionForm is the form of a version that is free. It has no "/", ":" or "@": npm reads
	// "npm:other@1", "user/repository" and URLs in place of a version as another package.
	versionForm = regexp.MustCompile(`^v?[0-9][0-9A-Za-z.+_-]*$`)
	hashForm    = regexp.MustCompile(`^[a-f0-9]{64}$`)
	digestForm  = regexp.MustCompile(`@sha256:[a-f0-9]{64}$`)
	urlForm     = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#\\"'<>]*`)
)

// replaceText replaces a property that is a text.
func replaceText(o jsonvalue.Object, name string, by func(string) string) {
	if s, ok := o[name].(jsonvalue.Text); ok {
		o[name] = jsonvalue.Text(by(string(s)))
	}
}

// ReadOrigins returns the origins of a server document. It returns fault.Invalid if the document is
// not a JSON object.
func ReadOrigins(doc []byte) (Origins, error) {
	root, err := readObject(doc)
	if err != nil {
		return Origins{}, err
	}
	o := Origins{hosts: map[string]bool{}}
	o.addHosts(root)
	for _, r := range root.Objects("remotes") {
		_, _, fixed := cutHost(r.Text("url"))
		o.open = o.open || !fixed
	}
	if o.fixed, err = fixedText(root, true); err != nil {
		return Origins{}, err
	}
	if root, err = readObject(doc); err != nil {
		return Origins{}, err
	}
	o.stayed, err = fixedText(root, false)
	return o, err
}

// readObject returns a JSON object without null properties, which are the same as missing ones
// (contract R-9), or fault.Invalid.
func readObject(text []byte) (jsonvalue.Object, error) {
	value, err := jsonvalue.Parse(text)
	root, ok := value.(jsonvalue.Object)
	if !ok {
		return nil, fault.Wrap(fault.Invalid, "the document is not a JSON object", err)
	}
	removeNulls(root)
	return root, nil
}

// fixedText returns the JSON of a document without what is free, which it removes from root. With
// named, the versions that arguments and URLs name are free too.
func fixedText(root jsonvalue.Object, named bool) (string, error) {
	var own versions
	if named {
		own = own.with(root.Text("version"))
	}
	removeTexts(root, "title", "description")
	replaceText(root, "version", func(string) string { return anyVersion })
	for _, name := range []string{"$schema", "websiteUrl"} {
		replaceText(root, name, withoutPath)
	}
	for _, icon := range root.Objects("icons") {
		replaceText(icon, "src", withoutPath)
	}
	for _, p := range root.Objects("packages") {
		if named {
			freePackage(p, own.with(p.Text("version")))
		} else {
			freePackage(p, nil)
		}
	}
	for _, r := range root.Objects("remotes") {
		replaceText(r, "url", withoutPath)
		freeInputs(r)
	}
	text, err := json.Marshal(root)
	return string(text), err
}

// Equal reports whether a document takes code from and sends data to the same places, in the same
// way, as an approved one. It is false if a remote has a variable host: its values may be any.
func (o Origins) Equal(approved Origins) bool {
	for host := range o.hosts {
		if !approved.hosts[host] {
			return false
		}
	}
	return !o.open && (o.fixed == approved.fixed || o.stayed == approved.stayed)
}

// removeNulls removes the null properties of a value.
func removeNulls(value jsonvalue.Value) {
	switch v := value.(type) {
	case jsonvalue.Object:
		for name, member := range v {
			if removeNulls(member); member == nil {
				delete(v, name)
			}
		}
	case jsonvalue.List:
		for _, item := range v {
			removeNulls(item)
		}
	}
}

// addHosts adds the hosts of all URLs in the texts of a value, and in the names of its properties.
func (o *Origins) addHosts(value jsonvalue.Value) {
	switch v := value.(type) {
	case jsonvalue.Text:
		for _, url := range urlForm.FindAllString(string(v), -1) {
			o.hosts[hostIn(url)] = true
		}
	case jsonvalue.Object:
		for name, member := range v {
			o.addHosts(jsonvalue.Text(name))
			o.addHosts(member)
		}
	case jsonvalue.List:
		for _, item := range v {
			o.addHosts(item)
		}
	}
}

// hostIn returns the scheme and the host of what urlForm has found in a text.
func hostIn(url string) string { return strings.ToLower(strings.TrimRight(url, ".,;:!)")) }

// removeTexts removes properties that are texts.
func removeTexts(o jsonvalue.Object, names ...string) {
	for _, name := range names {
		if _, ok := o[name].(jsonvalue.Text); ok {
			delete(o, name)
		}
	}
}

// freePackage replaces what is free in a package. own are the versions of the package and of its
// document; nil if they are not free where arguments and URLs name them.
func freePackage(p jsonvalue.Object, own versions) {
	replaceText(p, "identifier", func(s string) string {
		if p.Text("registryType") == "oci" {
			return freeImage(s)
		}
		return own.freeURL(s)
	})
	replaceText(p, "version", freeVersion)
	replaceText(p, "fileSha256", func(s string) string {
		if hashForm.MatchString(s) {
			return anyHash
		}
		return s
	})
	for _, list := range []string{"runtimeArguments", "packageArguments"} {
		for _, argument := range p.Objects(list) {
			freeInput(argument)
			replaceText(argument, "value", own.freeReference)
			replaceText(argument, "default", own.freeReference)
		}
	}
	for _, variable := range p.Objects("environmentVariables") {
		freeInput(variable)
	}
	freeInputs(p.Inner("transport"))
}

// freeInputs removes what is free in the headers and the variables of a transport.
func freeInputs(transport jsonvalue.Object) {
	for _, header := range transport.Objects("headers") {
		freeInput(header)
	}
	freeVariables(transport)
}

// freeInput removes the descriptions of an input and of its variables.
func freeInput(input jsonvalue.Object) {
	removeTexts(input, "description")
	freeVariables(input)
}

// freeVariables removes the descriptions of variables, whose names may be any.
func freeVariables(of jsonvalue.Object) {
	variables := of.Inner("variables")
	for name := range variables {
		removeTexts(variables.Inner(name), "description")
	}
}

func freeVersion(s string) string {
	if versionForm.MatchString(s) {
		return anyVersion
	}
	return s
}

// freeImage returns the identifier of a container image with its tag, if that is a version, and its
// digest replaced.
func freeImage(s string) string {
	name := digestForm.ReplaceAllString(s, "")
	digest := ""
	if name != s {
		digest = "@" + anyHash
	}
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon+1] + freeVersion(name[colon+1:])
	}
	return name + digest
}

// versions are the versions of a document and of one of its packages. Where a text names one of
// them, it is free.
type versions []string

func (all versions) with(version string) versions {
	if !versionForm.MatchString(version) {
		return all
	}
	return append(all[:len(all):len(all)], strings.TrimPrefix(version, "v"))
}

// freeReference returns an argument that ends with a version, as name@1.0.0, name==1.0.0 or
// image:1.0.0, with the version replaced.
func (all versions) freeReference(s string) string {
	for _, version := range all {
		rest, found := strings.CutSuffix(s, version)
		if !found {
			continue
		}
		rest = strings.TrimSuffix(rest, "v")
		for _, separator := range []string{"@", "==", ":"} {
			if strings.HasSuffix(rest, separator) {
				return rest + anyVersion
			}
		}
	}
	return s
}

// freeURL returns a URL, the identifier of a file, with the versions in its path replaced where
// they are between separators. A version of one number could be anything there, and is kept.
func (all versions) freeURL(s string) string {
	host, path, fixed := cutHost(s)
	if !fixed {
		return s
	}
	for _, version := range all {
		if strings.Contains(version, ".") {
			path = freeBetween(path, version)
		}
	}
	return host + path
}

// freeBetween replaces a version in a path after one of "/-_=@v" and before one of "/-_." or the
// end.
func freeBetween(path, version string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(path, version)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		starts := before != "" && strings.ContainsRune("/-_=@v", rune(before[len(before)-1]))
		ends := after == "" || strings.ContainsRune("/-_.", rune(after[0]))
		if starts && ends {
			b.WriteString(anyVersion)
		} else {
			b.WriteString(version)
		}
		path = after
	}
}

// withoutPath returns the scheme and the host of a URL, or all of a text without a fixed host.
func withoutPath(url string) string {
	if host, _, fixed := cutHost(url); fixed {
		return host
	}
	return url
}

// withoutHost returns what follows the host of a URL, or all of a text without a fixed host.
func withoutHost(url string) string {
	if _, path, fixed := cutHost(url); fixed {
		return path
	}
	return url
}

// cutHost returns the scheme and the host of a URL, with its port, and what follows. It reports
// false if the scheme or the host is a variable, or if the URL has a user.
func cutHost(url string) (host, path string, fixed bool) {
	scheme, rest, found := strings.Cut(url, "://")
	if !found {
		return url, "", false
	}
	if end := strings.IndexAny(rest, "/?#\\"); end >= 0 {
		rest, path = rest[:end], rest[end:]
	}
	host = strings.ToLower(scheme + "://" + rest)
	return host, path, rest != "" && !strings.ContainsAny(host, "{}@")
}
