package authstoretest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

// runDevices tests the stores of devices and device tokens.
func runDevices(t *testing.T, open func(t *testing.T) Stores) {
	t.Helper()
	testCases(t, withAccounts(open), map[string]func(t *testing.T, s Stores){
		"a stored device has the value of every field":                      deviceKeepsEveryField,
		"any device is returned as it was stored":                           deviceRoundTrips,
		"a device that does not exist is not found":                         deviceNotFound,
		"a device is created only if the person has none with its identity": ensuresOnce,
		"parallel sign-ins from a new device create it once":                ensuresOnceInParallel,
		"a new device can have the identity of a revoked one":               replacesRevokedDevice,
		"a person never has two active devices with one identity":           refusesSecondOfIdentity,
		"an update whose change fails stores nothing":                       deviceFailedChange,
		"parallel updates of a device are all stored":                       deviceLosesNoUpdate,
		"devices are listed by the time they were last seen, newest first":  listsLastSeenFirst,
		"deletion removes devices that were not used since a time":          deletesUnused,
		"a failed transaction stores no device":                             deviceRollsBack,
		"a call with a cancelled context fails":                             deviceHeedsCancel,

		"a device is found by each of its tokens":                  tokensAreFound,
		"only the newest tokens of a device are kept":              keepsNewestTokens,
		"only the newest tokens are kept after parallel additions": keepsNewestInParallel,
		"removed tokens of a device are not found":                 removesTokens,
		"a failed transaction stores no token of a device":         deviceTokensRollBack,
	})
}

// people is how many accounts there are in the suites that need them, from number 0.
const people = 2

// Device returns a sample with every field set, of the account of a number.
// Samples of different numbers share no identifier and no identity.
func Device(user, n int) auth.Device {
	return auth.Device{
		ID: recordtest.UUID[auth.DeviceID](n), UserID: Account(user).ID,
		Identity: auth.DeviceIdentity(fmt.Sprintf("identity-%05d", n)), TrustStatus: auth.DeviceTrusted,
		MarkUnproven: true,
		Confirmed:    true, Revoked: true,
		FirstSeen: recordtest.Epoch(), LastSeen: recordtest.Epoch().Add(time.Duration(n) * time.Second),
		Type: "desktop", Browser: "Firefox", OS: "Debian \\ 'é'", LastIPAddress: netip.MustParseAddr("2001:db8::1"),
		Name: "Büro",
	}
}

// current is a sample that is not revoked.
func current(user, n int) auth.Device {
	d := Device(user, n)
	d.Revoked = false
	return d
}

func ensure(t *testing.T, s Stores, devices ...auth.Device) {
	t.Helper()
	for _, d := range devices {
		got, made, err := s.Devices.Ensure(t.Context(), d)
		if err != nil || !made {
			t.Fatalf("Ensure = %v, %v, want a device that was made", made, err)
		}
		recordtest.Equal(t, got, d)
	}
}

func deviceKeepsEveryField(t *testing.T, s Stores) {
	d := Device(0, 1)
	recordtest.Whole(t, d)
	ensure(t, s, current(0, 1))
	recordtest.OK(t, s.Devices.Update(t.Context(), d.ID, func(p *auth.Device) error { *p = d; return nil }))
	recordtest.Equal(t, recordtest.Must(s.Devices.Get(t.Context(), d.ID))(t), d)
	recordtest.Equal(t, list(t, s, d.UserID, 10), []auth.Device{d})
}

func deviceRoundTrips(t *testing.T, s Stores) {
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		a, b := deviceDraw(r, n), deviceDraw(r, n)
		a.Revoked = false
		got, made, err := s.Devices.Ensure(t.Context(), a)
		if err != nil || !made {
			r.Fatalf("Ensure = %v, %v", made, err)
		}
		recordtest.Equal(r, got, a)
		recordtest.OK(r, s.Devices.Update(t.Context(), a.ID, func(p *auth.Device) error {
			recordtest.Equal(r, *p, a)
			*p = b
			return nil
		}))
		recordtest.Equal(r, recordtest.Must(s.Devices.Get(t.Context(), a.ID))(r), b)
	})
}

