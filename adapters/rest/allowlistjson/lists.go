// Package allowlistjson encodes allow lists, and what a user adds to install a server, in the JSON
// of the clients that read them.
package allowlistjson

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/internal/packed"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
)

// Encoder encodes lists while they are compiled. It keeps definitions in their final form
// and compressed, because a list may be larger than all the memory that it may
// use. It is not safe for concurrent use.
type Encoder struct {
	drafts map[allowlist.Format]*draft
	text   bytes.Buffer
}

// draft has the definitions of a list, each after its name.
type draft struct {
	pack *packed.Writer
	out  *json.Encoder
	text *bytes.Buffer
}

// NewEncoder returns an encoder.
func NewEncoder() *Encoder { return &Encoder{drafts: map[allowlist.Format]*draft{}} }

// Define takes a definition, in the order of the names of the servers. It is the Define of
// allowlist.Output.
func (e *Encoder) Define(f allowlist.Format, d allowlist.Definition) error {
	to := e.drafts[f]
	if to == nil {
		to = newDraft()
		e.drafts[f] = to
	}
	switch f {
	case allowlist.Kiro:
		return to.add(d.Name, newKiroEntry(d))
	case allowlist.Codex:
		return to.add(d.Name, d.Remote.URL)
	case allowlist.Gemini:
		return to.add(d.Name, forms[allowlist.ClientGemini].server(d))
	default:
		return to.add(d.Name, forms[allowlist.ClientClaude].server(d))
	}
}

// definitionIndent is the indentation of the definitions.
const definitionIndent = "    "

func newDraft() *draft {
	text := new(bytes.Buffer)
	out := json.NewEncoder(text)
	out.SetEscapeHTML(false)
	out.SetIndent(definitionIndent, "  ")
	return &draft{packed.NewWriter(), out, text}
}

// add adds a definition: a line with its length and its name, which has no line break, and itself.
func (d *draft) add(name string, definition any) error {
	d.text.Reset()
	if err := d.out.Encode(definition); err != nil {
		return fmt.Errorf("encode the settings of a client: %w", err)
	}
	value := bytes.TrimSpace(d.text.Bytes())
	if _, err := fmt.Fprintf(d.pack, "%d %s\n", len(value), name); err != nil {
		return fmt.Errorf("keep a definition: %w", err)
	}
	if _, err := d.pack.Write(value); err != nil {
		return fmt.Errorf("keep a definition: %w", err)
	}
	return nil
}

// Encode writes the list of a format after all definitions were taken. Equal lists give the same
// bytes. It may be called once for each format, and forgets the definitions of the format.
func (e *Encoder) Encode(w io.Writer, l *allowlist.Lists, f allowlist.Format) error {
	defer delete(e.drafts, f)
	out := &listWriter{w: bufio.NewWriterSize(w, 32<<10)}
	switch f {
	case allowlist.Gemini:
		e.encodeGemini(out, l)
	case allowlist.Kiro:
		out.text("{\n  \"servers\": [")
		e.encodeDefinitions(out, l, f, false)
		out.text("]\n}\n")
	case allowlist.Codex:
		e.encodeCodex(out, l)
	case allowlist.ClaudeMCP: // managed-mcp.json of Claude Code (contract C-9)
		out.text("{\n  \"mcpServers\": {")
		e.encodeDefinitions(out, l, f, true)
		out.text("}\n}\n")
	default: // managed settings of Claude Code and of GitHub Copilot in VS Code (contract C-3)
		out.text("{\n  \"allowedMcpServers\": ")
		encodeEntries(out, l.Allowed(f))
		out.text(",\n  \"deniedMcpServers\": ")
		encodeEntries(out, l.Denied(f))
		out.text("\n}\n")
	}
	if out.err == nil {
		out.err = out.w.Flush()
	}
	if out.err != nil {
		return fmt.Errorf("encode the %s list: %w", f, out.err)
	}
	return nil
}

// ListType returns the media type of a list.
func ListType(f allowlist.Format) string {
	if f == allowlist.Codex {
		return inTOML.contentType
	}
	return inJSON.contentType
}

// encodeGemini writes the settings of Gemini CLI: the names that are allowed, each with a
// definition that other settings of the user cannot replace, and the names that are excluded
// (contract C-4).
func (e *Encoder) encodeGemini(out *listWriter, l *allowlist.Lists) {
	out.text("{\n  \"mcp\": {\n    \"allowed\": ")
	names := out.list(definitionIndent)
	e.eachDefinition(out, allowlist.Gemini, func(name string, _ []byte) {
		if !l.Shared(name) {
			names.item()
			out.value(name)
		}
	})
	names.end()
	out.text(",\n    \"excluded\": ")
	names = out.list(definitionIndent)
	for _, name := range l.Excluded {
		names.item()
		out.value(name)
	}
	names.end()
	out.text("\n  },\n  \"mcpServers\": {")
	e.encodeDefinitions(out, l, allowlist.Gemini, true)
	out.text("}\n}\n")
}

// encodeCodex writes the requirements of Codex: a server that users have configured runs if it has
// the name and the URL of one (contract C-9). The first table is there in an empty list too: without
// it every server would run.
func (e *Encoder) encodeCodex(out *listWriter, l *allowlist.Lists) {
	out.text("[mcp_servers]\n")
	e.eachDefinition(out, allowlist.Codex, func(name string, address []byte) {
		if !l.Shared(name) {
			out.text("\n[mcp_servers." + tomlKey(name) + ".identity]\nurl = " + strings.ReplaceAll(string(address), "\x7f", `\u007F`) + "\n")
		}
	})
}

