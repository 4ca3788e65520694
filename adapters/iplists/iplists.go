// Package iplists rates IP addresses by list files. It implements ports/signals.Reputation, and
// reads a list again when its file changes.
package iplists

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/gaissmai/bart"
	"github.com/google/wire"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/ports/signals"
)

// Reputation implements ports/signals.Reputation. It is safe for concurrent use, but only one
// goroutine at a time may call Reload.
type Reputation struct {
	lists  []listFile
	tables []atomic.Pointer[bart.Lite] // of each list
}

// Open reads the lists. If a list cannot be read or has an invalid line, the error names the
// setting, the file and the line.
func Open(c Config) (*Reputation, error) {
	lists, err := c.parseLists()
	if err != nil {
		return nil, err
	}
	r := &Reputation{lists: lists, tables: make([]atomic.Pointer[bart.Lite], len(lists))}
	for _, l := range lists {
		if err := r.Reload(l.path); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Set provides a Reputation that follows its files.
var Set = wire.NewSet(OpenWatched, wire.Bind(new(signals.Reputation), new(*Reputation)))

// OpenWatched is Open, and reads a list again when its file changes, until the cleanup is called.
func OpenWatched(c Config, log *logrus.Entry) (*Reputation, func(), error) {
	return files.OpenWatched(log, c.Files(), func() (*Reputation, error) { return Open(c) })
}

// Reload reads a list again. If it fails, the previous content stays in force.
func (r *Reputation) Reload(file string) error {
	table, err := readTable(file)
	if err != nil {
		return fmt.Errorf("IP_REPUTATION_LISTS: %w", err)
	}
	for i := range r.lists {
		if r.lists[i].path == file {
			r.tables[i].Store(table)
		}
	}
	return nil
}

// Rate implements ports/signals.Reputation. It searches every list and returns the worst class,
// even if a list of a better class has a narrower network.
func (r *Reputation) Rate(_ context.Context, address netip.Addr) risk.Reputation {
	switch {
	case len(r.lists) == 0:
		return risk.Reputation{}
	case !address.IsValid():
		return risk.Reputation{State: risk.Unanswered}
	}
	address = address.Unmap().WithZone("")
	rated := risk.Reputation{State: risk.Known, Class: risk.Clean}
	for i := range r.lists {
		if r.lists[i].class > rated.Class && r.tables[i].Load().Contains(address) {
			rated.Class = r.lists[i].class
		}
	}
	return rated
}

// Config names the lists (contract A-30).
type Config struct {
	Lists []string `env:"IP_REPUTATION_LISTS" desc:"files with one address or CIDR per line, # starts a comment, in the form listed=FILE,tor=FILE,proxy=FILE,hosting=FILE; a path without a class is listed; reloaded on change"`
}

// listFile is a file and the class of the addresses in it.
type listFile struct {
	class risk.AddressClass
	path  string
}

// className matches the text before the = of a list. Text that does not match is part of a path.
var className = regexp.MustCompile(`^[A-Za-z0-9_-]*$`)

// Validate returns an error that names what is wrong with the setting. It reads no file.
func (c Config) Validate() error {
	_, err := c.parseLists()
	return err
}

// Files returns the paths of the lists.
func (c Config) Files() []string {
	lists, _ := c.parseLists() // Validate has reported the error
	return each.Map(lists, func(l listFile) string { return l.path })
}

// parseLists parses the setting.
func (c Config) parseLists() ([]listFile, error) {
	lists := make([]listFile, 0, len(c.Lists))
	for _, entry := range c.Lists {
		l := listFile{class: risk.Listed, path: strings.TrimSpace(entry)}
		if name, path, ok := strings.Cut(l.path, "="); ok && className.MatchString(name) {
			if l.class, ok = risk.ParseAddressClass(name); !ok || l.class == risk.Clean {
				return nil, fmt.Errorf("IP_REPUTATION_LISTS: %q is not listed, tor, proxy or hosting", name)
			}
			l.path = strings.TrimSpace(path)
		}
		if l.path == "" {
			return nil, fmt.Errorf("IP_REPUTATION_LISTS: %q names no file", entry)
		}
		lists = append(lists, l)
	}
	return lists, nil
}

const (
	maxFile  = 256 << 20 // bytes of a list
	maxLine  = 4096      // bytes of a line
	maxLines = 5_000_000 // addresses and networks of a list
)

// readTable reads the list at a path.
func readTable(path string) (*bart.Lite, error) {
	f, err := files.Open(path, maxFile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	table, err := parseList(f)
	if err != nil {
		return nil, fmt.Errorf("%s%w", path, err)
	}
	return table, nil
}

// parseList parses a list. Its errors begin with a colon and the number of the line, so that the
// caller can put the name of the file in front.
func parseList(in io.Reader) (*bart.Lite, error) {
	table := new(bart.Lite)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	n, entries := 0, 0
	for lines.Scan() {
		n++
		line := lines.Bytes()
		if n == 1 {
			line = files.TrimByteOrderMark(line) // editors on Windows add the mark
		}
		text, _, _ := bytes.Cut(line, []byte{'#'})
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		if entries++; entries > maxLines {
			return nil, fmt.Errorf(":%d: the list has more than %d addresses and networks", n, maxLines)
		}
		p, err := parseEntry(string(text))
		if err != nil {
			return nil, fmt.Errorf(":%d: %w", n, err)
		}
		table.Insert(p)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf(":%d: the line is longer than %d bytes", n+1, maxLine)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf(":%d: %w", n+1, err)
	}
	return table, nil
}

// maxShown is the maximum number of bytes of an invalid line in an error.
const maxShown = 60

// mappedBits is the length of the prefix of IPv4-mapped addresses (RFC 4291, section 2.5.5.2).
const mappedBits = 96

// parseEntry parses an address or a network. It converts IPv4-mapped addresses to IPv4.
func parseEntry(s string) (netip.Prefix, error) {
	wrong := fmt.Errorf("%q is neither an address nor a network (for example 203.0.113.0/24)",
		s[:min(len(s), maxShown)])
	if a, err := netip.ParseAddr(s); err == nil {
		a = a.Unmap().WithZone("")
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return netip.Prefix{}, wrong
	case !p.Addr().Is4In6():
		return p.Masked(), nil
	case p.Bits() < mappedBits:
		return netip.Prefix{}, wrong
	}
	return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mappedBits).Masked(), nil
}