func deviceDraw(r *rapid.T, n int) auth.Device {
	d := Device(0, n)
	d.Identity += auth.DeviceIdentity(recordtest.Text().Draw(r, "identity"))
	d.TrustStatus = rapid.SampledFrom([]auth.TrustStatus{auth.DeviceTrusted, auth.DeviceUntrusted, auth.DevicePending}).
		Draw(r, "trust")
	d.Confirmed, d.Revoked = rapid.Bool().Draw(r, "confirmed"), rapid.Bool().Draw(r, "revoked")
	d.FirstSeen, d.LastSeen = recordtest.Instant().Draw(r, "first"), recordtest.Instant().Draw(r, "last")
	d.Type, d.Browser = recordtest.Text().Draw(r, "type"), recordtest.Text().Draw(r, "browser")
	d.OS, d.LastIPAddress = recordtest.Text().Draw(r, "os"), recordtest.Address().Draw(r, "address")
	d.Name = recordtest.Text().Draw(r, "name")
	return d
}

func deviceNotFound(t *testing.T, s Stores) {
	d, none := current(0, 1), current(0, 2)
	ensure(t, s, d)
	recordtest.WantNotFound(t, map[string]func() error{
		"Get":  func() error { _, err := s.Devices.Get(t.Context(), none.ID); return err },
		"Find": func() error { _, err := s.Devices.Find(t.Context(), d.UserID, none.Identity); return err },
		"Find, of else": func() error {
			_, err := s.Devices.Find(t.Context(), current(1, 1).UserID, d.Identity)
			return err
		},
		"Update": func() error {
			return s.Devices.Update(t.Context(), none.ID, func(*auth.Device) error {
				t.Error("change was called")
				return nil
			})
		},
		"Tokens.Find": func() error { _, err := s.DeviceTokens.Find(t.Context(), auth.TokenHash{1}); return err },
		"Tokens.Add":  func() error { return s.DeviceTokens.Add(t.Context(), auth.DeviceToken{DeviceID: none.ID}, 1) },
	})
	recordtest.OK(t, s.DeviceTokens.Remove(t.Context(), none.ID))
}

func ensuresOnce(t *testing.T, s Stores) {
	d, again, other := current(0, 1), current(0, 2), current(1, 3)
	again.Identity, other.Identity = d.Identity, d.Identity
	ensure(t, s, d)
	got, made, err := s.Devices.Ensure(t.Context(), again)
	if err != nil || made {
		t.Fatalf("Ensure of a known identity = %v, %v", made, err)
	}
	recordtest.Equal(t, got, d)
	recordtest.Equal(t, recordtest.Must(s.Devices.Find(t.Context(), d.UserID, d.Identity))(t), d)
	ensure(t, s, other) // the identity of another user's device is another
	recordtest.Equal(t, recordtest.Must(s.Devices.Find(t.Context(), other.UserID, d.Identity))(t), other)
}

func ensuresOnceInParallel(t *testing.T, s Stores) {
	const calls = 20
	got, made := make([]auth.Device, calls), make([]bool, calls)
	recordtest.OK(t, errors.Join(recordtest.Parallel(calls, func(i int) (err error) {
		d := current(0, i)
		d.Identity = "one"
		got[i], made[i], err = s.Devices.Ensure(t.Context(), d)
		return err
	})...))
	makers := 0
	for i := range calls {
		if made[i] {
			makers++
		}
		recordtest.Equal(t, got[i], got[0])
	}
	if makers != 1 {
		t.Errorf("%d calls made the device, want 1", makers)
	}
	recordtest.Equal(t, list(t, s, got[0].UserID, calls), got[:1])
}

