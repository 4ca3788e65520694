// Package fitness says what is missing before a service is fit for people, from what its settings
// settle. It does not say whether the service works: that is /ready.
package fitness

import (
	"net/netip"
	"time"
)

// Facts are what the settings and the host of a service settle.
type Facts struct {
	Courier   bool // a channel delivers codes to people
	Mail      bool // that channel is e-mail
	PublicURL bool
	// DebugHost is the address that the debug listener listens on.
	DebugHost string
	// RootInDatabase means that the root secret is kept in the database.
	RootInDatabase bool
	// Postgres means that the database has backups of its own, which the service cannot see.
	Postgres bool
	// LastBackup is the time of the last backup of the SQLite file, zero before the first.
	LastBackup time.Time
}

// Missing names what is missing.
type Missing string

// What can be missing.
const (
	Courier         Missing = "courier"
	RootSecret      Missing = "root secret"
	PrivateDebugger Missing = "private debug listener"
	PublicAddress   Missing = "public address"
	Backup          Missing = "backup"
)

// Warning is something that is missing, and what follows from it.
type Warning struct {
	Missing
	Text string // a sentence without a full stop
}

// backupAge is the age at which a backup is too old.
const backupAge = 7 * 24 * time.Hour

// Warnings returns what is missing, the most urgent first.
func Warnings(f Facts, now time.Time) (all []Warning) {
	add := func(missing bool, what Missing, text string) {
		if missing {
			all = append(all, Warning{what, text})
		}
	}
	add(!f.Courier, Courier,
		"no courier is set: one-time codes are only in the log of the service, which most people cannot read")
	add(f.RootInDatabase, RootSecret, "the root secret is kept in the database, and in its backups")
	add(!isLoopback(f.DebugHost), PrivateDebugger,
		"the debug listener, which needs no sign-in, listens beyond this machine: allow access for operators and the scraper only")
	add(!f.PublicURL, PublicAddress, "the public address is not set: messages have no links")
	switch {
	case f.Postgres:
	case f.LastBackup.IsZero():
		add(true, Backup, "no backup of the database was seen")
	default:
		add(now.Sub(f.LastBackup) > backupAge, Backup, "the last backup of the database is more than a week old")
	}
	return all
}

// isLoopback reports whether only this machine reaches an address to listen on.
func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
