package eventlog

import (
	"io"
	"time"

	"github.com/sirupsen/logrus"
)

// NewLog returns the service's log, written to w. level is a name that logrus.ParseLevel takes; any
// other means info. format is json for JSON lines, any other means text.
func NewLog(w io.Writer, level, format string) *logrus.Entry {
	log := logrus.New()
	log.SetOutput(w)
	if parsed, err := logrus.ParseLevel(level); err == nil {
		log.SetLevel(parsed)
	}
	if format == "json" {
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
