package reviewing

import (
	"slices"
	"strconv"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// toolsView is a tool list on the page of a review.
type toolsView struct {
	tools.Proposal

	Of          string // the remote, or the package
	Differences []tools.Difference
	More        int // differences that do not fit
	Content     site.Excerpt
}

// maxDifferences bounds what a page says of one list. The most dangerous come first.
const maxDifferences = 200

// addTools adds the tool lists. Lists whose texts do not fit on the page cannot be approved on it.
func (view *reviewView) addTools() error {
	left := maxShown
	for _, p := range view.Lists {
		one := toolsView{Proposal: p, Of: p.Remote, Content: site.IndentLongJSON(p.List.Canonical(), left)}
		if p.Remote == "" {
			one.Of = "package " + strconv.Itoa(p.Package+1)
		}
		left = max(0, left-len(one.Content.Text))
		one.Differences = slices.Clone(p.Differences[:min(len(p.Differences), maxDifferences)])
		one.More = len(p.Differences) - len(one.Differences)
		for _, d := range one.Differences {
			for _, t := range d.Text {
				left = max(0, left-len(t.Text)-markup)
			}
		}
		view.LeftOut = view.LeftOut || one.Content.Cut || left == 0
		view.Tools = append(view.Tools, one)
	}
	if left == 0 {
		for i := range view.Tools {
			for j := range view.Tools[i].Differences {
				view.Tools[i].Differences[j].Text = nil
			}
		}
	}
	return nil
}

// Suspicions returns the reasons of the findings, each once, with what was found by it.
func (t *toolsView) Suspicions() (all []suspicion) {
	for _, f := range t.Findings {
		i := slices.IndexFunc(all, func(s suspicion) bool { return s.Reason == f.Reason })
		if i < 0 {
			i = len(all)
			all = append(all, suspicion{Reason: f.Reason})
		}
		all[i].Found = append(all[i].Found, f)
	}
	return all
}

// suspicion is what was found for one reason.
type suspicion struct {
	Reason string
	Found  []tools.Finding
}
