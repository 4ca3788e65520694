package tools

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// Source says how a list was read. Lists are compared only with those that were read in the same way.
type Source string

// The sources.
const (
	Recorded Source = "recorded" // a publisher or a reviewer has read it and sent it
	Asked    Source = "asked"    // the service has asked the remote
)

// ParseSource returns the source with the given name. It returns fault.Invalid for any other text.
func ParseSource(s string) (Source, error) { return fault.OneOf("source", s, Recorded, Asked) }

// Service is the key of the sender of lists that were asked for: no person, so that anyone may decide
// about them who may review the server.
const Service = "tools"

// State is the state of a stored list.
type State string

// The states.
const (
	Approved State = "approved"
	Differs  State = "changed" // it differs from the approved one
	Pending  State = "pending" // it waits for a review, and no list is approved
	Rejected State = "rejected"
	Unstable State = "unstable" // it was another one each time
)

// waits reports whether a list in the state waits for a decision.
func (s State) waits() bool { return s != Approved && s != Rejected }

// ParseState returns the state with the given name. It returns fault.Invalid for any other text.
func ParseState(s string) (State, error) {
	return fault.OneOf("state", s, Approved, Differs, Pending, Rejected, Unstable)
}

// PartKey identifies a remote or a package of documents, whichever place it has there: 64 hexadecimal
// digits. So a list of a package does not become that of another one when a document is replaced.
type PartKey string

// ParsePartKey returns the key of a text. It returns fault.Invalid for any other text.
func ParsePartKey(s string) (PartKey, error) {
	if sum, err := hex.DecodeString(s); err != nil || len(sum) != sha256.Size {
		return "", fault.New(fault.Invalid, "the key of a part has 64 hexadecimal digits")
	}
	return PartKey(s), nil
}

func keyOf(fields ...string) PartKey { return PartKey(markOf([]byte(strings.Join(fields, "\n")))) }

// Part is a part of a document that may have lists.
type Part struct {
	Place
	Key  PartKey
	Like PartKey // of parts of other versions of the server that are the same but for their version
}

// String returns the part for the audit log: the URL of a remote, or the index of a package.
func (p Place) String() string {
	if p.Remote != "" {
		return p.Remote
	}
	return "package " + strconv.Itoa(p.Package)
}

// PartsOf returns the parts of a stored document, in its order, the remotes first. Remotes have the
// form in which URLs are compared; equal packages, and equal remotes, have one key.
func PartsOf(document []byte) []Part {
	var parts []Part
	for _, u := range registry.RemotesOf(document) {
		key := keyOf("remote", string(u))
		parts = append(parts, Part{Place{Remote: string(u)}, key, key})
	}
	for i, p := range registry.PackagesOf(document) {
		parts = append(parts, Part{
			Place{Package: i}, keyOf("package", p.RegistryType, p.RegistryBaseURL, p.Identifier, p.Version, p.FileSHA256),
			keyOf("package", p.RegistryType, p.RegistryBaseURL, p.Identifier),
		})
	}
	return parts
}

// FindPart returns the part of a stored document at a place. It returns fault.Invalid if it does not exist.
func FindPart(document []byte, at Place) (Part, error) {
	if at.Remote != "" {
		at.Remote = string(registry.ComparableURL(at.Remote))
	}
	for _, p := range PartsOf(document) {
		if p.Place == at {
			return p, nil
		}
	}
	return Part{}, fault.Newf(fault.Invalid, "the version has no %s", map[bool]string{
		true: "remote " + quote(at.Remote), false: at.String(),
	}[at.Remote != ""]).WithCode(fault.RuleViolated)
}

// Sender is who sent a list: what review.Submitter is for a document.
type Sender struct {
	Key    string            // the user id of a person, or what a publisher has proved
	Policy registry.PolicyID // by which a publisher sent it; empty for a person
	Makers []registry.Holder // the people who created the policies by which a publisher sent it
}

// Stored is a list as it is stored: that of a part of a version. Of one part and source, there is at
// most one that is approved, and one that is not.
type Stored struct {
	Name    registry.Name
	Version registry.Version
	Part    PartKey
	Source  Source
	State   State
	At      time.Time // when it was sent
	By      Sender    // who sent it
	List    List
	// Review is the review of the document of a version that is not listed, or replaced, yet, with
	// which the list waits; otherwise empty.
	Review registry.ReviewID
}

// IsOwn reports whether a person has sent the list, or created a policy by which it was sent.
func (s *Stored) IsOwn(person registry.Holder) bool {
	return s.By.Key == string(person) || slices.Contains(s.By.Makers, person)
}

