// Package assessment gathers the signals of a sign-in, calls the scorer and decides on the trust
// level of the session (contract ). Live sign-ins and replays both use it. It does not
// create sessions and does not write to any store.
package assessment

import (
	"context"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/ports/signals"
)

// The periods before a sign-in whose events count (contract ).
const (
	FailureSpan = 15 * time.Minute // of failed sign-ins
	ShortSpan   = time.Minute      // of sessions
	LongSpan    = 5 * time.Minute  // of sessions
)

// HistorySessions is the maximum number of sessions from which a person's habits are learnt: the
// newest ones.
const HistorySessions = 50

// SignInHistory returns what a person did before. For live sign-ins it reads the database, for
// replays the sign-ins that were replayed so far.
type SignInHistory interface {
	// FailedSince counts the person's failed sign-ins after a time.
	FailedSince(ctx context.Context, user auth.UserID, t time.Time) (int, error)
	// SessionsSince counts the sessions that the person made after a time, ended ones too.
	SessionsSince(ctx context.Context, user auth.UserID, t time.Time) (int, error)
	// SignInPlaces returns where and when the person's last HistorySessions sessions at
	// LIMITED_TRUST or above began, newest first. It may leave out all but the newest session of an
	// address.
	SignInPlaces(ctx context.Context, user auth.UserID) ([]risk.SignInPlace, error)
}

// Scorer returns the score of signals; it may leave the reasons empty. The service uses risk.Assess
// with its configured weights.
type Scorer func(risk.Signals) risk.Assessment

// Config holds the scorer, and the rules that turn scores into trust levels.
type Config struct {
	Score         Scorer
	Bounds        trust.Bounds // of the points
	HistoryBounds trust.Bounds // of the score of the history
	Binding       trust.Binding
	History       HistoryMode
}

// Ports are the sources of the signals.
type Ports struct {
	History    SignInHistory
	Geography  signals.Geography
	Reputation signals.Reputation
	Counts     Counts // of the history; nil: it is off
}

// Assessor assesses sign-ins. It is safe for concurrent use if its sources are.
type Assessor struct {
	config Config
	ports  Ports
}

// New returns an assessor. Without counts, the history is off.
func New(c Config, p Ports) *Assessor {
	if p.Counts == nil {
		c.History = HistoryOff
	}
	return &Assessor{config: c, ports: p}
}

// SignIn is a sign-in with the right password.
type SignIn struct {
	At      time.Time
	User    auth.UserID
	Address netip.Addr
	Device  risk.Device // as it was before this sign-in
	Info    auth.DeviceInfo

	// Confirmed reports that this sign-in confirms the device by a second factor. The score does
	// not depend on it, but the trust level is capped as for a confirmed device.
	Confirmed bool

	// WithoutHistory reports that the counts of the history cannot be used: they could not be read
	// or written when the sign-in was assessed before.
	WithoutHistory bool
}

// Verdict is the result of an assessment.
type Verdict struct {
	risk.Assessment // with the final score
	Level           auth.TrustLevel
	Points          int          // the score of the points alone
	Conspicuous     bool         // a score is above its bound of FULL_TRUST (contract A-17)
	Signals         risk.Signals // the input of the scorer; the usual places are empty if the location is not known
	History         HistoryVerdict
}

// Assess returns the verdict on a sign-in. It returns the error of the places or attempts if they
// cannot be read, and a HistoryError if the counts of the history cannot be read.
func (a *Assessor) Assess(ctx context.Context, v SignIn) (Verdict, error) {
	s := risk.Signals{
		At: v.At, Device: v.Device,
		Location:   Locate(ctx, a.ports.Geography, v.Address),
		Reputation: a.ports.Reputation.Rate(ctx, v.Address),
	}
	past := a.ports.History
	var err error
	if s.FailedAttempts, err = past.FailedSince(ctx, v.User, v.At.Add(-FailureSpan)); err != nil {
		return Verdict{}, err
	}
	if s.Sessions.LastMinute, err = past.SessionsSince(ctx, v.User, v.At.Add(-ShortSpan)); err != nil {
		return Verdict{}, err
	}
	if s.Sessions.LastFiveMinutes, err = past.SessionsSince(ctx, v.User, v.At.Add(-LongSpan)); err != nil {
		return Verdict{}, err
	}
	// Sessions with a time in the future, from an instance whose clock was ahead, do not count yet.
	ahead, err := past.SessionsSince(ctx, v.User, v.At.Add(auth.ClockTolerance))
	if err != nil {
		return Verdict{}, err
	}
	s.Sessions.LastMinute, s.Sessions.LastFiveMinutes = s.Sessions.LastMinute-ahead, s.Sessions.LastFiveMinutes-ahead
	if s.Location.State == risk.Known {
		places, err := past.SignInPlaces(ctx, v.User)
		if err != nil {
			return Verdict{}, err
		}
		s.History = risk.BuildHistory(places)
	}
	h, err := a.assessHistory(ctx, v, s)
	if err != nil {
		return Verdict{}, err
	}
	return a.newVerdict(s, v.Confirmed, h), nil
}

func (a *Assessor) newVerdict(s risk.Signals, confirmed bool, h HistoryVerdict) Verdict {
	scored, device := a.config.Score(s), s.Device
	device.Confirmed = device.Confirmed || confirmed
	v := Verdict{
		Assessment: scored, Points: scored.Score, Signals: s, History: h,
		Conspicuous: scored.Score > a.config.Bounds.Full,
		Level:       trust.Decide(scored.Score, device, a.config.Bounds, a.config.Binding),
	}
	if h.Mode.Learns() && h.Unread {
		v.SilentSources = append(v.SilentSources, SilentHistory)
	}
	if h.Mode == HistoryOn {
		v.AddHistory(h.Result, a.config)
	}
	return v
}

// AddHistory adds the score of the history, unless it is silent. It raises the score and lowers the
// level, and never the other way round. The points of a confirmed device then make a sign-in
// conspicuous no longer, because the history knows the device, and the level has its cap.
func (v *Verdict) AddHistory(r history.Result, c Config) {
	if r.Silence != history.Heard {
		return
	}
	v.Score, v.Level = history.Combine(v.Points, r), min(v.Level, c.HistoryBounds.Level(r.Rounded()))
	points := v.Points
	if v.Signals.Device.Confirmed {
		points -= v.Factors[risk.DeviceFamiliarity]
	}
	v.Conspicuous = points > c.Bounds.Full || r.Rounded() > c.HistoryBounds.Full
}

// Locate returns the location of an address. A private address has no coordinates, so that it never
// counts as travel (contract A-29).
func Locate(ctx context.Context, g signals.Geography, address netip.Addr) risk.Location {
	l := g.Locate(ctx, address)
	if isPrivate(address.Unmap()) {
		l.Coordinates = nil
	}
	return l
}

// sharedSpace is the address space that providers share between their customers (RFC 6598).
var sharedSpace = netip.MustParsePrefix("100.64.0.0/10")

func isPrivate(a netip.Addr) bool {
	return !a.IsValid() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() ||
		sharedSpace.Contains(a)
}
