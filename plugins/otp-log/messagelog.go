package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

// messageLog writes messages to the log and to files instead of sending them.
type messageLog struct {
	log     *slog.Logger
	codes   logFile
	notices logFile
}

// codeEntry is one line of OTP_LOG_FILE (contract O-9).
type codeEntry struct {
	Time      time.Time `json:"time"`
	Channel   string    `json:"channel"`
	Recipient string    `json:"recipient"`
	Code      string    `json:"code"`
}

// noticeEntry is one line of NOTICE_LOG_FILE.
type noticeEntry struct {
	Time      time.Time `json:"time"`
	Channel   string    `json:"channel"`
	Recipient string    `json:"recipient"`
	Notice    string    `json:"notice"`
}

// linkEntry is a line of NOTICE_LOG_FILE for a notice with a link.
type linkEntry struct {
	Time      time.Time `json:"time"`
	Channel   string    `json:"channel"`
	Recipient string    `json:"recipient"`
	Subject   string    `json:"subject"`
	Link      string    `json:"link"`
}

// errNoLinkFile is the error for a link that has no file. The log is not the place for it: who
// reads the log could take over the account.
var errNoLinkFile = errors.New("a link is written to the file NOTICE_LOG_FILE only, which is not set")

// Channels implements [sdk.Courier]: a log accepts every channel.
func (messageLog) Channels() []sdk.Channel { return []sdk.Channel{sdk.Email, sdk.SMS} }

// Deliver writes m to its file and to the log. It returns an error if the file cannot be written.
func (s messageLog) Deliver(ctx context.Context, m sdk.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.recordMessage(m); err != nil {
		return err
	}
	to := []slog.Attr{slog.String("channel", string(m.Channel)), slog.String("recipient", m.Recipient)}
	switch {
	case m.Link != "":
		s.log.LogAttrs(ctx, slog.LevelInfo, "link", append(to, slog.String("subject", m.Subject))...)
		return nil
	case m.Kind == sdk.Notice:
		s.log.LogAttrs(ctx, slog.LevelInfo, "notice",
			append(to, slog.String("subject", m.Subject), slog.String("text", m.Text))...)
		return nil
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "one-time code", append(to,
		slog.String("code", m.Code), slog.String("expires", m.ExpiresAt.UTC().Format(time.RFC3339)))...)
	return nil
}

// createFiles creates the files that do not exist. It returns an error that names the setting of a
// file that cannot be written, so that a wrong path is reported at the start.
func (s messageLog) createFiles() error {
	if err := s.codes.createFile(); err != nil {
		return fmt.Errorf("OTP_LOG_FILE: %w", err)
	}
	if err := s.notices.createFile(); err != nil {
		return fmt.Errorf("NOTICE_LOG_FILE: %w", err)
	}
	return nil
}

func (s messageLog) recordMessage(m sdk.Message) error {
	now, channel := time.Now().UTC(), string(m.Channel)
	switch {
	case m.Link != "" && s.notices == "":
		return errNoLinkFile
	case m.Link != "":
		return s.notices.writeEntry(linkEntry{
			Time: now, Channel: channel, Recipient: m.Recipient, Subject: m.Subject, Link: m.Link,
		})
	case m.Kind == sdk.Notice:
		return s.notices.writeEntry(noticeEntry{Time: now, Channel: channel, Recipient: m.Recipient, Notice: m.Text})
	}
	return s.codes.writeEntry(codeEntry{Time: now, Channel: channel, Recipient: m.Recipient, Code: m.Code})
}

// logFile is the path of a file of JSON lines. With an empty path nothing is written.
type logFile string

// createFile creates the file if it does not exist.
func (b logFile) createFile() error {
	if b == "" {
		return nil
	}
	return b.appendLine(nil)
}

// writeEntry appends entry as one line of JSON.
func (b logFile) writeEntry(entry any) error {
	if b == "" {
		return nil
	}
	line, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("writing the message as JSON: %w", err)
	}
	return b.appendLine(append(line, '\n'))
}

// appendLine appends line in one write, so that lines of parallel calls do not mix. It opens the
// file each time because the file may have been moved or removed since the last call.
func (b logFile) appendLine(line []byte) error {
	file, err := os.OpenFile(string(b), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
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