// Find returns the stored list of a part and source that is approved, or the one that is not; nil
// without it.
func Find(stored []Stored, part PartKey, source Source, approved bool) *Stored {
	i := slices.IndexFunc(stored, func(s Stored) bool {
		return s.Part == part && s.Source == source && (s.State == Approved) == approved
	})
	if i < 0 {
		return nil
	}
	return &stored[i]
}

// Shown is a list with the place of its part.
type Shown struct {
	Place
	Stored

	Problem string // why the remote could not be asked since Stored.At: then it is no list; otherwise empty
}

// Show returns the lists of the parts of a stored document, in its order, of each part the approved
// one first. A list of a part that the document does not have any more is left out.
func Show(document []byte, stored []Stored) []Shown {
	if len(stored) == 0 { // most versions; a document may be large
		return nil
	}
	var all []Shown
	for _, p := range PartsOf(document) {
		for _, s := range stored {
			if s.Part == p.Key {
				all = append(all, Shown{Place: p.Place, Stored: s})
			}
		}
	}
	return all
}

// AddProblems returns lists of a version with the problems of its remotes, each after the lists of the remote.
func AddProblems(document []byte, lists []Shown, watches []Watch) (all []Shown) {
	if !slices.ContainsFunc(watches, func(w Watch) bool { return w.Problem != "" }) { // most versions; a document may be large
		return lists
	}
	for _, p := range PartsOf(document) {
		for len(lists) > 0 && lists[0].Place == p.Place {
			all, lists = append(all, lists[0]), lists[1:]
		}
		for _, w := range watches {
			if string(w.Remote) == p.Remote && w.Problem != "" {
				all = append(all, Shown{Place: p.Place, Stored: Stored{Source: Asked, At: w.Since}, Problem: w.Problem})
			}
		}
	}
	return all
}

// Change is what becomes of the stored lists of a part.
type Change struct {
	Put    *Stored // the list that is stored, in place of one that is approved or not, as it is; nil if nothing is stored
	Remove bool    // the list that is not approved goes
	First  bool    // the part had no list before
	State  State   // of what was sent
}

// Receive decides what becomes of a list that was sent, by what is stored of the same part and source
// (contract W-5). The first list of a part is approved, unless the registry has reviews; a later one
// that differs from the approved one is changed, and that ends when one is sent that does not differ.
// A list that is there already stays as it is, with its sender: sending it again makes no one else its
// sender. One that is sent as Unstable is stored so, unless it is there.
func Receive(stored []Stored, sent Stored, reviewed bool) Change {
	approved, waiting := Find(stored, sent.Part, sent.Source, true), Find(stored, sent.Part, sent.Source, false)
	c := Change{First: approved == nil && waiting == nil}
	switch {
	case approved != nil && approved.List.equal(sent.List):
		c.State, c.Remove = Approved, waiting != nil
		return c
	case waiting != nil && waiting.List.equal(sent.List):
		c.State = waiting.State
		return c
	case sent.State == Unstable:
	case approved != nil:
		sent.State = Differs
	case reviewed || waiting != nil: // what waits is not approved because reviews are turned off
		sent.State = Pending
	default:
		sent.State = Approved
	}
	c.State, c.Put = sent.State, &sent
	return c
}

// MaxStored is the greatest size of all lists of a version in bytes of canonical JSON: they are read
// together.
const MaxStored = 4 << 20

// Apply returns what is stored of the version of a sent list after the change, of each part and source
// the approved list first. It returns fault.Conflict if the lists are too large.
func (c Change) Apply(stored []Stored, sent Stored) ([]Stored, error) {
	size := 0
	after := slices.DeleteFunc(slices.Clone(stored), func(s Stored) bool {
		goes := c.Remove && s.State != Approved || c.Put != nil && (s.State == Approved) == (c.Put.State == Approved)
		return goes && s.Part == sent.Part && s.Source == sent.Source
	})
	if c.Put != nil {
		after = append(after, *c.Put)
	}
	for _, s := range after {
		size += len(s.List.canonical)
	}
	if c.Put != nil && size > MaxStored {
		return nil, fault.Newf(fault.Conflict, "the lists of this version would have %d bytes of canonical JSON: at most %d", size, MaxStored)
	}
	slices.SortStableFunc(after, func(a, b Stored) int { return cmp.Compare(a.rank(), b.rank()) })
	return after, nil
}

// rank returns the place of a list among those of its part and source.
func (s Stored) rank() int {
	if s.State == Approved {
		return 0
	}
	return 1
}

// equal reports whether two lists show the same to a model.
func (l List) equal(other List) bool {
	return l.Mark == other.Mark && l.ContextMark == other.ContextMark
}
