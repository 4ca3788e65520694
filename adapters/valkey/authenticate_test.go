package valkey_test

import (
	"strings"
	"testing"
	"time"

	vk "github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/sessioncache/sessioncachetest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// newCopyKey returns the key of a deployment with a root secret of one letter.
func newCopyKey(t testing.TB, letter string) auth.Key {
	t.Helper()
	key, err := auth.RootSecret(strings.Repeat(letter, 32)).Derive(auth.SessionCopyPurpose)
	must.Succeed(t, err)
	return key
}

// attacker can read and write everything in the store, and knows no key.
type attacker struct {
	t      *testing.T
	client vk.Client
}

func (a attacker) read(id auth.SessionID) []byte {
	a.t.Helper()
	b, err := a.client.Do(a.t.Context(), a.client.B().Get().Key("tollgate:session:"+string(id)).Build()).AsBytes()
	must.Succeed(a.t, err)
	return b
}

func (a attacker) write(id auth.SessionID, value []byte) {
	a.t.Helper()
	err := a.client.Do(a.t.Context(),
		a.client.B().Set().Key("tollgate:session:"+string(id)).Value(vk.BinaryString(value)).Build()).Error()
	must.Succeed(a.t, err)
}

// putCopy puts a session until the store has a copy of it, and returns what the store has.
func (a attacker) putCopy(c *valkey.Sessions, s auth.Session) []byte {
	a.t.Helper()
	await.Until(a.t, "a copy in the store", func() bool {
		c.Put(a.t.Context(), s, time.Now())
		_, ok := c.Get(a.t.Context(), s.ID)
		return ok
	})
	return a.read(s.ID)
}

// TestForgedCopyIsAMiss is an attacker who changes what the store has. The reader has not read
// these copies before, because an instance keeps an authentic copy until the store reports the
// change.
func TestForgedCopyIsAMiss(t *testing.T) {
	s := newServer(t).start()
	victim, reader := openSessions(t, s.Address, system.Clock{}), openSessions(t, s.Address, system.Clock{})
	thief := attacker{t, newDirectClient(t, s.Address)}
	ids := newIDs()
	await.Until(t, "an unchanged copy that the attacker put back", func() bool {
		id := ids()
		thief.write(id, thief.putCopy(victim, sessioncachetest.Session(id)))
		_, ok := reader.Get(t.Context(), id)
		return ok
	})
	size := len(thief.putCopy(victim, sessioncachetest.Session(ids())))
	for at := range size {
		id := ids()
		changed := thief.putCopy(victim, sessioncachetest.Session(id))
		changed[min(at, len(changed)-1)] ^= 1
		thief.write(id, changed)
		sessioncachetest.MustMiss(t, reader, id, "one bit changed")
	}
	forger, end, err := valkey.OpenSessions(t.Context(), newConfig(s.Address), newCopyKey(t, "x"), system.Clock{},
		discardLog())
	must.Succeed(t, err)
	t.Cleanup(end)
	for name, forge := range map[string]func(id auth.SessionID, authentic []byte) []byte{
		"the copy of another session": func(id auth.SessionID, _ []byte) []byte {
			return thief.putCopy(victim, sessioncachetest.Session(id+"-other"))
		},
		"the format of before, without a tag": func(_ auth.SessionID, authentic []byte) []byte {
			return append([]byte{1}, authentic[1:len(authentic)-32]...)
		},
		"a higher level, with the key of another deployment": func(id auth.SessionID, _ []byte) []byte {
			raised := sessioncachetest.Session(id)
			raised.TrustLevel = auth.FullTrust
			return thief.putCopy(forger, raised)
		},
		"another person, with the key of another deployment": func(id auth.SessionID, _ []byte) []byte {
			other := sessioncachetest.Session(id)
			other.UserID = "6f1e9c52-57a5-4b60-9b63-2f1c38d7e999"
			return thief.putCopy(forger, other)
		},
		"the tag alone": func(_ auth.SessionID, authentic []byte) []byte { return authentic[len(authentic)-32:] },
		"nothing":       func(auth.SessionID, []byte) []byte { return nil },
	} {
		id := ids()
		thief.write(id, forge(id, thief.putCopy(victim, sessioncachetest.Session(id))))
		sessioncachetest.MustMiss(t, reader, id, name)
	}
}

// TestReplayedCopyIsBounded is an attacker who puts back a copy from before a change of its
// session. The instance that made the change never uses it; the others use it for
// sessioncache.MaxAge after it was read from the database, which is as long as without an attacker
// (contract A-26).
func TestReplayedCopyIsBounded(t *testing.T) {
	s := newServer(t).start()
	later := new(shiftedClock)
	changing, reader := openSessions(t, s.Address, system.Clock{}), openSessions(t, s.Address, later)
	thief := attacker{t, newDirectClient(t, s.Address)}
	old := thief.putCopy(changing, sessioncachetest.Session("replayed"))
	changing.Drop(t.Context(), "replayed")
	thief.write("replayed", old)
	sessioncachetest.MustMiss(t, changing, "replayed", "on the instance that dropped it")
	later.Advance(sessioncache.MaxAge)
	sessioncachetest.MustMiss(t, reader, "replayed", "read MaxAge ago")
	later.Advance(time.Hour)
	thief.write("replayed", old)
	sessioncachetest.MustMiss(t, reader, "replayed", "read an hour ago")
}

func BenchmarkGetOfALocalCopy(b *testing.B) {
	c := openSessions(b, sharedServer(b), system.Clock{})
	session := sessioncachetest.Session(newIDs()())
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := c.Get(b.Context(), session.ID); !ok {
			c.Put(b.Context(), session, time.Now())
		}
	}
}
