package sdk

import (
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// hostTimeFormat is the time format that the host reads.
const hostTimeFormat = "2006-01-02T15:04:05.000000Z07:00"

// NewLogger returns a logger whose lines the host writes to its log, with their level and
// attributes. w must be [os.Stderr]; call NewLogger before serving, because serving replaces
// os.Stderr.
func NewLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: renameKeys}))
}

// renameKeys renames the keys of a line to those that go-plugin reads.
func renameKeys(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		return slog.String("@timestamp", a.Value.Time().Format(hostTimeFormat))
	case slog.LevelKey:
		return slog.String("@level", levelName(a.Value))
	case slog.MessageKey:
		return slog.Attr{Key: "@message", Value: a.Value}
	}
	if a.Value.Kind() == slog.KindTime {
		return slog.String(a.Key, a.Value.Time().Format(time.RFC3339Nano))
	}
	return a
}

func levelName(v slog.Value) string {
	level, _ := v.Any().(slog.Level) // slog stores only levels under this key; the zero value is info
	switch {
	case level >= slog.LevelError:
		return "error"
	case level >= slog.LevelWarn:
		return "warn"
	case level >= slog.LevelInfo:
		return "info"
	}
	return "debug"
}

// panicFrames returns the innermost callers of a panic, without their arguments, which may contain
// a code.
func panicFrames() []string {
	const depth, skip = 16, 4 // skip: Callers, panicFrames, recoverPanic and the runtime's own panic
	counters := make([]uintptr, depth)
	n := runtime.Callers(skip, counters)
	walk := runtime.CallersFrames(counters[:n])
	var names []string
	for {
		frame, more := walk.Next()
		if !strings.HasPrefix(frame.Function, "runtime.") {
			names = append(names, fmt.Sprintf("%s (%s:%d)", frame.Function, filepath.Base(frame.File), frame.Line))
		}
		if !more {
			return names
		}
	}
}
