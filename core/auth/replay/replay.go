// Package replay assesses recorded sign-ins in their order, as the service would have done: with
// the same code, but with a history and a clock of its own. It does not read the records, and it
// does not apply lockouts.
package replay

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/signals"
)

// RecordedBool is a yes or no in a record, or Unrecorded.
type RecordedBool uint8

// The values of a RecordedBool.
const (
	Unrecorded RecordedBool = iota
	No
	Yes
)

// Event is a sign-in as it was recorded.
type Event struct {
	At               time.Time
	User             auth.UserID // any text that identifies one person
	Address          netip.Addr
	Device           auth.DeviceInfo
	Location         *risk.Location   // nil: the configured source is used
	Reputation       *risk.Reputation // likewise
	PasswordCorrect  bool
	StepUpPassed     RecordedBool // the session passed step-up or MFA; Unrecorded: Config.StepUp decides
	DeviceTrusted    RecordedBool // the owner marked the device after this sign-in; Unrecorded: the mark stays
	DeviceTokenShown RecordedBool // Unrecorded: a confirmed device shows its token
}

// Assumption decides which sessions passed step-up if the records do not contain it.
type Assumption string

// The assumptions. A session at HIGH_RISK never passes, because the service would not let it try.
const (
	// FirstDevice means that only the first device of a person passes. So people have a usual
	// device, and a later sign-in with their password on another device does not pass.
	FirstDevice Assumption = "first-device"
	NoStepUp    Assumption = "none"
	AllStepUps  Assumption = "all"
)

// ParseAssumption returns the assumption of a name, or fault.Invalid if the name is unknown.
func ParseAssumption(name string) (Assumption, error) {
	switch a := Assumption(name); a {
	case FirstDevice, NoStepUp, AllStepUps:
		return a, nil
	}
	return "", fault.Newf(fault.Invalid, "%q is not first-device, none or all", name).WithCode(auth.CodeValidation)
}

// Config holds how sign-ins are assessed.
type Config struct {
	Assess assessment.Config
	StepUp Assumption
	Scorer Scorer // the zero value is Points
}

// Replayer assesses one event after the other. It is used by one goroutine.
type Replayer struct {
	config     Config
	geography  signals.Geography
	reputation signals.Reputation
	assessor   *assessment.Assessor
	people     map[auth.UserID]*personHistory
	everyone   history.Table // empty if the scorer is Points
	event      *Event        // the one that is being assessed
	last       time.Time
	events     int
}

// New returns a Replayer without any history. It uses the sources for events without location or
// reputation.
func New(c Config, g signals.Geography, r signals.Reputation) *Replayer {
	p := &Replayer{
		config: c, geography: g, reputation: r, people: map[auth.UserID]*personHistory{}, everyone: history.Table{},
	}
	p.assessor = assessment.New(c.Assess, assessment.Ports{
		History: replayedHistory{p}, Geography: eventSignals{p}, Reputation: eventSignals{p},
	})
	return p
}

// sweepEvery is the number of events after which people without relevant history are removed from
// memory.
const sweepEvery = 1 << 16

// Next assesses an event and adds it to the history. An event with a wrong password is assessed as
// if it had been right, so that scorers can be compared; it is added to the history as a failed
// attempt only. Next returns fault.Invalid if the event is older than the one before.
func (r *Replayer) Next(ctx context.Context, e Event) (Verdict, error) {
	if e.At.Before(r.last) {
		return Verdict{}, fault.Newf(fault.Invalid, "ts is before that of the event before, %s",
			r.last.UTC().Format(time.RFC3339Nano)).WithCode(auth.CodeValidation)
	}
	r.last, r.event = e.At, &e
	if r.events++; r.events%sweepEvery == 0 {
		r.dropEmptyPeople()
	}
	p := r.findPerson(e.User)
	identity := e.Device.Identity(e.User)
	standing := r.deviceTrust(p.findDevice(identity), e.DeviceTokenShown)
	assessed, err := r.assessor.Assess(ctx, assessment.SignIn{
		At: e.At, User: e.User, Address: e.Address, Device: standing,
	})
	if err != nil {
		return Verdict{}, fmt.Errorf("assess: %w", err)
	}
	v := Verdict{Verdict: assessed, Points: assessed.Score, RiskScore: float64(assessed.Score)}
	if r.config.Scorer.readsHistory() {
		r.addHistory(&v, p)
	}
	r.recordSignIn(p, identity, &v)
	return v, nil
}

func (r *Replayer) findPerson(id auth.UserID) *personHistory {
	p := r.people[id]
	if p == nil {
		p = &personHistory{}
		r.people[id] = p
	}
	return p
}

