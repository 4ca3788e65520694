package representation

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

// appendTag appends the strong entity tag of a body, a hash of its bytes, which
// is the same on every instance and after a restart. The hash is a fast one,
// since every read pays for it; it keeps apart what changes, and nothing secret
// rests on it. The compressed form has other bytes, so it has another tag (RFC
// 9110, 8.8.3.3).
func appendTag(b, body []byte, compressed bool) []byte {
	return appendSum(b, Sum(body), compressed)
}

// appendSum appends the tag of a body that has the hash given.
func appendSum(b []byte, hash uint64, compressed bool) []byte {
	var sum [hashSize]byte
	binary.BigEndian.PutUint64(sum[:], hash)
	b = append(b, '"')
	b = hex.AppendEncode(b, sum[:])
	if compressed {
		b = append(b, gzipSuffix...)
	}
	return append(b, '"')
}

func isGzip(tag []byte) bool { return bytes.HasSuffix(tag, []byte(gzipSuffix+`"`)) }

// matches reports whether the lines of If-None-Match name the tag, by weak
// comparison (RFC 9110, 13.1.2). What is malformed names nothing.
func matches(lines [][]byte, tag []byte) bool { return names(lines, tag, false) }

// names reports whether the lines of a header of entity tags name the tag, or
// any. Where strong is set, a weak one names nothing (RFC 9110, 8.8.3.2).
func names(lines [][]byte, tag []byte, strong bool) bool {
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
			if bytes.Equal(listed, tag) && (!weak || !strong) {
				return true
			}
		}
	}
	return false
}

// nextTag returns the first tag of a list with its quotes and without the mark
// of a weak one, whether it had that, and what follows it; nil where no tag
// begins.
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
