package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"time"
)

// Object is something that operators manage, as it is before or after a change. Its fields must not
// contain a secret: of one, the object has at most a hash under the name "secret", and a change
// shows no value of that field.
type Object struct {
	Kind   string // in the singular, for example "view"
	Key    string // identifies the object among those of its kind
	Fields Details
}

// FieldSecret is the field of an object whose values a change does not show.
const FieldSecret = "secret"

// HashSecret returns the value of FieldSecret of a secret; empty without one.
func HashSecret[S ~string | ~[]byte](secret S) string {
	if len(secret) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Time returns a time as the API writes times (contract R-2); null for the zero time.
func Time(t time.Time) Value {
	if t.IsZero() {
		return nil
	}
	return Text(formatTime(t))
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// The details of a change of an object.
const (
	DetailKind    = "kind"
	DetailKey     = "key"
	DetailChanges = "changes"
)

// About adds the kind and the key of the object that a change is about, and returns d.
func About(d Details, o Object) Details {
	d.Set(DetailKind, o.Kind)
	d.Set(DetailKey, o.Key)
	return d
}

// Changing is About for an object that replaces another one: it also adds the fields that differ.
func Changing(d Details, before, after Object) Details {
	if changes := Compare(before.Fields, after.Fields); len(changes) > 0 {
		d[DetailChanges] = changes
	}
	return About(d, after)
}

// Operate returns the change of an operator who made, replaced or removed an object; before or after
// is nil then. Its action is the noun and _add, _change or _remove. differs is false if both are equal.
func Operate(c Category, noun string, before, after *Object) (change Change, differs bool) {
	change = Change{Category: c, ByOperator: true}
	switch {
	case before == nil:
		change.Action, change.Details = Action(noun+"_add"), About(Details{}, *after)
	case after == nil:
		change.Action, change.Details = Action(noun+"_remove"), About(Details{}, *before)
	default:
		change.Action, change.Details = Action(noun+"_change"), Changing(Details{}, *before, *after)
		return change, change.Details[DetailChanges] != nil
	}
	return change, true
}

// changed is what a change shows of the values of a secret.
const changed = Text("changed")

// Compare returns the fields that differ, each as a list of its values before and after. A field
// that is missing on one side is nil there.
func Compare(before, after Details) Details {
	changes := Details{}
	for _, fields := range [...]Details{before, after} {
		for name := range fields {
			switch was, is := before[name], after[name]; {
			case reflect.DeepEqual(was, is):
			case name == FieldSecret:
				changes[name] = changed
			default:
				changes[name] = List{was, is}
			}
		}
	}
	return changes
}
