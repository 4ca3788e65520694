package publisher

import "strings"

// The claims of GitHub that name a repository or its owner, and their IDs. Subjects have them as
// keys too, if a repository has chosen so.
const (
	claimRepository   = "repository"
	claimRepositoryID = "repository_id"
	claimOwner        = "repository_owner"
	claimOwnerID      = "repository_owner_id"
)

// selection is how narrowly a policy for GitHub selects jobs.
type selection int

// The selections.
const (
	anything       selection = iota // jobs of repositories of any owner
	byID                            // an owner or a repository by its ID
	ownerName                       // an owner by name
	repositoryName                  // a repository by name
)

// selects returns how narrowly a policy for GitHub selects jobs.
func (p *Policy) selects() selection {
	s := p.Subject.selects()
	if p.Claims[claimRepositoryID] != "" || p.Claims[claimOwnerID] != "" {
		s = max(s, byID)
	}
	if p.Claims[claimOwner] != "" {
		s = max(s, ownerName)
	}
	if p.Claims[claimRepository] != "" {
		s = max(s, repositoryName)
	}
	return s
}

// selects returns how narrowly a pattern for GitHub selects subjects. Only the first key and value
// count, as in repo:OWNER/NAME:... A repository can choose the keys of its subjects, so another
// first key, for example environment, does not say whose repository it is.
func (p SubjectPattern) selects() selection {
	literal, _, wild := strings.Cut(p.value, "*")
	key, rest, _ := strings.Cut(literal, ":")
	value, _, ended := strings.Cut(rest, ":")
	whole := ended || !wild
	switch owner, name, slash := strings.Cut(value, "/"); key {
	case "repo", claimRepository:
		switch {
		case owner == "" || !slash:
			return anything
		case name == "" || !whole:
			return ownerName
		}
		return repositoryName
	case claimOwner:
		if value != "" && whole {
			return ownerName
		}
	case claimOwnerID, claimRepositoryID:
		if value != "" && whole {
			return byID
		}
	}
	return anything
}

// boundClaims returns the claims to which the first use binds a policy for GitHub: the IDs of what
// it selects by name.
func (p *Policy) boundClaims() []string {
	switch p.selects() {
	case repositoryName:
		return []string{claimOwnerID, claimRepositoryID}
	case ownerName:
		return []string{claimOwnerID}
	}
	return nil
}

// selectClaims returns the claims with the given names that a token has; otherwise nil.
func selectClaims(claims map[string]string, names []string) map[string]string {
	var selected map[string]string
	for _, name := range names {
		if value := claims[name]; value != "" {
			if selected == nil {
				selected = map[string]string{}
			}
			selected[name] = value
		}
	}
	return selected
}
