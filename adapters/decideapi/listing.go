package decideapi

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// read returns the entries of the list in a result, in their order. ok is false for a list of which
// programs would read different entries.
func (l listing) read(result []byte) (all []span, ok bool) {
	if !utf8.Valid(result) || !json.Valid(result) {
		return nil, false
	}
	r := jsonvalue.NewReader(result)
	if r.Next() != '{' {
		return nil, false
	}
	seen := false
	for r.Enter(); r.More('}'); {
		name := r.Text()
		if name != l.member {
			if strings.EqualFold(name, l.member) { // some readers take it for the member
				return nil, false
			}
			skip(&r)
			continue
		}
		if seen || r.Next() != '[' {
			return nil, false
		}
		seen = true
		for r.Enter(); r.More(']'); {
			one := span{begin: r.Offset()}
			if one.name, ok = l.readEntry(&r); !ok {
				return nil, false
			}
			one.end = r.Offset()
			all = append(all, one)
		}
	}
	return all, true
}

// readEntry returns what an entry of the list names; empty without that. ok is as for read.
func (l listing) readEntry(r *jsonvalue.Reader) (name string, ok bool) {
	if r.Next() != '{' {
		skip(r)
		return "", true
	}
	seen := false
	for r.Enter(); r.More('}'); {
		member := r.Text()
		if member != l.key {
			if strings.EqualFold(member, l.key) {
				return "", false
			}
			skip(r)
			continue
		}
		if seen {
			return "", false
		}
		if seen = true; r.Next() == '"' {
			name = r.Text()
		} else {
			skip(r)
		}
	}
	return name, true
}

// skip reads a value.
func skip(r *jsonvalue.Reader) {
	switch r.Next() {
	case '{':
		for r.Enter(); r.More('}'); {
			r.Next()
			r.Bytes()
			skip(r)
		}
	case '[':
		for r.Enter(); r.More(']'); {
			skip(r)
		}
	case '"':
		r.Bytes()
	default:
		r.Word()
	}
}