// encodeDefinitions writes the definitions of a list, as members of an object if they are named.
func (e *Encoder) encodeDefinitions(out *listWriter, l *allowlist.Lists, f allowlist.Format, named bool) {
	separator, end := "\n"+definitionIndent, ""
	e.eachDefinition(out, f, func(name string, definition []byte) {
		if l.Shared(name) {
			return
		}
		out.text(separator)
		if named {
			out.value(name)
			out.text(": ")
		}
		out.bytes(definition)
		separator, end = ",\n"+definitionIndent, "\n  "
	})
	out.text(end)
}

// eachDefinition reads the definitions of a format. An error ends it and is that of out.
func (e *Encoder) eachDefinition(out *listWriter, f allowlist.Format, visit func(name string, definition []byte)) {
	d := e.drafts[f]
	if d == nil {
		return
	}
	pack, err := d.pack.Close()
	if err != nil {
		out.fail(err)
		return
	}
	for in := bufio.NewReaderSize(pack.NewReader(), 32<<10); out.err == nil; {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return
		}
		length, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		size, errLength := strconv.ParseInt(length, 10, 64)
		if err = cmp.Or(err, errLength); err != nil {
			out.fail(err)
			return
		}
		e.text.Reset()
		if _, err := io.CopyN(&e.text, in, size); err != nil {
			out.fail(err)
			return
		}
		visit(name, e.text.Bytes())
	}
}

type entry struct {
	URL     string   `json:"serverUrl,omitempty"`
	Command []string `json:"serverCommand,omitempty"`
	Name    string   `json:"serverName,omitempty"`
}

func encodeEntries(out *listWriter, entries iter.Seq[allowlist.Entry]) {
	list := out.list("  ")
	for e := range entries {
		if out.err != nil {
			return
		}
		list.item()
		out.indented(definitionIndent, entry(e))
	}
	list.end()
}

// listWriter writes JSON. After an error it writes nothing more.
type listWriter struct {
	w   *bufio.Writer
	err error
}

func (w *listWriter) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *listWriter) text(s string) {
	_, err := w.w.WriteString(s)
	w.fail(err)
}

func (w *listWriter) bytes(b []byte) {
	_, err := w.w.Write(b)
	w.fail(err)
}

// value writes a value on one line.
func (w *listWriter) value(v any) { w.indented("", v) }

// indented writes a value whose lines after the first have a prefix.
func (w *listWriter) indented(prefix string, v any) {
	text, err := encodeIndented(v, prefix, "  ")
	w.fail(err)
	w.bytes(bytes.TrimSpace(text))
}

// jsonList is an array whose items are on lines of their own.
type jsonList struct {
	out    *listWriter
	indent string // of the line on which it begins
	items  bool
}

func (w *listWriter) list(indent string) *jsonList { return &jsonList{out: w, indent: indent} }

// item begins an item.
func (l *jsonList) item() {
	separator := ",\n"
	if !l.items {
		separator = "[\n"
	}
	l.items = true
	l.out.text(separator + l.indent + "  ")
}

func (l *jsonList) end() {
	if !l.items {
		l.out.text("[]")
		return
	}
	l.out.text("\n" + l.indent + "]")
}

// encode returns JSON that a person can read and edit.
func encode(content any) ([]byte, error) { return encodeIndented(content, "", "  ") }

// encodeIndented returns JSON whose lines after the first begin with a prefix.
func encodeIndented(content any, prefix, indent string) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, indent)
	if err := e.Encode(content); err != nil {
		return nil, fmt.Errorf("encode the settings of a client: %w", err)
	}
	return text.Bytes(), nil
}

// newKiroEntry returns a server in the registry file of Kiro (contract C-4).
func newKiroEntry(d allowlist.Definition) object {
	server := object{{"name", d.Name}}
	if d.Title != "" {
		server = append(server, member{"title", d.Title})
	}
	server = append(server, member{"description", d.Description}, member{"version", d.Version})
	if r := d.Remote; r != nil {
		remote := kiroList(object{{"type", r.Transport}, {"url", r.URL}}, "headers", kiroValues(r.Headers))
		server = append(server, member{"remotes", []object{remote}})
	}
	if p := d.Package; p != nil {
		one := object{{"registryType", p.RegistryType}, {"identifier", p.Identifier}, {"transport", object{{"type", "stdio"}}}}
		one = kiroList(one, "runtimeArguments", kiroArguments(p.RuntimeArguments))
		one = kiroList(one, "packageArguments", kiroArguments(p.PackageArguments))
		one = kiroList(one, "environmentVariables", kiroValues(p.Environment))
		server = append(server, member{"packages", []object{one}})
	}
	return object{{"server", server}}
}

// kiroList adds a list to an object, unless it is empty.
func kiroList(to object, name string, list []object) object {
	if len(list) == 0 {
		return to
	}
	return append(to, member{name, list})
}

func kiroArguments(argv []string) (all []object) {
	for _, a := range argv {
		all = append(all, object{{"type", "positional"}, {"value", a}})
	}
	return all
}

func kiroValues(values []allowlist.Value) (all []object) {
	for _, v := range values {
		one := object{{"name", v.Name}}
		if v.Value != "" {
			one = append(one, member{"value", v.Value})
		}
		all = append(all, one)
	}
	return all
}
