package audit

import "time"

// Run is an import of servers, or a read of a mirror. The events of what it changed are parts of
// it, and one event counts them.
type Run struct {
	name  string
	total int
	first []string
}

// The details of the events of a run.
const (
	detailRun   = "run"    // of the event that counts: the name of the run
	DetailPart  = "partOf" // of a part: the name of the run
	detailFirst = "first"  // of the event that counts: the first parts
)

// maxFirst is how many parts the event that counts names.
const maxFirst = 3

// NewRun returns a run of something, for example an import, that begins at a time.
func NewRun(of string, at time.Time) Run {
	return Run{name: of + " " + formatTime(at)}
}

// Part makes the event of a change of the category RegistryChange a part of the run.
func (r *Run) Part(c Change) Change {
	c.Details[DetailPart] = Text(r.name)
	return c
}

// Count counts a part that is stored, by a name for people.
func (r *Run) Count(part string) {
	if r.total++; len(r.first) < maxFirst {
		r.first = append(r.first, part)
	}
}

// IsEmpty reports whether the run has changed nothing.
func (r *Run) IsEmpty() bool { return r.total == 0 }

// Describe adds to the details of an event how many parts the run has, under a name, and the first
// ones.
func (r *Run) Describe(d Details, parts string) Details {
	d[detailRun], d[parts], d[detailFirst] = Text(r.name), Number(r.total), Texts(r.first)
	return d
}

// Run returns the name of the run whose parts the event counts; empty for another event.
func (e *Event) Run() string { return e.Details.Text(detailRun) }
