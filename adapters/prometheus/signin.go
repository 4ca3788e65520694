package prometheus

import (
	"context"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/passkeys"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// Outcomes of logins and refreshes, except failures. The outcome of a refused login is the code of
// its error.
const (
	loginSucceeded   = "succeeded"    // a session started
	loginMFARequired = "mfa_required" // the password was correct, and a code is required

	refreshed       = "refreshed"
	refreshReplayed = "replayed" // the token was used before, so all sessions of the person were ended
	refreshExpired  = "expired"
	refreshInvalid  = "invalid" // the token is unknown, or its session has ended
)

// SignIn counts the outcomes of the steps of logins and of refreshes, and passes the calls on.
type SignIn struct {
	*signin.Service
	logins    labelCounters
	refreshes labelCounters
}

// NewSignIn returns a service whose outcomes are counted.
func NewSignIn(s *signin.Service, r Registerers) *SignIn {
	return &SignIn{
		Service: s,
		logins: newLabelCounters(r.Auth, "tollgate_logins_total", "Steps of logins, by outcome.",
			"outcome", loginSucceeded, loginMFARequired, string(auth.CodeInvalidCredentials),
			string(auth.CodeInvalidMFA), string(auth.CodeAccountLocked), unavailable, failed),
		refreshes: newLabelCounters(r.Auth, "tollgate_token_refreshes_total", "Refreshes of tokens, by outcome.",
			"outcome", refreshed, refreshReplayed, refreshExpired, refreshInvalid, unavailable, failed),
	}
}

// Login runs the first step of a login and counts the outcome.
func (s *SignIn) Login(ctx context.Context, in signin.Login) (signin.Result, error) {
	r, err := s.Service.Login(ctx, in)
	s.logins.increment(loginOutcome(r, err))
	return r, err
}

// VerifyMFA runs the second step of a login and counts the outcome.
func (s *SignIn) VerifyMFA(ctx context.Context, in signin.MFAAnswer) (signin.Result, error) {
	r, err := s.Service.VerifyMFA(ctx, in)
	s.logins.increment(loginOutcome(r, err))
	return r, err
}

// Refresh refreshes a session and counts the outcome.
func (s *SignIn) Refresh(ctx context.Context, secret auth.RefreshSecret, from netip.Addr) (signin.Result, error) {
	r, err := s.Service.Refresh(ctx, secret, from)
	s.refreshes.increment(refreshOutcome(err))
	return r, err
}

// LoginByPasskey signs a person in with a passkey and counts the outcome.
func (s *SignIn) LoginByPasskey(ctx context.Context, in passkeys.Answer, from signin.Origin) (signin.Result, error) {
	r, err := s.Service.LoginByPasskey(ctx, in, from)
	s.logins.increment(loginOutcome(r, err))
	return r, err
}

func loginOutcome(r signin.Result, err error) string {
	switch code := faultCode(err); {
	case err == nil && r.MFARequired:
		return loginMFARequired
	case err == nil:
		return loginSucceeded
	case code == auth.CodeInvalidCredentials, code == auth.CodeInvalidMFA, code == auth.CodeAccountLocked:
		return string(code)
	}
	return failureLabel(err)
}

func refreshOutcome(err error) string {
	switch code := faultCode(err); {
	case err == nil:
		return refreshed
	case code == auth.CodeAccessDenied:
		return refreshReplayed
	case code == auth.CodeTokenExpired:
		return refreshExpired
	case code == auth.CodeInvalidToken:
		return refreshInvalid
	}
	return failureLabel(err)
}

// companiesTimeout bounds the reading of the states of providers.
const companiesTimeout = 2 * time.Second

// companies collects the states of the providers of company sign-in.
type companies struct {
	up   *prometheus.Desc
	read func(context.Context) (map[company.Name]bool, error)
}

// WatchCompanies registers the states of providers, which read returns, with r.
func WatchCompanies(read func(context.Context) (map[company.Name]bool, error), r prometheus.Registerer) {
	r.MustRegister(companies{prometheus.NewDesc("tollgate_provider_up",
		"0 if a provider of company sign-in did not work when it was last needed, on whichever instance, else 1.",
		[]string{"provider"}, nil), read})
}

// Describe implements [prometheus.Collector].
func (c companies) Describe(to chan<- *prometheus.Desc) { to <- c.up }

// Collect implements [prometheus.Collector]. While the states cannot be read there are no samples.
func (c companies) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), companiesTimeout)
	defer cancel()
	states, err := c.read(ctx)
	if err != nil {
		return
	}
	for name, up := range states {
		value := 0.0
		if up {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, value, string(name))
	}
}

