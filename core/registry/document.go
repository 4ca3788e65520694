package registry

import (
	"slices"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Draft is a body that is a JSON object, not yet checked against the rules of documents, because
// permission is checked between the two (contract R-6).
type Draft struct {
	text []byte
	root node
}

// ParseDraft reads the body of publish and update. A body that is no JSON
// object, holds a NUL, or nests or spreads without measure is fault.Invalid.
// The body is not kept.
func ParseDraft(body []byte) (Draft, error) {
	text, root, err := parseObject(body)
	if err != nil {
		return Draft{}, err
	}
	return Draft{text, root}, nil
}

// Name returns the server name as the body has it; empty when it has none.
func (d Draft) Name() string {
	name, _ := d.root.str("name")
	return name
}

// Version returns the version as the body has it; empty when it has none.
func (d Draft) Version() string {
	version, _ := d.root.str("version")
	return version
}

// Issues returns all that is wrong with the document, warnings too, in the
// order of the document. Empty is a document without fault.
func (d Draft) Issues() []Issue {
	return d.check().issues()
}

// Document returns the document. One that breaks rules is fault.Invalid with
// code CodeRules; the sentence names each field by JSON path with its rule.
func (d Draft) Document() (Document, error) {
	if refusal := d.check().refusal("document"); refusal != "" {
		return Document{}, fault.New(fault.Invalid, CodeRules, refusal)
	}
	return d.asDocument()
}

// Tolerated returns the document of a draft that may break rules, as documents
// of other registries do: only its name and version must keep theirs, and no
// property may stand twice in one object. Anything else wrong with it is
// passed over; what is not is fault.Invalid as of Document.
func (d Draft) Tolerated() (Document, error) {
	r := d.check()
	if r.more == 0 { // past that many, nothing is passed over
		r.found = slices.DeleteFunc(r.found, func(l located) bool { return l.Type != IssueJSON })
	}
	if refusal := r.refusal("document"); refusal != "" {
		return Document{}, fault.New(fault.Invalid, CodeRules, refusal)
	}
	return d.asDocument()
}

func (d Draft) asDocument() (Document, error) {
	name, err := ParseName(d.Name())
	if err != nil {
		return Document{}, err
	}
	version, err := ParseVersion(d.Version())
	if err != nil {
		return Document{}, err
	}
	return Document{name, version, d.text, remotesOf(&d.root), packagesOf(&d.root)}, nil
}

func (d Draft) check() *report {
	r := new(report)
	object(serverShape)(r, place{}, &d.root)
	findDuplicates(r, place{}, &d.root)
	warnings(r, place{}, &d.root)
	return r
}

// Document is a server document that keeps every rule of documents (contract ).
// Draft.Document makes one.
type Document struct {
	name     Name
	version  Version
	text     []byte
	remotes  []RemoteURL
	packages []PackageRef
}

// Name returns the name of the server.
func (d Document) Name() Name { return d.name }

// Version returns the version of the server.
func (d Document) Version() Version { return d.version }

// Bytes returns the document as it was sent, as compact JSON: property order,
// numbers, escapes and properties that are null stay. It must not be changed.
func (d Document) Bytes() []byte { return d.text }

// Remotes returns the addresses of the remotes, each once, in the order of the
// document.
func (d Document) Remotes() []RemoteURL { return d.remotes }

// Packages returns what the document says of its packages, in its order.
func (d Document) Packages() []PackageRef { return d.packages }

// PackageRef is what a document says of a package, as far as it tells where
// the package is. Optional fields are empty where the document has none.
type PackageRef struct {
	RegistryType    string
	RegistryBaseURL string
	Identifier      string
	Version         string
	FileSHA256      string
}

func remotesOf(root *node) []RemoteURL {
	var all []RemoteURL
	seen := make(map[RemoteURL]bool)
	remotes := root.list("remotes")
	for i := range remotes {
		address, ok := remotes[i].str("url")
		if u := remoteURL(address); ok && !seen[u] {
			seen[u] = true
			all = append(all, u)
		}
	}
	return all
}

func packagesOf(root *node) []PackageRef {
	var all []PackageRef
	packages := root.list("packages")
	for i := range packages {
		p := &packages[i]
		var ref PackageRef
		for name, field := range map[string]*string{
			"registryType": &ref.RegistryType, "registryBaseUrl": &ref.RegistryBaseURL, "identifier": &ref.Identifier,
			"version": &ref.Version, "fileSha256": &ref.FileSHA256,
		} {
			*field, _ = p.str(name)
		}
		all = append(all, ref)
	}
	return all
}
