// Package history scores a sign-in by what is usual for its person: how much more often everybody
// signs in with these values (network, browser, device, time) than this person does (contract A-57).
// Package risk scores the same sign-in by points that do not depend on the person's habits.
//
// The package is pure. Observe turns a sign-in into an Observation, which lists the counts that it
// needs; Score turns the observation and these counts into a score with its parts, and Learn returns
// what to add to the counts. A store only keeps sums (ports/authstore.HistoryCounts).
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
	// Recent has one value, the empty text: all sign-ins, decayed. It is the denominator of the
	// features below that have no parent.
	Recent Feature = 3

	// Address is an IPv4 address or the /64 of an IPv6 address. Only the counts of a person have it.
	Address Feature = 10
	// Prefix is the /24 of an IPv4 address or the /48 of an IPv6 address.
	Prefix Feature = 11
	// Network is the number of the network (ASN), with the place of the address in a grid of half a
	// degree if it is known. Without a network number it is the /16 or /32 of the address, after
	// widePrefix.
	Network Feature = 12
	// Provider is the number of the network alone.
	Provider Feature = 13
	// Country is the ISO 3166 code of the address.
	Country Feature = 14
	// NewAddress has the values of Network. It counts the addresses that were new for the person
	// when they were learnt.
	NewAddress Feature = 15
	// NewNetwork has one value, the empty text. It counts networks as NewAddress counts addresses.
	NewNetwork Feature = 16

	// Device is the system, the browser family and the screen of a device. Its counts have the
	// newest browser version that was seen on the device.
	Device Feature = 20
	// Browser is a browser family and a system. Its counts have the newest version that was seen.
	Browser Feature = 21
	// System is an operating system.
	System Feature = 22
	// DeviceClass is desktop, mobile, tablet, bot or unknown.
	DeviceClass Feature = 23
	// BrowserVersion is a browser family, a system and a version.
	BrowserVersion Feature = 24
	// Screen is a class of devices and the size of a screen.
	Screen Feature = 25
	// Timezone is a country and a time zone.
	Timezone Feature = 26
	// Language is a country and a language.
	Language Feature = 27
	// NewDevice has one value, the empty text. It counts devices as NewAddress counts addresses.
	NewDevice Feature = 28

	// NetworkDevice is a Network and a Device.
	NetworkDevice Feature = 30
	// Pause is a class of the time since the sign-in before.
	Pause Feature = 31
	// Hour is a part of the day, in UTC.
	Hour Feature = 32
)

// featureNames are the names of the features in audit events.
var featureNames = map[Feature]string{
	SignIns: "signIns", People: "people", Recent: "recent",
	Address: "address", Prefix: "prefix", Network: "network", Provider: "provider", Country: "country",
	NewAddress: "newAddress", NewNetwork: "newNetwork",
	Device: "device", Browser: "browser", System: "system", DeviceClass: "deviceClass", BrowserVersion: "browserVersion",
	Screen: "screen", Timezone: "timezone", Language: "language", NewDevice: "newDevice",
	NetworkDevice: "networkDevice", Pause: "pause", Hour: "hour",
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
const maxText = 120

// widePrefix begins a network that has no number.
const widePrefix = "prefix "

// isSecret reports whether the value contains an address or a prefix, so that a store keeps only a
// keyed hash of it.
func (v Value) isSecret() bool {
	return v.Feature == Address || v.Feature == Prefix || strings.HasPrefix(v.Text, widePrefix)
}

// KeyPurpose is the purpose of the key of Stored.
const KeyPurpose = "history values"

// hashBytes is the length of stored hashes: long enough that no two values of a person or of an
// installation share one by chance.
const hashBytes = 12

// Stored returns the text that a store keeps for the value. It is a keyed hash for an address or a
// prefix, and the text itself otherwise. The hash depends on the person, so that two people with one
// address cannot be linked; user is empty for everybody's counts.
func (v Value) Stored(key auth.Key, user auth.UserID) string {
	if !v.isSecret() {
		return v.Text
	}
	sum := key.Sum(string(user) + "\x00" + v.Feature.String() + "\x00" + v.Text)
	return base64.RawURLEncoding.EncodeToString(sum[:hashBytes])
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
	const kept = maxPart - 1 - 16
	sum := sha256.Sum256([]byte(s))
	return strings.ToValidUTF8(s[:kept], "") + "~" + base64.RawURLEncoding.EncodeToString(sum[:hashBytes])
}
