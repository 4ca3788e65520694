package representation

import (
	"bytes"

	"github.com/cespare/xxhash/v2"
	"github.com/gofiber/fiber/v2"
)

// Condition is what the headers of a write require of the representations that
// its target has now (RFC 9110, 13.1.1 and 13.1.2). The zero value requires
// nothing.
type Condition struct {
	match     [][]byte // lines of If-Match; nil = the header is absent
	noneMatch [][]byte // lines of If-None-Match; likewise
}

// IfMatch returns the condition of both headers, and whether there is one.
func IfMatch(c *fiber.Ctx) (Condition, bool) {
	condition := Condition{match: lines(c, fiber.HeaderIfMatch), noneMatch: lines(c, fiber.HeaderIfNoneMatch)}
	return condition, condition.match != nil || condition.noneMatch != nil
}

// IfNoneMatch returns the condition of that header alone, and whether there is
// one.
func IfNoneMatch(c *fiber.Ctx) (Condition, bool) {
	condition := Condition{noneMatch: lines(c, fiber.HeaderIfNoneMatch)}
	return condition, condition.noneMatch != nil
}

// lines returns copies of the lines of a header, since the server uses the
// memory of a request again.
func lines(c *fiber.Ctx, header string) [][]byte {
	var all [][]byte
	for _, line := range c.Request().Header.PeekAll(header) {
		all = append(all, bytes.Clone(line))
	}
	return all
}

// Holds reports whether the condition holds for a target that has
// representations with these hashes, as Sum returns them, of which there is one
// at least. The tags of both content codings stand for a representation.
func (c Condition) Holds(sums ...uint64) bool {
	return (c.match == nil || anyNamed(c.match, sums, true)) && (c.noneMatch == nil || !anyNamed(c.noneMatch, sums, false))
}

func anyNamed(lines [][]byte, sums []uint64, strong bool) bool {
	for _, sum := range sums {
		for _, compressed := range []bool{false, true} {
			if names(lines, appendSum(nil, sum, compressed), strong) {
				return true
			}
		}
	}
	return false
}

// Sum returns the hash that the tag of a body is made of.
func Sum(body []byte) uint64 { return xxhash.Sum64(body) }

// SetTag sets the tag of the body that a write is answered with, which is that
// of the next read without compression.
func SetTag(c *fiber.Ctx) {
	c.Response().Header.SetBytesV(fiber.HeaderETag, appendTag(make([]byte, 0, tagSize), c.Response().Body(), false))
}
