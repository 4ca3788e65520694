package registry

import (
	"slices"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Draft is a parsed body whose content is not validated yet. It is a type of its own because the
// name in it is needed to check permission, which comes before the rules of documents (contract
//
type Draft struct {
	text []byte
	root node
}

// ParseDraft reads the body of publish and update. It returns fault.Invalid for a body that is not
// a JSON object, contains a NUL, or exceeds the bounds of depth and number of values. It does not
// keep the body.
func ParseDraft(body []byte) (Draft, error) {
	text, root, err := parseObject(body)
	if err != nil {
		return Draft{}, err
	}
	return Draft{text, root}, nil
}

// Name returns the server name of the body, or "" without one. The name may be invalid.
func (d Draft) Name() string {
	name, _ := d.root.stringProperty("name")
	return name
}

// Version returns the version of the body, or "" without one. The version may be invalid.
func (d Draft) Version() string {
	version, _ := d.root.stringProperty("version")
	return version
}

// Issues returns all mistakes of the document, including warnings, in the order of the document.
func (d Draft) Issues() []Issue {
	return d.checkRules().sortedIssues()
}

// Document returns the document. If it breaks rules, Document returns fault.Invalid with code
// CodeRules; the message has the JSON path and the rule of each field.
func (d Draft) Document() (Document, error) {
	if refusal := d.checkRules().refusalText("document"); refusal != "" {
		return Document{}, fault.New(fault.Invalid, refusal).WithCode(CodeRules)
	}
	return d.asDocument()
}

// ImportedDocument returns the document of a draft from another registry, which may break rules. It
// returns fault.Invalid, as Document does, only if the name or version is invalid or an object has
// a property twice; it ignores other mistakes, unless there are too many to list.
func (d Draft) ImportedDocument() (Document, error) {
	r := d.checkRules()
	if r.more == 0 { // with more than maxIssues, no mistake is ignored
		r.found = slices.DeleteFunc(r.found, func(l locatedIssue) bool { return l.Type != IssueJSON })
	}
	if refusal := r.refusalText("document"); refusal != "" {
		return Document{}, fault.New(fault.Invalid, refusal).WithCode(CodeRules)
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

// checkRules returns all issues of the draft.
func (d Draft) checkRules() *report {
	r := new(report)
	objectCheck(serverShape)(r, location{}, &d.root)
	findDuplicates(r, location{}, &d.root)
	addWarnings(r, location{}, &d.root)
	return r
}

// Document is a server document. Draft.Document makes one that keeps all rules of documents
// (contract ), Draft.ImportedDocument one that may break some.
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

// Bytes returns the document as compact JSON: property order, numbers, escapes and null properties
// are as they were sent. The caller must not change it.
func (d Document) Bytes() []byte { return d.text }

// Remotes returns the URLs of the remotes, each once, in the order of the document.
func (d Document) Remotes() []RemoteURL { return d.remotes }

// Packages returns the packages of the document, in its order.
func (d Document) Packages() []PackageRef { return d.packages }

// PackageRef identifies a package by the properties of the document. Optional fields are empty when
// the document does not have them.
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
	remotes := root.itemsOf("remotes")
	for i := range remotes {
		address, ok := remotes[i].stringProperty("url")
		if u := ComparableURL(address); ok && !seen[u] {
			seen[u] = true
			all = append(all, u)
		}
	}
	return all
}

// RemotesOf returns the URLs of the remotes of a stored document; nothing for a text that is not an
// object.
func RemotesOf(document []byte) []RemoteURL {
	_, root, _ := parseObject(document) // the zero node has no properties
	return remotesOf(&root)
}

// PackagesOf returns the packages of a stored document, in its order; nothing for a text that is not an
// object.
func PackagesOf(document []byte) []PackageRef {
	_, root, _ := parseObject(document) // the zero node has no properties
	return packagesOf(&root)
}

func packagesOf(root *node) []PackageRef {
	var all []PackageRef
	packages := root.itemsOf("packages")
	for i := range packages {
		p := &packages[i]
		var ref PackageRef
		for name, field := range map[string]*string{
			"registryType": &ref.RegistryType, "registryBaseUrl": &ref.RegistryBaseURL, "identifier": &ref.Identifier,
			"version": &ref.Version, "fileSha256": &ref.FileSHA256,
		} {
			*field, _ = p.stringProperty(name)
		}
		all = append(all, ref)
	}
	return all
}

// Offer says by which packages and remotes clients can use a server.
type Offer struct {
	PackageTypes []string // the registryType of each package
	Remote       bool     // there is a remote
}

// OfferOf returns what a stored document offers; nothing for a text that is not an object.
func OfferOf(document []byte) Offer {
	_, root, err := parseObject(document)
	if err != nil {
		return Offer{}
	}
	o := Offer{Remote: len(root.itemsOf("remotes")) > 0}
	packages := root.itemsOf("packages")
	for i := range packages {
		if t, ok := packages[i].stringProperty("registryType"); ok {
			o.PackageTypes = append(o.PackageTypes, t)
		}
	}
	return o
}
