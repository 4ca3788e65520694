package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

// scribe writes messages down instead of sending them.
type scribe struct {
	log  *slog.Logger
	path string // of the file for codes; empty for none
}

// entry is a line of the file (decisions 0).
type entry struct {
	Time      time.Time `json:"time"`
	Channel   string    `json:"channel"`
	Recipient string    `json:"recipient"`
	Code      string    `json:"code"`
}

// Channels names all there are: a log takes anything.
func (scribe) Channels() []sdk.Channel { return []sdk.Channel{sdk.Email, sdk.SMS} }

// Deliver logs m; a code is appended to the file too. It fails when the file cannot be written.
func (s scribe) Deliver(ctx context.Context, m sdk.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	to := []slog.Attr{slog.String("channel", string(m.Channel)), slog.String("recipient", m.Recipient)}
	if m.Kind == sdk.Notice {
		s.log.LogAttrs(ctx, slog.LevelInfo, "notice", append(to, slog.String("subject", m.Subject), slog.String("text", m.Text))...)
		return nil
	}
	if err := s.record(m); err != nil {
		return err
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "one-time code", append(to,
		slog.String("code", m.Code), slog.String("expires", m.ExpiresAt.UTC().Format(time.RFC3339)))...)
	return nil
}

// check makes the file if there is none, so that a path that can't be written shows at the start.
func (s scribe) check() error {
	if s.path == "" {
		return nil
	}
	return s.append(nil)
}

func (s scribe) record(m sdk.Message) error {
	if s.path == "" {
		return nil
	}
	line, err := json.Marshal(entry{Time: time.Now().UTC(), Channel: string(m.Channel), Recipient: m.Recipient, Code: m.Code})
	if err != nil {
		return fmt.Errorf("writing the code as JSON: %w", err)
	}
	return s.append(append(line, '\n'))
}

// append adds line in one write, so that lines of parallel calls never mix. The file is opened each time: it may be moved away
// or removed meanwhile.
func (s scribe) append(line []byte) error {
	file, err := os.OpenFile(s.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if len(line) > 0 {
		_, err = file.Write(line)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
