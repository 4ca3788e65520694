package stepup

import (
	"crypto/hmac"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// codes is how many one-time codes there are: six digits (contract A-42).
const codes = 1_000_000

// newCode returns a code, each as likely as any other: a draw that would favour the first ones is thrown away.
func (s *Service) newCode() auth.OTP {
	const fair = math.MaxUint32 - math.MaxUint32%codes
	for {
		var random [4]byte
		s.ports.Entropy.Fill(random[:])
		if n := binary.BigEndian.Uint32(random[:]); n < fair {
			return auth.OTP(fmt.Sprintf("%06d", n%codes))
		}
	}
}

// hashOf returns the keyed hash under which a code of a challenge is stored. A plain hash of six digits would be no secret.
func (s *Service) hashOf(id auth.ChallengeID, code auth.OTP) auth.CodeHash {
	sum := s.codeKey.Sum(string(id) + "\x00" + string(code))
	return sum[:]
}

// isCode compares in constant time.
func (s *Service) isCode(c *auth.Challenge, code auth.OTP) bool {
	return len(c.CodeHash) > 0 && hmac.Equal(c.CodeHash, s.hashOf(c.ID, code))
}
