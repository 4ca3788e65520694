package entropy

import "github.com/tollgate-dev/tollgate/core/auth"

// UUID returns a fresh random identifier.
func UUID[ID ~string](s Source) ID {
	var random [16]byte
	s.Fill(random[:])
	return auth.NewUUID[ID](random)
}

// Secret returns a fresh opaque token.
func Secret[S auth.RefreshSecret | auth.DeviceSecret](s Source) S {
	var random [32]byte
	s.Fill(random[:])
	return auth.NewSecret[S](random)
}

// Nonce returns a fresh nonce of a seal.
func Nonce(s Source) auth.Nonce {
	var random auth.Nonce
	s.Fill(random[:])
	return random
}

// TOTPSecret returns a fresh secret of an authenticator.
func TOTPSecret(s Source) auth.TOTPSecret {
	var random auth.TOTPSecret
	s.Fill(random[:])
	return random
}

// RecoveryCodes returns fresh recovery codes, as many as an authenticator comes with.
func RecoveryCodes(s Source) []auth.OTP {
	codes := make([]auth.OTP, auth.RecoveryCodes)
	for i := range codes {
		var random [7]byte
		s.Fill(random[:])
		codes[i] = auth.NewRecoveryCode(random)
	}
	return codes
}
