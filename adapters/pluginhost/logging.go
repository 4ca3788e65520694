package pluginhost

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/sirupsen/logrus"
)

const (
	maxLine   = 8 << 10 // bytes of a plugin's log line; the rest is dropped
	maxFields = 32      // of a structured line
)

// logWriter copies the output of a plugin to the service's log, line by line. Structured lines keep
// their level and fields. Plain lines are logged at the level at their beginning ("[WARN] …"), or
// at defaultLevel.
//
// The output of a plugin is not trusted: logWriter limits the length of lines, and accepts any
// JSON. It replaces go-plugin's own reader of standard error, which ends the host if a key of a
// line has an unexpected type.
type logWriter struct {
	log          *logrus.Entry
	defaultLevel logrus.Level // of lines without a level
	ignoreLevels bool         // log every line at defaultLevel

	mu           sync.Mutex
	line         []byte
	inStackTrace bool   // a stack trace has begun; all further lines belong to it
	last         string // the last plain line, or the first line of a stack trace
}

// Write implements [io.Writer]. It never returns an error.
func (l *logWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := p; len(rest) > 0; {
		piece, after, ended := bytes.Cut(rest, []byte{'\n'})
		if room := maxLine - len(l.line); room > 0 {
			l.line = append(l.line, piece[:min(room, len(piece))]...)
		}
		if ended {
			l.logLine()
		}
		rest = after
	}
	return len(p), nil
}

// flushLine logs a last line that has no line end.
func (l *logWriter) flushLine() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logLine()
}

// lastLine returns the last line of the plugin, which usually says why it ended.
func (l *logWriter) lastLine() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *logWriter) logLine() {
	line := bytes.TrimSpace(l.line)
	l.line = l.line[:0]
	switch {
	case len(line) == 0:
	case l.ignoreLevels:
		l.log.Log(l.defaultLevel, string(line))
	case line[0] == '{' && l.logStructured(line):
	default:
		l.logText(strings.ToValidUTF8(string(line), "\uFFFD"))
	}
}

// logStructured logs a line in the form of hclog. It returns false if line does not have that form.
func (l *logWriter) logStructured(line []byte) bool {
	var fields map[string]any
	if json.Unmarshal(line, &fields) != nil {
		return false
	}
	message, ok := fields["@message"].(string)
	if !ok {
		return false
	}
	name, _ := fields["@level"].(string) // any other type counts as no level
	level := parseLevel(name, l.defaultLevel)
	entry := l.log
	if l.log.Logger.IsLevelEnabled(level) {
		entry = l.log.WithFields(keepFields(fields))
	}
	entry.Log(level, message)
	return true
}

// keepFields returns at most maxFields fields of a line, renamed if they have the name of one of
// the host's own fields.
func keepFields(fields map[string]any) logrus.Fields {
	kept := logrus.Fields{}
	for key, value := range fields {
		if strings.HasPrefix(key, "@") || len(kept) == maxFields {
			continue
		}
		if key == fieldPlugin || key == fieldKind {
			key = "plugin." + key
		}
		kept[key] = value
	}
	return kept
}

func (l *logWriter) logText(line string) {
	if !l.inStackTrace {
		l.last = line
	}
	if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
		l.inStackTrace = true
	}
	level := l.defaultLevel
	if l.inStackTrace {
		level = logrus.ErrorLevel
	}
	if tag, rest, ok := strings.Cut(line, "] "); ok && strings.HasPrefix(tag, "[") {
		if named := parseLevel(strings.ToLower(tag[1:]), unknownLevel); named != unknownLevel {
			level, line = named, rest
		}
	}
	l.log.Log(level, line)
}

// unknownLevel is a value that is not a level of logrus.
const unknownLevel = logrus.Level(255)

// parseLevel returns the level with that name, or otherwise. It does not return fatal and panic,
// with which the logger would end the host.
func parseLevel(name string, otherwise logrus.Level) logrus.Level {
	switch name {
	case "trace":
		return logrus.TraceLevel
	case "debug":
		return logrus.DebugLevel
	case "info":
		return logrus.InfoLevel
	case "warn":
		return logrus.WarnLevel
	case "error":
		return logrus.ErrorLevel
	}
	return otherwise
}

// newLibraryLogger returns the logger for the messages of go-plugin itself, which only developers
// need. It logs all of them at debug level.
func newLibraryLogger(log *logrus.Entry) hclog.Logger {
	level := hclog.Off
	if log.Logger.IsLevelEnabled(logrus.DebugLevel) {
		level = hclog.Debug
	}
	return hclog.New(&hclog.LoggerOptions{
		Level: level, DisableTime: true, Output: &logWriter{
			log: log.WithField("library", "go-plugin"), defaultLevel: logrus.DebugLevel, ignoreLevels: true,
		},
	})
}
