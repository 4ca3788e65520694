package assessment

import (
	"context"
	"fmt"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

// HistoryMode decides what the score of the history is for (contract A-60).
type HistoryMode string

// The modes.
const (
	HistoryOff    HistoryMode = "off"    // nothing is read and nothing is learnt
	HistoryShadow HistoryMode = "shadow" // the score is recorded and changes nothing
	HistoryOn     HistoryMode = "on"     // the score may raise that of the points
)

// Validate returns an error if the mode is unknown. The zero value is HistoryOff.
func (m HistoryMode) Validate() error {
	switch m {
	case HistoryOff, HistoryShadow, HistoryOn, "":
		return nil
	}
	return fmt.Errorf("must be off, shadow or on, not %q", string(m))
}

// Learns reports whether counts are read and learnt.
func (m HistoryMode) Learns() bool { return m == HistoryShadow || m == HistoryOn }

// Counts returns counts of values. It is a part of authstore.HistoryCounts.
type Counts interface {
	Read(ctx context.Context, user auth.UserID, person, everyone []history.Value) (history.Counts, error)
}

// SilentHistory is the source of an assessment whose counts could not be read.
const SilentHistory risk.SilentSource = "history"

// HistoryVerdict is what the history says about a sign-in.
type HistoryVerdict struct {
	Mode        HistoryMode
	Unread      bool // the counts could not be read: there is no score, and nothing can be learnt
	Result      history.Result
	Observation history.Observation
	Counts      history.Counts // that the result was made from; package history needs them to learn
}

// Known reports whether the counts were read, so that the sign-in may be learnt from.
func (v *HistoryVerdict) Known() bool { return v.Mode.Learns() && !v.Unread }

// HistoryError is the error of counts that could not be read or written. Everything else about the
// sign-in may be in order: it is assessed again with SignIn.WithoutHistory.
type HistoryError struct{ Cause error }

// Error implements error.
func (e *HistoryError) Error() string { return "history: " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *HistoryError) Unwrap() error { return e.Cause }

// assessHistory returns what the history says about a sign-in with signals.
func (a *Assessor) assessHistory(ctx context.Context, in SignIn, s risk.Signals) (HistoryVerdict, error) {
	v := HistoryVerdict{Mode: a.config.History, Unread: in.WithoutHistory}
	if !v.Known() {
		return v, nil
	}
	v.Observation = history.Observe(in.Address, in.Info, s)
	var err error
	v.Counts, err = a.ports.Counts.Read(ctx, in.User, v.Observation.PersonValues(), v.Observation.EveryoneValues())
	if err != nil {
		return HistoryVerdict{}, &HistoryError{err}
	}
	v.Result = history.Score(v.Observation, v.Counts)
	return v, nil
}
