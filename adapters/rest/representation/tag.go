package representation

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"

	"github.com/cespare/xxhash/v2"
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
	return appendSum(b, xxhash.Sum64(body), compressed)
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

// matches tells whether If-None-Match names the tag, by weak comparison (RFC
// 9110, 13.1.2). The header may have several lines; what is malformed names
// nothing.
func matches(lines [][]byte, tag []byte) bool {
	for _, line := range lines {
		if line = bytes.TrimSpace(line); len(line) == 1 && line[0] == '*' {
			return true
		}
		for len(line) > 0 {
			var listed []byte
			if listed, line = nextTag(line); listed == nil {
				break
			}
			if bytes.Equal(listed, tag) {
				return true
			}
		}
	}
	return false
}

// nextTag returns the first tag of a list with its quotes and without the mark
// of a weak one, and what follows it; nil where no tag begins.
func nextTag(list []byte) (tag, rest []byte) {
	list = bytes.TrimLeft(list, " \t,")
	list = bytes.TrimPrefix(list, []byte("W/"))
	if len(list) == 0 || list[0] != '"' {
		return nil, nil
	}
	end := bytes.IndexByte(list[1:], '"')
	if end < 0 {
		return nil, nil
	}
	return list[:end+2], list[end+2:]
}
