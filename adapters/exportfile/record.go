package exportfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
)

// officialKey is the key of _meta under which a registry returns what it knows of a version
// (contract R-2).
const officialKey = registry.OfficialMeta

// official is what stands there. isLatest is not read: each registry finds it
// by its own rule.
type official struct {
	Status          string     `json:"status"`
	StatusMessage   string     `json:"statusMessage,omitempty"`
	StatusChangedAt *time.Time `json:"statusChangedAt,omitempty"`
	PublishedAt     *time.Time `json:"publishedAt,omitempty"`
	UpdatedAt       *time.Time `json:"updatedAt,omitempty"`
}

// entry makes an entry of the bytes of a record: {"server", "_meta"}, or a
// document alone.
func entry(origin string, raw []byte) recordsource.Entry {
	e := recordsource.Entry{Origin: origin}
	var members map[string]json.RawMessage // exact names, as structs would not have
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		e.Unreadable = noObject("the record", err)
		return e
	}
	server, wrapped := members["server"]
	if !wrapped {
		e.Document = raw
		return e
	}
	recorded, err := recordedIn(members["_meta"])
	if err != nil {
		e.Unreadable = err
		return e
	}
	e.Document, e.Recorded = server, recorded
	return e
}

// noObject tells what stands where a JSON object should; without an error that
// is null.
func noObject(what string, err error) error {
	var other *json.UnmarshalTypeError
	switch {
	case err == nil:
		return fmt.Errorf("%s is not a JSON object: it is null", what)
	case errors.As(err, &other):
		return fmt.Errorf("%s is not a JSON object: it is of the kind %s", what, other.Value)
	}
	return fmt.Errorf("%s is not a JSON object: %w", what, err)
}

func recordedIn(meta json.RawMessage) (recordsource.Recorded, error) {
	var byKey map[string]json.RawMessage
	if len(meta) > 0 {
		if err := json.Unmarshal(meta, &byKey); err != nil {
			return recordsource.Recorded{}, noObject("_meta of the record", err)
		}
	}
	var o official
	if raw, ok := byKey[officialKey]; ok {
		if err := json.Unmarshal(raw, &o); err != nil {
			return recordsource.Recorded{}, fmt.Errorf("_meta of the record has an invalid status or time: %w", err)
		}
	}
	return recordsource.Recorded{
		Status: o.Status, StatusMessage: o.StatusMessage,
		StatusChangedAt: instant(o.StatusChangedAt), PublishedAt: instant(o.PublishedAt), UpdatedAt: instant(o.UpdatedAt),
	}, nil
}

func instant(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
