package registry

import (
	"regexp"
	"strings"
)

// The tables of the rules of documents (contract ).

const (
	maxIconSource  = 255
	maxPublisher   = 4096      // bytes of what a publisher adds
	maxMeta        = 16 * 1024 // bytes of _meta in all
	officialMeta   = "io.modelcontextprotocol.registry/official"
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
	{"$schema", false, text(uri())},
	{"name", true, text(nameProblem)},
	{"description", true, text(length(1, 100))},
	{"title", false, text(length(1, 100))},
	{"repository", false, repository},
	{"version", true, text(versionProblem, plainProblem)},
	{"websiteUrl", false, text(uri(web...))},
	{"icons", false, listOf(object(iconShape))},
	{"packages", false, listOf(object(packageShape, packageRules))},
	{"remotes", false, listOf(object(remoteShape, transportRules(streamableHTTP, sse), remoteRules))},
	{"_meta", false, meta},
}}

var repositoryShape = shape{"Repository", []property{
	{"url", true, text(uri(web...))},
	{"source", true, text(plainProblem)},
	{"id", false, text(plainProblem)},
	{"subfolder", false, text(subfolder)},
}}

var iconShape = shape{"Icon", []property{
	{"src", true, text(length(1, maxIconSource), uri("https"))},
	{"mimeType", false, text(enum("image/png", "image/jpeg", "image/jpg", "image/svg+xml", "image/webp"))},
	{"sizes", false, listOf(text(pattern(sizeForm, "WIDTHxHEIGHT in pixels, or any")))},
	{"theme", false, text(enum("light", "dark"))},
}}

var packageShape = shape{"Package", []property{
	{"registryType", true, text(plainProblem)},
	{"registryBaseUrl", false, text(uri())},
	{"identifier", true, text(length(1, 0), plainProblem)},
	{"version", false, text(length(1, 0), specificProblem, plainProblem)},
	{"fileSha256", false, text(pattern(sha256Form, "64 lower-case hexadecimal digits"))},
	{"runtimeHint", false, text()},
	{"transport", true, object(localShape, transportRules(stdio, streamableHTTP, sse))},
	{"runtimeArguments", false, listOf(object(argumentShape, inputRules, argumentRules))},
	{"packageArguments", false, listOf(object(argumentShape, inputRules, argumentRules))},
	{"environmentVariables", false, listOf(object(keyValueShape, inputRules))},
}}

var localShape = shape{"LocalTransport", []property{
	{"type", true, text()},
	{"url", false, text(template, plainProblem)},
	{"headers", false, listOf(object(keyValueShape, inputRules))},
}}

var remoteShape = shape{"RemoteTransport", []property{
	{"type", true, text()},
	{"url", false, text(template, plainProblem)},
	{"headers", false, listOf(object(keyValueShape, inputRules))},
	{"variables", false, mapOf(object(inputShape, inputRules))},
}}

var inputProperties = []property{
	{"description", false, text()},
	{"isRequired", false, boolean},
	{"format", false, text(enum("string", "number", "boolean", "filepath"))},
	{"value", false, text()},
	{"isSecret", false, boolean},
	{"default", false, text()},
	{"placeholder", false, text()},
	{"choices", false, listOf(text())},
}

var inputShape = shape{"Input", inputProperties}

var keyValueShape = shape{"KeyValueInput", with(inputProperties,
	property{"name", true, text(plainProblem)},
	property{"variables", false, mapOf(object(inputShape, inputRules))},
)}

// argumentShape holds the properties of both kinds: real documents have the name of the one on the
// other, and it is kept (contract R-44).
var argumentShape = shape{"Argument", with(inputProperties,
	property{"type", true, text(enum(positional, named))},
	property{"name", false, text()},
	property{"valueHint", false, text()},
	property{"isRepeated", false, boolean},
	property{"variables", false, mapOf(object(inputShape, inputRules))},
)}

func with(properties []property, more ...property) []property {
	return append(append([]property(nil), properties...), more...)
}

// repository is the check of Repository. Real documents often have an empty
// one where they mean none, so that is said.
func repository(r *report, at place, v *node) {
	if v.kind != kindObject || len(v.members) > 0 {
		object(repositoryShape, repositoryURL)(r, at, v)
		return
	}
	for _, name := range []string{"url", "source"} {
		r.add(v, at.key(name).under("Repository/"+name), schemaProblem("required", "is required, or leave repository out where there is none"))
	}
}

// pattern is the rule of a string that has a form, described in words.
func pattern(form *regexp.Regexp, words string) func(string) *problem {
	return func(s string) *problem {
		if form.MatchString(s) {
			return nil
		}
		return schemaProblem("pattern", "must be %s, not %s", words, quote(s))
	}
}

// meta checks the extension data.
func meta(r *report, at place, v *node) {
	if !ofKind(r, at, v, kindObject) {
		return
	}
	if v.size > maxMeta {
		r.add(v, at, schemaProblem("size", "must have at most %d bytes of compact JSON in all, and has %d", maxMeta, v.size))
	}
	publisher := ""
	for i := range v.members {
		m := &v.members[i]
		here := at.key(m.name)
		r.add(&m.value, here, metaKey(m.name))
		if !strings.HasSuffix(m.name, publisherMeta) {
			continue
		}
		if publisher != "" && publisher != m.name {
			r.add(&m.value, here, semanticProblem("publisherProvided", "is a second key that ends in %q beside %s, and one is allowed", publisherMeta, quote(publisher)))
		}
		publisher = m.name
		if m.value.size > maxPublisher {
			r.add(&m.value, here, schemaProblem("publisherSize", "must have at most %d bytes of compact JSON, and has %d", maxPublisher, m.value.size))
		}
	}
}

func metaKey(key string) *problem {
	switch {
	case key == officialMeta:
		return semanticProblem("reserved", "is written by the registry itself, leave it out")
	case !isNamespaced(key):
		return schemaProblem("key", "must be a key of the form com.example/name, a reverse-DNS namespace, a \"/\" and a name")
	}
	return nil
}

// warnings are what looks wrong in a document that may be published as it is.
func warnings(r *report, at place, v *node) {
	warnSchema(r, at, v)
	if name, ok := v.str("name"); ok && nameProblem(name) == nil {
		r.add(v.get("name"), at.key("name").under("ServerDetail/name"), oddName(name))
	}
	packages := v.list("packages")
	for i := range packages {
		p := &packages[i]
		if args := p.get("runtimeArguments"); args != nil && len(args.items) > 0 && p.get("runtimeHint") == nil {
			r.add(args, at.key("packages").index(i).key("runtimeArguments").under("Package/runtimeHint"),
				warning("recommended", "should come with a runtimeHint that says which command they are for"))
		}
	}
}

func warnSchema(r *report, at place, v *node) {
	here := at.key("$schema").under("ServerDetail/$schema")
	schema := v.get("$schema")
	switch {
	case schema == nil:
		r.add(v, here, warning("recommended", "should name the schema that the document follows"))
	case schema.kind == kindString && uri()(schema.text) == nil && !isKnownSchema(schema.text):
		r.add(schema, here, warning("known", "is a schema that this registry does not know, so the document is checked by the registry's own rules"))
	}
}

// isKnownSchema tells the published versions of the server document's schema.
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

func oddName(name string) *problem {
	namespace, server, _ := strings.Cut(name, "/")
	for _, part := range []string{namespace, server} {
		if len(part) == 1 || part != strings.Trim(part, ".-_") {
			return warning("oddName", "has the part %s, and parts should have two characters and begin and end with a letter or digit", quote(part))
		}
	}
	return nil
}
