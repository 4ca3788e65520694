package person

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/account"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/review"
)

// reviewed is a review as the API lists it.
type reviewed struct {
	ID          string  `json:"id"`
	Version     string  `json:"version"`
	State       string  `json:"state"`
	Kind        string  `json:"kind"`
	Comment     string  `json:"comment"`
	SubmittedAt string  `json:"submittedAt"`
	DecidedAt   *string `json:"decidedAt"`
}

// versions returns the versions of a server that are listed, or one, and before them what waits for
// review or was refused, as far as the caller may see it.
func (u *publisherRun) versions(
	ctx context.Context, who *account.Account, name, version string,
) ([]tollgateclient.Record, error) {
	var listed []tollgateclient.Record
	err := u.read(ctx, who, func(ctx context.Context, token string) (err error) {
		if version == "" {
			listed, err = who.Client().ListVersions(ctx, token, name)
			return err
		}
		one, err := who.Client().GetVersion(ctx, token, name, version)
		listed = []tollgateclient.Record{one}
		return err
	})
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	if err != nil {
		listed = nil
	}
	open, openErr := u.submissions(ctx, who, name, version)
	if openErr != nil {
		return nil, openErr
	}
	open = withoutLater(open, listed)
	if err != nil && len(open) == 0 {
		return nil, err
	}
	return append(open, listed...), nil
}

// submissions returns what of a server waits for review or was refused; nothing for a caller
// without a session that may see it, and for a service without review.
func (u *publisherRun) submissions(
	ctx context.Context, who *account.Account, name, version string,
) (found []tollgateclient.Record, err error) {
	for _, state := range []review.State{review.Pending, review.Rejected, review.ChangesRequested} {
		request := tollgateclient.Request{
			Method: http.MethodGet, Path: "/v0.1/x/dev.tollgate/reviews",
			Query: url.Values{"server": {name}, "state": {string(state)}},
		}
		all, err := List[reviewed](func(r tollgateclient.Request, into any) error {
			call := func(ctx context.Context, token string) error { return who.Client().Call(ctx, token, r, into) }
			if token := u.Getenv(TokenVariable); token != "" {
				return call(ctx, token)
			}
			return who.Do(ctx, call)
		}, request, "reviews")
		if mayNotSee(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			if s.Kind != string(review.Tools) && (version == "" || version == s.Version) {
				found = append(found, s.toRecord(name))
			}
		}
	}
	slices.SortStableFunc(found, func(a, b tollgateclient.Record) int { return cmp.Compare(a.UpdatedAt, b.UpdatedAt) })
	return found, nil
}

// mayNotSee reports whether a caller may not see reviews, so that it gets what everybody gets.
func mayNotSee(err error) bool {
	var needed *account.SignInNeeded
	return errors.As(err, &needed) || fault.Is(err, fault.Unauthenticated) || fault.Is(err, fault.Forbidden) ||
		fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid)
}

// toRecord returns a submission as a version: its state is the status, its comment the message.
func (s reviewed) toRecord(name string) tollgateclient.Record {
	r := tollgateclient.Record{Name: name, Version: s.Version, Review: s.ID}
	r.Status, r.StatusMessage, r.UpdatedAt = s.State, s.Comment, s.SubmittedAt
	if s.DecidedAt != nil {
		r.UpdatedAt = *s.DecidedAt
	}
	return r
}

// withoutLater returns what waits and the last refusal of each version, unless the version was
// submitted again or changed since.
func withoutLater(open, listed []tollgateclient.Record) (left []tollgateclient.Record) {
	seen, changed := map[string]bool{}, map[string]string{}
	for _, r := range listed {
		changed[r.Version] = r.UpdatedAt
	}
	for i := range open {
		if open[i].Status == string(review.Pending) {
			left, seen[open[i].Version] = append(left, open[i]), true
		}
	}
	for i := len(open) - 1; i >= 0; i-- { // the oldest is first
		if v := open[i].Version; !seen[v] && open[i].UpdatedAt > changed[v] {
			left, seen[open[i].Version] = append(left, open[i]), true
		}
	}
	return left
}
