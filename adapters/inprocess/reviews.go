package inprocess

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// ReviewNotifier notifies people of reviews and of quarantine. It is safe for concurrent use.
type ReviewNotifier struct{ notifier *notices.Notifier }

var _ authority.ReviewNotifier = (*ReviewNotifier)(nil)

// NewReviewNotifier returns a ReviewNotifier; n is nil for no notices.
func NewReviewNotifier(n *notices.Notifier) *ReviewNotifier { return &ReviewNotifier{n} }

// NotifyReviewer implements [authority.ReviewNotifier].
func (r *ReviewNotifier) NotifyReviewer(n authority.WaitingNotice) {
	servers := n.First[0].ServerName
	switch {
	case n.More:
		servers += " and at least " + strconv.Itoa(n.Count) + " others"
	case n.Count > 1:
		servers += " and " + strconv.Itoa(n.Count-1) + " more"
	}
	event := notices.Event{Kind: notices.ReviewsWaiting, UserID: auth.UserID(n.Reviewer), At: n.At, Servers: servers}
	for _, d := range n.First {
		event.Pages = append(event.Pages, reviewPage(d.ServerName+" "+d.Version, d.Review))
	}
	if n.More || n.Count > len(n.First) {
		event.Pages = append(event.Pages, notices.Page{Name: "All that waits", Path: "/console/reviews"})
	}
	r.notifier.Notify(event)
}

// NotifySubmitter implements [authority.ReviewNotifier].
func (r *ReviewNotifier) NotifySubmitter(n authority.DecisionNotice) {
	kind := notices.ReviewRejected
	if n.Approved {
		kind = notices.ReviewApproved
	}
	for _, person := range n.People {
		r.notifier.Notify(notices.Event{
			Kind: kind, UserID: auth.UserID(person), At: n.At, Servers: n.ServerName + " " + n.Version,
			Comment: n.Comment, Pages: []notices.Page{reviewPage("The review", n.Review)},
		})
	}
}

// NotifyPublishers implements [authority.ReviewNotifier].
func (r *ReviewNotifier) NotifyPublishers(n authority.QuarantineNotice) {
	namespace, server, _ := strings.Cut(n.ServerName.String(), "/")
	servers, path := n.ServerName.String(), "/console/servers/"+url.PathEscape(namespace)+"/"+url.PathEscape(server)
	if version := n.Version.String(); version != "" {
		servers, path = servers+" "+version, path+"/versions/"+url.PathEscape(version)
	}
	for _, person := range n.People {
		r.notifier.Notify(notices.Event{
			Kind: notices.Quarantined, UserID: auth.UserID(person), At: n.At, Servers: servers, Comment: n.Reason,
			Pages: []notices.Page{{Name: "The server", Path: path}},
		})
	}
}

// reviewPage returns the page of a review in the console.
func reviewPage(name string, id registry.ReviewID) notices.Page {
	return notices.Page{Name: name, Path: "/console/reviews/" + string(id)}
}
