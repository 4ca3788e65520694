package access

import (
	"iter"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// Resource is a tool server, or several at one URL, for which a token was issued (contract T-9).
type Resource struct {
	URL string // as toolserver.CanonicalURL returns it
	// Servers are those of the resource. Without any, no one has declared it: its servers are all that
	// have the URL, and each of them must allow a call.
	Servers []toolserver.Name
}

// Within returns the subject of a token for a resource. Calls of other servers are refused as those of
// a token that is not valid.
func (s Subject) Within(r Resource) Subject {
	s.resource = &r
	return s
}

// Offer is what the registry has of a server with respect to a URL.
type Offer struct {
	Server      toolserver.Name
	Listed      bool // a listed version has the URL
	Quarantined bool // the server is in quarantine, or of a resource that no one has declared, the URL
}

// address is a remote URL of a server.
type address struct {
	url       string // as toolserver.CanonicalURL returns it
	withdrawn bool   // as Listing.Withdrawn
}

// addressesOf returns the remote URLs without variables. One of a listed version is not withdrawn.
func addressesOf(l *Listing) (all []address) {
	for i, urls := range [...][]string{l.Remotes, l.Withdrawn} {
		for _, text := range urls {
			url, ok := toolserver.CanonicalURL(text)
			if ok && !strings.Contains(text, "{") && !slices.ContainsFunc(all, func(a address) bool { return a.url == url }) {
				all = append(all, address{url, i > 0})
			}
		}
	}
	return all
}

// at returns whether the server has a URL, and whether a listed version has it.
func (k *knownServer) at(url string) (has, listed bool) {
	for _, a := range k.addresses {
		if a.url == url {
			return true, !a.withdrawn && !k.Quarantined && !k.Deleted
		}
	}
	return false, false
}

// sharing returns the servers that have a URL in a listed version or in quarantine. Whether a version that
// is not listed is in quarantine or deleted is not known as long as others of its server are listed: it
// counts as in quarantine, since the publisher of another server could otherwise open the URL again.
func (s *Snapshot) sharing(url string) iter.Seq[*knownServer] {
	return func(yield func(*knownServer) bool) {
		at, ok := placeOf(url)
		if !ok || !strings.HasPrefix(url, "https://") {
			return
		}
		all, _ := s.remotes.get(at.key)
		for i, one := range all {
			if has, _ := one.of.at(url); has && !one.of.Deleted && (i == 0 || all[i-1].of != one.of) && !yield(one.of) {
				return
			}
		}
	}
}

// Offers returns the servers of a resource as they are now.
func (s *Snapshot) Offers(r *Resource) iter.Seq[Offer] {
	return func(yield func(Offer) bool) {
		for _, name := range r.Servers {
			offer := Offer{Server: name}
			if k, ok := s.servers.get(name.String()); ok {
				_, offer.Listed = k.at(r.URL)
				offer.Quarantined = k.Quarantined
			}
			if !yield(offer) {
				return
			}
		}
		if len(r.Servers) > 0 {
			return
		}
		for k := range s.sharing(r.URL) {
			if _, listed := k.at(r.URL); !yield(Offer{k.Name, listed, !listed}) {
				return
			}
		}
	}
}

// includes reports whether a server is one of a resource that is open (contract T-9).
func (s *Snapshot) includes(r *Resource, of toolserver.Name) bool {
	found, open := false, false
	for o := range s.Offers(r) {
		if o.Quarantined {
			return false
		}
		found, open = found || o.Server == of, open || o.Listed
	}
	return found && open
}

// othersOf returns the other servers that must allow a call of a server to a subject: those of a resource
// that no one has declared.
func (s *Snapshot) othersOf(subject *Subject, k *knownServer) iter.Seq[*knownServer] {
	return func(yield func(*knownServer) bool) {
		if r := subject.resource; r != nil && len(r.Servers) == 0 {
			for other := range s.sharing(r.URL) {
				if other != k && !yield(other) {
					return
				}
			}
		}
	}
}
