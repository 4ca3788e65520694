package stepup

import (
	"crypto/hmac"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// codeCount is the number of one-time codes: they have six digits (contract A-42).
const codeCount = 1_000_000

// newCode returns a uniformly random code. It draws again if a number would make the first codes
// more likely.
func (s *Service) newCode() auth.OTP {
	const fair = math.MaxUint32 - math.MaxUint32%codeCount
	for {
		var random [4]byte
		s.ports.Entropy.Fill(random[:])
		if n := binary.BigEndian.Uint32(random[:]); n < fair {
			return auth.OTP(fmt.Sprintf("%06d", n%codeCount))
		}
	}
}

// hashCode returns the keyed hash under which a code of a challenge is stored. A plain hash of six
// digits could be reversed.
func (s *Service) hashCode(id auth.ChallengeID, code auth.OTP) auth.CodeHash {
	sum := s.codeKey.Sum(string(id) + "\x00" + string(code))
	return sum[:]
}

// isCode reports whether code is the code of c, in constant time.
func (s *Service) isCode(c *auth.Challenge, code auth.OTP) bool {
	return len(c.CodeHash) > 0 && hmac.Equal(c.CodeHash, s.hashCode(c.ID, code))
}
