package reviewing

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// queueView is the page with a list of reviews.
type queueView struct {
	Filter   queueFilter
	Filtered bool
	States   []stateLink
	Reviews  []queueRow
	Kinds    map[review.Kind]string // in words
	Next     string
	Later    bool
	Open     bool                       // they wait for a decision
	Harmless []registry.ReviewID        // that the person may approve together, unread
	First    string                     // the address of the first that waits for the person; empty without one
	Focus    registry.ReviewID          // the row that has the focus
	Rules    bool                       // the person may see the rules
	Chosen   map[registry.ReviewID]bool // as the form was filled in
	Comment  string
}

// queueFilter is what the person filters by, as it was filled in.
type queueFilter struct{ State, Submitter, Namespace, Kind, Age string }

// ages are the ages to filter by, in days.
var ages = [][2]string{{"1", "older than a day"}, {"7", "older than a week"}, {"30", "older than 30 days"}}

// Ages returns the ages to choose from, in words.
func (queueFilter) Ages() [][2]string { return ages }

type stateLink struct {
	Text, Path string
	Current    bool
}

func (p *Pages) queue(v *site.Visit, problems site.Problems) error {
	who, err := v.Caller()
	if err != nil {
		return err
	}
	view, q, err := newQueueView(v)
	if err != nil {
		return err
	}
	found, err := p.ports.Reviews.List(v.UserContext(), who, q)
	if err != nil {
		return err
	}
	view.add(found)
	if view.Open {
		view.addWaiting(v)
	}
	return v.Render(queuePage,
		site.Head{Title: "Reviews", Notice: p.notice(v, who), Problems: problems.Only("comment")}, view)
}

// queueRow is a review in the list.
type queueRow struct {
	review.Shown

	Points    []review.Sign // the first ones of its summary
	More      int           // that are left out
	Danger    bool
	Selects   bool // it may be decided together with others
	Rejecting bool // but only rejected
	Harmless  bool // the person may approve it unread
}

// newQueueRow returns the row of a review with its summary.
func newQueueRow(r review.Shown) queueRow {
	points, more := r.Leading()
	return queueRow{
		Shown: r, Points: points, More: more, Selects: r.Kind != review.Tools, Danger: r.IsDangerous(),
		Rejecting: r.Alone() != "",
	}
}

// add adds a page of reviews. What waits is in the order of danger, and then of time.
func (view *queueView) add(found reviewing.Page) {
	for _, r := range found.Reviews {
		view.Reviews = append(view.Reviews, newQueueRow(r))
	}
	slices.SortStableFunc(view.Reviews, func(a, b queueRow) int { return review.CompareDanger(a.Danger, b.Danger) })
	if found.NextCursor != "" {
		view.Next = view.Filter.path(found.NextCursor)
	}
}

// addWaiting adds what the person may do with the rows of reviews that wait. After one is approved from the list, the
// next harmless row has the focus.
func (view *queueView) addWaiting(v *site.Visit) {
	for i := range view.Reviews {
		row := &view.Reviews[i]
		if !row.WaitsFor(registry.Holder(v.Session.UserID)) {
			continue
		}
		view.First = cmp.Or(view.First, Path+"/"+string(row.ID))
		if row.Harmless = !row.Rejecting; row.Harmless {
			view.Harmless = append(view.Harmless, row.ID)
		}
	}
	if v.Text("done") == "approved" && len(view.Harmless) > 0 {
		view.Focus = view.Harmless[0]
	}
}

// newQueueView returns the page without reviews, and the query for them.
func newQueueView(v *site.Visit) (view queueView, q reviewing.Query, err error) {
	f := queueFilter{
		State: cmp.Or(v.Text("state"), string(review.Pending)), Submitter: v.Text("submitter"),
		Namespace: v.Text("namespace"), Kind: v.Text("kind"), Age: v.Text("age"),
	}
	view = queueView{
		Filter: f, Filtered: f != queueFilter{State: f.State}, States: stateLinks(f), Kinds: site.ReviewKinds,
		Later: v.Text("cursor") != "", Open: f.State == string(review.Pending), Chosen: selected(v),
		Comment: v.Form.Get("comment"),
	}
	if view.Rules, err = v.Holds(registry.ActionOperate); err != nil {
		return view, q, err
	}
	q, err = f.query(v)
	return view, q, err
}

// query returns the query for the page of the list that the visit names.
func (f queueFilter) query(v *site.Visit) (reviewing.Query, error) {
	q := reviewing.Query{State: f.State, Cursor: v.Text("cursor")}
	q.Namespace, q.Kind, q.Brief = f.Namespace, f.Kind, f.State != string(review.Pending)
	if days, err := strconv.Atoi(f.Age); err == nil {
		q.Until = time.Now().AddDate(0, 0, -days)
	}
	var err error
	q.Submitter, err = v.HolderOf(f.Submitter)
	return q, err
}

