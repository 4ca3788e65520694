package responsebody

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
)

const (
	hashSize   = 8
	gzipSuffix = "-gzip"
	tagSize    = 2*hashSize + len(gzipSuffix) + 2
)

// appendBodyTag appends the strong entity tag of a body. It is a hash of the bytes, so it is the
// same on every instance and after a restart. The hash is a fast one, because every read computes
// it; it protects nothing secret. The compressed form has other bytes and therefore another tag
// (RFC 9110, 8.8.3.3).
func appendBodyTag(b, body []byte, compressed bool) []byte {
	return appendTag(b, Hash(body), compressed)
}

// appendTag appends the entity tag of a body with the hash.
func appendTag(b []byte, hash uint64, compressed bool) []byte {
	var sum [hashSize]byte
	binary.BigEndian.PutUint64(sum[:], hash)
	b = append(b, '"')
	b = hex.AppendEncode(b, sum[:])
	if compressed {
		b = append(b, gzipSuffix...)
	}
	return append(b, '"')
}

func isGzipTag(tag []byte) bool { return bytes.HasSuffix(tag, []byte(gzipSuffix+`"`)) }

// comparison is how entity tags are compared (RFC 9110, 8.8.3.2).
type comparison bool

const (
	weakComparison   comparison = false
	strongComparison comparison = true // a weak tag equals no tag
)

// listsTag reports whether the lines of If-Match or If-None-Match list the tag, or *. It ignores
// malformed parts.
func listsTag(lines [][]byte, tag []byte, how comparison) bool {
	for _, line := range lines {
		if line = bytes.TrimSpace(line); len(line) == 1 && line[0] == '*' {
			return true
		}
		for len(line) > 0 {
			var listed []byte
			var weak bool
			if listed, weak, line = nextTag(line); listed == nil {
				break
			}
			if bytes.Equal(listed, tag) && (!weak || how == weakComparison) {
				return true
			}
		}
	}
	return false
}

// nextTag returns the first tag of a list with its quotes and without W/, whether it had W/, and
// the rest of the list. It returns nil if the list does not begin with a tag.
func nextTag(list []byte) (tag []byte, weak bool, rest []byte) {
	list = bytes.TrimLeft(list, " \t,")
	list, weak = bytes.CutPrefix(list, []byte("W/"))
	if len(list) == 0 || list[0] != '"' {
		return nil, false, nil
	}
	end := bytes.IndexByte(list[1:], '"')
	if end < 0 {
		return nil, false, nil
	}
	return list[:end+2], weak, list[end+2:]
}
