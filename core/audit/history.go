package audit

import (
	"maps"
	"slices"
)

// ServerHistory is what was done to a server, newest first, as everybody who is signed in may know it:
// without what was refused, rejected or waits for review, and without the comments of reviews.
type ServerHistory []Event

// listing are the actions that change what is listed of a server; true for those that list a version.
var listing = map[Action]bool{
	"publish": true, "import": true, "mirror_added": true, "mirror_replaced": true,
	"edit": false, "delete": false, "status": false, "approve": false, "quarantine": false, "release": false,
	"mirror_status": false, "mirror_deleted": false,
}

const approve = Action("approve")

// NewServerHistory returns the history of a server from events about it, newest first.
func NewServerHistory(events []Event) (h ServerHistory) {
	approved := map[string]bool{} // reviews; an approval is newer than the publication
	for _, e := range events {
		if _, known := listing[e.Action()]; !known || !e.Success || e.Category != RegistryChange {
			continue
		}
		review := e.Details.Text("review")
		switch {
		case e.Action() == approve:
			approved[review] = true
			e.Details = maps.Clone(e.Details)
			delete(e.Details, "note")
		case review != "" && !approved[review] && e.Details.Text("rule") == "":
			continue
		}
		h = append(h, e)
	}
	return h
}

// Published returns the event by which a version was listed last, or nil without one.
func (h ServerHistory) Published(version string) *Event {
	return h.newest(version, func(a Action) bool { return listing[a] })
}

// Approved returns the event by which a version was approved last, or nil without one.
func (h ServerHistory) Approved(version string) *Event {
	return h.newest(version, func(a Action) bool { return a == approve })
}

// IsUnreviewed reports whether a version was listed without anybody's approval, because nothing waited for review then.
func (e *Event) IsUnreviewed() bool { return e.Action() == "publish" && e.Details.Text("review") == "" }

func (h ServerHistory) newest(version string, is func(Action) bool) *Event {
	i := slices.IndexFunc(h, func(e Event) bool { return e.Details.Text("version") == version && is(e.Action()) })
	if i < 0 {
		return nil
	}
	return &h[i]
}
