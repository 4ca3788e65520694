package responsebody

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"

	"github.com/cespare/xxhash/v2"
	"github.com/gofiber/fiber/v2"
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

// Condition is what the headers of a write require of the stored representations of its target (RFC
// 9110, 13.1.1 and 13.1.2). The zero value requires nothing.
type Condition struct {
	match     [][]byte // lines of If-Match; nil without the header
	noneMatch [][]byte // lines of If-None-Match; nil without the header
}

// ReadConditions returns the condition of If-Match and If-None-Match. ok is false without either
// header.
func ReadConditions(c *fiber.Ctx) (condition Condition, ok bool) {
	condition = Condition{match: copyLines(c, fiber.HeaderIfMatch), noneMatch: copyLines(c, fiber.HeaderIfNoneMatch)}
	return condition, condition.match != nil || condition.noneMatch != nil
}

// ReadIfNoneMatch returns the condition of If-None-Match. ok is false without the header.
func ReadIfNoneMatch(c *fiber.Ctx) (condition Condition, ok bool) {
	condition = Condition{noneMatch: copyLines(c, fiber.HeaderIfNoneMatch)}
	return condition, condition.noneMatch != nil
}

// copyLines returns copies of the lines of a header, because the server reuses the memory of a
// request.
func copyLines(c *fiber.Ctx, header string) [][]byte {
	var all [][]byte
	for _, line := range c.Request().Header.PeekAll(header) {
		all = append(all, bytes.Clone(line))
	}
	return all
}

// Holds reports whether the condition holds for a target whose representations have these hashes,
// as returned by Hash. There must be at least one. The tags of both content codings identify a
// representation.
func (c Condition) Holds(hashes ...uint64) bool {
	return (c.match == nil || listsAny(c.match, hashes, strongComparison)) &&
		(c.noneMatch == nil || !listsAny(c.noneMatch, hashes, weakComparison))
}

func listsAny(lines [][]byte, hashes []uint64, how comparison) bool {
	for _, hash := range hashes {
		for _, compressed := range []bool{false, true} {
			if listsTag(lines, appendTag(nil, hash, compressed), how) {
				return true
			}
		}
	}
	return false
}

// Hash returns the hash that the entity tag of a body is made of.
func Hash(body []byte) uint64 { return xxhash.Sum64(body) }

// Tag returns the entity tag of a body with the hash.
func Tag(hash uint64) string { return string(appendTag(nil, hash, false)) }

// SetTag sets the entity tag of the response to a write: the tag of the next read without
// compression.
func SetTag(c *fiber.Ctx) {
	c.Response().Header.SetBytesV(fiber.HeaderETag, appendBodyTag(make([]byte, 0, tagSize), c.Response().Body(), false))
}
