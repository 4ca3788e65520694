package iplists

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/gaissmai/bart"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
)

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
