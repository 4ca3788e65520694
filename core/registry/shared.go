package registry

import (
	"slices"
	"strings"
)

// Shared is a version of a server, and what of another version it offers too: the URLs of remotes,
// and packages by type, identifier and version.
type Shared struct {
	Version Version
	Offers  []string
}

// SharedWith returns those of the versions of a server that stay listed when target is hidden, and
// offer a remote or a package of it, in the order of the versions. A package in another version is
// the same package: it comes from the same place.
func SharedWith(target Record, versions []Record) (all []Shared) {
	hidden := map[string]bool{}
	for _, o := range offersOf(target.Document) {
		hidden[o.identity] = true
	}
	for _, r := range versions {
		if r.Status == StatusDeleted || r.Version == target.Version {
			continue
		}
		var offers []string
		for _, o := range offersOf(r.Document) {
			if hidden[o.identity] && !slices.Contains(offers, o.words) {
				offers = append(offers, o.words)
			}
		}
		if len(offers) > 0 {
			all = append(all, Shared{r.Version, offers})
		}
	}
	return all
}

// offered is a remote or a package of a document: what makes it the same as another one, and its
// words for people.
type offered struct{ identity, words string }

// offersOf returns the remotes and packages of a stored document; nothing for a text that is not an
// object.
func offersOf(document []byte) (all []offered) {
	_, root, _ := parseObject(document) // the zero node has no properties
	for _, u := range remotesOf(&root) {
		all = append(all, offered{string(u), string(u)})
	}
	for _, p := range packagesOf(&root) {
		name := p.Identifier
		if p.RegistryType == "oci" { // without tag and digest
			name, _, _ = strings.Cut(name, "@")
			if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
				name = name[:i]
			}
		}
		all = append(all, offered{
			strings.Join([]string{p.RegistryType, p.RegistryBaseURL, name}, " "),
			strings.TrimSpace(p.RegistryType + " " + p.Identifier + " " + p.Version),
		})
	}
	return all
}
