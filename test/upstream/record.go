package upstream

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// Epoch is when records without a time were published.
func Epoch() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// Record is one version of a server, as a registry lists it.
type Record struct {
	// Document is the text of the server document. It may be of any form, also no JSON.
	Document string
	// Status is active if it is empty.
	Status string
	// Message is statusMessage, absent if it is empty.
	Message string
	// PublishedAt is Epoch if it is zero, and UpdatedAt is PublishedAt.
	PublishedAt, UpdatedAt time.Time
	// Meta is the text of _meta, if it is not empty: publisher's metadata, or times of a wrong
	// form.
	Meta string

	name, version string // in the document; otherwise empty
	isLatest      bool
}

// withDefaults returns the record with values in all fields.
func (r Record) withDefaults() Record {
	if r.Status == "" {
		r.Status = "active"
	}
	if r.PublishedAt.IsZero() {
		r.PublishedAt = Epoch()
	}
	if r.UpdatedAt.IsZero() {
		r.UpdatedAt = r.PublishedAt
	}
	var document struct{ Name, Version string }
	_ = json.Unmarshal([]byte(r.Document), &document) // an invalid document has no name
	r.name, r.version = document.Name, document.Version
	return r
}

func (r Record) isSameVersion(other Record) bool {
	return r.name == other.name && r.version == other.version
}

// appendJSON appends the record as a list shows it.
func (r Record) appendJSON(text []byte) []byte {
	meta := r.Meta
	if meta == "" {
		official := map[string]any{
			"status": r.Status, "publishedAt": r.PublishedAt, "updatedAt": r.UpdatedAt, "statusChangedAt": r.UpdatedAt,
			"isLatest": r.isLatest,
		}
		if r.Message != "" {
			official["statusMessage"] = r.Message
		}
		encoded, _ := json.Marshal(map[string]any{registry.OfficialMeta: official}) // always valid
		meta = string(encoded)
	}
	text = append(append(text, `{"server":`...), r.Document...)
	return append(append(append(text, `,"_meta":`...), meta...), '}')
}

// schema is the schema of the documents.
const schema = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

// Document returns a valid server document.
func Document(name, version, description string) string {
	return fmt.Sprintf(`{"$schema":%q,"name":%q,"description":%q,"version":%q}`, schema, name, description, version)
}

// BigDocument returns a document with an additional property of size bytes.
func BigDocument(name, version string, size int) string {
	return withMember(Document(name, version, "Big."), `"x":"`+strings.Repeat("x", size)+`"`)
}

// DeepDocument returns a document with arrays in arrays.
func DeepDocument(name, version string, depth int) string {
	return withMember(Document(name, version, "Deep."), `"x":`+strings.Repeat("[", depth)+strings.Repeat("]", depth))
}

func withMember(document, member string) string {
	return strings.TrimSuffix(document, "}") + "," + member + "}"
}

// Servers returns n servers with one version each: com.example/server-000000 and so on.
func Servers(n int) []Record {
	records := make([]Record, n)
	for i := range records {
		records[i].Document = Document(fmt.Sprintf("com.example/server-%06d", i), "1.0.0", "A server.")
	}
	return records
}
