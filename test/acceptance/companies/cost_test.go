package companies

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// TestCost measures sign-ins at a company, without the time of the provider, and with a password whose
// hash takes next to nothing, in turn. It prints figures for docs/performance.md.
func TestCost(t *testing.T) {
	if os.Getenv("TEST_COST") == "" {
		t.Skip("measures and checks nothing: set TEST_COST=1")
	}
	const rounds = 300
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e, "ARGON2_MEMORY_KIB=64", "ARGON2_ITERATIONS=1")
		e.NewPerson(t, "bert@acme.example")
		s.provider.SignIn("u1", "ada@acme.example")
		var password, company, ratio []float64
		for i := range rounds + 20 {
			began := time.Now()
			s.postPassword(t, "bert@acme.example")
			one := time.Since(began).Seconds() * 1000
			b := s.newBrowser(t)
			began = time.Now()
			address := b.begin("/console/sign-in/company/acme")
			other := time.Since(began)
			back := b.location(address, 302)
			way := s.askProvider(t)
			spent := s.provider.Spent()
			began = time.Now()
			b.location(back, 303)
			other += time.Since(began) - (s.provider.Spent() - spent) - way
			if two := other.Seconds() * 1000; i >= 20 { // after a warm-up
				password, company, ratio = append(password, one), append(company, two), append(ratio, two/one)
			}
		}
		t.Logf("%s: password %.2f ms, company %.2f ms, median of the paired ratios %.2f", e.Name, median(password), median(company), median(ratio))
	})
}

// postPassword signs in with a password on the page of the console.
func (s *site) postPassword(t *testing.T, email string) {
	t.Helper()
	form := url.Values{"email": {email}, "password": {fixture.Password}}
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.API+"/console/sign-in", strings.NewReader(form.Encode()))
	must.Succeed(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	response, err := http.DefaultTransport.RoundTrip(r)
	must.Succeed(t, err)
	_, _ = io.Copy(io.Discard, response.Body) // so that the connection is used again
	if _ = response.Body.Close(); response.StatusCode != http.StatusSeeOther {
		t.Fatalf("a password has status %d", response.StatusCode)
	}
}

// askProvider returns how long an exchange that is refused takes beside the work of the provider.
func (s *site) askProvider(t *testing.T) time.Duration {
	t.Helper()
	spent, began := s.provider.Spent(), time.Now()
	response, err := http.PostForm(s.provider.URL+oidcissuer.TokenPath, url.Values{"code": {"unknown"}})
	must.Succeed(t, err)
	_, _ = io.Copy(io.Discard, response.Body) // so that the connection is used again
	_ = response.Body.Close()
	return time.Since(began) - (s.provider.Spent() - spent)
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
