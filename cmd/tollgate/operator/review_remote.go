package operator

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
)

// reviewPath returns a path of the API of reviewers.
func reviewPath(parts ...string) string {
	path := "/v0.1/x/dev.tollgate/reviews"
	for _, part := range parts {
		path += "/" + url.PathEscape(part)
	}
	return path
}

// withEmails returns a review of the API with the e-mail addresses of people.
func (row reviewRow) withEmails(r run) reviewRow {
	row.SubmittedBy, row.DecidedBy = r.emailOf(row.SubmittedBy), r.emailOf(row.DecidedBy)
	return row
}

// decideRemotely approves or rejects a review and returns it.
func decideRemotely(r run, decision, id, comment string) (reviewRow, error) {
	body := map[string]any{"ids": []string{id}}
	if comment != "" {
		body["comment"] = comment
	}
	var decided struct {
		Results []struct {
			Outcome string `json:"outcome"`
			Message string `json:"message"`
		} `json:"results"`
	}
	if err := r.send(http.MethodPost, at("reviews", decision), body, &decided); err != nil {
		return reviewRow{}, err
	}
	for _, one := range decided.Results {
		if one.Outcome == "refused" {
			return reviewRow{}, fmt.Errorf("%s", one.Message)
		}
	}
	var row reviewRow
	err := r.send(http.MethodGet, reviewPath(id), nil, &row)
	return row.withEmails(r), err
}

// approveAllRemotely approves everything that waits and prints it.
func approveAllRemotely(r run, p cli.Process, o *cli.Output, comment string) error {
	rows, err := listOf[reviewRow](r, reviewPath(), "reviews", url.Values{"state": {"pending"}})
	if err != nil {
		return err
	}
	refused := 0
	for i, row := range rows {
		approved, err := decideRemotely(r, "approve", row.ID, comment)
		if err != nil {
			refused++
			// the error below counts them too
			_, _ = fmt.Fprintf(p.Stderr, "not approved: %s %s: %s\n", row.ServerName, row.Version, cli.ErrorSentence(err))
			approved = row.withEmails(r)
		}
		rows[i] = approved
	}
	return reportApproved(p, o, rows, refused)
}
