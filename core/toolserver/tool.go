package toolserver

import (
	"crypto/sha256"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Mark identifies what a tool shows to a model: the hash that contract W-1 defines. The zero value is that of no
// tool.
type Mark [sha256.Size]byte

// Tool is what decisions about calls need to know of a tool of a list.
type Tool struct {
	Name   string
	Mark   Mark
	Traits Traits
}

// OnChange is what a tool leads to that is not as it was approved (contract W-7).
type OnChange string

// What it may be. The zero value is NotifyOnly.
const (
	NotifyOnly OnChange = "notify"
	DenyCalls  OnChange = "deny"
	Quarantine OnChange = "quarantine"
)

// ParseOnChange returns the one with the given name. It returns fault.Invalid for any other text.
func ParseOnChange(s string) (OnChange, error) {
	return fault.OneOf("value", s, NotifyOnly, DenyCalls, Quarantine)
}

// Traits are what the hints of a tool say, with the defaults of the specification of MCP for what they do not say.
type Traits uint8

// The traits.
const (
	ReadOnly Traits = 1 << iota
	Destructive
	Idempotent
	OpenWorld
)

// DefaultTraits are those of a tool that says nothing.
const DefaultTraits = Destructive | OpenWorld

// AllTraits has all of them.
const AllTraits = ReadOnly | Destructive | Idempotent | OpenWorld

// Careful returns the traits of a tool of which two lists say different things: what is dangerous counts if either
// says it, and what is harmless if both do.
func (t Traits) Careful(other Traits) Traits {
	return (t|other)&DefaultTraits | t&other&^DefaultTraits
}
