package responsebody

import (
	"bytes"

	"github.com/cespare/xxhash/v2"
	"github.com/gofiber/fiber/v2"
)

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