// path returns the address of a page of the list.
func (f queueFilter) path(cursor string) string {
	query := url.Values{"state": {f.State}}
	for name, value := range map[string]string{
		"submitter": f.Submitter, "namespace": f.Namespace, "kind": f.Kind, "age": f.Age, "cursor": cursor,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return Path + "?" + query.Encode()
}

// First returns the address of the first page of the list, and All that without filters.
func (f queueFilter) First() string { return f.path("") }

// All returns the address of the list without filters.
func (f queueFilter) All() string { return queueFilter{State: f.State}.path("") }

// stateLinks returns the links to the lists of reviews in each state.
func stateLinks(f queueFilter) (links []stateLink) {
	current := f.State
	for _, s := range [...]review.State{review.Pending, review.Approved, review.Rejected, review.ChangesRequested, review.Superseded} {
		f.State = string(s)
		links = append(links, stateLink{site.ReviewBadge(s).Text, f.path(""), f.State == current})
	}
	return links
}

// maxSelected is how many reviews one form decides, and a notice names: those of a page.
const maxSelected = 30

// decideSelected approves or rejects the selected documents, each as if it were the only one. Of
// those that are refused, the page says why; the others are decided.
func (p *Pages) decideSelected(v *site.Visit) error {
	who, err := v.Caller()
	if err != nil {
		return err
	}
	do, notice := p.ports.Reviews.ApproveUnread, "approved"
	if v.Form.Get("decision") == "reject" {
		do, notice = p.ports.Reviews.Reject, "rejected"
	}
	ids, comment, err := readSelected(v, notice == "rejected")
	if err == nil {
		err = decideEach(v.UserContext(), who, ids, comment, do)
	}
	if err != nil {
		return err
	}
	done := url.Values{"done": {notice}, "of": {strings.Join(ids, ",")}}
	if v.Form.Has("stay") || notice == "rejected" {
		return v.Redirect(Path + "?" + done.Encode())
	}
	return p.follow(v, who, review.Shown{}, done)
}

// readSelected returns the reviews that a form decides, and the comment.
func readSelected(v *site.Visit, refuses bool) (ids []string, comment string, err error) {
	ids = v.Form["ids"]
	if len(ids) == 0 || len(ids) > maxSelected {
		return nil, "", fault.Newf(fault.Invalid, "select 1 to %d reviews", maxSelected)
	}
	comment, err = review.ParseComment(v.Form.Get("comment"), refuses)
	return ids, comment, err
}

// selected returns the reviews that are selected in a form.
func selected(v *site.Visit) map[registry.ReviewID]bool {
	ids := map[registry.ReviewID]bool{}
	for _, id := range v.Form["ids"] {
		ids[registry.ReviewID(id)] = true
	}
	return ids
}

// notice returns what has just been done. The reviews that the address names are read, so that no address says of one
// what was not decided.
func (p *Pages) notice(v *site.Visit, who authority.Caller) string {
	text := notices[v.Text("done")]
	states := map[string]review.State{
		"approve": review.Approved, "approve-tools": review.Approved, "approved": review.Approved,
		"reject": review.Rejected, "reject-tools": review.Rejected, "rejected": review.Rejected, "changes": review.ChangesRequested, "first": review.Pending,
	}
	var names []string
	ids := strings.SplitN(v.Text("of"), ",", maxSelected+1)
	for _, id := range ids[:min(len(ids), maxSelected)] {
		r, err := p.ports.Reviews.Find(v.UserContext(), who, registry.ReviewID(id))
		if err == nil && r.State == states[v.Text("done")] {
			names = append(names, r.Name.String()+" "+r.Version.String())
		}
	}
	if len(names) > 0 && text != "" {
		text += " " + strings.Join(names, ", ")
	}
	return text
}

// decideEach decides reviews. Its error says what became of those that were refused, unless the caller lacks trust or
// the database is away.
func decideEach(
	ctx context.Context, who authority.Caller, ids []string, comment string,
	do func(context.Context, authority.Caller, registry.ReviewID, string) (review.Shown, error),
) error {
	var refused, done []string
	for _, id := range ids {
		decided, err := do(ctx, who, registry.ReviewID(id), comment)
		f, ok := fault.As(err)
		switch {
		case err == nil:
			done = append(done, decided.Name.String()+" "+decided.Version.String())
		case !ok || f.Kind == fault.Unavailable || f.Kind == fault.Internal || f.Code == auth.CodeInsufficientTrust:
			return err
		default:
			refused = append(refused, f.Message)
		}
	}
	switch {
	case len(refused) == 0:
		return nil
	case len(done) > 0:
		return fault.Newf(fault.Conflict, "%d of %d were refused: %s. The others are decided: %s", len(refused), len(ids),
			strings.Join(refused, "; "), strings.Join(done, ", "))
	}
	return fault.Newf(fault.Conflict, "%d of %d were refused: %s", len(refused), len(ids), strings.Join(refused, "; "))
}
