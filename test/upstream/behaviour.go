package upstream

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Behaviour is how a registry differs from a correct one. All fields can be combined.
type Behaviour struct {
	// Fault, if set, writes the response instead of the registry: on every page, or only on page
	// OnPage (from 1); always, or only the first Times times.
	Fault  Fault
	OnPage int
	Times  int

	// PageSize is the greatest number of records of a page; 100 if it is 0.
	PageSize int
	// Percent is the share of the records that is listed, the first ones; all if it is 0.
	Percent int
	// Shuffled makes the order of the records random, but the same on each call.
	Shuffled bool
	// Since is what becomes of updated_since.
	Since Since
	// Cursors is where the cursors lead.
	Cursors Cursors
}

// Since is what a registry does with updated_since.
type Since uint8

// The values of Since.
const (
	SinceHonoured Since = iota
	SinceIgnored        // it lists everything
	SinceNothing        // it lists nothing
	SinceRefused        // it responds with 400
)

// Cursors is where the cursors of the pages of a list lead.
type Cursors uint8

// The values of Cursors.
const (
	CursorsForward Cursors = iota
	CursorsLoop            // from the second page to the second page
	CursorsCycle           // from the fourth page to the second page
	CursorsEmpty           // to pages without records, without an end
	CursorsEndless         // to the same records again and again, with a new cursor each time
	CursorsLong            // nowhere: 1 MiB
	CursorsNumber          // nowhere: a number instead of a string
)

const (
	maxPageSize  = 100
	cursorPrefix = "page-"
)

// pageNumber returns the number of the page that a request wants, from 1; 0 for a wrong cursor.
func pageNumber(r *http.Request) int {
	cursor := r.URL.Query().Get("cursor")
	if cursor == "" {
		return 1
	}
	n, err := strconv.Atoi(strings.TrimPrefix(cursor, cursorPrefix))
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// page returns the text of a page.
func (b Behaviour) page(records []Record, r *http.Request, number int) ([]byte, error) {
	if number == 0 {
		return nil, errors.New("invalid cursor")
	}
	listed, err := b.listed(records, r)
	if err != nil {
		return nil, err
	}
	size := b.pageSize(r)
	last := max(1, (len(listed)+size-1)/size)
	start := min((number-1)*size, len(listed))
	if b.Cursors == CursorsEndless {
		start = (number - 1) % last * size
	}
	end := min(start+size, len(listed))
	text := []byte(`{"servers":[`)
	for i, at := range listed[start:end] {
		if i > 0 {
			text = append(text, ',')
		}
		text = records[at].appendJSON(text)
	}
	text = append(text, `],"metadata":{"count":`...)
	text = strconv.AppendInt(text, int64(end-start), 10)
	if next := b.nextCursor(number, last); next != "" {
		text = append(append(text, `,"nextCursor":`...), next...)
	}
	return append(text, `}}`...), nil
}

// listed returns the indexes of the records that a request selects, in their order.
func (b Behaviour) listed(records []Record, r *http.Request) ([]int, error) {
	q := r.URL.Query()
	var since time.Time
	if text := q.Get("updated_since"); text != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, text); err != nil || b.Since == SinceRefused {
			return nil, errors.New("updated_since is not supported")
		}
		switch b.Since {
		case SinceIgnored:
			since = time.Time{}
		case SinceNothing:
			return nil, nil
		}
	}
	order := make([]int, len(records))
	for i := range order {
		order[i] = i
	}
	if b.Percent > 0 {
		order = order[:len(order)*b.Percent/100]
	}
	if b.Shuffled {
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	}
	listed := order[:0]
	for _, i := range order {
		isHidden := records[i].Status == "deleted" && q.Get("include_deleted") != "true"
		if !isHidden && (since.IsZero() || records[i].UpdatedAt.After(since)) {
			listed = append(listed, i)
		}
	}
	return listed, nil
}

func (b Behaviour) pageSize(r *http.Request) int {
	size := maxPageSize
	if b.PageSize > 0 {
		size = b.PageSize
	}
	if limit, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil && limit > 0 {
		size = min(size, limit)
	}
	return size
}

// nextCursor returns the JSON text of the cursor after a page, or "" after the last one.
func (b Behaviour) nextCursor(number, last int) string {
	next := number + 1
	switch b.Cursors {
	case CursorsForward:
		if number >= last {
			return ""
		}
	case CursorsLoop:
		next = 2
	case CursorsCycle:
		if number == 4 {
			next = 2
		}
	case CursorsEmpty, CursorsEndless:
	case CursorsLong:
		return `"` + strings.Repeat("x", 1<<20-100) + `"`
	case CursorsNumber:
		return "7"
	}
	return `"` + cursorPrefix + strconv.Itoa(next) + `"`
}
