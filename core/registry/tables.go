package registry

import (
	"regexp"
	"strings"

	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// OfficialMeta is the key of _meta with the metadata that the registry adds to a document (contract
//
const OfficialMeta = "io.modelcontextprotocol.registry/official"

// The tables of the rules of documents (contract ).

const (
	maxIconSource  = 255
	maxPublisher   = 4096      // bytes of the data of the publisher
	maxMeta        = 16 * 1024 // bytes of _meta in all
	publisherMeta  = "/publisher-provided"
	stdio          = "stdio"
	streamableHTTP = "streamable-http"
	sse            = "sse"
	positional     = "positional"
	named          = "named"
)

var (
	sha256Form   = regexp.MustCompile(`^[a-f0-9]{64}$`)
	sizeForm     = regexp.MustCompile(`^([0-9]+x[0-9]+|any)$`)
	argumentForm = regexp.MustCompile(`^[^\s<>$]*$`)
)

var serverShape = shape{"ServerDetail", []property{
	{"$schema", false, stringCheck(uriRule())},
	{"name", true, stringCheck(nameProblem)},
	{"description", true, stringCheck(lengthRule(100))},
	{"title", false, stringCheck(lengthRule(100))},
	{"repository", false, repositoryCheck},
	{"version", true, stringCheck(versionProblem, plainProblem)},
	{"websiteUrl", false, stringCheck(uriRule(webSchemes...))},
	{"icons", false, listOf(objectCheck(iconShape))},
	{"packages", false, listOf(objectCheck(packageShape, packageRules))},
	{"remotes", false, listOf(objectCheck(remoteShape, transportRules(streamableHTTP, sse), remoteRules))},
	{"_meta", false, metaCheck},
}}

var repositoryShape = shape{"Repository", []property{
	{"url", true, stringCheck(uriRule(webSchemes...))},
	{"source", true, stringCheck(plainProblem)},
	{"id", false, stringCheck(plainProblem)},
	{"subfolder", false, stringCheck(subfolderProblem)},
}}

var iconShape = shape{"Icon", []property{
	{"src", true, stringCheck(lengthRule(maxIconSource), uriRule("https"))},
	{"mimeType", false, stringCheck(enumRule("image/png", "image/jpeg", "image/jpg", "image/svg+xml", "image/webp"))},
	{"sizes", false, listOf(stringCheck(patternRule(sizeForm, "WIDTHxHEIGHT in pixels, or any")))},
	{"theme", false, stringCheck(enumRule("light", "dark"))},
}}

var packageShape = shape{"Package", []property{
	{"registryType", true, stringCheck(plainProblem)},
	{"registryBaseUrl", false, stringCheck(uriRule())},
	{"identifier", true, stringCheck(lengthRule(0), plainProblem)},
	{"version", false, stringCheck(lengthRule(0), specificProblem, plainProblem)},
	{"fileSha256", false, stringCheck(patternRule(sha256Form, "64 lower-case hexadecimal digits"))},
	{"runtimeHint", false, stringCheck()},
	{"transport", true, objectCheck(localShape, transportRules(stdio, streamableHTTP, sse))},
	{"runtimeArguments", false, listOf(objectCheck(argumentShape, inputRules, argumentRules))},
	{"packageArguments", false, listOf(objectCheck(argumentShape, inputRules, argumentRules))},
	{"environmentVariables", false, listOf(objectCheck(keyValueShape, inputRules))},
}}

var localShape = shape{"LocalTransport", []property{
	{"type", true, stringCheck()},
	{"url", false, stringCheck(templateProblem, plainProblem)},
	{"headers", false, listOf(objectCheck(keyValueShape, inputRules))},
}}

var remoteShape = shape{"RemoteTransport", []property{
	{"type", true, stringCheck()},
	{"url", false, stringCheck(templateProblem, plainProblem)},
	{"headers", false, listOf(objectCheck(keyValueShape, inputRules))},
	{"variables", false, mapOf(objectCheck(inputShape, inputRules))},
}}

var inputProperties = []property{
	{"description", false, stringCheck()},
	{"isRequired", false, booleanCheck},
	{"format", false, stringCheck(enumRule("string", "number", "boolean", "filepath"))},
	{"value", false, stringCheck()},
	{"isSecret", false, booleanCheck},
	{"default", false, stringCheck()},
	{"placeholder", false, stringCheck()},
	{"choices", false, listOf(stringCheck())},
}

var inputShape = shape{"Input", inputProperties}

var keyValueShape = shape{"KeyValueInput", withProperties(inputProperties,
	property{"name", true, stringCheck(plainProblem)},
	property{"variables", false, mapOf(objectCheck(inputShape, inputRules))},
)}

// argumentShape has the properties of both kinds of argument: real documents have the name of a
// named argument on a positional one, and it is kept (contract R-44).
var argumentShape = shape{"Argument", withProperties(inputProperties,
	property{"type", true, stringCheck(enumRule(positional, named))},
	property{"name", false, stringCheck()},
	property{"valueHint", false, stringCheck()},
	property{"isRepeated", false, booleanCheck},
	property{"variables", false, mapOf(objectCheck(inputShape, inputRules))},
)}

func withProperties(properties []property, more ...property) []property {
	return append(append([]property(nil), properties...), more...)
}

// repositoryCheck is the check of Repository. Real documents often have an empty repository in
// place of no repository, so the message says how to leave it out.
func repositoryCheck(r *report, at location, v *node) {
	if v.kind != kindObject || len(v.members) > 0 {
		objectCheck(repositoryShape, repositoryURLCheck)(r, at, v)
		return
	}
	for _, name := range []string{"url", "source"} {
		r.addProblem(v, at.key(name).withRule("Repository/"+name),
			schemaProblem("required", "is required; leave repository out if there is none"))
	}
}

// patternRule returns the rule of a string that has a form; words describe the form.
func patternRule(form *regexp.Regexp, words string) func(string) *problem {
	return func(s string) *problem {
		if form.MatchString(s) {
			return nil
		}
		return schemaProblem("pattern", "must be %s, not %s", words, quote(s))
	}
}

// metaCheck checks the extension data.
func metaCheck(r *report, at location, v *node) {
	if !checkKind(r, at, v, kindObject) {
		return
	}
	if v.size > maxMeta {
		r.addProblem(v, at,
			schemaProblem("size", "must have at most %d bytes of compact JSON in all, and has %d", maxMeta, v.size))
	}
	publisher := ""
	for i := range v.members {
		m := &v.members[i]
		here := at.key(m.name)
		r.addProblem(&m.value, here, metaKeyProblem(m.name))
		if !strings.HasSuffix(m.name, publisherMeta) {
			continue
		}
		if publisher != "" && publisher != m.name {
			r.addProblem(&m.value, here,
				semanticProblem("publisherProvided", "is the second key that ends in %q, after %s; only one is allowed",
					publisherMeta, quote(publisher)))
		}
		publisher = m.name
		if m.value.size > maxPublisher {
			r.addProblem(&m.value, here,
				schemaProblem("publisherSize", "must have at most %d bytes of compact JSON, and has %d", maxPublisher,
					m.value.size))
		}
	}
}

func metaKeyProblem(key string) *problem {
	switch {
	case key == OfficialMeta:
		return semanticProblem("reserved", "is written by the registry itself, leave it out")
	case !toolserver.IsNamespaced(key):
		return schemaProblem("key",
			"must be a key of the form com.example/name, a reverse-DNS namespace, a \"/\" and a name")
	}
	return nil
}

// addWarnings reports probable mistakes, which do not prevent publication.
func addWarnings(r *report, at location, v *node) {
	warnSchema(r, at, v)
	if name, ok := v.stringProperty("name"); ok && nameProblem(name) == nil {
		r.addProblem(v.property("name"), at.key("name").withRule("ServerDetail/name"), oddNameProblem(name))
	}
	packages := v.itemsOf("packages")
	for i := range packages {
		p := &packages[i]
		if args := p.property("runtimeArguments"); args != nil && len(args.items) > 0 &&
			p.property("runtimeHint") == nil {
			r.addProblem(args, at.key("packages").index(i).key("runtimeArguments").withRule("Package/runtimeHint"),
				linterProblem("recommended", "should come with a runtimeHint that says which command they are for"))
		}
	}
}

func warnSchema(r *report, at location, v *node) {
	here := at.key("$schema").withRule("ServerDetail/$schema")
	schema := v.property("$schema")
	switch {
	case schema == nil:
		r.addProblem(v, here, linterProblem("recommended", "should name the schema that the document follows"))
	case schema.kind == kindString && uriRule()(schema.text) == nil && !isKnownSchema(schema.text):
		r.addProblem(schema, here,
			linterProblem("known",
				"is a schema that this registry does not know, so the document is checked by the registry's own rules"))
	}
}

// isKnownSchema reports whether s is a published version of the schema of server documents.
func isKnownSchema(s string) bool {
	date, ours := strings.CutPrefix(s, "https://static.modelcontextprotocol.io/schemas/")
	date, file := strings.CutSuffix(date, "/server.schema.json")
	if !ours || !file {
		return false
	}
	switch date {
	case "2025-07-09", "2025-09-16", "2025-09-29", "2025-10-11", "2025-10-17", "2025-12-11":
		return true
	}
	return false
}

func oddNameProblem(name string) *problem {
	namespace, server, _ := strings.Cut(name, "/")
	for _, part := range []string{namespace, server} {
		if len(part) == 1 || part != strings.Trim(part, ".-_") {
			return linterProblem("oddName",
				"has the part %s, and parts should have two characters and begin and end with a letter or digit",
				quote(part))
		}
	}
	return nil
}
