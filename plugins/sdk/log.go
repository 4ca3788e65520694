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

// logTime is how the host reads times.
const logTime = "2006-01-02T15:04:05.000000Z07:00"

// NewLogger returns a logger whose lines the host reads and logs at their level, with their attributes. w is [os.Stderr],
// taken before serving begins: serving puts another file in its place.
func NewLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: hostKeys}))
}

// hostKeys renames the keys of a line to those that go-plugin reads.
func hostKeys(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		return slog.String("@timestamp", a.Value.Time().Format(logTime))
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
	level, _ := v.Any().(slog.Level) // slog stores nothing else under its level key; the zero value is info
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

// frames names the innermost callers of a panic, without arguments, which may hold a code.
func frames() []string {
	const depth, skip = 16, 4 // skip: Callers, frames, recovered and the runtime's own panic
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
