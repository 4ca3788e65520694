// Package report is the port for what happens in work that no caller waits for, for example rules
// that are loaded and events that are delivered. It reports to operators, by the log and by
// metrics. What people and auditors may read is in the audit log.
package report

// Reporter receives events. An event is a value of one of the types that use cases document as
// events. Report must be safe for concurrent use, must not block, and ignores events that it does
// not know.
type Reporter interface {
	Report(event any)
}

// All passes each event on to all its reporters, in their order.
type All []Reporter

// Report implements Reporter.
func (a All) Report(event any) {
	for _, r := range a {
		r.Report(event)
	}
}
