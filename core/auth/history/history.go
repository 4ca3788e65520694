// Package history scores a sign-in by what is usual for its person: how much more often everybody
// signs in with these values (network, browser, device, time) than this person does (contract
// Package risk scores the same sign-in by points that do not depend on the person's habits.
//
// The package is pure. Observe turns a sign-in into an Observation, which lists the counts that it
// needs; Score turns the observation and these counts into a score with its parts, and Learn
// returns what to add to the counts. A store only keeps sums (ports/authstore.HistoryCounts).
package history

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Feature is a property of sign-ins whose values are counted. The numbers are stored: a number must
// never change its meaning.
type Feature uint8

// The features. A value of a feature is a short text; its parts are separated by "|".
const (
	// SignIns has one value, the empty text: all sign-ins. It is not decayed, see Counts.Learnt.
	SignIns Feature = 1
	// People has one value, the empty text. Only everybody's counts have it: the people from whom
	// at least one sign-in was learnt. It is not decayed.
	People Feature = 2
	// Recent has one value, the empty text: all sign-ins, decayed.
	Recent Feature = 3
	// Experienced has one value, the empty text. Only everybody's counts have it: the sign-ins of
	// people from whom Experience sign-ins had been learnt.
	Experienced Feature = 4
	// Novel has the number of another feature as its value. It counts the sign-ins that showed a
	// value of that feature which was new for the person; everybody's counts only those that
	// Experienced counts.
	Novel Feature = 5
	// Beginners has the number of sign-ins that had been learnt from the person as its value, below
	// Experience. Only everybody's counts have it: the sign-ins of people of whom so few were known.
	Beginners Feature = 6
	// EarlyNovel is that number and the number of another feature. Only everybody's counts have it:
	// the sign-ins that Beginners counts and that showed a value of the feature which was new for
	// the person.
	EarlyNovel Feature = 7

	// Address is an IPv4 address or the /64 of an IPv6 address. Only the counts of a person have
	// it.
	Address Feature = 10
	// Prefix is the /24 of an IPv4 address or the /48 of an IPv6 address. Only the counts of a
	// person have it.
	Prefix Feature = 11
	// Network is the number of the network (ASN), with the place of the address in a grid of half a
	// degree if it is known. Without a network number it is the /16 or /32 of the address, after
	// widePrefix.
	Network Feature = 12
	// Provider is the number of the network alone.
	Provider Feature = 13
	// Country is the ISO 3166 code of the address.
	Country Feature = 14
	// Return is how a person came back to a network: with a known address, a new one of a known
	// prefix, or another one. The values of a person are a Network and this outcome; those of
	// everybody are a Network or nothing, a class of the time since the last sign-in from there,
	// and the outcome.
	Return Feature = 15
	// Hidden has one value, the empty text: sign-ins from addresses of hosting companies, proxies
	// and Tor.
	Hidden Feature = 16

	// Device is the browser family, the system and the screen of a device. The counts of a person
	// have the browser version that was last seen on it.
	Device Feature = 20
	// Browser is a browser family and a system. The counts of a person have its last version.
	Browser Feature = 21
	// System is an operating system.
	System Feature = 22
	// Upgrade is what happened to the version of a known browser: whether the screen is known too,
	// a class of the time since it was last seen, and whether the version is the same, a newer or
	// an older one. Only everybody's counts have it.
	Upgrade Feature = 23
	// Timezone is a time zone.
	Timezone Feature = 24
	// Language is a language.
	Language Feature = 25
	// CountryTimezone is a country and a time zone. Only everybody's counts have it.
	CountryTimezone Feature = 26

	// NetworkDevice is a Network and a Device. Only the counts of a person have it.
	NetworkDevice Feature = 30
)

// featureNames are the names of the features in audit events.
var featureNames = map[Feature]string{
	SignIns: "signIns", People: "people", Recent: "recent", Experienced: "experienced", Novel: "novel",
	Beginners: "beginners", EarlyNovel: "earlyNovel",
	Address: "address", Prefix: "prefix", Network: "network", Provider: "provider", Country: "country",
	Return: "return", Hidden: "reputation",
	Device: "device", Browser: "browser", System: "system", Upgrade: "browserVersion",
	Timezone: "timezone", Language: "language", CountryTimezone: "countryTimezone",
	NetworkDevice: "networkDevice",
}

// String returns the name of the feature in audit events.
func (f Feature) String() string {
	if name, ok := featureNames[f]; ok {
		return name
	}
	return "feature " + strconv.Itoa(int(f))
}

// Value is a value of a feature.
type Value struct {
	Feature Feature
	Text    string // at most maxText bytes
}

// maxText is the greatest length of the text of a value in bytes.
const maxText = 200

// widePrefix begins a network that has no number.
const widePrefix = "prefix "

// KeyPurpose is the purpose of the key of Stored.
const KeyPurpose = "history values"

// hashBytes is the length of stored hashes: long enough that no two values of a person or of an
// installation share one by chance. HashLength is that of their texts.
const (
	hashBytes  = 9
	HashLength = hashBytes * 4 / 3
)

// maxClear is the greatest length in bytes of the texts that earlier versions stored in clear.
const maxClear = 24

// isPlain reports whether the text says nothing about a person: it is empty, has numbers of
// features, or classes of times with their outcomes.
func (v Value) isPlain() bool {
	return v.Text == "" || v.Feature < Address || v.Feature == Upgrade || v.Feature == Return && v.Text[0] == '|'
}

// Stored returns the text that a store keeps for the value: a keyed hash, or the text itself if it
// says nothing about a person. The hash depends on the person, so that two people with one address
// or browser cannot be linked; user is empty for everybody's counts.
func (v Value) Stored(key auth.Key, user auth.UserID) string {
	if v.isPlain() {
		return v.Text
	}
	sum := key.Sum(string(user) + "\x00" + v.Feature.String() + "\x00" + v.Text)
	return base64.RawURLEncoding.EncodeToString(sum[:hashBytes])
}

// Clear returns the text that versions up to 0.4 stored for the value, and whether it is another
// one than Stored returns: they hashed only addresses, prefixes and long texts.
func (v Value) Clear() (string, bool) {
	hashed := v.Feature == Address || v.Feature == Prefix || strings.HasPrefix(v.Text, widePrefix) ||
		len(v.Text) > maxClear
	return v.Text, !hashed && !v.isPlain()
}

// Restored returns what Stored returns for a text that a store has: that of an earlier version
// becomes a hash. A text in clear that is as long as a hash stays, and is found by Clear.
func (v Value) Restored(key auth.Key, user auth.UserID) string {
	if len(v.Text) == HashLength {
		return v.Text
	}
	return v.Stored(key, user)
}

// maxPart is the greatest length of a part of a value that comes from the client.
const maxPart = 40

// shorten returns a text that a client has sent in a form that can be part of a value: without the
// separator, and with a hash in place of what exceeds maxPart bytes.
func shorten(s string) string {
	s = strings.ReplaceAll(s, "|", "/")
	if len(s) <= maxPart {
		return s
	}
	const kept = maxPart - 1 - 12
	sum := sha256.Sum256([]byte(s))
	return strings.ToValidUTF8(s[:kept], "") + "~" + base64.RawURLEncoding.EncodeToString(sum[:hashBytes])
}
