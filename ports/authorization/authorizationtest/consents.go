package authorizationtest

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

func consentTests() map[string]func(t *testing.T, s Stores) {
	return map[string]func(t *testing.T, s Stores){
		"a stored consent has the value of every field":        consentKeepsEveryField,
		"any consent is returned as it was stored":             consentRoundTrips,
		"a consent is for one client, host and resource":       consentIsExact,
		"a consent takes the place of the one before":          consentReplaces,
		"the consents of a person for a client can be removed": removesConsents,
		"deletion removes consents that have expired":          deletesExpiredConsents,
		"a failed transaction changes no consent":              consentRollsBack,
		"a call with a cancelled context fails":                consentHeedsCancel,
	}
}

// consent returns a sample with every field set. Greater numbers end later, and are for other hosts.
func consent(person, n int) oauth.Consent {
	return oauth.Consent{
		UserID: authstoretest.Account(person).ID, Client: longURL("client"), Host: "app.example'" + string(rune('a'+n)),
		Resource: string(longURL("resource")), Scopes: []string{"b", "a"}, Terms: hashOf(n),
		GivenAt: minutes(n), ExpiresAt: minutes(n).Add(oauth.ConsentTTL),
	}
}

func putConsents(t *testing.T, s Stores, all ...oauth.Consent) {
	t.Helper()
	for _, c := range all {
		recordtest.OK(t, s.Consents.Put(t.Context(), c))
	}
}

// wantConsents fails the test unless the store has each of the consents, and no others.
func wantConsents(t *testing.T, s Stores, all []oauth.Consent, others ...oauth.Consent) {
	t.Helper()
	for _, c := range all {
		recordtest.Equal(t, recordtest.Must(findConsent(t.Context(), s, c))(t), c)
	}
	for _, c := range others {
		if got, err := findConsent(t.Context(), s, c); !fault.Is(err, fault.NotFound) {
			t.Errorf("Find returned %+v, %v, want fault.NotFound", got, err)
		}
	}
}

func findConsent(ctx context.Context, s Stores, c oauth.Consent) (oauth.Consent, error) {
	return s.Consents.Find(ctx, c.UserID, c.Client, c.Host, c.Resource)
}

func consentKeepsEveryField(t *testing.T, s Stores) {
	recordtest.Whole(t, consent(1, 1))
	putConsents(t, s, consent(1, 1))
	wantConsents(t, s, []oauth.Consent{consent(1, 1)}, consent(0, 1), consent(1, 2))
	foreign := consent(0, 1)
	foreign.UserID = recordtest.UUID[auth.UserID](9)
	if err := s.Consents.Put(t.Context(), foreign); err == nil {
		t.Error("a consent of an unknown account is kept")
	}
}

func consentRoundTrips(t *testing.T, s Stores) {
	text := recordtest.Text()
	rapid.Check(t, func(r *rapid.T) {
		c := consent(0, 1)
		c.Client, c.Host, c.Resource = oauth.ClientID(text.Draw(r, "client")), text.Draw(r, "host"), text.Draw(r, "resource")
		c.Scopes = names().Draw(r, "scopes")
		c.GivenAt, c.ExpiresAt = recordtest.Instant().Draw(r, "given"), recordtest.Instant().Draw(r, "expires")
		putConsents(t, s, c)
		recordtest.Equal(r, recordtest.Must(findConsent(t.Context(), s, c))(r), c)
	})
}

// consentIsExact: no part of one text passes for a part of its neighbour.
func consentIsExact(t *testing.T, s Stores) {
	c := consent(0, 1)
	c.Client, c.Host, c.Resource = "client", "host", "resource"
	putConsents(t, s, c)
	var others []oauth.Consent
	for _, texts := range [][3]string{
		{"clienth", "ost", "resource"}, {"client", "hostr", "esource"}, {"client", "host", "resource/"},
		{"client", "", "hostresource"}, {`client","host`, "", "resource"}, {`client" "host`, "resource", ""},
		{"Client", "host", "resource"}, {"client", "host", "Resource"},
	} {
		other := c
		other.Client, other.Host, other.Resource = oauth.ClientID(texts[0]), texts[1], texts[2]
		others = append(others, other)
	}
	wantConsents(t, s, []oauth.Consent{c}, others...)
}

