package registryjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
)

// officialKey is the key in _meta under which a registry returns its own data on a version
// (contract R-2).
const officialKey = registry.OfficialMeta

// officialMeta is the value under officialKey. isLatest is not read, because each registry computes
// it.
type officialMeta struct {
	Status          string     `json:"status"`
	StatusMessage   string     `json:"statusMessage,omitempty"`
	StatusChangedAt *time.Time `json:"statusChangedAt,omitempty"`
	PublishedAt     *time.Time `json:"publishedAt,omitempty"`
	UpdatedAt       *time.Time `json:"updatedAt,omitempty"`
}

// newEntry parses a record. A record is an object {"server", "_meta"}, or a server document.
func newEntry(origin string, raw []byte) recordsource.Entry {
	e := recordsource.Entry{Origin: origin}
	var members map[string]json.RawMessage // a struct would also match names in another case
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		e.Unreadable = notAnObject("the record", err)
		return e
	}
	server, wrapped := members["server"]
	if !wrapped {
		e.Document = raw
		return e
	}
	recorded, err := parseRecorded(members["_meta"])
	if err != nil {
		e.Unreadable = err
		return e
	}
	e.Document, e.Recorded = server, recorded
	return e
}

// notAnObject returns the error for a JSON value that must be an object. err is the error of
// decoding it; nil means that the value is null.
func notAnObject(what string, err error) error {
	var other *json.UnmarshalTypeError
	switch {
	case err == nil:
		return fmt.Errorf("%s is not a JSON object: it is null", what)
	case errors.As(err, &other):
		return fmt.Errorf("%s is not a JSON object: it is a JSON %s", what, other.Value)
	}
	return fmt.Errorf("%s is not a JSON object: %w", what, err)
}

// parseRecorded returns the status and the times in a record's _meta.
func parseRecorded(meta json.RawMessage) (recordsource.Recorded, error) {
	var byKey map[string]json.RawMessage
	if len(meta) > 0 {
		if err := json.Unmarshal(meta, &byKey); err != nil {
			return recordsource.Recorded{}, notAnObject("_meta of the record", err)
		}
	}
	var o officialMeta
	if raw, ok := byKey[officialKey]; ok {
		if err := json.Unmarshal(raw, &o); err != nil {
			return recordsource.Recorded{}, fmt.Errorf("_meta of the record has an invalid status or time: %w", err)
		}
	}
	quarantine, err := parseQuarantine(byKey[quarantineKey])
	if err != nil {
		return recordsource.Recorded{}, err
	}
	lists, err := parseTools(byKey[toolsKey])
	if err != nil {
		return recordsource.Recorded{}, err
	}
	var owner exportedOwner
	if raw := byKey[ownerKey]; raw != nil {
		if err := json.Unmarshal(raw, &owner); err != nil {
			return recordsource.Recorded{}, fmt.Errorf("_meta of the record has an invalid owner: %w", err)
		}
	}
	return recordsource.Recorded{
		Owner: owner.Owner, Contact: owner.Contact, Tools: lists, Quarantine: quarantine, Status: o.Status, StatusMessage: o.StatusMessage,
		StatusChangedAt: utcTime(o.StatusChangedAt), PublishedAt: utcTime(o.PublishedAt),
		UpdatedAt: utcTime(o.UpdatedAt),
	}, nil
}

// ownerKey is the key in _meta under which an export has who answers for the server.
const ownerKey = "dev.tollgate/owner"

type exportedOwner struct {
	Owner   string `json:"owner"`
	Contact string `json:"contact,omitempty"`
}

// quarantineKey is the key in _meta under which an export has the quarantine of a version.
const quarantineKey = "dev.tollgate/quarantine"

// parseQuarantine returns the quarantine in a record's _meta; nil without one.
func parseQuarantine(raw json.RawMessage) (*recordsource.Quarantine, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var q exportedQuarantine
	if err := json.Unmarshal(raw, &q); err != nil {
		return nil, fmt.Errorf("_meta of the record has an invalid quarantine: %w", err)
	}
	parsed := &recordsource.Quarantine{
		Status: q.Status, StatusMessage: q.StatusMessage, StatusChangedAt: utcTime(q.StatusChangedAt),
	}
	for _, e := range q.Entries {
		parsed.Entries = append(parsed.Entries, recordsource.QuarantineEntry{
			Server: e.Server, Reason: e.Reason, Since: utcTime(e.Since), By: e.By,
		})
	}
	return parsed, nil
}

// utcTime returns a time in UTC, or the zero time if it is absent.
func utcTime(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