func (r *Replayer) deviceTrust(d knownDevice, token RecordedBool) risk.Device {
	return risk.Device{
		Confirmed: d.confirmed, Trusted: d.trusted,
		Proven: r.config.Assess.Binding == trust.BindingOff || d.confirmed && token != No,
	}
}

// recordSignIn adds the present event to the history, as sign-in and step-up would have stored it.
func (r *Replayer) recordSignIn(p *personHistory, identity auth.DeviceIdentity, v *Verdict) {
	e := r.event
	p.addAttempt(e.At, !e.PasswordCorrect)
	if !e.PasswordCorrect {
		return
	}
	p.addSession(e.At)
	passed := r.passedStepUp(p, v.Level)
	if passed || v.Level.Admits(auth.LimitedTrust) {
		p.addStay(e.At, v.Signals.Location)
	}
	if r.config.Scorer.readsHistory() && (passed || r.mayLearn(v)) {
		r.learn(p, v)
	}
	p.markDevice(identity, passed, e.DeviceTrusted)
}

// passedStepUp reports whether the session of the present event passed step-up or MFA.
func (r *Replayer) passedStepUp(p *personHistory, level auth.TrustLevel) bool {
	if r.event.StepUpPassed != Unrecorded {
		return r.event.StepUpPassed == Yes
	}
	switch {
	case level == auth.HighRisk, r.config.StepUp == NoStepUp:
		return false
	case r.config.StepUp == AllStepUps:
		return true
	}
	return !p.hasConfirmedDevice()
}

// dropEmptyPeople removes people without relevant history.
func (r *Replayer) dropEmptyPeople() {
	for id, p := range r.people {
		p.dropCounts(r.last)
		if p.dropExpired(r.last); p.isEmpty() {
			delete(r.people, id)
		}
	}
}

// Scorer decides which score the replayed sign-ins get.
type Scorer string

// The scorers.
const (
	Points  Scorer = "points"  // that of package risk
	History Scorer = "history" // that of package history, see history.Ranking
	Both    Scorer = "both"    // the higher one, as history.Combine returns it
)

// ParseScorer returns the scorer of a name, or fault.Invalid if the name is unknown.
func ParseScorer(name string) (Scorer, error) {
	switch s := Scorer(name); s {
	case Points, History, Both:
		return s, nil
	}
	return "", fault.Newf(fault.Invalid, "%q is not points, history or both", name).WithCode(auth.CodeValidation)
}

// readsHistory reports whether the scorer needs the counts of package history.
func (s Scorer) readsHistory() bool { return s == History || s == Both }

// Verdict is the result of an event.
type Verdict struct {
	assessment.Verdict                    // of the scorer; the factors and reasons are those of the points
	Points             int                // the score of the points
	RiskScore          float64            // the score of the scorer; that of History has a fraction
	History            *history.Result    // nil if the scorer is Points
	Learnt             []history.Addition // what was learnt from the event; nil if the scorer is Points
}

// addHistory scores the present event by its history, and sets the score and the level of the
// scorer.
func (r *Replayer) addHistory(v *Verdict, p *personHistory) {
	result := history.Score(r.observe(v), r.counts(p))
	v.History = &result
	v.AddHistory(result, r.config.Assess)
	v.RiskScore = float64(v.Score)
	if r.config.Scorer == History {
		v.RiskScore = history.Ranking(v.Points, result)
		v.Score = int(math.Round(v.RiskScore))
		v.Level = trust.Decide(v.Score, v.Signals.Device, r.config.Assess.HistoryBounds, r.config.Assess.Binding)
	}
}

func (r *Replayer) observe(v *Verdict) history.Observation {
	return history.Observe(r.event.Address, r.event.Device, v.Signals)
}

func (r *Replayer) counts(p *personHistory) history.Counts {
	return history.Counts{Person: p.counts, Everyone: r.everyone}
}

// mayLearn reports whether the history is learnt from the present event although it passed no
// step-up. If the record does not contain whether the device showed its token, somebody who copied
// the device may have signed in. Then the history is learnt only from a sign-in that is usual.
func (r *Replayer) mayLearn(v *Verdict) bool {
	e, config := r.event, r.config.Assess
	switch {
	case !trust.MayLearn(v.Level, v.Signals.Device, config.Binding):
		return false
	case e.DeviceTokenShown == Yes:
		return true
	case e.StepUpPassed == No && !v.Level.Admits(auth.FullTrust):
		return false
	}
	return v.History.Silence != history.Heard || v.History.Score <= history.UsualScore
}

// learn adds the present event to the counts.
func (r *Replayer) learn(p *personHistory, v *Verdict) {
	if p.counts == nil {
		p.counts = history.Table{}
	}
	v.Learnt = history.Learn(r.observe(v), r.counts(p))
	r.counts(p).Apply(v.Learnt, r.event.At)
}
