// Package assess gathers the signals of a sign-in, has them scored and decides on the session's
// level (contract ). Live sign-ins and replays both use it. It makes no session and
// writes nothing.
package assess

import (
	"context"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/ports/signals"
)

// How far back risk looks (contract ).
const (
	FailureSpan = 15 * time.Minute
	ShortSpan   = time.Minute
	LongSpan    = 5 * time.Minute
)

// HistorySessions is from how many sessions habits are learnt at most, the newest.
const HistorySessions = 50

// Past tells what a person did before. Live sign-ins ask the records, replays what they have read so far.
type Past interface {
	// FailedSince counts the person's failed sign-ins after a time.
	FailedSince(ctx context.Context, user auth.UserID, t time.Time) (int, error)
	// SessionsSince counts the sessions that the person made after a time, ended ones too.
	SessionsSince(ctx context.Context, user auth.UserID, t time.Time) (int, error)
	// Stays returns where the person's last HistorySessions sessions at LIMITED_TRUST or above were begun, newest first. Stays
	// at one address may be told once, as the newest.
	Stays(ctx context.Context, user auth.UserID) ([]risk.Stay, error)
}

// Scorer turns signals into a score; one that tells no reasons leaves them empty. risk.Assess is the one of the service, with
// its weights bound.
type Scorer func(risk.Signals) risk.Assessment

// Config holds how scores become levels.
type Config struct {
	Score   Scorer
	Bounds  trust.Bounds
	Binding trust.Binding
}

// Ports are where the signals come from.
type Ports struct {
	Past       Past
	Geography  signals.Geography
	Reputation signals.Reputation
}

// Assessor assesses sign-ins. It is safe for concurrent use if its sources are.
type Assessor struct {
	config Config
	ports  Ports
}

// New returns an assessor.
func New(c Config, p Ports) *Assessor { return &Assessor{config: c, ports: p} }

// Visit is a sign-in whose password was right.
type Visit struct {
	At      time.Time
	User    auth.UserID
	Address netip.Addr
	Device  trust.Device // as it was before this sign-in

	// Confirmed tells that a second factor confirms the device: it is scored as it was, and capped as a confirmed one.
	Confirmed bool
}

// Verdict is what a visit comes to.
type Verdict struct {
	risk.Assessment
	Level   auth.TrustLevel
	Signals risk.Signals // what it was scored by; the history is empty where the location is not known
}

// Assess returns the verdict on a visit. It fails when the past cannot be read.
func (a *Assessor) Assess(ctx context.Context, v Visit) (Verdict, error) {
	s := risk.Signals{
		At: v.At, Device: v.Device,
		Location:   Locate(ctx, a.ports.Geography, v.Address),
		Reputation: a.ports.Reputation.Rate(ctx, v.Address),
	}
	past := a.ports.Past
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
	// What a clock that was ahead has recorded does not count until its time has come.
	ahead, err := past.SessionsSince(ctx, v.User, v.At.Add(auth.ClockTolerance))
	if err != nil {
		return Verdict{}, err
	}
	s.Sessions.LastMinute, s.Sessions.LastFiveMinutes = s.Sessions.LastMinute-ahead, s.Sessions.LastFiveMinutes-ahead
	if s.Location.State == risk.Known {
		stays, err := past.Stays(ctx, v.User)
		if err != nil {
			return Verdict{}, err
		}
		s.History = risk.Learn(stays)
	}
	return a.judge(s, v.Confirmed), nil
}

func (a *Assessor) judge(s risk.Signals, confirmed bool) Verdict {
	scored, device := a.config.Score(s), s.Device
	device.Confirmed = device.Confirmed || confirmed
	return Verdict{
		Assessment: scored, Signals: s,
		Level: trust.Decide(scored.Score, device, a.config.Bounds, a.config.Binding),
	}
}

// Locate returns the location of an address. A private address has no coordinates, so that nobody
// travels to or from it (contract A-29).
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
	return !a.IsValid() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || sharedSpace.Contains(a)
}
