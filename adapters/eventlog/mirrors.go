package eventlog

import (
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
)

// Mirrors logs reads of other registries. It implements mirrors.Reporter.
type Mirrors struct{ log *logrus.Entry }

// NewMirrors returns a Mirrors that writes to log.
func NewMirrors(log *logrus.Entry) Mirrors { return Mirrors{log} }

// Synced logs a read that changed something, or refused something.
func (m Mirrors) Synced(name mirror.Name, s mirroring.Summary) {
	if len(s.Count) == 0 {
		return
	}
	line := m.log.WithFields(logrus.Fields{"mirror": string(name), "records": s.Records, "servers": s.Servers})
	for verdict, n := range s.Count {
		line = line.WithField(string(verdict), n)
	}
	line.Info("another registry was read")
}

// SyncFailed logs a read that failed.
func (m Mirrors) SyncFailed(name mirror.Name, err error) {
	if name == "" {
		m.log.WithError(err).Warn("the mirrors could not be listed; the next attempt follows")
		return
	}
	m.log.WithError(err).WithField("mirror", string(name)).
		Warn("another registry could not be read; what it listed before stays listed, and the next attempt follows")
}

// Listed logs nothing.
func (Mirrors) Listed([]mirror.Mirror) {}