func replacesRevokedDevice(t *testing.T, s Stores) {
	d, next := current(0, 1), current(0, 2)
	next.Identity = d.Identity
	ensure(t, s, d)
	recordtest.OK(t, s.Devices.Update(t.Context(), d.ID, func(p *auth.Device) error { p.Revoked = true; return nil }))
	if _, err := s.Devices.Find(t.Context(), d.UserID, d.Identity); !fault.Is(err, fault.NotFound) {
		t.Errorf("Find of a revoked device returned %v", err)
	}
	ensure(t, s, next)
	d.Revoked = true
	recordtest.Equal(t, recordtest.Must(s.Devices.Get(t.Context(), d.ID))(t), d)
	recordtest.Equal(t, recordtest.Must(s.Devices.Find(t.Context(), d.UserID, d.Identity))(t), next)
}

// refusesSecondOfIdentity: the database itself keeps the second one out.
func refusesSecondOfIdentity(t *testing.T, s Stores) {
	d, other := current(0, 1), current(0, 2)
	ensure(t, s, d, other)
	err := s.Devices.Update(t.Context(), other.ID, func(p *auth.Device) error { p.Identity = d.Identity; return nil })
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("Update to the identity of another device returned %v", err)
	}
	recordtest.Equal(t, recordtest.Must(s.Devices.Get(t.Context(), other.ID))(t), other)
}

func deviceFailedChange(t *testing.T, s Stores) {
	d, failed := current(0, 1), errors.New("failed")
	ensure(t, s, d)
	err := s.Devices.Update(t.Context(), d.ID, func(p *auth.Device) error {
		p.Browser = "Lynx"
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("Update returned %v", err)
	}
	recordtest.Equal(t, recordtest.Must(s.Devices.Get(t.Context(), d.ID))(t), d)
}

func deviceLosesNoUpdate(t *testing.T, s Stores) {
	const calls = 20
	d := current(0, 1)
	d.Type = ""
	ensure(t, s, d)
	recordtest.OK(t, errors.Join(recordtest.Parallel(calls, func(int) error {
		return s.Devices.Update(t.Context(), d.ID, func(p *auth.Device) error { p.Type += "x"; return nil })
	})...))
	if got := recordtest.Must(s.Devices.Get(t.Context(), d.ID))(t); len(got.Type) != calls {
		t.Errorf("%d updates are stored, want %d", len(got.Type), calls)
	}
}

func listsLastSeenFirst(t *testing.T, s Stores) {
	ensure(t, s, current(0, 2), current(0, 3), current(0, 1), current(1, 4))
	recordtest.OK(t,
		s.Devices.Update(t.Context(), current(0, 2).ID, func(p *auth.Device) error { p.Revoked = true; return nil }))
	user := current(0, 1).UserID
	recordtest.Equal(t, list(t, s, user, 10), []auth.Device{current(0, 3), Device(0, 2), current(0, 1)})
	recordtest.Equal(t, list(t, s, user, 2), []auth.Device{current(0, 3), Device(0, 2)})
	for _, c := range []struct {
		page auth.PageRequest
		want []auth.Device
	}{
		{auth.PageRequest{Limit: 1, Offset: 1}, []auth.Device{Device(0, 2)}},
		{auth.PageRequest{Limit: 5, Offset: 2}, []auth.Device{current(0, 1)}},
		{auth.PageRequest{Limit: 5, Offset: 3}, nil},
		{auth.PageRequest{Limit: 5, Offset: 9}, nil},
		{auth.PageRequest{}, nil},
	} {
		got, total, err := s.Devices.List(t.Context(), user, c.page)
		recordtest.OK(t, err)
		if total != 3 || len(got) != len(c.want) {
			t.Fatalf("page %+v has %d devices of %d, want %d of 3", c.page, len(got), total, len(c.want))
		}
		for i := range got {
			recordtest.Equal(t, got[i], c.want[i])
		}
	}
}

// list returns the first devices of a user.
func list(t *testing.T, s Stores, user auth.UserID, limit int) []auth.Device {
	t.Helper()
	devices, _, err := s.Devices.List(t.Context(), user, auth.PageRequest{Limit: limit})
	recordtest.OK(t, err)
	return devices
}

func deletesUnused(t *testing.T, s Stores) {
	confirmed, unconfirmed, revoked, late := current(0, 1), current(0, 2), current(1, 3), current(1, 4)
	ensure(t, s, confirmed, unconfirmed, revoked, late)
	for n, d := range []auth.Device{unconfirmed, revoked, late} {
		recordtest.OK(t, s.Devices.Update(t.Context(), d.ID, func(d *auth.Device) error {
			d.Confirmed, d.Revoked = n > 0, n > 0
			return nil
		}))
		recordtest.OK(t, s.DeviceTokens.Add(t.Context(), deviceToken(d, byte(n)), 5))
	}
	if n := recordtest.Must(s.Devices.DeleteUnused(t.Context(), late.LastSeen))(t); n != 2 {
		t.Errorf("DeleteUnused deleted %d devices, want 2", n)
	}
	for d, kept := range map[auth.Device]bool{confirmed: true, unconfirmed: false, revoked: false, late: true} {
		if _, err := s.Devices.Get(t.Context(), d.ID); kept != (err == nil) {
			t.Errorf("Get of %s: %v", d.Identity, err)
		}
	}
	if _, err := s.DeviceTokens.Find(t.Context(), deviceToken(revoked, 1).Hash); !fault.Is(err, fault.NotFound) {
		t.Errorf("Find of the token of a deleted device: %v", err)
	}
}

func deviceRollsBack(t *testing.T, s Stores) {
	d := current(0, 1)
	ensure(t, s, d)
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error {
		if _, made, err := s.Devices.Ensure(ctx, current(0, 2)); err != nil || !made {
			t.Errorf("Ensure = %v, %v", made, err)
		}
		if _, made, err := s.Devices.Ensure(ctx, current(0, 2)); err != nil || made {
			t.Errorf("the transaction does not see its own device: %v, %v", made, err)
		}
		return s.Devices.Update(ctx, d.ID, func(p *auth.Device) error { p.Browser = "Lynx"; return nil })
	})
	recordtest.Equal(t, list(t, s, d.UserID, 10), []auth.Device{d})
}

