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
