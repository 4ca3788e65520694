package event

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// Sign returns the signature of a request that is sent at a time: "t=UNIX,v1=HEX", where HEX is the
// HMAC-SHA-256 of the Unix time, a dot and the body, with the text of the secret as the key
// (contract C-53).
func Sign(s Secret, at time.Time, body []byte) string {
	unix := strconv.FormatInt(at.Unix(), 10)
	h := hmac.New(sha256.New, []byte(s))
	_, _ = h.Write([]byte(unix + ".")) // a hash never fails to write
	_, _ = h.Write(body)               // likewise
	return "t=" + unix + ",v1=" + hex.EncodeToString(h.Sum(nil))
}