// SessionCache counts the hits and misses of a session cache, and passes the calls on.
type SessionCache struct {
	sessioncache.Cache
	copies  prometheus.Counter
	records prometheus.Counter
}

// NewSessionCache returns a cache whose hits and misses are counted.
func NewSessionCache(c sessioncache.Cache, r prometheus.Registerer) *SessionCache {
	checks := newLabelCounters(r, "tollgate_session_checks_total",
		"Checks of the session of an access token, by where the session was read.", "source", "copy", "records")
	return &SessionCache{Cache: c, copies: checks["copy"], records: checks["records"]}
}

// Get implements sessioncache.Cache. After a miss the caller reads the session from the database.
func (c *SessionCache) Get(ctx context.Context, id auth.SessionID) (auth.Session, bool) {
	s, found := c.Cache.Get(ctx, id)
	if found {
		c.copies.Inc()
	} else {
		c.records.Inc()
	}
	return s, found
}

// Throttle counts the tries that a limit of the API itself refuses, and passes the calls on.
type Throttle struct {
	throttle.Throttle
	refused map[throttle.Scope]prometheus.Counter
}

// NewThrottle returns a throttle whose refusals are counted.
func NewThrottle(t throttle.Throttle, r prometheus.Registerer) *Throttle {
	refused := newCounters(r, "tollgate_throttled_total", "Tries that a limit of the API itself refused.", "scope")
	counted := &Throttle{Throttle: t, refused: map[throttle.Scope]prometheus.Counter{}}
	for _, scope := range []throttle.Scope{
		throttle.AuthAddress, throttle.APIAddress, throttle.RegistryAddress, throttle.LargeBodies, throttle.StepUpUser,
		throttle.NoticeUser, throttle.ResetAddress, throttle.SignInAccount,
		throttle.RefusalUser, throttle.PublisherAddress, throttle.PublisherDomain,
		throttle.OAuthToken, throttle.OAuthAuthorize,
	} {
		counted.refused[scope] = refused.WithLabelValues(string(scope))
	}
	return counted
}

// Try implements throttle.Throttle and counts refusals.
func (t *Throttle) Try(ctx context.Context, scope throttle.Scope, key string) (throttle.Verdict, error) {
	v, err := t.Throttle.Try(ctx, scope, key)
	if err == nil && !v.Allowed {
		if refused, known := t.refused[scope]; known {
			refused.Inc()
		}
	}
	return v, err
}

// historyMetrics are the metrics of the score of the history next to that of the points.
type historyMetrics struct {
	points, history prometheus.Observer
	difference      prometheus.Histogram
	silent          labelCounters
}

func newHistoryMetrics(r prometheus.Registerer) historyMetrics {
	scores := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "tollgate_login_score",
		Help:    "Scores of logins that started a session and have a score of the history, by scorer, 0 to 100.",
		Buckets: prometheus.LinearBuckets(10, 10, 10),
	}, []string{"scorer"})
	m := historyMetrics{
		points: scores.WithLabelValues("points"), history: scores.WithLabelValues("history"),
		difference: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "tollgate_login_score_difference",
			Help:    "Score of the history minus score of the points of a login, -100 to 100.",
			Buckets: prometheus.LinearBuckets(-100, 20, 11),
		}),
		silent: newLabelCounters(r, "tollgate_login_history_silent_total",
			"Logins that started a session and have no score of the history, by reason.",
			"reason", assessment.SilentInstallation, assessment.SilentPerson, assessment.SilentUnread),
	}
	r.MustRegister(scores, m.difference)
	return m
}

// observe counts what an event says about the history.
func (m historyMetrics) observe(h assessment.HistoryEvaluation) {
	switch {
	case h.Mode == "": // off
	case h.Silent != "":
		m.silent.increment(h.Silent)
	default:
		m.points.Observe(float64(h.PointsScore))
		m.history.Observe(float64(h.Score))
		m.difference.Observe(float64(h.Score - h.PointsScore))
	}
}
