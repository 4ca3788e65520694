package wiring

import (
	"io"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// NewLog returns the service's log, written to w.
func NewLog(s settings.Service, w io.Writer) *logrus.Entry {
	log := logrus.New()
	log.SetOutput(w)
	if level, err := logrus.ParseLevel(s.LogLevel); err == nil { // settings.Read has refused any other
		log.SetLevel(level)
	}
	if s.LogFormat == "json" {
		log.SetFormatter(&logrus.JSONFormatter{
			TimestampFormat: time.RFC3339Nano,
			FieldMap: logrus.FieldMap{
				logrus.FieldKeyMsg:   "@message",
				logrus.FieldKeyTime:  "@timestamp",
				logrus.FieldKeyLevel: "level",
			},
		})
	} else {
		log.SetFormatter(&logrus.TextFormatter{FullTimestamp: true})
	}
	return logrus.NewEntry(log)
}
