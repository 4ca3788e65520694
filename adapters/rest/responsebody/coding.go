package responsebody

import (
	"bytes"
	"strconv"

	"github.com/gofiber/fiber/v2"
)

const codingGzip = "gzip"

// acceptsGzip reports whether Accept-Encoding allows gzip and does not prefer the uncompressed form
// (RFC 9110, 12.5.3). It returns false without the header.
func acceptsGzip(c *fiber.Ctx) bool {
	w := weights{gzip: unset, identity: unset, any: unset}
	for _, line := range c.Request().Header.PeekAll(fiber.HeaderAcceptEncoding) {
		for len(line) > 0 {
			var element []byte
			element, line, _ = bytes.Cut(line, []byte{','})
			w.addElement(element)
		}
	}
	gzip := w.gzip
	if gzip == unset {
		gzip = w.any
	}
	return gzip > 0 && gzip >= w.identity
}

// unset is the weight of a coding that the header does not name.
const unset = -1

// weights are the preferences of a client, from 0 for never to 1.
type weights struct{ gzip, identity, any float64 }

// addElement adds one element of Accept-Encoding.
func (w *weights) addElement(element []byte) {
	coding, parameter, _ := bytes.Cut(element, []byte{';'})
	weight := parseWeight(bytes.TrimSpace(parameter))
	switch coding = bytes.TrimSpace(coding); {
	case bytes.EqualFold(coding, []byte(codingGzip)), bytes.EqualFold(coding, []byte("x-gzip")):
		w.gzip = max(w.gzip, weight)
	case bytes.EqualFold(coding, []byte("identity")):
		w.identity = weight
	case len(coding) == 1 && coding[0] == '*':
		w.any = weight
	}
}

// parseWeight parses q=WEIGHT. It returns 1 for no parameter, and 0 for a malformed one, so that a
// client gets only what it clearly asked for.
func parseWeight(parameter []byte) float64 {
	if len(parameter) == 0 {
		return 1
	}
	name, value, _ := bytes.Cut(parameter, []byte{'='})
	q, err := strconv.ParseFloat(string(bytes.TrimSpace(value)), 64)
	if !bytes.EqualFold(bytes.TrimSpace(name), []byte{'q'}) || err != nil || !(q >= 0 && q <= 1) {
		return 0
	}
	return q
}
