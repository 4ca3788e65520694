package main

import (
	"encoding/json"
	"fmt"
	"os"
)

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
