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

// lines writes what a plugin prints into the service's log, line by line. Structured lines keep their level and fields, plain
// ones are logged at the level they name at their beginning ("[WARN] …"), or at the given one.
//
// The plugin's output is not trusted: lines are bounded, and any JSON is taken as it comes. That is why go-plugin, whose reader
// of standard error ends the host when a key of the line has an unexpected type, gets none of it.
type lines struct {
	log   *logrus.Entry
	plain logrus.Level // of lines that name none
	quiet bool         // log every line at plain, whatever it names

	mu    sync.Mutex
	line  []byte
	crash bool   // a stack trace has begun: what follows belongs to it
	last  string // the last plain line, of a stack trace its first
}

// Write takes a piece of output; it never fails.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := p; len(rest) > 0; {
		piece, after, ended := bytes.Cut(rest, []byte{'\n'})
		if room := maxLine - len(l.line); room > 0 {
			l.line = append(l.line, piece[:min(room, len(piece))]...)
		}
		if ended {
			l.emit()
		}
		rest = after
	}
	return len(p), nil
}

// flush logs what is left of a last line without end.
func (l *lines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.emit()
}

// lastWords returns what was printed last, which tells why a plugin gave up.
func (l *lines) lastWords() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *lines) emit() {
	line := bytes.TrimSpace(l.line)
	l.line = l.line[:0]
	switch {
	case len(line) == 0:
	case l.quiet:
		l.log.Log(l.plain, string(line))
	case line[0] == '{' && l.structured(line):
	default:
		l.text(strings.ToValidUTF8(string(line), "\uFFFD"))
	}
}

// structured logs a line in the form of hclog; it reports false for one that is none.
func (l *lines) structured(line []byte) bool {
	var fields map[string]any
	if json.Unmarshal(line, &fields) != nil {
		return false
	}
	message, ok := fields["@message"].(string)
	if !ok {
		return false
	}
	name, _ := fields["@level"].(string) // another type counts as no level
	level := levelOf(name, l.plain)
	entry := l.log
	if l.log.Logger.IsLevelEnabled(level) {
		entry = l.log.WithFields(carried(fields))
	}
	entry.Log(level, message)
	return true
}

// carried returns at most maxFields fields of a line; none of them may pass for one of the host's own.
func carried(fields map[string]any) logrus.Fields {
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

func (l *lines) text(line string) {
	if !l.crash {
		l.last = line
	}
	if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
		l.crash = true
	}
	level := l.plain
	if l.crash {
		level = logrus.ErrorLevel
	}
	if tag, rest, ok := strings.Cut(line, "] "); ok && strings.HasPrefix(tag, "[") {
		if named := levelOf(strings.ToLower(tag[1:]), noLevel); named != noLevel {
			level, line = named, rest
		}
	}
	l.log.Log(level, line)
}

// noLevel is no level of logrus.
const noLevel = logrus.Level(255)

// levelOf returns the level of a name; a plugin cannot make the host's logger exit or panic.
func levelOf(name string, otherwise logrus.Level) logrus.Level {
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

// libraryLog returns the logger for go-plugin's own remarks, which are of use to a developer only: all are debug lines.
func libraryLog(log *logrus.Entry) hclog.Logger {
	level := hclog.Off
	if log.Logger.IsLevelEnabled(logrus.DebugLevel) {
		level = hclog.Debug
	}
	return hclog.New(&hclog.LoggerOptions{
		Level: level, DisableTime: true, Output: &lines{log: log.WithField("library", "go-plugin"), plain: logrus.DebugLevel, quiet: true},
	})
}
