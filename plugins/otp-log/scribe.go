package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

// scribe writes messages down instead of sending them.
type scribe struct {
	log     *slog.Logger
	codes   book
	notices book
}

// codeEntry is a line of OTP_LOG_FILE (contract O-9).
type codeEntry struct {
	Time      time.Time `json:"time"`
	Channel   string    `json:"channel"`
	Recipient string    `json:"recipient"`
	Code      string    `json:"code"`
}

// noticeEntry is a line of the book for notices.
type noticeEntry struct {
	Time      time.Time `json:"time"`
	Channel   string    `json:"channel"`
	Recipient string    `json:"recipient"`
	Notice    string    `json:"notice"`
}

// Channels names all there are: a log takes anything.
func (scribe) Channels() []sdk.Channel { return []sdk.Channel{sdk.Email, sdk.SMS} }

// Deliver writes m into its book and logs it. It fails when the book cannot be written.
func (s scribe) Deliver(ctx context.Context, m sdk.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.record(m); err != nil {
		return err
	}
	to := []slog.Attr{slog.String("channel", string(m.Channel)), slog.String("recipient", m.Recipient)}
	if m.Kind == sdk.Notice {
		s.log.LogAttrs(ctx, slog.LevelInfo, "notice", append(to, slog.String("subject", m.Subject), slog.String("text", m.Text))...)
		return nil
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "one-time code", append(to,
		slog.String("code", m.Code), slog.String("expires", m.ExpiresAt.UTC().Format(time.RFC3339)))...)
	return nil
}

// check makes the files where there are none, so that a path that can't be written shows at the start.
func (s scribe) check() error {
	if err := s.codes.check(); err != nil {
		return fmt.Errorf("OTP_LOG_FILE: %w", err)
	}
	if err := s.notices.check(); err != nil {
		return fmt.Errorf("NOTICE_LOG_FILE: %w", err)
	}
	return nil
}

func (s scribe) record(m sdk.Message) error {
	now, channel := time.Now().UTC(), string(m.Channel)
	if m.Kind == sdk.Notice {
		return s.notices.write(noticeEntry{Time: now, Channel: channel, Recipient: m.Recipient, Notice: m.Text})
	}
	return s.codes.write(codeEntry{Time: now, Channel: channel, Recipient: m.Recipient, Code: m.Code})
}
