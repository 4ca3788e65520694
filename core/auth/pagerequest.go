package auth

// MaxPage is the most entries of one page of a list (contract A-40).
const MaxPage = 1000

// PageRequest selects one page of a list.
type PageRequest struct {
	Limit  int // the most entries of the page, 1 to MaxPage
	Offset int // how many entries of the list come before it, 0 or more
}

// Validate returns an Invalid fault with code validation_error that names limit and offset where
// they are out of range.
func (p PageRequest) Validate() error {
	problems := map[string]string{}
	if p.Limit < 1 || p.Limit > MaxPage {
		problems["limit"] = "must be from 1 to 1000"
	}
	if p.Offset < 0 {
		problems["offset"] = "must be 0 or more"
	}
	if len(problems) == 0 {
		return nil
	}
	return InvalidFields(CodeValidation, problems)
}

// AllPages returns the entries of all pages of a list, in its order. Entries that are added or
// removed at the same time may be missing or occur twice. It returns the first error of read.
func AllPages[E any](read func(PageRequest) (entries []E, total int, err error)) ([]E, error) {
	var all []E
	for {
		entries, total, err := read(PageRequest{Limit: MaxPage, Offset: len(all)})
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
		if len(entries) < MaxPage || len(all) >= total {
			return all, nil
		}
	}
}