func consentReplaces(t *testing.T, s Stores) {
	next := consent(0, 1)
	next.Scopes, next.Terms, next.GivenAt, next.ExpiresAt = []string{"c"}, hashOf(7), minutes(7), minutes(8)
	putConsents(t, s, consent(0, 1), consent(0, 2), next)
	wantConsents(t, s, []oauth.Consent{next, consent(0, 2)})
	recordtest.OK(t, errors.Join(racing(t, s, func(ctx context.Context) error {
		return s.Consents.Put(ctx, consent(0, 1))
	})...))
	wantConsents(t, s, []oauth.Consent{consent(0, 1), consent(0, 2)})
}

func removesConsents(t *testing.T, s Stores) {
	other := consent(0, 3)
	other.Client += "2"
	putConsents(t, s, consent(0, 1), consent(0, 2), other, consent(1, 1))
	for range 2 {
		recordtest.OK(t, s.Consents.Remove(t.Context(), clientOf(consent(0, 1))))
		wantConsents(t, s, []oauth.Consent{other, consent(1, 1)}, consent(0, 1), consent(0, 2))
	}
	elsewhere := consent(1, 2)
	elsewhere.Resource += "2"
	putConsents(t, s, consent(0, 1), elsewhere)
	recordtest.OK(t, s.Consents.Remove(t.Context(), authorization.FamilyFilter{Resource: elsewhere.Resource}))
	wantConsents(t, s, []oauth.Consent{consent(0, 1), other, consent(1, 1)}, elsewhere)
	recordtest.OK(t, s.Consents.Remove(t.Context(), authorization.FamilyFilter{Client: other.Client}))
	wantConsents(t, s, []oauth.Consent{consent(0, 1), consent(1, 1)}, other)
	if err := s.Consents.Remove(t.Context(), authorization.FamilyFilter{}); err == nil {
		t.Error("an empty filter is accepted")
	}
	wantConsents(t, s, []oauth.Consent{consent(0, 1), consent(1, 1)})
}

// clientOf selects the consents of a person for a client.
func clientOf(c oauth.Consent) authorization.FamilyFilter {
	return authorization.FamilyFilter{UserID: c.UserID, Client: c.Client}
}

func deletesExpiredConsents(t *testing.T, s Stores) {
	putConsents(t, s, consent(0, 1), consent(0, 2), consent(1, 1), consent(1, 3))
	for _, n := range []int{2, 0} {
		wantNumber(t, n)(s.Consents.DeleteExpired(t.Context(), consent(0, 2).ExpiresAt))
	}
	wantConsents(t, s, []oauth.Consent{consent(0, 2), consent(1, 3)}, consent(0, 1), consent(1, 1))
}

func consentRollsBack(t *testing.T, s Stores) {
	putConsents(t, s, consent(0, 1))
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error {
		recordtest.OK(t, s.Consents.Remove(ctx, clientOf(consent(0, 1))))
		return s.Consents.Put(ctx, consent(0, 2))
	})
	wantConsents(t, s, []oauth.Consent{consent(0, 1)}, consent(0, 2))
}

func consentHeedsCancel(t *testing.T, s Stores) {
	putConsents(t, s, consent(0, 1))
	recordtest.WantCancelled(t, map[string]func(ctx context.Context) error{
		"Put":  func(ctx context.Context) error { return s.Consents.Put(ctx, consent(0, 2)) },
		"Find": func(ctx context.Context) error { _, err := findConsent(ctx, s, consent(0, 1)); return err },
		"Remove": func(ctx context.Context) error {
			return s.Consents.Remove(ctx, clientOf(consent(0, 1)))
		},
	})
	wantConsents(t, s, []oauth.Consent{consent(0, 1)}, consent(0, 2))
}