func deviceHeedsCancel(t *testing.T, s Stores) {
	d := current(0, 1)
	ensure(t, s, d)
	recordtest.WantCancelled(t, map[string]func(ctx context.Context) error{
		"Ensure": func(ctx context.Context) error { _, _, err := s.Devices.Ensure(ctx, current(0, 2)); return err },
		"Find":   func(ctx context.Context) error { _, err := s.Devices.Find(ctx, d.UserID, d.Identity); return err },
		"Get":    func(ctx context.Context) error { _, err := s.Devices.Get(ctx, d.ID); return err },
		"Update": func(ctx context.Context) error {
			return s.Devices.Update(ctx, d.ID, func(p *auth.Device) error { p.Browser = "Lynx"; return nil })
		},
		"List": func(ctx context.Context) error {
			_, _, err := s.Devices.List(ctx, d.UserID, auth.PageRequest{Limit: 10})
			return err
		},
		"DeleteUnused": func(ctx context.Context) error {
			_, err := s.Devices.DeleteUnused(ctx, d.LastSeen)
			return err
		},
		"Tokens.Add": func(ctx context.Context) error { return s.DeviceTokens.Add(ctx, deviceToken(d, 1), 5) },
		"Tokens.Find": func(ctx context.Context) error {
			_, err := s.DeviceTokens.Find(ctx, deviceToken(d, 1).Hash)
			return err
		},
		"Tokens.Remove": func(ctx context.Context) error { return s.DeviceTokens.Remove(ctx, d.ID) },
	})
	recordtest.Equal(t, list(t, s, d.UserID, 10), []auth.Device{d})
}
