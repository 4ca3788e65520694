package eventlog

import "github.com/sirupsen/logrus"

// Gather logs the errors of gathering the counts of everybody.
type Gather struct{ log *logrus.Entry }

// NewGather returns a Gather that writes to log.
func NewGather(log *logrus.Entry) *Gather { return &Gather{log} }

// GatherFailed implements gather.Reporter.
func (g *Gather) GatherFailed(err error) {
	g.log.WithError(err).Warn("what sign-ins have taught about everybody could not be gathered; it is kept, and the next attempt follows")
}
