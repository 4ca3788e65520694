package authorizationtest

import (
	"context"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

func requestTests() map[string]func(t *testing.T, s Stores) {
	return map[string]func(t *testing.T, s Stores){
		"a stored request has the value of every field":       requestKeepsEveryField,
		"any request is returned as it was stored":            requestRoundTrips,
		"one of several parallel answers takes the request":   takesRequestOnce,
		"deletion removes requests that have expired":         deletesExpiredRequests,
		"a failed transaction takes no request and adds none": requestRollsBack,
		"a call with a cancelled context fails":               requestHeedsCancel,
	}
}

// request returns a sample with every field set. Greater numbers end later.
func request(n int) oauth.Request {
	return oauth.Request{
		ID: hashOf(n), Browser: hashOf(n + 1), Client: longURL("client"), RedirectURI: "http://127.0.0.1:7/b?c=d'\\",
		Challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", Resource: "https://Tools.example/mcp/",
		State: "é \"'", Scopes: []string{"b", "a"}, Level: auth.FullTrust, MaxAge: 1500 * time.Millisecond,
		Prompt: "login", LoginHint: "ada@example.com",
		CreatedAt: minutes(n), ExpiresAt: minutes(n).Add(oauth.RequestTTL),
	}
}

// longURL is an address of the greatest length, which no index can have as its key.
func longURL(name string) oauth.ClientID {
	const maxURL = 2048
	begin := "https://" + name + ".example/"
	random, text := uint32(1), strings.Builder{} // it cannot be compressed
	text.WriteString(begin)
	for range maxURL - len(begin) {
		random = random*1664525 + 1013904223
		text.WriteByte("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[random>>26])
	}
	return oauth.ClientID(text.String())
}

func addRequests(t *testing.T, s Stores, all ...oauth.Request) {
	t.Helper()
	for _, r := range all {
		recordtest.OK(t, s.Requests.Add(t.Context(), r))
	}
}

// wantRequests fails the test unless the store has each of the requests, and no others.
func wantRequests(t *testing.T, s Stores, all []oauth.Request, others ...oauth.Request) {
	t.Helper()
	for _, r := range all {
		recordtest.Equal(t, recordtest.Must(s.Requests.Find(t.Context(), r.ID))(t), r)
	}
	for _, r := range others {
		if got, err := s.Requests.Find(t.Context(), r.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("Find returned %+v, %v, want fault.NotFound", got, err)
		}
	}
}

func requestKeepsEveryField(t *testing.T, s Stores) {
	recordtest.Whole(t, request(1))
	addRequests(t, s, request(1))
	wantRequests(t, s, []oauth.Request{request(1)}, request(2))
	if err := s.Requests.Add(t.Context(), request(1)); err == nil {
		t.Error("a request is added twice")
	}
}

func requestRoundTrips(t *testing.T, s Stores) {
	n := 0
	text := recordtest.Text()
	rapid.Check(t, func(r *rapid.T) {
		n++
		q := request(n)
		q.Client, q.RedirectURI = oauth.ClientID(text.Draw(r, "client")), text.Draw(r, "redirect URI")
		q.Challenge, q.Resource, q.State = text.Draw(r, "challenge"), text.Draw(r, "resource"), text.Draw(r, "state")
		q.Scopes = names().Draw(r, "scopes")
		q.Level = auth.TrustLevel(rapid.IntRange(0, int(auth.FullTrust)).Draw(r, "level"))
		q.MaxAge = time.Duration(rapid.Int64().Draw(r, "max age"))
		q.Prompt, q.LoginHint = text.Draw(r, "prompt"), text.Draw(r, "login hint")
		q.CreatedAt, q.ExpiresAt = recordtest.Instant().Draw(r, "created"), recordtest.Instant().Draw(r, "expires")
		recordtest.OK(r, s.Requests.Add(t.Context(), q))
		recordtest.Equal(r, recordtest.Must(s.Requests.Find(t.Context(), q.ID))(r), q)
	})
}

// names generates lists of texts; an empty one is nil.
func names() *rapid.Generator[[]string] {
	return recordtest.Optional(rapid.SliceOfN(recordtest.Text(), 1, 3))
}

func takesRequestOnce(t *testing.T, s Stores) {
	addRequests(t, s, request(1), request(2))
	recordtest.WantOne(t, racing(t, s, func(ctx context.Context) error {
		return s.Requests.Take(ctx, request(1).ID)
	}), fault.NotFound)
	wantRequests(t, s, []oauth.Request{request(2)}, request(1))
}

func deletesExpiredRequests(t *testing.T, s Stores) {
	addRequests(t, s, request(1), request(2), request(3))
	for _, n := range []int{1, 0} {
		wantNumber(t, n)(s.Requests.DeleteExpired(t.Context(), request(2).ExpiresAt))
	}
	wantRequests(t, s, []oauth.Request{request(2), request(3)}, request(1))
}

func requestRollsBack(t *testing.T, s Stores) {
	addRequests(t, s, request(1))
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error {
		recordtest.OK(t, s.Requests.Add(ctx, request(2)))
		return s.Requests.Take(ctx, request(1).ID)
	})
	wantRequests(t, s, []oauth.Request{request(1)}, request(2))
}

func requestHeedsCancel(t *testing.T, s Stores) {
	addRequests(t, s, request(1))
	recordtest.WantCancelled(t, map[string]func(ctx context.Context) error{
		"Add":  func(ctx context.Context) error { return s.Requests.Add(ctx, request(2)) },
		"Find": func(ctx context.Context) error { _, err := s.Requests.Find(ctx, request(1).ID); return err },
		"Take": func(ctx context.Context) error { return s.Requests.Take(ctx, request(1).ID) },
	})
	wantRequests(t, s, []oauth.Request{request(1)}, request(2))
}
