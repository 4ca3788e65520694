package valkey

import (
	"bytes"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/sessioncache/sessioncachetest"
)

func TestCopyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := func(label string) time.Time {
			if rapid.Bool().Draw(t, label+" set") {
				return time.Unix(0, rapid.Int64Range(-1<<62, 1<<62).Draw(t, label)).UTC()
			}
			return time.Time{}
		}
		s := auth.Session{
			ID: auth.SessionID(rapid.String().Draw(t, "id")), UserID: auth.UserID(rapid.String().Draw(t, "user")),
			DeviceID:       auth.DeviceID(rapid.String().Draw(t, "device")),
			DeviceIdentity: auth.DeviceIdentity(rapid.String().Draw(t, "identity")),
			TrustLevel:     auth.TrustLevel(rapid.Byte().Draw(t, "trust")), RiskScore: rapid.Int().Draw(t, "risk"),
			CreatedAt: at("created"), LastActivity: at("activity"), ExpiresAt: at("expires"), MaxExpiresAt: at("max"),
			EndedAt: at("ended"), ReauthenticatedAt: at("reauthenticated"),
			EndReason: auth.EndReason(rapid.String().Draw(t, "reason")),
		}
		if raw := rapid.SampledFrom([]int{0, 4, 16}).Draw(t, "address"); raw > 0 {
			s.IPAddress, _ = netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), raw, raw).Draw(t, "bytes"))
		}
		put := time.Unix(0, rapid.Int64Range(-1<<62, 1<<62).Draw(t, "put")).UTC()
		got, gotPut, err := decodeCopy(encodeCopy(nil, &s, put))
		if err != nil || !reflect.DeepEqual(got, s) || !gotPut.Equal(put) {
			t.Fatalf("%+v, %v, %v, want %+v, %v", got, gotPut, err, s, put)
		}
	})
}

func TestTruncatedCopyIsInvalid(t *testing.T) {
	s := sessioncachetest.Session("a")
	whole := encodeCopy(nil, &s, time.Unix(1, 2))
	for n := range whole {
		if _, _, err := decodeCopy(whole[:n]); err == nil {
			t.Errorf("the first %d of %d bytes were read", n, len(whole))
		}
	}
	if _, _, err := decodeCopy(append(bytes.Clone(whole), 0)); err == nil {
		t.Error("a copy with an additional byte was decoded")
	}
}

func FuzzDecodeCopy(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		s, put, err := decodeCopy(b)
		if err != nil {
			return
		}
		again, putAgain, err := decodeCopy(encodeCopy(nil, &s, put))
		if err != nil || !reflect.DeepEqual(again, s) || !putAgain.Equal(put) {
			t.Errorf("%+v, %v, %v, want %+v, %v", again, putAgain, err, s, put)
		}
	})
}
